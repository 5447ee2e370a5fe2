import type { HealthState, PlaceReason } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { Caller } from '../core/limits/plans.ts'
import { ratesAt } from '../core/models/pricing.ts'
import { nameDemands } from '../core/policy/constraints.ts'
import type { ActedRule } from '../core/policy/rules.ts'
import type { CalibratedLength } from '../learning/estimate-calibration.ts'
import { defaultLevelShares, type LevelShares } from '../models/capability-levels.ts'
import type { SkipReason } from '../models/circuit-breaker.ts'
import type { HealthEntry, HealthTracker } from '../models/health-tracker.ts'
import { type Figures, publishedFigures } from '../models/scoring.ts'
import type { WeighedSignal } from '../text/analysis/difficulty.ts'
import type { DifficultyExplainer, PromptAnalysis } from '../text/analysis/prompt-analysis.ts'
import { likelyInputTokens } from '../text/tokens/tokens.ts'
import { type AdmissionCheckDeps, checkAdmission } from './admit.ts'
import { getUnderPolicy, planChat } from './answer.ts'
import { baseCost, expectedOutput, usualWebTokens } from './cost-estimate.ts'
import type { OfferDeps } from './enrich.ts'
import { refuseScreening, type ScreeningDeps } from './moderate.ts'
import { type Candidate, getEffort } from './routing/candidate.ts'
import { type CandidateOrderDeps, healthKey, inOrder, routingHealthKey } from './routing/hosts.ts'
import type { Route, RouteDeps } from './routing/route.ts'
import type { RuleHeaders, RulesDeps } from './routing/under-rules.ts'

/** The routing of a request at this moment, with reasons. */
export type Preview = {
  readonly analysis: PromptAnalysis
  readonly shares: LevelShares
  /** Constraints in force, in words. */
  readonly constraints: readonly string[]
  /** Rules that changed the requested model. */
  readonly rules: readonly ActedRule[]
  readonly plan: Route
  readonly candidates: readonly PreviewedCandidate[]
  readonly known: CalibratedLength
  /** Signals that decided the complexity of the prompt. */
  readonly difficulty: readonly WeighedSignal[]
}

export type PreviewedCandidate = {
  readonly candidate: Candidate
  /** Why it has this place in the order of calls. */
  readonly place: PlaceReason
  readonly reasons: readonly string[]
  /** Integer of 1e-8 USD. */
  readonly costMicrocents: number
  readonly health: HealthState
  /** Null = it is healthy. */
  readonly healthDetail: HealthEntry | null
  readonly figures: Figures
}

type PreviewDeps = RouteDeps &
  RulesDeps &
  OfferDeps &
  ScreeningDeps &
  AdmissionCheckDeps &
  CandidateOrderDeps & {
    readonly config: { readonly rewriter: string | null }
    readonly newRequestId: () => string
    readonly ownKeys: { of(caller: Caller): Pick<PreviewDeps, 'endpoints' | 'health'> | null }
    readonly explain: DifficultyExplainer
    readonly calibration: NonNullable<RouteDeps['calibration']>
    readonly health: Pick<HealthTracker, 'getEntry' | 'getStanding'>
  }

/**
 * Routes a chat request by the real router and limits. Returns its candidates in the order of calls. Calls no model and
 * reserves nothing. Throws as the chat request would, including for the account's limits.
 */
export async function planDryRun(
  given: PreviewDeps,
  caller: Caller,
  { asked, headers }: { readonly asked: ChatRequest; readonly headers: RuleHeaders },
): Promise<Preview> {
  const own = given.ownKeys.of(caller)
  const deps = own === null ? given : { ...given, ...own }
  const request = getUnderPolicy(deps, caller, asked, headers)
  refuseScreening(deps, request)
  const analysis = deps.read(request.messages)
  // A dry run shows the rule and not the exploration of another model.
  const { plan: wanted, enhancement } = planChat({ ...deps, random: () => 1 }, caller, request, analysis)
  const plan = await checkAdmission(deps, { requestId: deps.newRequestId(), caller, request, plan: wanted })
  const known = deps.calibration.of(analysis.queryType, caller.accountId)
  const candidates = explainOrder(deps, plan).map(({ candidate, place, health, healthDetail, reasons }) => {
    const { model } = candidate
    const figures =
      candidate.figures ?? deps.health.findFigures?.(healthKey(candidate), model.figures) ?? publishedFigures(model)
    const cues = { ...analysis, effort: getEffort(candidate, request), lengths: deps.calibration.reasoning.current }
    const outputTokens = expectedOutput(model, cues, request.maxOutputTokens, known).tokens * request.choices
    const inputTokens =
      likelyInputTokens(enhancement?.request ?? request, model.provider) + usualWebTokens(plan.web, model)
    return {
      candidate,
      place,
      reasons,
      costMicrocents:
        (candidate.endpoint.own === undefined
          ? baseCost(ratesAt(model.pricing, plan.terms), inputTokens, outputTokens)
          : 0) + plan.web.microcents,
      health,
      healthDetail,
      figures,
    }
  })
  return {
    analysis,
    shares: deps.shares ?? defaultLevelShares,
    constraints: nameDemands(request.demands ?? []),
    rules: request.rules?.acted ?? [],
    plan,
    candidates,
    known,
    difficulty: deps.explain(request.messages),
  }
}

