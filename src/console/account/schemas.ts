import type { Static } from '@sinclair/typebox'
import { strictObject } from '../../core/validation/validate.ts'
import { accountShape, count, namedSchema, orNull, time, usd } from '../../http/schemas.ts'

/** The account with its current usage of each limit. */
export const accountTodayShape = namedSchema('AccountToday', {
  ...accountShape.properties,
  today: strictObject({
    tokens: count,
    cost_usd: usd,
    remaining_tokens: count,
    remaining_cost_usd: usd,
    resets_at: time,
  }),
  now: orNull(
    strictObject(
      { requests_last_minute: count, seats_taken: count },
      { description: 'the last status that this process read; null = not read recently' },
    ),
  ),
})
export type AccountToday = Static<typeof accountTodayShape>
