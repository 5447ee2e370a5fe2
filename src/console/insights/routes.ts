import { Elysia } from 'elysia'
import type { QueryType } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports.ts'
import { toUsd } from '../../core/usage/money.ts'
import { hasApiKey } from '../../http/authentication.ts'
import { keyOrSession, type RouteDocs, withRouteDocs } from '../../http/route-docs.ts'
import {
  type CellRow,
  findBestModel,
  getInsights,
  getRecommendations,
  highestConfidence,
  type Insight,
} from '../../learning/insights.ts'
import type { LearningCache } from '../../learning/learning-cache.ts'
import { type Authenticate, authorize, notFound, reply, scopeFor, sessionRoute, sessionRoutes } from '../routes.ts'
import {
  feedbackSchema,
  learningShape,
  modelInsightListShape,
  ratedShape,
  recommendationListShape,
  type ShownLearning,
  type ShownModelInsight,
  shadowReportShape,
} from './schemas.ts'
import { readShadow, type ShadowReportDeps, shadowDays } from './store.ts'

type InsightsDeps = ShadowReportDeps & {
  readonly learning: Pick<LearningCache, 'cells' | 'rate' | 'erase'>
  readonly clock: Pick<Clock, 'now'>
  /** Returns the catalog's quality (0–1) of `provider/model`; null = unknown model. */
  readonly findFigure: (model: string) => number | null
  readonly getCaller: (request: Request) => Caller | Promise<Caller>
}

/** `GET /api/v1/insights/*`, by key or session; feedback and erasure, by session only. */
export function insights(deps: InsightsDeps, identify: Authenticate) {
  const getAccount = async (request: Request): Promise<string> => {
    if (hasApiKey(request.headers)) return (await deps.getCaller(request)).accountId
    return (await authorize(identify, request, 'insights.see')).accountId
  }
  const read = async (request: Request) => {
    const cells = await deps.learning.cells(await getAccount(request))
    return { cells, insights: getInsights(cells, deps.findFigure, deps.clock.now()) }
  }
  const open = (told: RouteDocs) => withRouteDocs(keyOrSession('insights.see'), told)

  return new Elysia({ name: 'insights' })
    .get(
      '/api/v1/insights/learning',
      async ({ request }) => {
        const found = await read(request)
        return reply(shownLearning(found.cells, found.insights))
      },
      open({ summary: 'Get learning data', answer: learningShape }),
    )
    .get(
      '/api/v1/insights/models',
      async ({ request }) => reply({ data: (await read(request)).insights.map(shownModel) }),
      open({ summary: 'Get models by query type', answer: modelInsightListShape }),
    )
    .get(
      '/api/v1/insights/recommendations',
      async ({ request }) => reply({ data: getRecommendations((await read(request)).insights) }),
      open({ summary: 'Get recommendations', answer: recommendationListShape }),
    )
    .get(
      '/api/v1/insights/shadow',
      async ({ request }) => reply(await readShadow(deps, await getAccount(request), deps.clock.now())),
      open({
        summary: 'Get the verdicts of shadow evaluation',
        description: `Of the last ${shadowDays} days: all together, and by served model and baseline.`,
        answer: shadowReportShape,
      }),
    )
    .use(writes(deps, identify))
}

function writes({ learning }: InsightsDeps, identify: Authenticate) {
  return sessionRoutes('feedback', identify, [
    sessionRoute({
      route: 'POST /api/v1/insights/feedback',
      action: 'feedback.give',
      summary: 'Rate a response',
      description:
        'Members rate requests that they see. Counts as three entries from the next request on. A second rating replaces the first.',
      body: feedbackSchema,
      answer: ratedShape,
      errors: ['not_found'],
      async handle({ principal, body }) {
        const rating = { stars: body.score, isHelpful: body.is_helpful ?? null }
        const rated = await learning.rate(scopeFor(principal, 'requests.all'), body.request_id, rating)
        if (rated === null) throw notFound()
        return { accepted: true, query_type: rated.queryType, model: rated.model }
      },
    }),
    sessionRoute({
      route: 'DELETE /api/v1/insights/data',
      action: 'learning.delete',
      summary: 'Delete learning data',
      description: 'Routing immediately returns to catalog defaults.',
      answer: null,
      async handle({ principal, actor }) {
        await learning.erase(principal.accountId, actor)
        return null
      },
    }),
  ])
}

/** Converts learning data to its API form. */

/** `GET /api/v1/insights/learning`. */
function shownLearning(cells: readonly CellRow[], insights: readonly Insight[]): ShownLearning {
  const sum = (of: (cell: CellRow) => number) => cells.reduce((total, cell) => total + of(cell), 0)
  const requests = sum(cell => cell.requests)
  const enhanced = sum(cell => cell.enhanced)
  return {
    state: highestConfidence(insights),
    entries: requests,
    since: requests === 0 ? null : new Date(Math.min(...cells.map(cell => cell.since))).toISOString(),
    query_types: [...Map.groupBy(insights, insight => insight.queryType)].map(([queryType, ofType]) => ({
      query_type: queryType,
      requests: ofType.reduce((total, { cell }) => total + cell.requests, 0),
      best_model: findBestModel(ofType),
      confidence: highestConfidence(ofType),
    })),
    enhancement: {
      requests: enhanced,
      quality_with: findMean(
        sum(cell => cell.enhanced * cell.enhancedQuality),
        enhanced,
      ),
      quality_without: findMean(
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
    recommendations: [...getRecommendations(insights)],
  }
}

const unclassified: QueryType = 'other'

/** One item of `GET /api/v1/insights/models`. */
function shownModel({ model, queryType, cell, confidence, bias }: Insight): ShownModelInsight {
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

function findMean(sum: number, count: number): number | null {
  return count === 0 ? null : rounded(sum / count)
}

function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10
}

function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4
}
