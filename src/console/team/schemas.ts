import { type Static, Type } from '@sinclair/typebox'
import { namedSchema, text, userShape } from '../../http/schemas.ts'
import { invitationShape } from '../auth/schemas.ts'

export const newInvitationShape = namedSchema('NewInvitation', {
  ...invitationShape.properties,
  token: Type.Optional(text('gw_invite_…', 'token that accepts the invitation, shown only once')),
  mailed: Type.Optional(Type.Literal(true, { description: 'the token is sent by email instead' })),
})
export const teamShape = namedSchema('Team', { data: Type.Array(userShape), invitations: Type.Array(invitationShape) })
export type ShownTeam = Static<typeof teamShape>
