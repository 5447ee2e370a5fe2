import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '../../core/validation/validate.ts'
import { count, modelName, namedSchema, orNull, queryType, usd } from '../../http/schemas.ts'

const fields = {
  model: modelName,
  estimated_cost_usd: usd,
  confidence: oneOf(['high', 'medium', 'low']),
  input_tokens: count,
  expected_output_tokens: count,
  output_from: oneOf(['cap', 'table', 'traffic', 'account']),
  maximum_cost_usd: orNull(usd),
}
const modelEstimateShape = namedSchema('ModelEstimate', fields)
export type ModelEstimate = Static<typeof modelEstimateShape>

/** Cost of a request on the model it names, and on every other one. */
export const estimateShape = namedSchema('Estimate', {
  ...fields,
  query_type: queryType,
  typical_error_pct: orNull(Type.Number({ minimum: 0, description: 'typical error for this query type in percent' })),
  models: Type.Array(modelEstimateShape),
})
export type ShownEstimate = Static<typeof estimateShape>
