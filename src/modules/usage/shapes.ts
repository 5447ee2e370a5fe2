import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '../../core/validate.ts'
import { count, day, id, modelName, named, orNull, shape, text, time, usd } from '../../http/shapes.ts'

export const requestShape = named('LoggedRequest', {
  request_id: id('req'),
  created_at: time,
  key_id: id('key'),
  key_name: orNull(text('production')),
  model: { ...orNull(modelName), description: '`provider/model`; null where none was reached' },
  provider: orNull(text('openai')),
  routing_mode: oneOf(['auto', 'manual']),
  strategy: orNull(text('quality')),
  query_type: orNull(text('code')),
  streamed: Type.Boolean(),
  status: oneOf(['completed', 'failed', 'client_closed', 'blocked']),
  error_code: orNull(text('upstream_failed')),
  finish_reason: orNull(text('stop')),
  input_tokens: count,
  cached_input_tokens: count,
  cache_write_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  total_tokens: count,
  estimated: Type.Boolean({ description: 'the counts are ours, not the provider’s' }),
  cost_usd: usd,
  search_cost_usd: usd,
  fetch_cost_usd: usd,
  attempts: count,
  latency_ms: count,
  first_token_ms: orNull(count),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
})
export const requestListShape = named('RequestLog', {
  data: Type.Array(requestShape),
  next_cursor: orNull(text('MTc3Nzk4MjQwMDAwMDAwMCByZXFfNWY', 'the `cursor` of the page after this one')),
})
export const requestExportShape = named('RequestExport', { data: Type.Array(requestShape) })

const sums = {
  requests: count,
  completed: count,
  input_tokens: count,
  cached_input_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  total_tokens: count,
  cost_usd: usd,
}
export const usageShape = named('UsageTotals', {
  from: day,
  to: { ...day, description: 'a UTC day, included' },
  group_by: oneOf(['day', 'month', 'model', 'key']),
  total: shape(sums),
  data: Type.Array(
    Type.Union([
      shape({ day, ...sums }),
      shape({ month: text('2026-05'), ...sums }),
      shape({ model: orNull(modelName), ...sums }),
      shape({ key_id: id('key'), key_name: orNull(text('production')), ...sums }),
    ]),
  ),
})

export type ShownRequest = Static<typeof requestShape>
export type ShownUsage = Static<typeof usageShape>
