import type { Static } from '@sinclair/typebox'
import { accountShape, count, namedSchema, orNull, strictObject, time, usd } from '../../http/schemas.ts'

/** The account with what is used of its limits today and now. */
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
      { description: 'as this process last knew; null where it was not asked lately' },
    ),
  ),
})
export type AccountToday = Static<typeof accountTodayShape>
