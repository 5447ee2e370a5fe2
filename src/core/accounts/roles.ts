/** Permissions as a table: routes name an action, and the table lists the roles that may perform it. */

/** From the lowest rank to the highest. A viewer reads what a member reads and changes only its own sign-in. */
export const roles = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

const everyone = ['viewer', 'member', 'admin', 'owner'] as const
const members = ['member', 'admin', 'owner'] as const
const leaders = ['admin', 'owner'] as const
const owners = ['owner'] as const

const matrix = {
  'sessions.own': everyone,
  'account.see': everyone,
  'account.change': leaders,
  'account.secure': owners,
  'keys.see': everyone,
  'keys.own': members,
  'keys.all': leaders,
  'usage.own': everyone,
  'usage.all': leaders,
  'requests.own': everyone,
  'requests.all': leaders,
  'requests.export_own': everyone,
  'requests.export_all': leaders,
  'feedback.give': members,
  'providers.see': leaders,
  'insights.see': everyone,
  'learning.delete': leaders,
  'audit.see': leaders,
  'webhooks.manage': leaders,
  'alerts.manage': leaders,
  'team.see': everyone,
  'team.invite': leaders,
  'team.remove': leaders,
  'team.change_roles': owners,
  'billing.see': owners,
  'billing.change': owners,
} as const satisfies Record<string, readonly Role[]>

export type Action = keyof typeof matrix

/** All actions, for tests that iterate over them. */
export const actions = Object.keys(matrix) as readonly Action[]

/** Returns true if a role may perform an action. Which objects the action may affect is checked separately. */
export function isAllowed(role: Role, action: Action): boolean {
  const allowed: readonly Role[] = matrix[action]
  return allowed.includes(role)
}

/** Returns true if a role may invite or remove members of rank `other`: owners any rank, others only lower ranks. */
export function outranks(role: Role, other: Role): boolean {
  return role === 'owner' || roles.indexOf(role) > roles.indexOf(other)
}
