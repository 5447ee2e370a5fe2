import { type Static, Type } from '@sinclair/typebox'
import { healthStates, placeReasons } from '../../core/chat/attempts.ts'
import { type QueryType, queryTypes, reasoningEfforts, strategies } from '../../core/chat/chat.ts'
import { actedRuleShape } from '../../core/policy/rules.ts'
import { oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, modelName, namedSchema, orNull, queryType, share, time } from '../../http/schemas.ts'
import { levels } from '../../models/capability-levels.ts'
import { turnReasons } from '../../models/conversation.ts'
import { difficultySignals, segmentKinds } from '../../text/dry-run-names.ts'

/** Score components; their sum is the score. */
const parts = strictObject({
  quality: share,
  cost: share,
  speed: share,
  reliability: Type.Number({ maximum: 0, description: 'penalty for recent failures', examples: [-0.01] }),
  adjustment: Type.Number({ description: 'effect of learning, health and the monthly soft cap', examples: [0.02] }),
})

const candidate = namedSchema('RouteCandidate', {
  model: modelName,
  effort: {
    ...orNull(oneOf(reasoningEfforts)),
    description: 'reasoning effort that it would be called with; null = its default',
  },
  score: share,
  parts: Type.Union([parts, Type.Null()], {
    description: 'null if the request names a model: there are no scores then',
  }),
  place: { ...oneOf(placeReasons), description: 'why the candidate has this place in the order of calls' },
  reasons: Type.Array(Type.String({ examples: ['quality 68 × 45 %, cost 51 × 32 %, speed 54 × 23 %'] })),
  estimated_cost_usd: Type.Number({ minimum: 0, examples: [0.00042] }),
  own_key: Type.Boolean({ description: 'an own key of the account is called first, at no cost here' }),
  health: oneOf(healthStates),
  health_detail: {
    ...orNull(
      strictObject({
        cause: { ...orNull(Type.String({ examples: ['overloaded'] })), description: 'cause of its last failure' },
        failure_rate: { ...share, description: 'share of failures among its latest attempts' },
        since: { ...orNull(time), description: 'since when it has this health' },
      }),
    ),
    description: 'null = healthy',
  },
  figures: strictObject({
    quality: share,
    first_token_ms: Type.Integer({ minimum: 0, examples: [820] }),
    tokens_per_second: Type.Number({ minimum: 0, examples: [140.2] }),
    error_rate: share,
    measured_tries: Type.Number({ minimum: 0, description: 'recent attempts behind these figures', examples: [41.5] }),
  }),
})

const queryTypeScores = Object.fromEntries(queryTypes.map(type => [type, share])) as Record<QueryType, typeof share>

/** Bounds the response to a message of very many quotations. */
export const mostSegments = 1_000

/** Response of `POST /api/v1/route`: the candidates in the order of calls, and the dropped models. */
export const dryRunShape = namedSchema('DryRun', {
  mode: oneOf(['auto', 'manual']),
  constraints: Type.Array(Type.String({ examples: ['zdr'] }), {
    description: 'constraints in force: of the request, its key, project and account',
  }),
  rules: Type.Array(actedRuleShape, { description: 'rules that changed the requested model, in order' }),
  strategy: orNull(oneOf(strategies)),
  query_type: queryType,
  query_type_scores: strictObject(queryTypeScores, { description: 'probability of each query type; the sum is 1' }),
  complexity: share,
  strong_gain: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'expected quality gain of a strong model, as a percentile of reference prompts',
    examples: [0.81],
  }),
  difficulty: Type.Array(
    strictObject({
      signal: oneOf(difficultySignals),
      weight: Type.Number({ description: 'above 0 raises `strong_gain`, below 0 lowers it', examples: [1.2] }),
    }),
    { description: 'at most six signals that decided `strong_gain`, strongest first' },
  ),
  segments: Type.Array(strictObject({ kind: oneOf(segmentKinds), from: count, to: count }), {
    maxItems: mostSegments,
    description: 'what the last user text consists of: UTF-16 positions, its text parts joined by line feeds',
  }),
  level: oneOf(levels),
  shares: strictObject({ strong: share, middle: share }),
  needs_current: Type.Boolean(),
  needs_current_score: { ...share, description: 'probability that the output depends on the date' },
  language: Type.String({ description: 'ISO 639-1; `und` = unknown', examples: ['en'] }),
  web: strictObject({ search: Type.Boolean(), urls: count }),
  input_tokens: Type.Integer({
    minimum: 0,
    description: 'tokens to reserve, with the maximum of the web',
    examples: [120],
  }),
  test_mode: Type.Boolean(),
  candidates: Type.Array(candidate),
  dropped: Type.Array(
    strictObject({ model: modelName, reason: Type.String({ examples: ['does not support images'] }) }),
  ),
  learning: strictObject({
    influenced: Type.Boolean({ description: 'without learning another model would be the first' }),
  }),
  kept: Type.Boolean({ description: 'the first model has the beginning of the conversation in its cache' }),
  conversation: {
    ...orNull(
      strictObject({
        reason: { ...oneOf(turnReasons), description: 'why the turn has its model and its effort' },
        turns: count,
        raised: { ...count, description: 'steps by which trouble has raised the effort of the task' },
        stalled: { ...count, description: 'turns in a row without progress' },
        cached_tokens: { ...count, description: 'input tokens that the model probably has cached' },
      }),
    ),
    description: 'state of the conversation with this turn; null = the request names a model',
  },
  typical_error_pct: orNull(Type.Number({ minimum: 0, description: 'typical error for this query type in percent' })),
})
export type DryRun = Static<typeof dryRunShape>
