import { type Static, Type } from '@sinclair/typebox'
import { alertMetrics } from '../../core/alerts/alerts.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { id, list, namedSchema, orNull, time } from '../../http/schemas.ts'

export const alertShape = namedSchema('Alert', {
  id: id('alr'),
  metric: oneOf(alertMetrics),
  threshold: Type.Number({
    description: '`spend`: US dollars per UTC day; `error_rate`: share from 0 to 1; `latency`: p95 in milliseconds',
    examples: [0.05],
  }),
  window_minutes: Type.Integer({ description: 'not used by `spend`', examples: [15] }),
  firing: Type.Boolean(),
  value: orNull(Type.Number({ description: 'null = fewer than 20 requests in the window', examples: [0.01] })),
  changed_at: orNull(time),
  created_at: time,
  project_id: { ...orNull(id('prj')), description: 'only requests of this project; null = all of the account' },
})
export const alertsShape = list(alertShape)
export type ShownAlert = Static<typeof alertShape>
