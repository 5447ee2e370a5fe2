import { type Static, Type } from '@sinclair/typebox'
import { continuePolicies, fallbackPolicies, strategies } from '../../core/chat/chat.ts'
import { constraintsSchema } from '../../core/policy/constraints.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import {
  count,
  id,
  list,
  namedSchema,
  orNull,
  scopeLimitsShape,
  scopeUsedShape,
  text,
  time,
  usd,
} from '../../http/schemas.ts'

const fields = {
  id: id('key'),
  name: text('production'),
  prefix: text('gw_live_4fKq2ZbN81Xa…', 'beginning of the key, the only visible part after its creation'),
  web: Type.Boolean({ description: 'whether requests with the key may use web access' }),
  fallback: { ...orNull(oneOf(fallbackPolicies)), description: 'fallback policy; null = that of the account' },
  continue: {
    ...orNull(oneOf(continuePolicies)),
    description: 'who may continue its cut texts; null = as the account',
  },
  hedge: {
    ...orNull(Type.Boolean()),
    description: 'whether requests with the key hedge a late first token; null = as the account',
  },
  constraints: {
    ...orNull(constraintsSchema),
    description: 'constraints on who may receive its requests, beside those of account and project; null = none',
  },
  user_id: { ...id('usr'), description: 'user that the key belongs to' },
  created_at: time,
  last_used_at: orNull(time),
  revoked_at: orNull(time),
  expires_at: orNull(time),
  usage: strictObject({
    requests: count,
    input_tokens: count,
    output_tokens: count,
    total_tokens: count,
    cost_usd: usd,
  }),
  limits: { ...orNull(scopeLimitsShape), description: 'limits of the key beside those of the account; null = none' },
  used: scopeUsedShape,
  models: { ...orNull(Type.Array(text('anthropic/*'))), description: 'models that the key may use; null = all' },
  tags: { ...orNull(Type.Record(Type.String(), Type.String())), description: 'tags of all its requests' },
  strategy: { ...orNull(oneOf(strategies)), description: 'strategy of requests that name none' },
  project_id: { ...orNull(id('prj')), description: 'project of its requests; null = none' },
}

export const keyShape = namedSchema('Key', fields)
export const newKeyShape = namedSchema('NewKey', {
  ...fields,
  key: text('gw_live_…', 'the key itself, shown only once'),
})
/** One key with the keys that it replaced and that replaced it. */
export const keyPageShape = namedSchema('KeyWithLineage', {
  ...fields,
  requests_last_minute: {
    ...count,
    description: 'requests of the lineage that ended in the last minute, as far as the ledger has them',
  },
  replaces: { ...orNull(id('key')), description: 'key that it replaced by rotation; null = none' },
  replaced_by: { ...orNull(id('key')), description: 'key that replaced it by rotation; null = none' },
  lineage: Type.Array(
    strictObject({
      id: id('key'),
      prefix: fields.prefix,
      created_at: time,
      last_used_at: orNull(time),
      revoked_at: orNull(time),
      expires_at: orNull(time),
    }),
    { description: 'the key itself and all keys of its rotations, oldest first; they share usage and limits' },
  ),
})
export const keysShape = list(keyShape)
export type ShownKey = Static<typeof keyShape>
export type ShownKeyPage = Static<typeof keyPageShape>
