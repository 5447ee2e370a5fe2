/** Second step of routing: scores each eligible model for a request, before health and learning. */
import { fullName, type Model, type RoutingFigures, tiers } from '../../core/models/models.ts'
import type { PriceTerms } from '../../core/models/pricing.ts'
import {
  costScore,
  type Figures,
  type FiguresOf,
  publishedFigures,
  type Scored,
  type ScoringMode,
  score,
} from '../../models/scoring.ts'
import { allowsOutputLength } from './expected-cost.ts'
import { firstHealthKey } from './health-key.ts'
import type { RouteRequest } from './route-request.ts'

export type ScoreDeps = {
  readonly health: {
    /**
     * Returns the catalog figures of a model, blended with measured ones; null = nothing was measured. Absent =
     * measurement is off.
     */
    figuresOf?(key: string, published: RoutingFigures): Figures | null
  }
}

export type ScoredModels = {
  readonly mode: ScoringMode
  readonly figuresOf: FiguresOf
  /** Best first: models that allow the requested output length. */
  readonly long: readonly Scored[]
  /** Best first: models with a lower output limit. They go behind all others. */
  readonly short: readonly Scored[]
}

/** Scores models by the strategy, or without one by the prompt's capability level. */
export function scoreCandidates(deps: ScoreDeps, request: RouteRequest, models: readonly Model[]): ScoredModels {
  const mode = scoringModeOf(request)
  const figuresOf = figuresBy(deps)
  const long: Scored[] = []
  const short: Scored[] = []
  for (const entry of score(models, mode, figuresOf))
    (allowsOutputLength(request, entry.model) ? long : short).push(entry)
  return { mode, figuresOf, long, short }
}

export function scoringModeOf({ ask: { strategy }, level, terms }: RouteRequest): ScoringMode {
  return { strategy, level, terms }
}

/** Scores models as fallbacks of a named one, the most similar first. */
export function scoreFallbacks(named: Model, models: readonly Model[], terms: PriceTerms): readonly Scored[] {
  return models
    .map(model => ({ model, score: similarity(named, model, terms) }))
    .sort((left, right) => right.score - left.score || (fullName(left.model) < fullName(right.model) ? -1 : 1))
}

/** Measured figures, looked up once for each model of a request. */
function figuresBy({ health }: ScoreDeps): FiguresOf {
  if (health.figuresOf === undefined) return publishedFigures
  return model => health.figuresOf?.(firstHealthKey(model), model.figures) ?? publishedFigures(model)
}

/**
 * Returns 0–1: how well a model replaces another. Another provider scores higher, because the first one may be
 * completely unavailable.
 */
function similarity(model: Model, other: Model, terms: PriceTerms): number {
  const apart =
    Math.abs(model.figures.quality - other.figures.quality) +
    0.15 * Math.abs(tiers.indexOf(model.tier) - tiers.indexOf(other.tier)) +
    0.1 * Math.max(0, costScore(model, terms) - costScore(other, terms)) +
    (model.provider === other.provider ? 0.2 : 0)
  return Math.max(0, 1 - apart)
}
