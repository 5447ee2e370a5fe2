/** Schemas of the providers as their operator sees them. Content-free: no address, key or text of an upstream. */
import { type Static, Type } from '@sinclair/typebox'
import { attemptFailures } from '../../core/chat/attempts.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { count, list, modelName, namedSchema, orNull, strictObject, text, time } from '../../http/schemas.ts'

const quota = orNull(strictObject({ limit: count, remaining: count }))

export const providerShape = namedSchema('Provider', {
  id: text('openai'),
  simulated: Type.Boolean(),
  models: { ...count, description: 'models of the catalog that it serves' },
  reachable: {
    ...oneOf(['yes', 'no', 'unknown']),
    description: 'whether its last attempt got an HTTP response; `unknown` before the first attempt of this process',
  },
  last_success_at: orNull(time),
  last_error: orNull(strictObject({ code: oneOf(attemptFailures), at: time })),
  pool: {
    ...orNull(
      strictObject({
        keys: count,
        rejected_keys: { ...count, description: 'keys that the provider rejected, for a model or for all' },
        limits: Type.Array(strictObject({ model: modelName, requests: quota, tokens: quota }), {
          description: 'limits and remaining amounts as the upstream last reported them, summed over its accounts',
        }),
      }),
    ),
    description: 'null = one key, or registration is open, where any account could read it',
  },
})
export const providerListShape = list(providerShape)
export type ShownProvider = Static<typeof providerShape>
