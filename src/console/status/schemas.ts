/** State of one instance for owners and admins. Content-free: no address and no path. */
import { type Static, Type } from '@sinclair/typebox'
import { attemptFailures } from '../../core/chat/attempts.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, list, modelName, namedSchema, orNull, text, time } from '../../http/schemas.ts'

const storeState = oneOf(['ok', 'unreachable'])
export const statusShape = namedSchema('GatewayStatus', {
  version: text('1.5.0'),
  ready: Type.Boolean({ description: 'the instance accepts requests' }),
  simulated: Type.Boolean({ description: 'true while no provider is configured' }),
  database: strictObject({ kind: oneOf(['embedded', 'postgres']), state: storeState }),
  redis: { ...orNull(strictObject({ state: storeState })), description: 'null = not configured' },
  limits_decided_by: { ...oneOf(['gateway', 'redis', 'postgres']), description: 'store that counts the limits now' },
  moderation: strictObject({
    blocked_hosts: { ...count, description: 'hosts on the blocklists' },
    external: {
      ...orNull(strictObject({ calls: count, blocked: count, failed: count, skipped: count })),
      description:
        'calls of external moderation since the start; `skipped` = during a cooldown; null = not configured, or registration is open',
    },
  }),
})
export type ShownStatus = Static<typeof statusShape>

const quota = orNull(strictObject({ limit: count, remaining: count }))

const providerShape = namedSchema('Provider', {
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
