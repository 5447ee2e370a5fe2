/**
 * Projects: keys, limits and members of one part of an account. Owners and admins of the account create projects and set their
 * limits; a project's admins manage its keys and members.
 */

import { Type } from '@sinclair/typebox'
import { isAllowed, isAllowedIn, type ProjectRole, projectRoles } from '../../core/accounts/roles.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Principal } from '../../http/authentication.ts'
import { changedLimits, nameSchema, scopeLimitsSchema } from '../../http/schemas.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { projectListShape, projectShape, type ShownProject } from './schemas.ts'
import { archiveProject, changeProject, createProject, type ListedProject, listProjects, setMember } from './store.ts'

const limitsField = Type.Optional(Type.Union([scopeLimitsSchema, Type.Null()]))
const creationSchema = strictObject({ name: nameSchema, limits: limitsField })
const changeSchema = strictObject({
  name: Type.Optional(nameSchema),
  limits: limitsField,
  constraints: nullable(constraintsSchema),
})
const memberSchema = strictObject({ role: oneOf(projectRoles) })

/** Routes under `/api/v1/projects`. */
export function projectRoutes(deps: ConsoleDeps, identify: Authenticate) {
  return sessionRoutes('projects', identify, [
    sessionRoute({
      route: 'GET /api/v1/projects',
      action: 'projects.see',
      summary: 'List projects with their limits and members, newest first',
      description: 'Owners and admins of the account see all projects, other users those that they are a member of.',
      answer: projectListShape,
      handle: list,
    }),
    sessionRoute({
      route: 'GET /api/v1/projects/:id',
      action: 'projects.see',
      summary: 'Get a project',
      answer: projectShape,
      errors: ['not_found'],
      handle: show,
    }),
    sessionRoute({
      route: 'POST /api/v1/projects',
      action: 'projects.all',
      summary: 'Create a project',
      body: creationSchema,
      answer: projectShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'PATCH /api/v1/projects/:id',
      action: 'projects.change',
      summary: 'Change a project',
      description:
        'An omitted field or limit stays as it is; null removes it. Only owners and admins of the account change limits and constraints.',
      body: changeSchema,
      answer: projectShape,
      errors: ['not_found', 'conflict'],
      handle: call => change(deps, call),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/projects/:id',
      action: 'projects.all',
      summary: 'Archive a project',
      description: 'Requires that the project has no valid keys: revoke or move them first. Its usage stays visible.',
      answer: null,
      errors: ['not_found', 'conflict'],
      handle: call => archive(call, new Date(deps.clock.now())),
    }),
    sessionRoute({
      route: 'PUT /api/v1/projects/:id/members/:user',
      action: 'projects.change',
      summary: 'Set a user’s role in a project',
      description: 'The user must belong to the account. Keys that the role no longer allows are revoked.',
      body: memberSchema,
      answer: projectShape,
      errors: ['not_found', 'conflict'],
      async handle(call) {
        await changeMember(deps, call, call.body.role)
        return show(call)
      },
    }),
    sessionRoute({
      route: 'DELETE /api/v1/projects/:id/members/:user',
      action: 'projects.change',
      summary: 'Remove a user from a project with the user’s keys in it',
      answer: null,
      errors: ['not_found', 'conflict'],
      async handle(call) {
        await changeMember(deps, call, null)
        return null
      },
    }),
  ])
}

async function list({ principal, database }: SessionRequest) {
  const ids = isAllowed(principal.role, 'projects.all') ? null : [...principal.projects.keys()]
  const rows = await listProjects(database, principal.accountId, ids)
  return { data: rows.map(row => shownProject(row, principal)) }
}

async function show({ principal, id, database }: SessionRequest) {
  refuseUnseen(principal, id)
  const [row] = await listProjects(database, principal.accountId, [id])
  if (row === undefined) throw notFound()
  return shownProject(row, principal)
}

async function create({ clock, newId }: ConsoleDeps, call: SessionRequest<typeof creationSchema>) {
  const { name, limits = null } = call.body
  const now = clock.now()
  const [id, createdAt] = [newId('prj'), new Date(now)]
  const project = { id, name, createdAt, limits: changedLimits(null, limits, now) }
  if (!(await createProject(call.database, call.principal.accountId, project)))
    throw new GatewayError('conflict', 'Too many projects. Archive unused ones first.')
  return show({ ...call, id })
}

async function change({ clock, announce }: ConsoleDeps, call: SessionRequest<typeof changeSchema>) {
  const { principal, database } = call
  const { name, limits, constraints } = call.body
  const id = managed(call)
  if (name === undefined && limits === undefined && constraints === undefined)
    throw invalidField('name', 'is required unless another field is sent')
  // A budget that its users could raise would limit nothing.
  const isBound = limits !== undefined || constraints !== undefined
  if (isBound && !isAllowed(principal.role, 'projects.all')) throw forbidden()
  const changed = await changeProject(database, principal.accountId, id, {
    ...(name === undefined ? {} : { name }),
    ...(limits === undefined ? {} : { limits: before => changedLimits(before, limits, clock.now()) }),
    ...(constraints === undefined ? {} : { constraints }),
  })
  refuseUnlessDone(changed, conflicts)
  if (isBound) announce()
  return show(call)
}

async function archive(call: SessionRequest, at: Date): Promise<null> {
  const archived = await archiveProject(call.database, call.principal.accountId, managed(call), at)
  if (archived === 'has_keys')
    throw new GatewayError('conflict', 'This project has valid API keys. Revoke them or move them to another project.')
  // A second archival succeeds: the result is the same.
  if (archived !== 'archived') refuseUnlessDone<never>(archived, {})
  return null
}

async function changeMember({ announce }: ConsoleDeps, call: SessionRequest, role: ProjectRole | null): Promise<void> {
  const { accountId, userId: actorId } = call.principal
  const member = { projectId: managed(call), userId: call.params.user ?? '', role }
  const changed = await setMember(call.database, accountId, actorId, member)
  refuseUnlessDone(changed, conflicts)
  announce()
}

/** Returns the ID of the project in the path if the user's role permits changes of it. */
function managed({ principal, id }: SessionRequest): string {
  refuseUnseen(principal, id)
  if (!isAllowedIn(principal, 'projects.change', id)) throw forbidden()
  return id
}

/** Throws the error for an unknown ID if the user may not see the project. */
function refuseUnseen({ role, projects }: Principal, id: string): void {
  if (!isAllowed(role, 'projects.all') && !projects.has(id)) throw notFound()
}

const conflicts = { archived: 'This project is archived. Create a new project.' } as const

const shownProject = (row: ListedProject, { projects }: Principal): ShownProject => ({
  ...row,
  role: projects.get(row.id) ?? null,
})
