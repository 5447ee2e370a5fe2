/**
 * Projects: keys, limits and members of one part of an account. Owners and admins of the account create projects and set their
 * limits; a project's admins manage its keys and members.
 */
import { Type } from '@sinclair/typebox'
import { isAllowed, isAllowedIn, projectRoles } from '../../core/accounts/roles.ts'
import { actingAs } from '../../core/audit/audit.ts'
import type { Clock } from '../../core/ports.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { Principal } from '../../http/authentication.ts'
import { changedLimits, nameSchema, scopeLimitsSchema, shownScopeLimits, shownScopeUsed } from '../../http/schemas.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  readInput,
  refuseUnlessDone,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import { projectListShape, projectShape, type ShownProject } from './schemas.ts'
import { archiveProject, changeProject, createProject, type ListedProject, listProjects, setMember } from './store.ts'

type ProjectsDeps = {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly newId: (prefix: string) => string
  /** Makes every gateway instance read changed keys, users and plans again. */
  readonly announce: () => void
}

const limitsField = Type.Optional(Type.Union([scopeLimitsSchema, Type.Null()]))
const creationSchema = strictObject({ name: nameSchema, limits: limitsField })
const changeSchema = strictObject({ name: Type.Optional(nameSchema), limits: limitsField })
const memberSchema = strictObject({ role: oneOf(projectRoles) })

/** Routes under `/api/v1/projects`. */
export function projectRoutes(deps: ProjectsDeps, identify: Authenticate) {
  return sessionRoutes('projects', identify, [
    {
      method: 'GET',
      path: '/api/v1/projects',
      action: 'projects.see',
      summary: 'List projects with their limits and members, newest first',
      description: 'Owners and admins of the account see all projects, other users those that they are a member of.',
      answer: projectListShape,
      handle: ({ principal }) => list(deps, principal),
    },
    {
      method: 'GET',
      path: '/api/v1/projects/:id',
      action: 'projects.see',
      summary: 'Get a project',
      answer: projectShape,
      errors: ['not_found'],
      handle: ({ principal, params }) => show(deps, principal, params.id ?? '', 200),
    },
    {
      method: 'POST',
      path: '/api/v1/projects',
      action: 'projects.all',
      summary: 'Create a project',
      body: creationSchema,
      examples: {
        'without limits': { name: 'search' },
        'with a budget': { name: 'search', limits: { daily_cost_usd: 20, monthly_cost_usd: 400 } },
      },
      answer: projectShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    },
    {
      method: 'PATCH',
      path: '/api/v1/projects/:id',
      action: 'projects.change',
      summary: 'Change a project',
      description:
        'An omitted field or limit stays as it is; null removes it. Only owners and admins of the account change limits.',
      body: changeSchema,
      examples: { 'new name': { name: 'retrieval' }, 'other budget': { limits: { monthly_cost_usd: 500 } } },
      answer: projectShape,
      errors: ['not_found', 'conflict'],
      handle: call => change(deps, call),
    },
    {
      method: 'DELETE',
      path: '/api/v1/projects/:id',
      action: 'projects.all',
      summary: 'Archive a project',
      description: 'Requires that the project has no valid keys: revoke or move them first. Its usage stays visible.',
      answer: null,
      errors: ['not_found', 'conflict'],
      handle: call => archive(deps, call),
    },
    {
      method: 'PUT',
      path: '/api/v1/projects/:id/members/:user',
      action: 'projects.change',
      summary: 'Set a user’s role in a project',
      description: 'The user must belong to the account. Keys that the role no longer allows are revoked.',
      body: memberSchema,
      examples: { member: { role: 'member' } },
      answer: projectShape,
      errors: ['not_found', 'conflict'],
      handle: call => setRole(deps, call),
    },
    {
      method: 'DELETE',
      path: '/api/v1/projects/:id/members/:user',
      action: 'projects.change',
      summary: 'Remove a user from a project with the user’s keys in it',
      answer: null,
      errors: ['not_found', 'conflict'],
      handle: call => removeMember(deps, call),
    },
  ])
}

async function list({ database }: ProjectsDeps, principal: Principal): Promise<Response> {
  const ids = isAllowed(principal.role, 'projects.all') ? null : [...principal.projects.keys()]
  const rows = await listProjects(database, principal.accountId, ids)
  return reply({ data: rows.map(row => shownProject(row, principal)) })
}

