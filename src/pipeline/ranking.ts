/** In which order those who can take a request are asked, and why. */
import { leanToCheaper } from '../core/billing.ts'
import { fullName, type Model } from '../core/models.ts'
import { biasOf, explore, type Leaning, nudge } from '../core/nudge.ts'
import {
  type Choice as Aim,
  diversify,
  explain,
  type FiguresOf,
  partsOf,
  publishedFigures,
  type Scored,
  score,
  weightsOf,
} from '../core/scoring.ts'
import { explainTie, isTied, stays, type Tie } from '../core/ties.ts'
import type { Candidate, ScoreParts } from './candidate.ts'
import { healthKey } from './health-key.ts'
import type { RouteDeps, RouteRequest } from './route-request.ts'
import { likelyOutputTokens, longEnough } from './sift.ts'

/** At most this many candidates are handed on: three are attempted, the others stand by for those that are skipped. */
export const maximumCandidates = 6

/** What learning had to do with a choice. */
export type RouteLearning = {
  /** Erasures of the account's learning at the time; null = it was not known yet. */
  readonly epoch: number | null
  /** Without it another model would be the first. */
  readonly influenced: boolean
  /** Of the first model having become the first. */
  readonly probability: number
}

export type Ranked = {
  readonly candidates: readonly Candidate[]
  readonly learning: Omit<RouteLearning, 'epoch'>
  /** The first is the first because it has the conversation's beginning in its cache. */
  readonly isKept: boolean
}

/** Ranks `able` by the strategy, or without one by the prompt's level. */
export function rankByAim(deps: RouteDeps, request: RouteRequest, able: readonly Model[]): Ranked {
  const { ask, caller, reading, level } = request
  const aim: Aim = { strategy: ask.strategy, level }
  const figuresOf = figuresBy(deps)
  const spent = deps.budget?.shareOf(caller) ?? 0
  // Who would break the answer off before the caller's own cap does is better than nobody, but only than nobody.
  const isLong = longEnough(request)
  const long = able.filter(isLong)
  const short = long.length === able.length ? [] : able.filter(model => !isLong(model))
  const mayLead = ({ model }: Scored) => isLong(model) && isWell(deps, model)
  const rank = (leaning: Leaning | null) =>
    [long, short]
      .flatMap(models => restingLast(deps, leanToCheaper(nudged(score(models, aim, figuresOf), leaning), spent)))
      .slice(0, maximumCandidates)
  // Where quality has no weight, what was learnt of it has none either.
  const account = weightsOf(aim).quality === 0 ? null : (deps.learning?.of(caller.accountId) ?? null)
  const leaning = account?.leaningOf(reading.queryType) ?? null
  // Nor does a cache count where nothing that is paid does.
  const tie = weightsOf(aim).cost === 0 ? null : (deps.ties?.of(caller.accountId, ask) ?? null)
  const kept = withTied(deps, request, rank(leaning), tie, mayLead)
  const { ordered, ...learning } = kept.isKept
    ? { ordered: kept.ordered, ...notLearned }
    : learned(deps, kept.ordered, rank, leaning, mayLead)
  const reasonOf = ({ model }: Scored) =>
    explain(model, aim, figuresOf(model)) +
    learntOf(leaning, model) +
    (kept.isKept && tie !== null && isTied(model, tie) ? `, ${explainTie(tie)}` : '')
  const candidates = candidatesOf(deps, ordered, reasonOf, entry => scoreParts(entry, aim, figuresOf))
  return { candidates, learning, isKept: kept.isKept }
}

export const notLearned = { influenced: false, probability: 1 }

/** Figures as measured here, once for each model of a request. */
function figuresBy({ health }: RouteDeps): FiguresOf {
  if (health.figuresOf === undefined) return publishedFigures
  return model => health.figuresOf?.(healthKey({ model }), model.figures) ?? publishedFigures(model)
}

