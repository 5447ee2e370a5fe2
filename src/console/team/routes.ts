/** Members of an account: list, invite, accept, change roles, remove. */

import { Type } from '@sinclair/typebox'
import { getDigest, newToken } from '../../core/accounts/api-keys.ts'
import { emailSchema, normalizeEmail, passwordSchema, validateNewPassword } from '../../core/accounts/passwords.ts'
import { isAllowed, outranks, projectRoles, roles } from '../../core/accounts/roles.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import { projectIdSchema, sessionShape, userShape } from '../../http/schemas.ts'
import { refuseWithoutPasswords, shownUser, signInProven } from '../auth/sign-in.ts'
import { releaseUnverified } from '../auth/stores/email-links.ts'
import {
  acceptInvitation,
  findInvitation,
  invite as inviteInStore,
  listInvitations as listInvitationsInStore,
  withdrawInvitation,
} from '../auth/stores/invitations.ts'
import {
  changeRole as changeRoleInStore,
  findUser,
  listUsers as listUsersInStore,
  removeUser,
} from '../auth/stores/users.ts'
import type { ConsoleDeps } from '../deps.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  type OpenRequest,
  openRoute,
  openRoutes,
  refuseUnlessDone,
  type SessionRequest,
  sessionRoute,
  sessionRoutes,
} from '../routes.ts'
import { newInvitationShape, teamShape } from './schemas.ts'

const invitationSchema = strictObject({
  email: emailSchema,
  role: Type.Optional(oneOf(['viewer', 'member', 'admin'])),
  project_id: nullable(projectIdSchema),
  project_role: Type.Optional(oneOf(projectRoles)),
})
const acceptanceSchema = strictObject({ password: passwordSchema })
const roleSchema = strictObject({ role: oneOf(roles) })

const acceptances = { allowed: 60, windowMs: 60_000 }

/** Routes under `/api/v1/team`. */
export function team(deps: ConsoleDeps, identify: Authenticate) {
  const accepting = deps.limits('invitation', acceptances)

  return openRoutes('team', deps, [
    openRoute({
      route: 'POST /api/v1/team/invitations/:token/accept',
      limit: accepting,
      summary: 'Accept an invitation with its token',
      description: 'Creates a user of the account and signs in.',
      body: acceptanceSchema,
      answer: sessionShape,
      status: 201,
      errors: ['not_found', 'conflict', 'ip_rate_limited'],
      refuse: () => refuseWithoutPasswords(deps.config),
      handle: call => accept(deps, call),
    }),
  ]).use(
    sessionRoutes('members', identify, [
      sessionRoute({
        route: 'GET /api/v1/team',
        action: 'team.see',
        summary: 'List members',
        answer: teamShape,
        handle: list,
      }),
      sessionRoute({
        route: 'POST /api/v1/team/invitations',
        action: 'team.invite',
        summary: 'Invite a user',
        description:
          'With `project_id` the user joins a project as well, as `project_role` (`member` by default): with the role `viewer` in the account, it sees only that project.',
        body: invitationSchema,
        answer: newInvitationShape,
        status: 201,
        errors: ['not_found'],
        handle: call => invite(deps, call),
      }),
      sessionRoute({
        route: 'DELETE /api/v1/team/invitations/:id',
        action: 'team.invite',
        summary: 'Withdraw an invitation',
        answer: null,
        errors: ['not_found'],
        handle: withdraw,
      }),
      sessionRoute({
        route: 'PATCH /api/v1/team/:id',
        action: 'team.change_roles',
        summary: 'Change a member’s role',
        body: roleSchema,
        answer: userShape,
        errors: ['conflict'],
        handle: call => changeRole(deps, call),
      }),
      sessionRoute({
        route: 'DELETE /api/v1/team/:id',
        action: 'team.remove',
        summary: 'Remove a member with keys and sessions',
        answer: null,
        errors: ['conflict'],
        handle: call => remove(deps, call),
      }),
    ]),
  )
}

