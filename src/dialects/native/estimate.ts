import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { Message } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { type Catalog, fullName, getDeprecation, type Model } from '../../core/models/models.ts'
import { parseMessages } from '../../core/request/parse-messages.ts'
import { toUsd } from '../../core/usage/money.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, strictObject, validate } from '../../core/validation/validate.ts'
import { createPublicEndpoint, maximumFreePrompt, type PublicEndpointDeps } from '../../http/public-endpoint.ts'
import { policies, withRouteDocs } from '../../http/route-docs.ts'
import { count, modelName, namedSchema, orNull, queryType, usd } from '../../http/schemas.ts'
import { findNamed } from '../../models/allowed-models.ts'
import { type CostEstimate, estimateCost, measurePrompt } from '../../request/cost-estimate.ts'
import type { OutputForecast } from '../../request/routing/score-candidates.ts'
import type { PromptAnalysis, PromptAnalyzer } from '../../text/analysis/prompt-analysis.ts'
import { noWeb, type WebPlan } from '../../web/web-plan.ts'
import { nativeSchema } from './request.ts'

const { messages, model, max_output_tokens, web } = nativeSchema.properties

/**
 * `messages` or `prompt`. Without `model`, or with `gateway-ai`: the model that automatic routing would most likely
 * choose.
 */
export const estimateRequestSchema = strictObject(
  {
    messages,
    prompt: nullable(Type.String({ minLength: 1, maxLength: maximumFreePrompt })),
    model,
    max_output_tokens,
    web,
  },
  { title: 'EstimateRequest' },
)

const path = '/api/v1/chat/estimate'

type EstimateDeps = PublicEndpointDeps & {
  readonly catalog: Catalog
  /** Returns the model that automatic routing would choose for these messages; null = none is available. */
  readonly chooseModel: (messages: readonly Message[]) => Model | null
  /** Analyzes these messages. */
  readonly read: PromptAnalyzer
  /** Plans the web access for these messages, without a search or fetch. */
  readonly planWeb: (messages: readonly Message[], analysis: PromptAnalysis) => WebPlan
  /** Returns the calibration of output lengths and cost estimates: of an account if one is given, otherwise of all. */
  readonly calibration: NonNullable<OutputForecast['calibration']>
}

/**
 * `POST /api/v1/chat/estimate`: cost of a request on the model it names and on every other one. Free, without a key, at
 * most 20 requests per minute from one IP address; with a key, the account's own history calibrates the estimate.
 */
export function estimate(deps: EstimateDeps) {
  const { preflight, answer } = createPublicEndpoint(deps, 'estimate')
  return new Elysia({ name: 'estimates' })
    .options(path, preflight, withRouteDocs(policies.free, { summary: 'CORS preflight of the estimate', answer: null }))
    .post(
      path,
      ({ request, server, set }) => answer({ request, server, set }, (body, caller) => estimated(deps, caller, body)),
      {
        parse: 'none',
        ...withRouteDocs(policies.free, {
          summary: 'Estimate the cost of a request',
          description:
            'Free, without a key: 20 per minute from one IP address. Without a model, or with `gateway-ai`: the model that automatic routing would most likely choose.',
          body: estimateRequestSchema,
          examples: {
            prompt: { prompt: 'Explain how a B-tree splits a page.', max_output_tokens: 500 },
            'conversation with a named model': {
              model: 'openai/gpt-5.5',
              messages: [{ role: 'user', content: 'Why is the sky blue?' }],
            },
          },
          answer: estimateShape,
          errors: [
            'model_not_found',
            'model_deprecated',
            'ip_rate_limited',
            'requests_per_minute_exceeded',
            'no_model_available',
          ],
        }),
      },
    )
}

function estimated(deps: EstimateDeps, caller: Caller | null, value: unknown): ShownEstimate {
  const { catalog, chooseModel, read, planWeb, calibration, clock } = deps
  const body = validate(estimateRequestSchema, value)
  const messages = getMessages(body)
  const at = clock.now()
  const today = new Date(at).toISOString()
  const model = findModel(body.model, catalog, today) ?? chooseModel(messages)
  if (model === null) throw new GatewayError('no_model_available', 'No model is available. Retry later.')
  const analysis = read(messages)
  const web = body.web === 'off' ? noWeb : planWeb(messages, analysis)
  const known = calibration.of(analysis.queryType, caller?.accountId ?? null)
  const prompt = measurePrompt(messages, { cues: analysis, web, at })
  const cap = body.max_output_tokens ?? null
  const available = catalog.list.filter(other => getDeprecation(other, today) !== 'retired')
  return {
    ...shown(estimateCost(model, prompt, cap, known)),
    query_type: analysis.queryType,
    typical_error_pct: known.typicalErrorPct,
    models: available.map(other => shown(estimateCost(other, prompt, cap, known))),
  }
}

function getMessages({ messages = null, prompt = null }: Static<typeof estimateRequestSchema>): readonly Message[] {
  const read = parseMessages(messages, prompt)
  const characters = read.reduce((sum, message) => sum + getCharacters(message), 0)
  if (characters > maximumFreePrompt)
    throw invalidField('messages', `must contain at most ${maximumFreePrompt} characters in all`, 'body_too_large')
  return read
}

function getCharacters(message: Message): number {
  if (message.role !== 'user') return message.text?.length ?? 0
  return message.content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
}

/** Returns the model that the client names; null = automatic routing. Throws 404 for an unknown one, 400 for a retired one. */
function findModel(name: string | null | undefined, catalog: Catalog, today: string): Model | null {
  const model = findNamed(catalog, name)
  if (model === null || getDeprecation(model, today) !== 'retired') return model
  const instead = model.successor === null ? 'List models with GET /v1/models.' : `Use \`${model.successor}\`.`
  throw new GatewayError('model_deprecated', `\`${fullName(model)}\` is retired. ${instead}`, {
    param: 'model',
  })
}

function shown(costEstimate: CostEstimate): ModelEstimate {
  return {
    model: fullName(costEstimate.model),
    estimated_cost_usd: toUsd(costEstimate.costMicrocents),
    confidence: costEstimate.confidence,
    input_tokens: costEstimate.inputTokens,
    expected_output_tokens: costEstimate.expectedOutputTokens,
    output_from: costEstimate.outputFrom,
    maximum_cost_usd: costEstimate.maximumCostMicrocents === null ? null : toUsd(costEstimate.maximumCostMicrocents),
  }
}

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
type ModelEstimate = Static<typeof modelEstimateShape>

/** Cost of a request on the model it names, and on every other one. */
export const estimateShape = namedSchema('Estimate', {
  ...fields,
  query_type: queryType,
  typical_error_pct: orNull(Type.Number({ minimum: 0, description: 'typical error for this query type in percent' })),
  models: Type.Array(modelEstimateShape),
})
type ShownEstimate = Static<typeof estimateShape>
