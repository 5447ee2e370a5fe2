import { type Static, Type } from '@sinclair/typebox'
import { alertMetrics, budgetKinds, budgetSpans } from '../../core/alerts/alerts.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, id, namedSchema, orNull, time } from '../../http/schemas.ts'

export const alertShape = namedSchema('Alert', {
  id: id('alr'),
  metric: oneOf(alertMetrics),
  threshold: Type.Number({
    description:
      '`spend`: US dollars per UTC day; `latency`: p95 in milliseconds; `unpriced`, `runaway`: requests; others: share from 0 to 1',
    examples: [0.05],
  }),
  window_minutes: Type.Integer({ description: 'not used by `spend` and `budget`', examples: [15] }),
  budget: { ...orNull(oneOf(budgetKinds)), description: 'budgets that `budget` covers; null = all' },
  span: { ...orNull(oneOf(budgetSpans)), description: 'periods that `budget` covers; null = both' },
  firing: Type.Boolean(),
  firing_subjects: { ...count, description: 'budgets, models or sessions that fire now; 1 for other metrics' },
  value: orNull(Type.Number({ description: 'the highest value; null = too few requests', examples: [0.01] })),
  changed_at: orNull(time),
  created_at: time,
  project_id: { ...orNull(id('prj')), description: 'only requests of this project; null = all of the account' },
})
export const alertsShape = strictObject({
  data: Type.Array(alertShape),
  delivery: strictObject(
    {
      email: Type.Boolean({ description: 'whether the gateway has a mail server' }),
      webhooks: { ...count, description: 'enabled webhooks that receive alerts' },
    },
    { description: 'where alerts go' },
  ),
})
export const testedAlertShape = strictObject({
  emails: strictObject({ sent: count, failed: count }),
  webhooks: { ...count, description: 'webhooks that get the test event' },
})
export type ShownAlert = Static<typeof alertShape>