async function list({ principal: { accountId, role }, database }: SessionRequest) {
  const [users, invitations] = await Promise.all([
    listUsersInStore(database, accountId),
    isAllowed(role, 'team.invite') ? listInvitationsInStore(database, accountId) : [],
  ])
  return { data: users.map(shownUser), invitations }
}

async function invite(deps: ConsoleDeps, { principal, body, database }: SessionRequest<typeof invitationSchema>) {
  const { email, role = 'member', project_id: projectId = null, project_role: projectRole } = body
  if (projectRole !== undefined && projectId === null) throw invalidField('project_role', 'requires `project_id`')
  if (!outranks(principal.role, role)) throw forbidden()
  const token = newToken('gw_invite_', deps.randomBytes)
  const id = deps.newId('inv')
  const made = await inviteInStore(database, principal.accountId, {
    ...{ id, email: normalizeEmail(email), role, invitedBy: principal.userId, digest: getDigest(token) },
    ...{ project_id: projectId, project_role: projectId === null ? null : (projectRole ?? 'member') },
  })
  refuseUnlessDone<never>(made, {})
  const invitation = (await listInvitationsInStore(database, principal.accountId)).find(other => other.id === id)
  if (invitation === undefined) throw forbidden()
  // Without a mail server, the inviting user must pass the token on.
  if (deps.post === null) return { ...invitation, token }
  // With a mail server, only the owner of the mailbox may receive the token.
  deps.post.invitation(invitation.email, principal.email, token)
  return { ...invitation, mailed: true as const }
}

async function withdraw({ principal: { accountId, userId }, id, database }: SessionRequest): Promise<null> {
  refuseUnlessDone<never>(await withdrawInvitation(database, accountId, userId, id), {})
  return null
}

async function accept(deps: ConsoleDeps, call: OpenRequest<typeof acceptanceSchema>) {
  const { request, body, params, address } = call
  const password = validateNewPassword(body.password, 'password')
  const { database } = deps
  const digest = getDigest(params.token ?? '')
  const invitation = await findInvitation(database, digest)
  if (invitation === null) throw notFound()
  const { accountId } = invitation
  const [userId, passwordHash] = [deps.newId('usr'), await deps.passwords.hash(password, address)]
  // The token proves the mailbox if it was mailed. Otherwise the inviting user vouches, if their own address is proven.
  const inviting = deps.post === null ? await findUser(database, accountId, invitation.invitedBy) : null
  const emailProven = deps.post !== null || inviting?.emailProven === true
  // A registration that has not proven the address must not block the invited user.
  await releaseUnverified(database, invitation.email, emailProven ? accountId : null)
  deps.announce()
  const acting = actingAs(database, { kind: 'user', userId, address })
  const outcome = await acceptInvitation(acting, accountId, { digest, userId, passwordHash, emailProven })
  switch (outcome) {
    case 'gone':
      throw notFound()
    case 'taken':
      throw new GatewayError('conflict', 'This email address already has an account. Use another address.')
    case 'accepted': {
      const user = { id: userId, accountId, passwordHash, email: invitation.email }
      return signInProven(deps, request, user, { address, refusal: notFound })
    }
  }
}

async function changeRole({ announce }: ConsoleDeps, call: SessionRequest<typeof roleSchema>) {
  const { principal, id, body, database } = call
  const { accountId, userId } = principal
  refuseUnlessDone(await changeRoleInStore(database, accountId, userId, id, body.role), conflicts)
  announce()
  const user = await findUser(database, accountId, id)
  if (user === null) throw notFound()
  return shownUser(user)
}

async function remove({ announce }: ConsoleDeps, { principal, id, database }: SessionRequest): Promise<null> {
  refuseUnlessDone(await removeUser(database, principal.accountId, principal.userId, id), conflicts)
  announce()
  return null
}

const conflicts = {
  last_owner: 'An account needs at least one owner. Promote another member first.',
} as const
