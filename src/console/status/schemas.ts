/** State of one instance for owners and admins. Content-free: no address and no path. */
import { type Static, Type } from '@sinclair/typebox'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, namedSchema, orNull, text } from '../../http/schemas.ts'

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
