/** Converts learning data to its API form. */
import type { QueryType } from '../../core/chat/chat.ts'
import { toUsd } from '../../core/usage/money.ts'
import {
  type CellRow,
  findBestModel,
  highestConfidence,
  type Insight,
  type Recommendation,
  recommendationsOf,
} from '../../learning/insights.ts'
import type { ShownLearning, ShownModelInsight, ShownRecommendation } from './schemas.ts'

/** `GET /api/v1/insights/learning`. */
export function shownLearning(cells: readonly CellRow[], insights: readonly Insight[]): ShownLearning {
  const sum = (of: (cell: CellRow) => number) => cells.reduce((total, cell) => total + of(cell), 0)
  const requests = sum(cell => cell.requests)
  const enhanced = sum(cell => cell.enhanced)
  return {
    state: highestConfidence(insights),
    entries: requests,
    since: requests === 0 ? null : new Date(Math.min(...cells.map(cell => cell.since))).toISOString(),
    query_types: [...Map.groupBy(insights, one => one.queryType)].map(([queryType, ofType]) => ({
      query_type: queryType,
      requests: ofType.reduce((total, { cell }) => total + cell.requests, 0),
      best_model: findBestModel(ofType),
      confidence: highestConfidence(ofType),
    })),
    enhancement: {
      requests: enhanced,
      quality_with: meanOf(
        sum(cell => cell.enhanced * cell.enhancedQuality),
        enhanced,
      ),
      quality_without: meanOf(
        sum(cell => (cell.requests - cell.enhanced) * cell.plainQuality),
        requests - enhanced,
      ),
    },
    influence: {
      classified_pct: percent(
        sum(cell => (cell.queryType === unclassified ? 0 : cell.requests)),
        requests,
      ),
      influenced_pct: percent(
        sum(cell => cell.influenced),
        requests,
      ),
    },
    models: insights.map(shownModel),
    recommendations: recommendationsOf(insights).map(shownRecommendation),
  }
}

const unclassified: QueryType = 'other'

/** One item of `GET /api/v1/insights/models`. */
export function shownModel({ model, queryType, cell, confidence, bias }: Insight): ShownModelInsight {
  return {
    model,
    query_type: queryType,
    requests: cell.requests,
    quality: rounded(cell.quality),
    latency_ms: Math.round(cell.latencyMs),
    ttft_ms: cell.firstTokenMs === null ? null : Math.round(cell.firstTokenMs),
    cost_usd: toUsd(Math.round(cell.costMicrocents)),
    /** Rounds ratings. */
    rating: cell.ratings === 0 ? null : rounded(1 + 4 * cell.rating),
    confidence,
    bias: rounded(bias),
  }
}

/** One item of `GET /api/v1/insights/recommendations`. */
export function shownRecommendation(recommendation: Recommendation): ShownRecommendation {
  const { queryType, model, reason, qualityChange, costChangePercent } = recommendation
  return {
    query_type: queryType,
    model,
    reason,
    expected_quality_change: rounded(qualityChange),
    expected_cost_change_pct: Math.round(costChangePercent * 10) / 10,
  }
}

function meanOf(sum: number, count: number): number | null {
  return count === 0 ? null : rounded(sum / count)
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4
}
