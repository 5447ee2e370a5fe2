import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { insightsOf, recommendationsOf } from '../../core/insights.ts'
import { may } from '../../core/roles.ts'
import { checker } from '../../core/validate.ts'
import type { Deps } from '../../deps.ts'
import { authenticate, type KeyDirectory, presentsKey } from '../../http/callers.ts'
import { keyOrSession } from '../../http/policies.ts'
import {
  forbidden,
  type Identify,
  notFound,
  readInput,
  reply,
  replyNothing,
  sessionRoutes,
} from '../../http/session-routes.ts'
import { shownLearning, shownModel, shownRecommendation } from './shown.ts'

export type InsightsDeps = Pick<Deps, 'learning' | 'clock' | 'figureOf'> & { readonly keys: KeyDirectory }

const feedbackSchema = Type.Object(
  {
    request_id: Type.String({ minLength: 1, maxLength: 64, pattern: '^[\\w-]+$', description: 'the id of a request' }),
    score: Type.Integer({ minimum: 1, maximum: 5, description: 'an integer from 1 to 5' }),
    is_helpful: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
  },
  { additionalProperties: false },
)
const checkFeedback: (value: unknown) => Static<typeof feedbackSchema> = checker(feedbackSchema)

/** `GET /api/v1/insights/*`, by key or session; feedback and erasure, by session alone. */
export function insights(deps: InsightsDeps, identify: Identify) {
  const accountOf = async (headers: Headers): Promise<string> => {
    if (presentsKey(headers)) return (await authenticate(deps.keys, headers)).accountId
    const { accountId, role } = await identify(headers)
    if (!may(role, 'insights.see')) throw forbidden()
    return accountId
  }
  const read = async (request: Request) => {
    const cells = await deps.learning.cells(await accountOf(request.headers))
    return { cells, insights: insightsOf(cells, deps.figureOf, deps.clock.now()) }
  }
  const detail = (summary: string) => ({ detail: { summary, ...keyOrSession('insights.see') } })

  return new Elysia({ name: 'insights' })
    .get(
      '/api/v1/insights/learning',
      async ({ request }) => {
        const found = await read(request)
        return reply(shownLearning(found.cells, found.insights))
      },
      detail('What was learnt, all of it'),
    )
    .get(
      '/api/v1/insights/models',
      async ({ request }) => reply({ data: (await read(request)).insights.map(shownModel) }),
      detail('Models by query type'),
    )
    .get(
      '/api/v1/insights/recommendations',
      async ({ request }) =>
        reply({ data: recommendationsOf((await read(request)).insights).map(shownRecommendation) }),
      detail('Models to try instead'),
    )
    .use(writes(deps, identify))
}

function writes({ learning }: InsightsDeps, identify: Identify) {
  return sessionRoutes('feedback', identify, [
    {
      method: 'POST',
      path: '/api/v1/insights/feedback',
      action: 'feedback.give',
      summary: 'Rate an answer',
      async handle({ principal, request }) {
        const { request_id, score, is_helpful } = await readInput(request, checkFeedback)
        const rating = { stars: score, isHelpful: is_helpful ?? null }
        const rated = await learning.rate(principal.accountId, request_id, rating)
        if (rated === null) throw notFound()
        return reply({ accepted: true, query_type: rated.queryType, model: rated.model })
      },
    },
    {
      method: 'DELETE',
      path: '/api/v1/insights/data',
      action: 'learning.delete',
      summary: 'Forget everything learnt',
      async handle({ principal }) {
        await learning.erase(principal.accountId)
        return replyNothing()
      },
    },
  ])
}
