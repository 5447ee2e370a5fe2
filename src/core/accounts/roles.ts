/** Who may do what, as a table: routes name an action, and this says which roles it is open to. */

export const roles = ['member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

const everyone = ['member', 'admin', 'owner'] as const
const leaders = ['admin', 'owner'] as const
const owners = ['owner'] as const

const matrix = {
  'sessions.own': everyone,
  'account.see': everyone,
  'account.change': leaders,
  'keys.own': everyone,
  'keys.all': leaders,
  'usage.own': everyone,
  'usage.all': leaders,
  'requests.own': everyone,
  'requests.all': leaders,
  'requests.export_own': everyone,
  'requests.export_all': leaders,
  'feedback.give': everyone,
  'insights.see': everyone,
  'learning.delete': leaders,
  'team.see': everyone,
  'team.invite': leaders,
  'team.remove': leaders,
  'team.change_roles': owners,
  'billing.see': owners,
  'billing.change': owners,
} as const satisfies Record<string, readonly Role[]>

export type Action = keyof typeof matrix

/** Every action there is, for tests that walk them. */
export const actions = Object.keys(matrix) as readonly Action[]

/** Whether a role may do this at all. What it may do it to is asked for separately. */
export function isAllowed(role: Role, action: Action): boolean {
  const allowed: readonly Role[] = matrix[action]
  return allowed.includes(role)
}

/** Whether one who may invite or remove may do so with somebody of rank `other`: below the own rank, but for owners. */
export function outranks(role: Role, other: Role): boolean {
  return role === 'owner' || roles.indexOf(role) > roles.indexOf(other)
}
