/** Insights into learning data: cells as rows, sums and recommendations. Costs are integers of 1e-8 USD. */
import { type BiasEstimate, estimateBiases } from './learned-bias.ts'
import { confidences, getConfidence, type LearningCell, type LearningConfidence } from './learning-cell.ts'

/** A model's cell for a query type with its estimates. */
export type Insight = BiasEstimate & {
  /** `provider/model`. */
  readonly model: string
  readonly queryType: string
  readonly cell: LearningCell
  readonly confidence: LearningConfidence
}

export type CellRow = LearningCell & { readonly queryType: string; readonly model: string }

/**
 * Returns one row per cell, by query type, most requests first. `findFigure` returns the catalog's quality of a model;
 * null = not in the catalog.
 */
export function getInsights(
  cells: readonly CellRow[],
  findFigure: (model: string) => number | null,
  now: number,
): readonly Insight[] {
  return [...Map.groupBy(cells, cell => cell.queryType).values()].flatMap(ofType => {
    const listed = ofType.filter(({ model }) => findFigure(model) !== null)
    const estimates = estimateBiases(
      listed.map(cell => ({ figure: findFigure(cell.model) ?? 0, cell })),
      now,
    )
    return ofType
      .map(cell => ({
        ...(estimates[listed.indexOf(cell)] ?? { bias: 0, quality: cell.quality, error: 1 }),
        model: cell.model,
        queryType: cell.queryType,
        cell,
        confidence: getConfidence(cell.entries),
      }))
      .sort((left, right) => right.cell.requests - left.cell.requests || (left.model < right.model ? -1 : 1))
  })
}

/** Returns the highest confidence among the insights; `cold_start` for a new account. */
export function highestConfidence(insights: readonly Insight[]): LearningConfidence {
  return confidences.findLast(confidence => insights.some(insight => insight.confidence === confidence)) ?? 'cold_start'
}

/** Returns the model with the highest expected quality among those past their cold start; null = none. */
export function findBestModel(insights: readonly Insight[]): string | null {
  const [first] = insights
    .filter(({ confidence }) => confidence !== 'cold_start')
    .toSorted((left, right) => right.quality - left.quality)
  return first?.model ?? null
}

/** In its API form: changes on the quality scale, and of the cost per request in percent. */
export type Recommendation = ReturnType<typeof recommend>

/** Smaller quality differences count as none. */
const noDifference = 0.02
const worthSavingPercent = -20

/**
 * Returns for each query type at most one model other than the most used: one that is better beyond the error of both,
 * else the cheapest of equal quality. Both must be past their cold start.
 */
export function getRecommendations(insights: readonly Insight[]): readonly Recommendation[] {
  return [...Map.groupBy(insights, insight => insight.queryType).values()].flatMap(ofType => {
    const [used, ...others] = ofType.filter(({ confidence }) => confidence !== 'cold_start')
    if (used === undefined) return []
    const found = better(used, others) ?? cheaper(used, others)
    return found === null ? [] : [found]
  })
}

function better(used: Insight, others: readonly Insight[]): Recommendation | null {
  const [best] = others
    .filter(other => other.quality - used.quality > Math.max(noDifference, Math.hypot(other.error, used.error)))
    .toSorted((left, right) => right.quality - left.quality)
  return best === undefined ? null : recommend(used, best, `It does better on your requests than ${used.model}.`)
}

function cheaper(used: Insight, others: readonly Insight[]): Recommendation | null {
  const [cheapest] = others
    .filter(other => costChange(used, other) <= worthSavingPercent && other.quality >= used.quality - noDifference)
    .toSorted((left, right) => left.cell.costMicrocents - right.cell.costMicrocents)
  if (cheapest === undefined) return null
  return recommend(used, cheapest, `It does as well on your requests as ${used.model}, for less.`)
}

function recommend(used: Insight, other: Insight, reason: string) {
  return {
    query_type: used.queryType,
    model: other.model,
    reason,
    expected_quality_change: Math.round((other.quality - used.quality) * 1e4) / 1e4,
    expected_cost_change_pct: Math.round(costChange(used, other) * 10) / 10,
  }
}

function costChange(used: Insight, other: Insight): number {
  if (used.cell.costMicrocents === 0) return 0
  return (other.cell.costMicrocents / used.cell.costMicrocents - 1) * 100
}
