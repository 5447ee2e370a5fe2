/** Permissions as a table: routes name an action, and the table lists the roles that may perform it. */

/** From the lowest rank to the highest. A viewer reads what a member reads and changes only its own sign-in. */
export const roles = ['viewer', 'member', 'admin', 'owner'] as const
export type Role = (typeof roles)[number]

/** Roles in a project. Owners and admins of the account have all rights in each of its projects. */
export const projectRoles = ['viewer', 'member', 'admin'] as const
export type ProjectRole = (typeof projectRoles)[number]

const everyone = ['viewer', 'member', 'admin', 'owner'] as const
const members = ['member', 'admin', 'owner'] as const
const leaders = ['admin', 'owner'] as const
const owners = ['owner'] as const

const matrix = {
  'sessions.own': everyone,
  'account.see': everyone,
  'account.change': leaders,
  'account.secure': owners,
  'account.delete': owners,
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
  'provider_keys.manage': owners,
  'insights.see': everyone,
  'learning.delete': leaders,
  'audit.see': leaders,
  'webhooks.manage': leaders,
  'alerts.manage': leaders,
  'projects.see': everyone,
  'projects.change': leaders,
  'projects.all': leaders,
  'team.see': everyone,
  'team.invite': leaders,
  'team.remove': leaders,
  'team.change_roles': owners,
  'billing.see': owners,
  'billing.change': owners,
  'management_keys.manage': leaders,
  'tags.see': everyone,
  'tags.change': leaders,
} as const satisfies Record<string, readonly Role[]>

export type Action = keyof typeof matrix

/** All actions, for tests that iterate over them. */
export const actions = Object.keys(matrix) as readonly Action[]

const areas = ['keys', 'projects', 'budgets', 'usage', 'audit', 'providers'] as const

/** What a management key may do: read or change the objects of one area. `write` includes `read`. */
export const managementScopes = areas.flatMap(area => [`${area}:read`, `${area}:write`] as const)
export type ManagementScope = (typeof managementScopes)[number]

/** The area of each action that a management key may perform. No key signs in, pays, or changes users and their secrets. */
const managedAreas: Partial<Record<Action, (typeof areas)[number]>> = {
  'keys.see': 'keys',
  'keys.own': 'keys',
  'projects.see': 'projects',
  'projects.change': 'projects',
  'projects.all': 'projects',
  'team.see': 'projects',
  'account.see': 'budgets',
  'tags.see': 'budgets',
  'tags.change': 'budgets',
  'alerts.manage': 'budgets',
  'webhooks.manage': 'budgets',
  'usage.own': 'usage',
  'requests.own': 'usage',
  'requests.export_own': 'usage',
  'insights.see': 'usage',
  'providers.see': 'usage',
  'audit.see': 'audit',
  'provider_keys.manage': 'providers',
}

/** Returns the scope that an action needs of a management key; null = no key may perform it. */
export function neededScope(action: Action, does: 'read' | 'write'): ManagementScope | null {
  const area = managedAreas[action]
  return area === undefined ? null : `${area}:${does}`
}

/** Returns true if a management key with these scopes may do what needs `scope`. */
export function includesScope(scopes: readonly ManagementScope[], scope: ManagementScope | null): boolean {
  return scope !== null && scopes.some(held => held === scope || held === scope.replace(/read$/, 'write'))
}

/** Returns true if a role may perform an action. Which objects the action may affect is checked separately. */
export function isAllowed(role: Role, action: Action): boolean {
  const allowed: readonly Role[] = matrix[action]
  return allowed.includes(role)
}

/** What a role in a project permits beside `projects.see`: every member of a project sees all of it. */
const projectMatrix = {
  'keys.own': ['member', 'admin'],
  'keys.all': ['admin'],
  'projects.change': ['admin'],
  'alerts.manage': ['admin'],
} as const satisfies Partial<Record<Action, readonly ProjectRole[]>>

/** A user's role in the account, and the roles in projects by the project's ID. */
export type Holder = { readonly role: Role; readonly projects: ReadonlyMap<string, ProjectRole> }

/** Returns true if a user may perform an action on objects of this project; null = on objects of no project. */
export function isAllowedIn({ role, projects }: Holder, action: Action, projectId: string | null): boolean {
  if (projectId === null || isAllowed(role, 'projects.all')) return isAllowed(role, action)
  const inProject = projects.get(projectId)
  return inProject !== undefined && allowsInProject(inProject, action)
}

/** Returns true if a user may perform an action on objects of the account or of at least one project. */
export function isAllowedSomewhere({ role, projects }: Holder, action: Action): boolean {
  return isAllowed(role, action) || projects.values().some(inProject => allowsInProject(inProject, action))
}

function allowsInProject(role: ProjectRole, action: Action): boolean {
  const allowed: Partial<Record<Action, readonly ProjectRole[]>> = projectMatrix
  return allowed[action]?.includes(role) ?? false
}

/** Returns true if a role may invite or remove members of rank `other`: owners any rank, others only lower ranks. */
export function outranks(role: Role, other: Role): boolean {
  return role === 'owner' || roles.indexOf(role) > roles.indexOf(other)
}
