import { type Static, Type } from '@sinclair/typebox'
import { attemptOutcomes, recordedDialects } from '../../core/usage/usage-record.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { count, day, id, modelName, namedSchema, orNull, strictObject, text, time, usd } from '../../http/schemas.ts'

/** A model that was asked. */
const attemptShape = namedSchema('LoggedAttempt', {
  model: modelName,
  outcome: oneOf(attemptOutcomes),
  after_ms: { ...count, description: 'when it was asked, in milliseconds since the request was received' },
  duration_ms: { ...count, description: 'until it had failed, or until its first content' },
})

const requestShape = namedSchema('LoggedRequest', {
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
  dialect: {
    ...orNull(oneOf(recordedDialects)),
    description: 'the API form of the request; null in requests from before it was recorded',
  },
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
  attempts: { ...count, description: 'candidates that were asked, or skipped when their turn came' },
  tried: {
    ...orNull(Type.Array(attemptShape)),
    description: 'those asked, in order, at most three; null in requests of before it was told',
  },
  latency_ms: count,
  first_token_ms: orNull(count),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
})
export const requestListShape = namedSchema('RequestLog', {
  data: Type.Array(requestShape),
  next_cursor: orNull(text('MTc3Nzk4MjQwMDAwMDAwMCByZXFfNWY', 'the `cursor` of the page after this one')),
})
export const requestExportShape = namedSchema('RequestExport', { data: Type.Array(requestShape) })

const milliseconds = {
  ...orNull(count),
  description: 'of the requests completed, read from a histogram of six steps a decade; null where none was',
}
const sums = {
  requests: count,
  completed: count,
  failed: { ...count, description: 'failed or blocked; whoever left is in neither' },
  input_tokens: count,
  cached_input_tokens: count,
  output_tokens: count,
  reasoning_tokens: count,
  total_tokens: count,
  cost_usd: usd,
  latency_p50_ms: milliseconds,
  latency_p95_ms: milliseconds,
  first_token_p50_ms: milliseconds,
}

/** What one part used: a number for each row of `data`, in its order. */
const lines = {
  requests: Type.Array(count),
  failed: Type.Array(count),
  total_tokens: Type.Array(count),
  cost_usd: Type.Array(usd),
  latency_p50_ms: Type.Array(milliseconds),
  latency_p95_ms: Type.Array(milliseconds),
}
export const usageShape = namedSchema('UsageTotals', {
  from: day,
  to: { ...day, description: 'a UTC day, included' },
  group_by: oneOf(['day', 'month', 'model', 'key']),
  total: strictObject(sums),
  data: Type.Array(
    Type.Union([
      strictObject({ day, ...sums }),
      strictObject({ month: text('2026-05'), ...sums }),
      strictObject({ model: orNull(modelName), ...sums }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...sums }),
    ]),
  ),
  split_by: orNull(oneOf(['model', 'key'])),
  series: Type.Array(
    Type.Union([
      strictObject({ model: orNull(modelName), ...lines }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...lines }),
    ]),
    {
      description:
        'with `split_by`: the eight dearest models or keys, each as lists of one number for each row of `data`',
    },
  ),
  others: {
    ...orNull(strictObject(lines)),
    description: 'all models or keys that are in no series; null where there are none',
  },
})

export type ShownRequest = Static<typeof requestShape>
export type ShownUsage = Static<typeof usageShape>
