import type { WeighedSignal } from '../core/analysis/difficulty.ts'
import type { DifficultyExplainer, PromptAnalysis, PromptAnalyzer } from '../core/analysis/prompt-analysis.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { Caller } from '../core/limits/plans.ts'
import { defaultLevelShares, type LevelShares } from '../core/routing/capability-levels.ts'
import type { HealthState, SkipReason } from '../core/routing/circuit-breaker.ts'
import { type Figures, publishedFigures } from '../core/routing/scoring.ts'
import { estimateInputTokens, likelyInputTokens } from '../core/tokens/tokens.ts'
import { baseCost, type CalibratedOutput, expectedOutput, usualWebTokens } from '../core/usage/cost-estimate.ts'
import { planWebAccess, type WebAvailability } from '../core/web/web-plan.ts'
import { type AdmissionCheckDeps, checkAdmission } from './admit.ts'
import { planRequestEnhancement } from './enhance.ts'
import type { Candidate } from './routing/candidate.ts'
import { healthKey } from './routing/health-key.ts'
import { type CandidateOrderDeps, inOrder } from './routing/order.ts'
import { type Route, type RouteDeps, route } from './routing/route.ts'

/** The routing of a request at this moment, with reasons. */
export type Preview = {
  readonly reading: PromptAnalysis
  readonly shares: LevelShares
  readonly plan: Route
  readonly candidates: readonly PreviewedCandidate[]
  readonly known: CalibratedOutput
  /** Signals that decided the complexity of the prompt. */
  readonly difficulty: readonly WeighedSignal[]
}

export type PreviewedCandidate = {
  readonly candidate: Candidate
  readonly reasons: readonly string[]
  /** Integer of 1e-8 USD. */
  readonly costMicrocents: number
  readonly health: HealthState
  readonly figures: Figures
}

type PreviewDeps = RouteDeps &
  AdmissionCheckDeps &
  CandidateOrderDeps & {
    readonly config: { readonly rewriter: string | null }
    readonly newRequestId: () => string
    readonly read: PromptAnalyzer
    readonly explain: DifficultyExplainer
    readonly foresight: NonNullable<RouteDeps['foresight']>
  }

/**
 * Routes a chat request by the real router and limits. Returns its candidates in the order of calls. Calls no model and
 * reserves nothing. Throws as the chat request would, including for the account's limits.
 */
export async function planDryRun(
  deps: PreviewDeps,
  caller: Caller,
  ask: ChatRequest,
  offer: WebAvailability,
): Promise<Preview> {
  const reading = deps.read(ask.messages)
  const web = planWebAccess(ask, reading, caller, offer)
  // A dry run shows the rule and not the exploration of another model.
  const settled: RouteDeps = { ...deps, random: () => 1 }
  const enhancement = planRequestEnhancement(deps, ask, reading)
  const wanted = route(settled, {
    caller,
    ask,
    reading,
    inputTokens: enhancement?.inputTokens ?? estimateInputTokens(ask),
    web,
  })
  const plan = await checkAdmission(deps, { requestId: deps.newRequestId(), caller, ask, plan: wanted })
  const known = deps.foresight.of(reading.queryType, caller.accountId)
  const skips = new Map<Candidate, SkipReason>()
  const order = [...inOrder(deps, plan, (candidate, reason) => void skips.set(candidate, reason))]
  const candidates = order.map((candidate, place) => {
    const { model } = candidate
    const key = healthKey(candidate)
    const health = deps.health.stateOf(key)
    const figures = deps.health.figuresOf?.(key, model.figures) ?? publishedFigures(model)
    const outputTokens = expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
    const inputTokens = likelyInputTokens(enhancement?.ask ?? ask, model.provider) + usualWebTokens(plan.web, model)
    return {
      candidate,
      reasons: [
        candidate.reason(),
        ...placeReasons(plan, order, place, { health, skip: skips.get(candidate) ?? null }),
      ],
      costMicrocents: baseCost(model, inputTokens, outputTokens) + plan.web.microcents,
      health,
      figures,
    }
  })
  return {
    reading,
    shares: deps.shares ?? defaultLevelShares,
    plan,
    candidates,
    known,
    difficulty: deps.explain(ask.messages),
  }
}

/** Explains the position of a candidate apart from its score. */
function placeReasons(
  { mode, first }: Route,
  order: readonly Candidate[],
  place: number,
  { health, skip }: { readonly health: HealthState; readonly skip: SkipReason | null },
): string[] {
  const candidate = order[place]
  if (candidate === undefined) return []
  const { model, score } = candidate
  const reasons: string[] = []
  if (skip !== null) reasons.push(`skipped, and called only as the last resort: ${skip}`)
  else if (health !== 'healthy' && mode === 'manual' && candidate === first)
    reasons.push(`${health}, and called anyway because the request names it`)
  else if (health !== 'healthy') reasons.push(`${health}: ranked after healthy models`)
  const isPassing = order.slice(place + 1).some(later => later.score > score)
  const isFresh = order[place - 1]?.model.provider !== model.provider
  if (health === 'healthy' && place > 0 && isPassing && isFresh) reasons.push('different provider for resilience')
  return reasons
}
