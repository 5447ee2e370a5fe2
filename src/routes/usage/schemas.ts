import { type Static, Type } from '@sinclair/typebox'
import { usageGroups } from '../../core/usage/usage-groups.ts'
import { attemptOutcomes, recordedDialects } from '../../core/usage/usage-record.ts'
import { oneOf } from '../../core/validation/validate.ts'
import { count, day, id, modelName, namedSchema, orNull, strictObject, text, time, usd } from '../../http/schemas.ts'

/** One attempt on a model. */
const attemptShape = namedSchema('LoggedAttempt', {
  model: modelName,
  outcome: oneOf(attemptOutcomes),
  after_ms: { ...count, description: 'start of the attempt, in milliseconds since the request was received' },
  duration_ms: { ...count, description: 'milliseconds to its failure or its first content' },
})

const requestShape = namedSchema('LoggedRequest', {
  request_id: id('req'),
  created_at: time,
  key_id: id('key'),
  key_name: orNull(text('production')),
  model: { ...orNull(modelName), description: '`provider/model`; null = no model served' },
  provider: orNull(text('openai')),
  routing_mode: oneOf(['auto', 'manual']),
  strategy: orNull(text('quality')),
  query_type: orNull(text('code')),
  streamed: Type.Boolean(),
  dialect: {
    ...orNull(oneOf(recordedDialects)),
    description: 'dialect of the request; null in older requests without it',
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
  estimated: Type.Boolean({ description: 'the token counts are estimates of the gateway' }),
  cost_usd: usd,
  search_cost_usd: usd,
  fetch_cost_usd: usd,
  attempts: { ...count, description: 'candidates that were called, or skipped in their turn' },
  tried: {
    ...orNull(Type.Array(attemptShape)),
    description: 'called candidates in order, at most three; null in older requests without it',
  },
  latency_ms: count,
  first_token_ms: orNull(count),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
  tags: { ...orNull(Type.Record(Type.String(), Type.String())), description: 'tags that the request counts under' },
})
export const requestListShape = namedSchema('RequestLog', {
  data: Type.Array(requestShape),
  next_cursor: orNull(text('MTc3Nzk4MjQwMDAwMDAwMCByZXFfNWY', '`cursor` of the next page')),
})
export const requestExportShape = namedSchema('RequestExport', { data: Type.Array(requestShape) })

const milliseconds = {
  ...orNull(count),
  description: 'over completed requests, from a histogram with six steps per factor of ten; null = none',
}
const sums = {
  requests: count,
  completed: count,
  failed: { ...count, description: 'failed or blocked requests; a client disconnect counts in neither' },
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

/** Usage of one model or key: a number for each row of `data`, in its order. */
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
  group_by: oneOf(usageGroups),
  total: strictObject(sums),
  data: Type.Array(
    Type.Union([
      strictObject({ day, ...sums }),
      strictObject({ month: text('2026-05'), ...sums }),
      strictObject({ model: orNull(modelName), ...sums }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...sums }),
      strictObject({ user_id: id('usr'), email: orNull(text('ada@example.com')), ...sums }),
      strictObject({ tag: text('team=search'), ...sums }),
    ]),
    { description: 'by tag, a request counts in each of its tags, and once in `total`' },
  ),
  split_by: orNull(oneOf(['model', 'key'])),
  series: Type.Array(
    Type.Union([
      strictObject({ model: orNull(modelName), ...lines }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...lines }),
    ]),
    {
      description:
        'with `split_by`: the eight most expensive models or keys, each as lists with one number per row of `data`',
    },
  ),
  others: {
    ...orNull(strictObject(lines)),
    description: 'sum of all other models or keys; null = none',
  },
})

export type ShownRequest = Static<typeof requestShape>
export type ShownUsage = Static<typeof usageShape>
