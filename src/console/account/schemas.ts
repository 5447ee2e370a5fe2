import { type Static, Type } from '@sinclair/typebox'
import { accountRulesSchema } from '../../core/policy/rules.ts'
import { strictObject } from '../../core/validation/validate.ts'
import { accountShape, count, namedSchema, orNull, time, usd } from '../../http/schemas.ts'

/** The account with its current usage of each limit. */
export const accountTodayShape = namedSchema('AccountToday', {
  ...accountShape.properties,
  rules: { ...accountRulesSchema, description: 'rules for requests of the account, in their order' },
  own_limits: strictObject(
    {
      requests_per_minute: orNull(count),
      concurrent_requests: orNull(count),
      daily_tokens: orNull(count),
      daily_cost_usd: orNull(usd),
    },
    { description: 'limits of its own that replace those of the plan; null = the limit of the plan' },
  ),
  may_change_limits: Type.Boolean({ description: "whether you may change them: owners of the operator's account" }),
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