type ExplainedCandidate = Pick<PreviewedCandidate, 'candidate' | 'place' | 'reasons' | 'health' | 'healthDetail'>

/**
 * Returns the candidates in the order of calls with the reasons of their places. The order and the reasons come from the
 * same decisions: the ranking's own reasons, and the skips of the order of calls.
 */
export function explainOrder(
  deps: CandidateOrderDeps & Pick<PreviewDeps, 'health'>,
  plan: Pick<Route, 'mode' | 'first' | 'candidates'>,
): readonly ExplainedCandidate[] {
  const { health: tracker } = deps
  const skips = new Map<Candidate, SkipReason>()
  const skipped = (candidate: Candidate, reason: SkipReason) => void skips.set(candidate, reason)
  const order = [...inOrder({ ...deps, rests: skipped }, plan, () => {})]
  const isAnyCalled = skips.size < order.length
  return order.map(candidate => {
    const skip = skips.get(candidate) ?? null
    const { health } = candidate
    // A ranking cannot know the skip of a named model.
    const place = skip !== null && isAnyCalled ? 'unhealthy' : candidate.place
    const entry = health === 'healthy' ? null : tracker.getEntry(routingHealthKey(tracker, candidate.model))
    return {
      candidate,
      place,
      health,
      healthDetail: entry,
      reasons: [
        candidate.reason(),
        ...explainPlace({ place, health }),
        ...(skip === null || !isAnyCalled ? [] : [`skipped, and called only as the last resort: ${skip}`]),
        ...(entry === null ? [] : [explainHealth(health, entry)]),
      ],
    }
  })
}

/** Facts about one candidate at the time of its ranking. */
type PlacedCandidate = { readonly place: PlaceReason; readonly health: HealthState }

const sentences: Readonly<Record<PlaceReason, string>> = {
  requested: 'named by the request',
  score: 'ranked by its score',
  price: 'ranked by its price, lowest first',
  other_provider:
    'ahead of a score at most 0.15 higher: a different provider for resilience, so that one outage does not affect both',
  cached: 'ahead of its score, because its provider has this conversation in its prompt cache',
  conversation: 'first: a task of a conversation keeps its model, and a tool loop its effort too',
  explored: 'first, because this request explores a near tie',
  output_limit: 'behind the models that allow the requested output length',
  unhealthy: 'behind the models that may be called now',
}

/** Returns the reasons of a candidate's place, in plain sentences. */
export function explainPlace({ place, health }: PlacedCandidate): readonly string[] {
  const effect = findEffect({ place, health })
  return effect === null ? [sentences[place]] : [sentences[place], effect]
}

/** Returns one sentence about a model that is not healthy: cause, rate and since when. */
function explainHealth(health: HealthState, { cause, failureRate, since }: HealthEntry): string {
  const began = since === null ? '' : ` since ${new Date(since).toISOString().slice(0, 19)}Z`
  const last = cause === null ? '' : `, last cause: ${cause}`
  return `${health}${began}: ${Math.round(failureRate * 100)}% of the latest attempts failed${last}`
}

/** Returns the effect of the health on the place; null = none. */
function findEffect({ place, health }: PlacedCandidate): string | null {
  if (health === 'healthy' || place === 'unhealthy') return null
  if (place === 'requested') return `${health}: it stays first because the request names it`
  // No model may be called now, so the ranking ignores health.
  if (health === 'unhealthy') return 'unhealthy, as are all others: health does not change the order'
  if (place === 'price') return 'degraded: healthy models of nearly the same price come first'
  return 'degraded: its score is 0.1 lower'
}
