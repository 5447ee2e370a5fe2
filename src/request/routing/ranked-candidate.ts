/** Converts ranked models to candidates, which can explain their rank. */

import type { HealthState, PlaceReason } from '../../core/chat/attempts.ts'
import { fullName, type Model, type ModelHost } from '../../core/models/models.ts'
import { getBias, type LearnedBiasLookup } from '../../learning/apply-bias.ts'
import { type CacheAffinity, describeAffinity, hasAffinity } from '../../models/cache-affinity.ts'
import {
  describeScore,
  type Figures,
  type FiguresOf,
  type Scored,
  type ScoringMode,
  scoreComponents,
} from '../../models/scoring.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import type { Candidate, ScoreParts } from './candidate.ts'
import { endpointOf } from './hosts.ts'

/** Data behind the scores of a ranking. */
export type ScoreContext = {
  readonly mode: ScoringMode
  readonly figuresOf: FiguresOf
  readonly learned: LearnedBiasLookup | null
  /** Cache affinity that put the first model there; null = none. */
  readonly keptFor: CacheAffinity | null
  /** The monthly soft cap is nearly used, which raises cheaper models. */
  readonly savesMoney: boolean
}

/**
 * A class, since explanations are rarely requested. It keeps the figures of its ranking: later ones would explain another
 * score.
 */
export class RankedCandidate implements Candidate {
  readonly model: Model
  readonly endpoint: ConfiguredProvider
  readonly host?: ModelHost
  readonly score: number
  readonly place: PlaceReason
  readonly health: HealthState
  readonly figures: Figures
  private readonly context: ScoreContext

  constructor(
    { model, score, place = 'score', health = 'healthy' }: Scored,
    endpoint: ConfiguredProvider,
    context: ScoreContext,
  ) {
    this.model = model
    this.endpoint = endpoint
    const host = model.hosts?.[0]
    if (host !== undefined) this.host = host
    this.score = score
    this.place = place
    this.health = health
    this.figures = context.figuresOf(model)
    this.context = context
  }

  reason(): string {
    const { model, figures } = this
    const { mode, learned, keptFor, savesMoney } = this.context
    const kept = keptFor !== null && hasAffinity(model, keptFor) ? `, ${describeAffinity(keptFor)}` : ''
    const saving = savesMoney ? ', cheaper models raised by the monthly soft cap' : ''
    return describeScore(model, mode, figures) + describeBias(learned, model) + saving + kept
  }

  parts(): ScoreParts {
    const parts = scoreComponents(this.model, this.context.mode, this.figures)
    return { ...parts, adjustment: this.score - (parts.quality + parts.cost + parts.speed + parts.reliability) }
  }
}

/** Empty if there is no learning for the model. */
function describeBias(learned: LearnedBiasLookup | null, model: Model): string {
  const bias = getBias(learned, fullName(model))
  return bias === 0 ? '' : `, learnt ${bias > 0 ? '+' : '−'}${Math.abs(bias * 100).toFixed(1)}`
}

/** Converts scored models in their order; omits models without a configured provider. */
export function toCandidates(
  endpoints: ReadonlyMap<string, ConfiguredProvider>,
  scored: readonly Scored[],
  candidateOf: (entry: Scored, endpoint: ConfiguredProvider) => Candidate,
): readonly Candidate[] {
  const candidates: Candidate[] = []
  for (const entry of scored) {
    const endpoint = endpointOf(endpoints, entry.model)
    if (endpoint !== undefined) candidates.push(candidateOf(entry, endpoint))
  }
  return candidates
}
