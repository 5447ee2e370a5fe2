/** Members of an account: list, invite, accept, change roles, remove. */
import { Type } from '@sinclair/typebox'
import { getDigest } from '../../core/accounts/api-keys.ts'
import {
  emailSchema,
  normalizeEmail,
  type Passwords,
  passwordSchema,
  validateNewPassword,
} from '../../core/accounts/passwords.ts'
import { isAllowed, outranks, projectRoles, roles } from '../../core/accounts/roles.ts'
import type { RegistrationConfig } from '../../core/accounts/single-sign-on.ts'
import { actingAs } from '../../core/audit/audit.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import type { Invitation } from '../../database/tables.ts'
import { projectIdSchema, sessionShape, userShape } from '../../http/schemas.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  type OpenRequest,
  type OpenRouteDeps,
  openRoutes,
  readInput,
  refuseUnlessDone,
  reply,
  replyNoContent,
  type SessionRequest,
  sessionRoutes,
} from '../../http/session-routes.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { refuseWithoutPasswords, type SignInDeps, shownUser, signIn } from '../auth/sign-in.ts'
import { releaseUnverified } from '../auth/stores/email-links.ts'
import {
  acceptInvitation,
  findInvitation,
  invite as inviteInStore,
  listInvitations as listInvitationsInStore,
  withdrawInvitation,
} from '../auth/stores/invitations.ts'
import { forgetFailures, mailSubject } from '../auth/stores/sessions.ts'
import {
  changeRole as changeRoleInStore,
  findUser,
  listUsers as listUsersInStore,
  removeUser,
} from '../auth/stores/users.ts'
import { newInvitationShape, type ShownInvitation, type ShownTeam, teamShape } from './schemas.ts'

type TeamDeps = SignInDeps &
  OpenRouteDeps & {
    readonly config: { readonly registration: RegistrationConfig }
    readonly passwords: Pick<Passwords, 'hash'>
    /** Null = no mail server is configured. */
    readonly post: Pick<Mailer, 'invitation'> | null
    readonly announce: () => void
  }

const invitationSchema = strictObject({
  email: emailSchema,
  role: Type.Optional(oneOf(['viewer', 'member', 'admin'])),
  project_id: nullable(projectIdSchema),
  project_role: Type.Optional(oneOf(projectRoles)),
})
const acceptanceSchema = strictObject({ password: passwordSchema })
const roleSchema = strictObject({ role: oneOf(roles) })

const acceptances = { allowed: 60, windowMs: 60_000 }
const tokenPrefix = 'gw_invite_'

/** Routes under `/api/v1/team`. */
export function team(deps: TeamDeps, identify: Authenticate) {
  const accepting = deps.limits('invitation', acceptances)

  return openRoutes('team', deps, [
    {
      method: 'POST',
      path: '/api/v1/team/invitations/:token/accept',
      limit: accepting,
      summary: 'Accept an invitation with its token',
      description: 'Creates a user of the account and signs in.',
      body: acceptanceSchema,
      examples: { 'with a password': { password: 'a password of my own' } },
      answer: sessionShape,
      status: 201,
      errors: ['not_found', 'conflict', 'ip_rate_limited'],
      handle: call => accept(deps, call),
    },
  ]).use(
    sessionRoutes('members', identify, [
      {
        method: 'GET',
        path: '/api/v1/team',
        action: 'team.see',
        summary: 'List members',
        answer: teamShape,
        handle: call => list(deps, call),
      },
      {
        method: 'POST',
        path: '/api/v1/team/invitations',
        action: 'team.invite',
        summary: 'Invite a user',
        description:
          'With `project_id` the user joins a project as well, as `project_role` (`member` by default): with the role `viewer` in the account, it sees only that project.',
        body: invitationSchema,
        examples: { member: { email: 'grace@example.com', role: 'member', project_id: null } },
        answer: newInvitationShape,
        status: 201,
        errors: ['not_found'],
        handle: call => invite(deps, call),
      },
      {
        method: 'DELETE',
        path: '/api/v1/team/invitations/:id',
        action: 'team.invite',
        summary: 'Withdraw an invitation',
        answer: null,
        errors: ['not_found'],
        handle: call => withdraw(deps, call),
      },
      {
        method: 'PATCH',
        path: '/api/v1/team/:id',
        action: 'team.change_roles',
        summary: 'Change a member’s role',
        body: roleSchema,
        examples: { admin: { role: 'admin' } },
        answer: userShape,
        errors: ['conflict'],
        handle: call => changeRole(deps, call),
      },
      {
        method: 'DELETE',
        path: '/api/v1/team/:id',
        action: 'team.remove',
        summary: 'Remove a member with keys and sessions',
        answer: null,
        errors: ['conflict'],
        handle: call => remove(deps, call),
      },
    ]),
  )
}

