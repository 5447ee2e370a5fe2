/** Learning data of an account, as the API shows it. */
import { type Static, Type } from '@sinclair/typebox'
import { shadowSchema } from '../../core/usage/shadow.ts'
import { nullable, oneOf, strictObject } from '../../core/validation/validate.ts'
import { count, list, modelName, namedSchema, orNull, share, text, time, usd } from '../../http/schemas.ts'
import { confidences } from '../../learning/learning-cell.ts'

const confidence = oneOf(confidences)
/** Name of the model when the entry was learned. */
const queryType = text('code')
const percent = Type.Number({ minimum: 0, maximum: 100, examples: [37.5] })

const modelInsightShape = namedSchema('ModelInsight', {
  model: modelName,
  query_type: queryType,
  requests: count,
  quality: share,
  latency_ms: count,
  ttft_ms: orNull(count),
  cost_usd: usd,
  rating: orNull(Type.Number({ minimum: 1, maximum: 5, description: 'mean of the ratings', examples: [4.5] })),
  confidence,
  bias: Type.Number({
    minimum: -0.2,
    maximum: 0.2,
    description: 'learned bias on the routing score',
    examples: [0.05],
  }),
})
export type ShownModelInsight = Static<typeof modelInsightShape>
export const modelInsightListShape = list(modelInsightShape)

const recommendationShape = namedSchema('Recommendation', {
  query_type: queryType,
  model: modelName,
  reason: text('Higher quality on your requests than the current model.'),
  expected_quality_change: Type.Number({ examples: [0.08] }),
  expected_cost_change_pct: Type.Number({ examples: [-12.5] }),
})
export type ShownRecommendation = Static<typeof recommendationShape>
export const recommendationListShape = list(recommendationShape)

export const learningShape = namedSchema('Learning', {
  state: confidence,
  entries: count,
  since: orNull(time),
  query_types: Type.Array(
    strictObject({ query_type: queryType, requests: count, best_model: orNull(modelName), confidence }),
  ),
  enhancement: strictObject({ requests: count, quality_with: orNull(share), quality_without: orNull(share) }),
  influence: strictObject({ classified_pct: percent, influenced_pct: percent }),
  models: Type.Array(modelInsightShape),
  recommendations: Type.Array(recommendationShape),
})
export type ShownLearning = Static<typeof learningShape>

const comparisonSums = {
  compared: count,
  wins: count,
  ties: count,
  losses: count,
  no_verdict: { ...count, description: 'there was no whole answer of the baseline, or no verdict' },
  /** Of `compared`. */
  matched_or_better: orNull(
    strictObject({ share, low: share, high: share }, { description: 'with its 95% Wilson interval' }),
  ),
  cost_usd: { ...usd, description: 'what the comparisons cost' },
  served_cost_usd: { ...usd, description: 'of the compared outputs' },
  baseline_cost_usd: { ...usd, description: 'of those of the baseline' },
}

export const shadowReportShape = namedSchema('ShadowReport', {
  shadow: orNull(shadowSchema),
  judge_model: { ...orNull(modelName), description: 'null = the operator has chosen none' },
  days: count,
  total: strictObject(comparisonSums),
  models: Type.Array(strictObject({ model: modelName, baseline_model: modelName, ...comparisonSums })),
})
export type ShadowReport = Static<typeof shadowReportShape>

/** Response to a rating. */
export const ratedShape = namedSchema('Rated', { accepted: Type.Boolean(), query_type: queryType, model: modelName })
export type Rated = Static<typeof ratedShape>

/** Rating of one request, 1 to 5. */
export const feedbackSchema = strictObject(
  {
    request_id: Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\w-]+$', description: 'ID of a request' }),
    score: Type.Integer({ minimum: 1, maximum: 5, description: 'an integer from 1 to 5' }),
    is_helpful: nullable(Type.Boolean()),
  },
  { title: 'FeedbackRequest' },
)
