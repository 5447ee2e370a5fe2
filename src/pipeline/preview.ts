import type { Ask } from '../core/chat.ts'
import type { Reader, Reading } from '../core/classify.ts'
import { planEnhancement } from '../core/enhanced-ask.ts'
import { expectedOutput, type KnownLength, plainCost, usualWebTokens } from '../core/estimate.ts'
import type { HealthState } from '../core/health.ts'
import { type LevelShares, usualShares } from '../core/levels.ts'
import type { Caller } from '../core/plans.ts'
import { type Figures, publishedFigures } from '../core/scoring.ts'
import { estimateInputTokens, likelyInputTokens } from '../core/tokens.ts'
import { planWeb, type WebOffer } from '../core/web-plan.ts'
import type { Deps } from '../deps.ts'
import type { Candidate } from './candidate.ts'
import { healthKey } from './health-key.ts'
import { type Route, route } from './route.ts'
import type { RouteDeps } from './route-request.ts'

/** How a request would be routed now, and why. */
export type Preview = {
  readonly reading: Reading
  readonly shares: LevelShares
  readonly plan: Route
  readonly candidates: readonly PreviewedCandidate[]
  readonly known: KnownLength
}

export type PreviewedCandidate = {
  readonly candidate: Candidate
  readonly reasons: readonly string[]
  /** Integer of 1e-8 USD. */
  readonly costMicrocents: number
  readonly health: HealthState
  readonly figures: Figures
}

export type PreviewDeps = RouteDeps & {
  readonly config: Pick<Deps['config'], 'rewriter'>
  readonly read: Reader
  readonly foresight: NonNullable<RouteDeps['foresight']>
}

/** Routes an ask by the real router, which calls and takes nothing. Throws as routing does where nobody can take it. */
export function preview(deps: PreviewDeps, caller: Caller, ask: Ask, offer: WebOffer): Preview {
  const reading = deps.read(ask.messages)
  const web = planWeb(ask, reading, caller, offer)
  // Who asks how it would go is told the rule, not one of its exceptions.
  const settled: RouteDeps = { ...deps, random: () => 1 }
  const enhancement = planEnhancement(ask, reading, deps.config.rewriter !== null)
  const plan = route(settled, caller, ask, reading, enhancement?.inputTokens ?? estimateInputTokens(ask), web)
  const known = deps.foresight.of(reading.queryType, caller.accountId)
  const candidates = plan.candidates.map((candidate, place) => {
    const { model } = candidate
    const key = healthKey(candidate)
    const health = deps.health.stateOf(key)
    const figures = deps.health.figuresOf?.(key, model.figures) ?? publishedFigures(model)
    const outputTokens = expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
    const inputTokens = likelyInputTokens(enhancement?.ask ?? ask, model.provider) + usualWebTokens(plan.web, model)
    return {
      candidate,
      reasons: [candidate.reason(), ...placeReasons(plan, candidate, place, health)],
      costMicrocents: plainCost(model, inputTokens, outputTokens) + plan.web.microcents,
      health,
      figures,
    }
  })
  return { reading, shares: deps.shares ?? usualShares, plan, candidates, known }
}

/** What beside its score puts a candidate where it is. */
function placeReasons(plan: Route, { model, score }: Candidate, place: number, health: HealthState): string[] {
  const reasons: string[] = []
  if (health !== 'healthy') reasons.push(`${health}, so those that are well stand before it`)
  const isPassing = plan.candidates.slice(place + 1).some(later => later.score > score)
  const isFresh = plan.candidates[place - 1]?.model.provider !== model.provider
  if (health === 'healthy' && place > 0 && isPassing && isFresh)
    reasons.push('another provider than the one before it, should that be down as a whole')
  return reasons
}