async function list({ database }: TeamDeps, { principal: { accountId, role } }: SessionRequest): Promise<Response> {
  const [users, invitations] = await Promise.all([
    listUsersInStore(database, accountId),
    isAllowed(role, 'team.invite') ? listInvitationsInStore(database, accountId) : [],
  ])
  const shown: ShownTeam = { data: users.map(shownUser), invitations: invitations.map(shownInvitation) }
  return reply(shown)
}

async function invite(deps: TeamDeps, { principal, request, actor }: SessionRequest): Promise<Response> {
  const body = await readInput(request, invitationSchema)
  const { email, role = 'member', project_id: projectId = null, project_role: projectRole } = body
  if (projectRole !== undefined && projectId === null) throw invalidField('project_role', 'requires `project_id`')
  if (!outranks(principal.role, role)) throw forbidden()
  const token = tokenPrefix + Buffer.from(deps.randomBytes(32)).toString('base64url')
  const invitation = await inviteInStore(actingAs(deps.database, actor), principal.accountId, {
    id: deps.newId('inv'),
    email: normalizeEmail(email),
    role,
    invitedBy: principal.userId,
    digest: getDigest(token),
    projectId,
    projectRole: projectId === null ? null : (projectRole ?? 'member'),
  })
  if (invitation === 'no_project') throw notFound()
  if (invitation === null) throw forbidden()
  // Without a mail server, the inviting user must pass the token on.
  if (deps.post === null) return reply({ ...shownInvitation(invitation), token }, 201)
  // With a mail server, only the owner of the mailbox may receive the token.
  deps.post.invitation(invitation.email, principal.email, token)
  return reply({ ...shownInvitation(invitation), mailed: true }, 201)
}

async function withdraw(deps: TeamDeps, { principal, params, actor }: SessionRequest): Promise<Response> {
  const { accountId, userId } = principal
  const acting = actingAs(deps.database, actor)
  const withdrawn = await withdrawInvitation(acting, accountId, userId, params.id ?? '')
  refuseUnlessDone<never>(withdrawn, {})
  return replyNoContent()
}

async function accept(deps: TeamDeps, { request, params, address }: OpenRequest): Promise<Response> {
  refuseWithoutPasswords(deps.config)
  const body = await readInput(request, acceptanceSchema)
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
  const outcome = await acceptInvitation(acting, accountId, {
    digest,
    userId,
    passwordHash,
    emailProven,
  })
  switch (outcome) {
    case 'gone':
      throw notFound()
    case 'taken':
      throw new GatewayError('conflict', 'This email address already has an account. Use another address.')
    case 'accepted': {
      const subject = mailSubject(invitation.email)
      await forgetFailures(database, subject)
      const user = { id: userId, accountId, passwordHash, email: invitation.email }
      const answer = await signIn(deps, request, user, { subjects: [subject], address, status: 201 })
      if (answer === null) throw notFound()
      return answer
    }
  }
}

async function changeRole(deps: TeamDeps, { principal, params, request, actor }: SessionRequest): Promise<Response> {
  const { role } = await readInput(request, roleSchema)
  const { accountId, userId } = principal
  const id = params.id ?? ''
  const acting = actingAs(deps.database, actor)
  refuseUnlessDone(await changeRoleInStore(acting, accountId, userId, id, role), conflicts)
  deps.announce()
  const user = await findUser(deps.database, accountId, id)
  if (user === null) throw notFound()
  return reply(shownUser(user))
}

async function remove(deps: TeamDeps, { principal, params, actor }: SessionRequest): Promise<Response> {
  const { accountId, userId } = principal
  const acting = actingAs(deps.database, actor)
  refuseUnlessDone(await removeUser(acting, accountId, userId, params.id ?? ''), conflicts)
  deps.announce()
  return replyNoContent()
}

const conflicts = {
  last_owner: 'An account needs at least one owner. Promote another member first.',
} as const

function shownInvitation(invitation: Invitation): ShownInvitation {
  return {
    id: invitation.id,
    email: invitation.email,
    role: invitation.role,
    project_id: invitation.projectId,
    project_role: invitation.projectRole,
    created_at: invitation.createdAt.toISOString(),
    expires_at: invitation.expiresAt.toISOString(),
  }
}
