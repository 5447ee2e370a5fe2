import { type Static, Type } from '@sinclair/typebox'
import { auditActions } from '../../core/audit/audit.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { id, namedSchema, orNull, text, time } from '../../http/schemas.ts'

export const auditEntryShape = namedSchema('AuditEntry', {
  id: id('aud'),
  at: time,
  actor: strictObject({
    type: oneOf(['user', 'cli', 'system']),
    user_id: orNull(id('usr')),
    email: orNull(text('ada@example.com', 'current address of the user; null after the removal of the user')),
  }),
  address: orNull(text('203.0.113.7', 'network address of the client; an IPv6 address as its /64 network')),
  action: Type.String({ description: 'object and change', examples: ['key.created'] }),
  target: orNull(text('key_5f0c1b7ae94d42d8', 'ID of the changed object; null = the account')),
  details: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()]), {
    description: 'new values by name; no secrets',
    examples: [{ name: 'production' }],
  }),
})
export const auditListShape = strictObject({
  data: Type.Array(auditEntryShape),
  next_cursor: orNull(text('YXVkXzAxOT…', 'position of the next page; null = this is the last page')),
})
export type ShownAuditEntry = Static<typeof auditEntryShape>
export const auditActionSchema = oneOf(auditActions)
