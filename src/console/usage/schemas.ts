import { type Static, Type } from '@sinclair/typebox'
import { attemptSkips, healthStates, placeReasons } from '../../core/chat/attempts.ts'
import { fallbackPolicies } from '../../core/chat/chat.ts'
import { actedRuleShape } from '../../core/policy/rules.ts'
import { mostCountedRejections, usageGroups, usageSplits } from '../../core/usage/usage-groups.ts'
import { attemptOutcomes, recordedDialects, unpricedKinds } from '../../core/usage/usage-record.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import {
  count,
  day,
  id,
  modelName,
  namedSchema,
  orNull,
  share,
  signedUsd,
  text,
  time,
  usd,
} from '../../http/schemas.ts'
import { deciders } from './explain-request.ts'

/** One attempt on a model. */
const attemptShape = namedSchema('LoggedAttempt', {
  model: modelName,
  outcome: oneOf(attemptOutcomes),
  after_ms: { ...count, description: 'start of the attempt, in milliseconds since the request was received' },
  duration_ms: { ...count, description: 'milliseconds to its failure or its first content' },
})

/** In the order of the columns of an exported file: a new field comes last. */
const logged = {
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
  status: {
    ...oneOf(['completed', 'failed', 'client_closed', 'blocked', 'rejected']),
    description: '`rejected`: before admission, so without usage; only listed with the filter `status=rejected`',
  },
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
  latency_ms: count,
  first_token_ms: orNull(count),
  metadata: orNull(Type.Record(Type.String(), Type.String())),
  dialect: {
    ...orNull(oneOf(recordedDialects)),
    description: 'dialect of the request; null in older requests without it',
  },
  tried: {
    ...orNull(Type.Array(attemptShape)),
    description: 'called candidates in order, at most three; null in older requests without it',
  },
  requested_model: {
    ...orNull(modelName),
    description: 'model that the request named; `gateway-ai` = automatic routing; null in older requests without it',
  },
  upstream_id: {
    ...orNull(text('chatcmpl-9f3b')),
    description: 'ID that the provider gave its response; null = none',
  },
  hedge_cost_usd: { ...usd, description: 'cost of the attempt that lost a hedge; part of `cost_usd`' },
  tags: { ...orNull(Type.Record(Type.String(), Type.String())), description: 'tags that the request counts under' },
  user_id: { ...orNull(id('usr')), description: 'user of the key; null = unknown, or a rejected request' },
  user_email: orNull(text('ada@example.com')),
  project_id: {
    ...orNull(id('prj')),
    description: 'project of the key at the time of the request; null = none, or the request was rejected',
  },
  own_key_cost_usd: {
    ...orNull(usd),
    description: 'catalog cost of calls with own provider keys, which is not billed; null = there were none',
  },
  effort: {
    ...orNull(text('low')),
    description: 'reasoning effort of the attempt that served; null = its provider’s default',
  },
  unpriced: {
    ...orNull(oneOf(unpricedKinds)),
    description:
      'usage without a known price. `model`: the model, whose tokens counted as free; `tier`: the tier of the provider, so that the usual price applied; `audio`: audio tokens, which counted as text; null = none',
  },
  routing_saved_usd: {
    ...orNull(signedUsd),
    description:
      'cost of the same tokens at the baseline model, with its prompt cache, minus the cost of the request; negative if the request cost more; null = the request named its model, or the baseline has no price or cannot take it',
  },
  cache_saved_usd: {
    ...orNull(signedUsd),
    description: 'what the provider’s prompt cache saved; negative if writing to it cost more; null = it was not used',
  },
  constraints: {
    ...orNull(Type.Array(text('zdr'))),
    description: 'constraints in force, such as `zdr` or `region=eu`; null = none',
  },
  receivers: {
    ...orNull(Type.Array(text('azure (zdr, no_training, region=eu)'))),
    description: 'hosts that were called under them with their guarantees, in order; null = no constraint was in force',
  },
}
export const requestShape = namedSchema('LoggedRequest', logged)

const tracedCandidate = namedSchema('RecordedCandidate', {
  model: modelName,
  score: share,
  parts: {
    ...orNull(
      strictObject({
        quality: share,
        cost: share,
        speed: share,
        reliability: Type.Number({ maximum: 0, examples: [-0.01] }),
        adjustment: Type.Number({ examples: [0.02] }),
      }),
    ),
    description: 'components of the score; null = no scores, because the request names a model',
  },
  place: { ...oneOf(placeReasons), description: 'why the candidate has its place' },
  health: { ...oneOf(healthStates), description: 'health when the request was routed' },
  reasons: Type.Array(Type.String({ examples: ['ranked by its score'] })),
})