async function show({ database }: ProjectsDeps, principal: Principal, id: string, status: 200 | 201) {
  refuseUnseen(principal, id)
  const [row] = await listProjects(database, principal.accountId, [id])
  if (row === undefined) throw notFound()
  return reply(shownProject(row, principal), status)
}

async function create(deps: ProjectsDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const { database, clock, newId } = deps
  const { name, limits = null } = await readInput(request, creationSchema)
  const now = clock.now()
  const [id, createdAt] = [newId('prj'), new Date(now)]
  const project = { id, name, createdAt, limits: changedLimits(null, limits, now) }
  if (!(await createProject(actingAs(database, actor), principal.accountId, project)))
    throw new GatewayError('conflict', 'Too many projects. Archive unused ones first.')
  return show(deps, principal, id, 201)
}

async function change(deps: ProjectsDeps, call: SessionRequest): Promise<Response> {
  const { principal, params, request, actor } = call
  const { database, clock, announce } = deps
  const { name, limits } = await readInput(request, changeSchema)
  const id = managed(call)
  if (name === undefined && limits === undefined) throw invalidField('name', 'is required unless another field is sent')
  // A budget that its users could raise would limit nothing.
  if (limits !== undefined && !isAllowed(principal.role, 'projects.all')) throw forbidden()
  const changed = await changeProject(actingAs(database, actor), principal.accountId, id, {
    ...(name === undefined ? {} : { name }),
    ...(limits === undefined ? {} : { limits: before => changedLimits(before, limits, clock.now()) }),
  })
  refuseUnlessDone(changed, conflicts)
  if (limits !== undefined) announce()
  return show(deps, principal, params.id ?? '', 200)
}

async function archive(deps: ProjectsDeps, call: SessionRequest): Promise<Response> {
  const { database, clock } = deps
  const at = new Date(clock.now())
  const acting = actingAs(database, call.actor)
  const archived = await archiveProject(acting, call.principal.accountId, managed(call), at)
  if (archived === 'has_keys')
    throw new GatewayError('conflict', 'This project has valid API keys. Revoke them or move them to another project.')
  // A second archival succeeds: the result is the same.
  if (archived !== 'archived') refuseUnlessDone<never>(archived, {})
  return replyNoContent()
}

async function setRole(deps: ProjectsDeps, call: SessionRequest): Promise<Response> {
  const { role } = await readInput(call.request, memberSchema)
  await changeMember(deps, call, role)
  return show(deps, call.principal, call.params.id ?? '', 200)
}

async function removeMember(deps: ProjectsDeps, call: SessionRequest): Promise<Response> {
  await changeMember(deps, call, null)
  return replyNoContent()
}

async function changeMember(
  { database, announce }: ProjectsDeps,
  call: SessionRequest,
  role: (typeof projectRoles)[number] | null,
): Promise<void> {
  const { accountId, userId: actorId } = call.principal
  const member = { projectId: managed(call), userId: call.params.user ?? '', role }
  const changed = await setMember(actingAs(database, call.actor), accountId, actorId, member)
  refuseUnlessDone(changed, conflicts)
  announce()
}

/** Returns the ID of the project in the path if the user's role permits changes of it. */
function managed({ principal, params }: SessionRequest): string {
  const id = params.id ?? ''
  refuseUnseen(principal, id)
  if (!isAllowedIn(principal, 'projects.change', id)) throw forbidden()
  return id
}

/** Throws the error for an unknown ID if the user may not see the project. */
function refuseUnseen({ role, projects }: Principal, id: string): void {
  if (!isAllowed(role, 'projects.all') && !projects.has(id)) throw notFound()
}

const conflicts = { archived: 'This project is archived. Create a new project.' } as const

function shownProject(row: ListedProject, { projects }: Principal): ShownProject {
  return {
    id: row.id,
    name: row.name,
    created_at: new Date(row.createdAt).toISOString(),
    archived_at: row.archivedAt === null ? null : new Date(row.archivedAt).toISOString(),
    role: projects.get(row.id) ?? null,
    limits: row.limits && shownScopeLimits(row.limits),
    used: shownScopeUsed(row.used),
    active_keys: row.activeKeys,
    members: [...row.members],
  }
}
