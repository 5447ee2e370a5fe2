import { Elysia } from 'elysia'
import { isAllowed } from '../../core/accounts/roles.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports/clock.ts'
import { checker } from '../../core/validation/validate.ts'
import { hasApiKey } from '../../http/authentication.ts'
import { keyOrSession } from '../../http/policies.ts'
import { type RouteDocs, withRouteDocs } from '../../http/route-docs.ts'
import {
  type Authenticate,
  forbidden,
  notFound,
  readInput,
  refuseWithoutTwoFactor,
  reply,
  replyNoContent,
  scopeFor,
  sessionRoutes,
} from '../../http/session-routes.ts'
import { insightsOf, recommendationsOf } from '../../learning/insights.ts'
import type { LearningCache } from '../../learning/learning-cache.ts'
import {
  feedbackSchema,
  learningShape,
  modelInsightListShape,
  type Rated,
  ratedShape,
  recommendationListShape,
} from './schemas.ts'
import { shownLearning, shownModel, shownRecommendation } from './serializers.ts'

type InsightsDeps = {
  readonly learning: Pick<LearningCache, 'cells' | 'rate' | 'erase'>
  readonly clock: Pick<Clock, 'now'>
  /** Returns the catalog's quality (0–1) of `provider/model`; null = unknown model. */
  readonly figureOf: (model: string) => number | null
  readonly callerOf: (request: Request) => Caller | Promise<Caller>
}

const checkFeedback = checker(feedbackSchema)

/** `GET /api/v1/insights/*`, by key or session; feedback and erasure, by session only. */
export function insights(deps: InsightsDeps, identify: Authenticate) {
  const accountOf = async (request: Request): Promise<string> => {
    if (hasApiKey(request.headers)) return (await deps.callerOf(request)).accountId
    const principal = await identify.principal(request.headers)
    if (!isAllowed(principal.role, 'insights.see')) throw forbidden()
    refuseWithoutTwoFactor(principal)
    return principal.accountId
  }
  const read = async (request: Request) => {
    const cells = await deps.learning.cells(await accountOf(request))
    return { cells, insights: insightsOf(cells, deps.figureOf, deps.clock.now()) }
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
      async ({ request }) =>
        reply({ data: recommendationsOf((await read(request)).insights).map(shownRecommendation) }),
      open({ summary: 'Get recommendations', answer: recommendationListShape }),
    )
    .use(writes(deps, identify))
}

function writes({ learning }: InsightsDeps, identify: Authenticate) {
  return sessionRoutes('feedback', identify, [
    {
      method: 'POST',
      path: '/api/v1/insights/feedback',
      action: 'feedback.give',
      summary: 'Rate a response',
      description:
        'Members rate requests that they see. Counts as three entries from the next request on. A second rating replaces the first.',
      body: feedbackSchema,
      examples: { '5 stars': { request_id: 'req_5f0c1b7ae94d42d8', score: 5, is_helpful: true } },
      answer: ratedShape,
      errors: ['not_found'],
      async handle({ principal, request }) {
        const { request_id, score, is_helpful } = await readInput(request, checkFeedback)
        const rating = { stars: score, isHelpful: is_helpful ?? null }
        const rated = await learning.rate(scopeFor(principal, 'requests.all'), request_id, rating)
        if (rated === null) throw notFound()
        const shown: Rated = { accepted: true, query_type: rated.queryType, model: rated.model }
        return reply(shown)
      },
    },
    {
      method: 'DELETE',
      path: '/api/v1/insights/data',
      action: 'learning.delete',
      summary: 'Delete learning data',
      description: 'Routing immediately returns to catalog defaults.',
      answer: null,
      async handle({ principal, actor }) {
        await learning.erase(principal.accountId, actor)
        return replyNoContent()
      },
    },
  ])
}