function isWell({ health }: RouteDeps, model: Model): boolean {
  const key = healthKey({ model })
  return health.stateOf(key) === 'healthy' && health.mayTry(key)
}

function nudged(scored: readonly Scored[], leaning: Leaning | null): readonly Scored[] {
  return leaning === null ? scored : nudge(scored, ({ model }) => leaning(fullName(model)))
}

/** The ranking, now and then with a near-tie first, and whether it begins with another model for what was learnt. */
function learned(
  deps: RouteDeps,
  ranked: readonly Scored[],
  rank: (leaning: Leaning | null) => readonly Scored[],
  leaning: Leaning | null,
  mayLead: (entry: Scored) => boolean,
) {
  if (leaning === null) return { ordered: ranked, ...notLearned }
  const leanOf = ({ model }: Scored) => leaning(fullName(model))
  const { ordered, probability } = explore(ranked, leanOf, mayLead, deps.random ?? (() => 1))
  return { ordered, probability, influenced: ordered[0]?.model !== rank(null)[0]?.model }
}

/** The ranking with the model first that has the conversation's beginning in its cache, where that pays. */
function withTied(
  deps: RouteDeps,
  request: RouteRequest,
  ranked: readonly Scored[],
  tie: Tie | null,
  mayLead: (entry: Scored) => boolean,
): { readonly ordered: readonly Scored[]; readonly isKept: boolean } {
  const leader = ranked[0]
  const tied = tie === null ? undefined : ranked.find(({ model }) => isTied(model, tie))
  if (tie === null || leader === undefined || tied === undefined || tied === leader || !mayLead(tied))
    return { ordered: ranked, isKept: false }
  const outputTokens = likelyOutputTokens(deps, request, leader.model)
  if (!stays(tied, leader, tie, { inputTokens: request.inputTokens, outputTokens }))
    return { ordered: ranked, isKept: false }
  return { ordered: [tied, ...ranked.filter(entry => entry !== tied)], isKept: true }
}

/** For whoever asks how a score came about; nothing where nothing was learnt. */
function learntOf(leaning: Leaning | null, model: Model): string {
  const bias = biasOf(leaning, fullName(model))
  return bias === 0 ? '' : `, learnt ${bias > 0 ? '+' : '−'}${Math.abs(bias * 100).toFixed(1)}`
}

function scoreParts({ model, score: total }: Scored, aim: Aim, figuresOf: FiguresOf): ScoreParts {
  const parts = partsOf(model, aim, figuresOf(model))
  return { ...parts, adjustment: total - (parts.quality + parts.cost + parts.speed + parts.reliability) }
}

const degradedPenalty = 0.1

/** Models that are not well go behind all others, never away: the last one left is still worth a try. */
export function restingLast(deps: RouteDeps, scored: readonly Scored[]): Scored[] {
  const well: Scored[] = []
  const resting: Scored[] = []
  for (const entry of scored) {
    const key = healthKey(entry)
    const state = deps.health.stateOf(key)
    if (state === 'unhealthy' || !deps.health.mayTry(key)) resting.push(entry)
    else well.push(state === 'degraded' ? { ...entry, score: Math.max(0, entry.score - degradedPenalty) } : entry)
  }
  well.sort((left, right) => right.score - left.score)
  const healthy = diversify(well, maximumCandidates)
  return [...healthy, ...diversify(resting, maximumCandidates - healthy.length)]
}

/** Scored models as candidates, in their order; those whose provider is not configured here are left out. */
export function candidatesOf(
  deps: RouteDeps,
  scored: readonly Scored[],
  reason: (of: Scored) => string,
  parts: (of: Scored) => ScoreParts | null,
): readonly Candidate[] {
  return scored.flatMap(entry => {
    const endpoint = deps.endpoints.get(entry.model.provider)
    if (endpoint === undefined) return []
    return [{ ...entry, endpoint, reason: () => reason(entry), parts: () => parts(entry) }]
  })
}
