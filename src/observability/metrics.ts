/**
 * Request metrics, updated once when a request is settled and once when an error is sent. Labels are closed sets or
 * catalog names, never an account, a key or client text.
 */
import { type AttemptOutcome, candidateOutcomes, hedgeLost } from '../core/chat/attempts.ts'
import { fullName, type Model } from '../core/models/models.ts'
import { microcentsPerUsd } from '../core/usage/money.ts'
import { type ShadowVerdict, shadowVerdicts } from '../core/usage/shadow.ts'
import { modelMicrocents, runawaySteps, servingModel, type UsageRecord } from '../core/usage/usage-record.ts'
import { type ErrorCode, errorTable, type GatewayError, wireCode } from '../core/validation/errors.ts'
import type { LimitErrorCode } from '../limits/meter.ts'
import type { SettledRequest } from '../request/record.ts'
import { type Axis, createCounter, createHistogram, type Family, type Labels } from './instruments.ts'

/** Where an error was sent: on the two chat routes, or elsewhere. */
export type Surface = 'chat' | 'other'

type Metrics = {
  settled(request: Pick<SettledRequest, 'request' | 'progress' | 'response' | 'record'>): void
  compared(result: ShadowVerdict | 'skipped'): void
  failed(surface: Surface, error: Pick<GatewayError, 'code' | 'layer'>): void
  families(): readonly Family[]
}

const statuses = ['completed', 'failed', 'client_closed', 'blocked'] as const satisfies readonly UsageRecord['status'][]
const modes = ['auto', 'manual'] as const satisfies readonly UsageRecord['routing_mode'][]
const kinds = ['input', 'cached_input', 'cache_write', 'output', 'reasoning'] as const
const parts = ['model', 'search', 'fetch', 'hedge'] as const
const surfaces = ['chat', 'other'] as const satisfies readonly Surface[]
const codes = Object.keys(errorTable) as readonly ErrorCode[]
const limits: readonly ErrorCode[] = [
  'requests_per_minute_exceeded',
  'concurrent_requests_exceeded',
  'daily_tokens_exceeded',
  'daily_cost_exceeded',
  'monthly_cost_exceeded',
] satisfies readonly LimitErrorCode[]

/** `skipped`: nothing was spent. */
const comparisonResults: readonly (ShadowVerdict | 'skipped')[] = [...shadowVerdicts, 'skipped']

/** Moderation layers: the gateway's own, and a provider's. */
const layers = ['patterns', 'classifier', 'urls', 'provider']

const outcomes = candidateOutcomes
/** A hedge that began is no fallback. */
const fallbackReasons: readonly AttemptOutcome[] = outcomes.filter(
  outcome => outcome !== 'served' && outcome !== hedgeLost,
)

/** Index of the entry without labels. */
const noModel = 0

/** Upper bounds in seconds. */
const bounds = {
  duration: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600],
  overhead: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
  firstToken: [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60, 120],
}

type MetricModels = readonly Pick<Model, 'id' | 'provider'>[]

/** A catalog has some hundred models. This bounds the effect of local servers whose models change. */
const maximumModels = 5_000

/**
 * Creates the metrics. `modelsNow` returns the available models, which a reload or a local server can change: a new one is
 * named from its first request on. Requests without a serving model have neither provider nor model.
 */
