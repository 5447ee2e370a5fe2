import { type Static, Type } from '@sinclair/typebox'
import { projectRoles, roles } from '../../core/accounts/roles.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { id, namedSchema, orNull, text, time, userShape } from '../../http/schemas.ts'

const invitation = {
  id: id('inv'),
  email: text('grace@example.com'),
  role: oneOf(roles),
  project_id: { ...orNull(id('prj')), description: 'project that the user joins as well; null = none' },
  project_role: orNull(oneOf(projectRoles)),
  created_at: time,
  expires_at: time,
}

const invitationShape = namedSchema('Invitation', invitation)
export const newInvitationShape = namedSchema('NewInvitation', {
  ...invitation,
  token: Type.Optional(text('gw_invite_…', 'token that accepts the invitation, shown only once')),
  mailed: Type.Optional(Type.Literal(true, { description: 'the token is sent by email instead' })),
})
export const teamShape = namedSchema('Team', { data: Type.Array(userShape), invitations: Type.Array(invitationShape) })
export type ShownInvitation = Static<typeof invitationShape>
export type ShownTeam = Static<typeof teamShape>
