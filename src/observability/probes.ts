/** Probes of the process, and the manual of the simulator while providers are simulated. All without a key. */
import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { oneOf, strictObject } from '../core/validation/validate.ts'
import { policies, withRouteDocs } from '../http/route-docs.ts'
import { text } from '../http/schemas.ts'

type ProbeDeps = {
  readonly version: string
  readonly readiness: { readonly isReady: boolean }
  readonly isSimulated: () => boolean
  /** Null = the providers were real at the start. */
  readonly simulator: { readonly directives: readonly object[] } | null
}

/** `GET /healthz` and `/health`, `GET /readyz`, and with a simulator `GET /simulator/directives`. */
export function probes({ version, readiness, isSimulated, simulator }: ProbeDeps) {
  const app = new Elysia({ name: 'probes' })
  const health = () => json({ status: 'ok', version, simulated: isSimulated() })
  app
    .get('/healthz', health, withRouteDocs(policies.open, { summary: 'Liveness probe', answer: healthShape }))
    // Load balancers and scripts ask this path by default.
    .get(
      '/health',
      health,
      withRouteDocs(policies.open, { summary: 'Liveness probe under its other name', answer: healthShape }),
    )
    .get(
      '/readyz',
      () =>
        readiness.isReady ? json({ status: 'ready' }) : json({ status: 'not_ready' }, 503, { 'retry-after': '1' }),
      withRouteDocs(policies.open, {
        summary: 'Readiness probe',
        answer: readyShape,
        alsoWith: { 503: readyShape },
      }),
    )
  if (simulator === null) return app
  const { directives } = simulator
  return app.get(
    '/simulator/directives',
    () => json({ usage: directivesUsage, data: directives }),
    withRouteDocs(policies.open, {
      summary: 'List simulator directives',
      description: `Available only while the providers are simulated. ${directivesUsage}`,
      answer: directivesShape,
    }),
  )
}

const healthShape = strictObject({
  status: Type.Literal('ok'),
  version: text('1.5.0'),
  simulated: Type.Boolean({ description: 'true while no provider is configured' }),
})
export type Health = Static<typeof healthShape>
const readyShape = strictObject({ status: oneOf(['ready', 'not_ready']) })
export type Ready = Static<typeof readyShape>
const directivesUsage =
  'Write them into a user message: `[[sim:tokens=200, pace_ms=20]]`, or `[[sim:status=503, only=openai]]`. A flag has no value: `[[sim:hang]]`.'
const directivesShape = strictObject({
  usage: text(directivesUsage),
  data: Type.Array(
    strictObject({ name: text('status'), value: text('number'), meaning: text('fails with that status') }),
  ),
})

function json(body: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...headers } })
}
