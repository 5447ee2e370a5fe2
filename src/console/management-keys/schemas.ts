import { type Static, Type } from '@sinclair/typebox'
import { managementScopes } from '../../core/accounts/roles.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { id, list, namedSchema, nameSchema, text, time } from '../../http/schemas.ts'

const fields = {
  id: id('ses'),
  name: text('terraform'),
  scopes: Type.Array(oneOf(managementScopes), { description: '`write` includes `read`' }),
  user_id: { ...id('usr'), description: 'user who created it: it acts with the role of that user' },
  created_at: time,
  last_used_at: { ...time, description: 'last use, to the minute; the time of creation before the first' },
  expires_at: time,
}

const managementKeyShape = namedSchema('ManagementKey', fields)
export const newManagementKeyShape = namedSchema('NewManagementKey', {
  ...fields,
  key: text('gw_manage_…', 'the key itself, shown only once'),
})
export const managementKeysShape = list(managementKeyShape)
export type ShownManagementKey = Static<typeof managementKeyShape>

export const managementKeyCreationSchema = strictObject({
  name: nameSchema,
  scopes: Type.Array(oneOf(managementScopes), { minItems: 1, maxItems: managementScopes.length, uniqueItems: true }),
  expires_in_days: Type.Optional(Type.Integer({ minimum: 1, maximum: 366, description: '90 unless sent' })),
})