export function createMetrics(modelsNow: () => MetricModels): Metrics {
  const modelAxis: Labels[] = [{}]
  const places = new Map<string, number>()
  const add = (model: MetricModels[number]) => {
    const place = modelAxis.push({ provider: model.provider, model: model.id }) - 1
    places.set(fullName(model), place)
    return place
  }
  const getPlace = (name: string): number => {
    const place = places.get(name)
    if (place !== undefined) return place
    const model = modelsNow().find(item => fullName(item) === name)
    return model === undefined || modelAxis.length >= maximumModels ? noModel : add(model)
  }
  for (const model of modelsNow()) add(model)
  const streamed = labelled('streamed', ['false', 'true'])

  const requests = createCounter({
    name: 'gateway_requests_total',
    help: 'Admitted chat requests by status.',
    axes: [modelAxis, labelled('status', statuses), streamed, labelled('routing', modes)],
  })
  const duration = createHistogram({
    name: 'gateway_request_duration_seconds',
    help: 'Request duration until settlement.',
    axes: [modelAxis, streamed],
    bounds: bounds.duration,
  })
  const overhead = createHistogram({
    name: 'gateway_overhead_seconds',
    help: 'Gateway overhead before the serving attempt, without failed attempts.',
    axes: [streamed],
    bounds: bounds.overhead,
    showsZeros: true,
  })
  const firstToken = createHistogram({
    name: 'gateway_time_to_first_token_seconds',
    help: 'Time from the request to the first content of the model.',
    axes: [modelAxis],
    bounds: bounds.firstToken,
  })
  const tokens = createCounter({
    name: 'gateway_tokens_total',
    help: 'Tokens used. Input includes cached_input and cache_write, output includes reasoning.',
    axes: [modelAxis, labelled('kind', kinds)],
  })
  const cost = createCounter({
    name: 'gateway_cost_usd_total',
    help: 'US dollars billed by cost component.',
    axes: [modelAxis, labelled('part', parts)],
    unit: microcentsPerUsd,
  })
  const shortfall = createCounter({
    name: 'gateway_shortfall_usd_total',
    help: 'US dollars used beyond reservations and not billed.',
    axes: [modelAxis],
    unit: microcentsPerUsd,
  })
  const unpriced = createCounter({
    name: 'gateway_unpriced_requests_total',
    help: 'Requests with usage of unknown price.',
    axes: [modelAxis],
  })
  const runaway = createCounter({
    name: 'gateway_runaway_requests_total',
    help: 'Requests of conversations beyond their bounds, by the step taken.',
    axes: [labelled('step', runawaySteps)],
  })
  const comparisons = createCounter({
    name: 'gateway_shadow_comparisons_total',
    help: 'Sampled requests of shadow evaluation by verdict.',
    axes: [labelled('verdict', comparisonResults)],
  })
  const attempts = createCounter({
    name: 'gateway_attempts_total',
    help: 'Attempts by outcome, including skipped candidates.',
    axes: [modelAxis, labelled('outcome', outcomes)],
  })
  const fallbacks = createCounter({
    name: 'gateway_fallbacks_total',
    help: 'Fallbacks to another model by the preceding failure or skip.',
    axes: [labelled('reason', fallbackReasons)],
    showsZeros: true,
  })
  const failures = createCounter({
    name: 'gateway_errors_total',
    help: 'Error responses by code.',
    axes: [
      labelled('surface', surfaces),
      codes.map(code => ({ code: wireCode(code), status: String(errorTable[code].status) })),
    ],
  })
  const limited = createCounter({
    name: 'gateway_limits_hit_total',
    help: 'Chat requests rejected by account limits.',
    axes: [labelled('limit', limits)],
    showsZeros: true,
  })

  const blocked = createCounter({
    name: 'gateway_content_blocked_total',
    help: 'Chat requests blocked by moderation, by layer.',
    axes: [labelled('layer', layers)],
    showsZeros: true,
  })

  return {
    settled({ request, progress: { attempts: called, upstreamMs, cut }, response, record }) {
      const model = record.model === '' ? noModel : getPlace(servingModel(record))
      const stream = record.streamed ? 1 : 0
      requests.add(1, model, statuses.indexOf(record.status), stream, record.routing_mode === 'auto' ? 0 : 1)
      duration.observe(record.latency_ms / 1000, model, stream)
      if (record.first_token_ms !== null) firstToken.observe(record.first_token_ms / 1000, model)
      // The last part of a cut text began long after the first content.
      if (response !== null && cut.length === 0)
        overhead.observe((response.startedAt - request.startedMonotonic - upstreamMs) / 1000, stream)
      countTokens(record, model)
      countCost(record, model)
      shortfall.add(record.shortfall_microcents ?? 0, model)
      if (record.unpriced !== undefined) unpriced.add(1, model)
      if (record.trace?.w !== undefined) runaway.add(1, runawaySteps.indexOf(record.trace.w))
      for (const [index, { model: name, outcome }] of called.entries()) {
        attempts.add(1, getPlace(name), outcomes.indexOf(outcome))
        const reason = fallbackReasons.indexOf(called[index - 1]?.outcome ?? 'served')
        if (reason !== -1) fallbacks.add(1, reason)
      }
    },
    compared: result => comparisons.add(1, comparisonResults.indexOf(result)),
    failed(surface, { code, layer }) {
      failures.add(1, surfaces.indexOf(surface), codes.indexOf(code))
      const limit = limits.indexOf(code)
      if (limit !== -1) limited.add(1, limit)
      if (code === 'conversation_stopped') runaway.add(1, runawaySteps.indexOf('stop'))
      const by = layers.indexOf(layer ?? '')
      if (by !== -1) blocked.add(1, by)
    },
    families: () =>
      [
        requests,
        duration,
        overhead,
        firstToken,
        tokens,
        cost,
        shortfall,
        unpriced,
        runaway,
        comparisons,
        attempts,
        fallbacks,
        failures,
        limited,
        blocked,
      ].map(item => item.family()),
  }

  function countTokens(record: UsageRecord, model: number): void {
    tokens.add(record.input_tokens, model, 0)
    tokens.add(record.cached_input_tokens, model, 1)
    tokens.add(record.cache_write_tokens, model, 2)
    tokens.add(record.output_tokens, model, 3)
    tokens.add(record.reasoning_tokens, model, 4)
  }

  function countCost(record: UsageRecord, model: number): void {
    const { search_microcents: search = 0, fetch_microcents: fetch = 0, hedge_microcents: hedge = 0 } = record
    cost.add(modelMicrocents(record), model, 0)
    cost.add(search, model, 1)
    cost.add(fetch, model, 2)
    cost.add(hedge, model, 3)
  }
}

function labelled(name: string, values: readonly string[]): Axis {
  return values.map(value => ({ [name]: value }))
}