/** Response of `GET /api/v1/requests/{id}`. */
export const requestRecordShape = namedSchema('RequestRecord', {
  ...logged,
  http_status: {
    ...orNull(count),
    description: 'status of the response; a stream that failed later has 200; null = the client disconnected',
  },
  fallback: { ...oneOf(fallbackPolicies), description: 'fallback policy in force' },
  rules: Type.Array(actedRuleShape, { description: 'rules that changed the requested model, in order' }),
  candidates: {
    ...orNull(Type.Array(tracedCandidate)),
    description:
      'at most eight, in the order of the ranking, with their scores when the request was routed; null in older requests',
  },
  attempt_details: {
    ...orNull(
      Type.Array(
        namedSchema('RecordedAttempt', {
          model: modelName,
          outcome: oneOf(attemptOutcomes),
          http_status: { ...orNull(count), description: 'status of the provider; null = no response' },
          own_key: { ...orNull(text('main')), description: 'own provider key of the account; null = the operator’s' },
          cause: orNull(text('the provider is overloaded')),
          after_ms: count,
          duration_ms: count,
        }),
      ),
    ),
    description: 'called candidates in order, with the cause of each failure; null in older requests',
  },
  skipped: {
    ...orNull(
      Type.Array(
        namedSchema('SkippedCandidate', {
          model: modelName,
          reason: oneOf(attemptSkips),
          cause: text('it is in a cooldown'),
        }),
      ),
    ),
    description: 'candidates that were not called in their turn; null in older requests',
  },
  cost: {
    ...orNull(
      strictObject({
        input_usd: usd,
        cached_input_usd: usd,
        cache_write_usd: usd,
        output_usd: usd,
        reasoning_usd: { ...usd, description: 'part of `output_usd`' },
        search_usd: usd,
        fetch_usd: usd,
        total_usd: usd,
        unbilled_usd: { ...usd, description: 'usage beyond the reservation, which is not billed' },
        prices: {
          ...orNull(
            strictObject({
              input_per_mtok: usd,
              cached_input_per_mtok: usd,
              cache_write_per_mtok: usd,
              output_per_mtok: usd,
              source: text('catalog update of 2026-11-20'),
            }),
          ),
          description: 'prices of the serving model then, with their source; null = nothing had a price',
        },
        baseline: {
          ...orNull(
            strictObject({
              model: modelName,
              cost_usd: usd,
              cached_input_tokens: { ...count, description: 'of them read from its prompt cache' },
              cache_write_tokens: { ...count, description: 'of them written to its prompt cache' },
            }),
          ),
          description: 'the same tokens at the baseline model; null = not comparable',
        },
      }),
    ),
    description: 'cost by part; null = the parts are unknown, as in older requests',
  },
  cache_share: { ...orNull(share), description: 'cached share of the input tokens; null = no input' },
  decided_by: { ...orNull(oneOf(deciders)), description: 'part that ended the request; null = it completed' },
  layer: {
    ...orNull(text('patterns')),
    description: 'moderation layer that blocked; `rules`: the rule that `category` names denied the request',
  },
  category: orNull(text('violence')),
  param: { ...orNull(text('messages')), description: 'field that the error names' },
  param_sent: {
    ...orNull(text('a string')),
    description: 'kind of the value that the field had, never the value; null = unknown',
  },
  param_accepted: { ...orNull(text('a number from 0 to 2')), description: 'values that the field accepts' },
  limit: { ...orNull(text('key.requests_per_minute')), description: 'limit that rejected the request' },
  summary: text('All attempts failed. Last cause: the provider is overloaded.'),
  next_step: orNull(text('Send the request again later.')),
})
export type RequestRecord = Static<typeof requestRecordShape>

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
  own_key_cost_usd: { ...usd, description: 'catalog cost of calls with own provider keys, which is not billed' },
  routing_saved_usd: { ...signedUsd, description: 'sum over the requests that have one; negative if they cost more' },
  cache_saved_usd: { ...signedUsd, description: 'sum over the requests that have one; negative if writing cost more' },
  latency_p50_ms: milliseconds,
  latency_p95_ms: milliseconds,
  first_token_p50_ms: milliseconds,
}

/** Usage of one part: a number for each row of `data`, in its order. */
const lines = {
  requests: Type.Array(count),
  completed: Type.Array(count),
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
  rejected: {
    ...orNull(count),
    description: `requests rejected before admission, which no total contains: of the last 30 days, counted up to ${mostCountedRejections} among the newest 50,000; null = grouped by something else than time, split, or with a filter that rejected requests lack (status, tag, metadata, query type)`,
  },
  data: Type.Array(
    Type.Union([
      strictObject({ day, ...sums }),
      strictObject({ minute: text('2026-05-05T07:12', 'a UTC minute'), ...sums }),
      strictObject({ hour: text('2026-05-05T07', 'a UTC hour'), ...sums }),
      strictObject({ month: text('2026-05'), ...sums }),
      strictObject({ model: orNull(modelName), ...sums }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...sums }),
      strictObject({ user_id: id('usr'), email: orNull(text('ada@example.com')), ...sums }),
      strictObject({ tag: text('team=search'), ...sums }),
      strictObject({ dialect: orNull(oneOf(recordedDialects)), ...sums }),
      strictObject({ project_id: id('prj'), project_name: orNull(text('search')), ...sums }),
      strictObject({ query_type: orNull(text('code', 'null = an embedding')), ...sums }),
    ]),
    {
      description:
        'by tag, a request counts in each of its tags, and once in `total`; by project, requests without one count in `total` only',
    },
  ),
  split_by: orNull(oneOf(usageSplits)),
  series: Type.Array(
    Type.Union([
      strictObject({ model: orNull(modelName), ...lines }),
      strictObject({ key_id: id('key'), key_name: orNull(text('production')), ...lines }),
      strictObject({ user_id: id('usr'), email: orNull(text('ada@example.com')), ...lines }),
      strictObject({ tag: text('team=search'), ...lines }),
      strictObject({ dialect: orNull(oneOf(recordedDialects)), ...lines }),
      strictObject({
        project_id: { ...orNull(id('prj')), description: 'null = requests without a project' },
        project_name: orNull(text('search')),
        ...lines,
      }),
    ]),
    {
      description: 'with `split_by`: the eight most expensive parts, each as lists with one number per row of `data`',
    },
  ),
  others: {
    ...orNull(strictObject(lines)),
    description: 'sum of all other parts; null = none',
  },
})

export type ShownRequest = Static<typeof requestShape>
export type ShownUsage = Static<typeof usageShape>
