import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import packageJson from '../package.json'
import type { Deps } from './composition/deps.ts'
import type { Message } from './core/chat/chat.ts'
import { catalogueDate } from './core/models/catalog.ts'
import { fullName, leavingSoon, type Model } from './core/models/models.ts'
import { levelOf } from './core/routing/capability-levels.ts'
import { score } from './core/routing/scoring.ts'
import { estimateInputTokens } from './core/tokens/tokens.ts'
import { GatewayError } from './core/validation/errors.ts'
import { oneOf } from './core/validation/validate.ts'
import { planWebAccess } from './core/web/web-plan.ts'
import { readCompatible } from './dialects/chat-completions/request.ts'
import { compatible } from './dialects/chat-completions/routes.ts'
import { messagesRefusal } from './dialects/messages/errors.ts'
import { messages } from './dialects/messages/routes.ts'
import { nativeSchema, readNative } from './dialects/native/request.ts'
import { chat } from './dialects/native/routes.ts'
import { responses } from './dialects/responses/routes.ts'
import { authenticateSession, type Callers, createCallers } from './http/authentication.ts'
import { serverBodyLimit } from './http/body.ts'
import { type ChatRouteDeps, type Refusal, rejected } from './http/chat-handler.ts'
import { endpointsOf, notFoundMessage } from './http/endpoints.ts'
import { errorResponse, toGatewayError } from './http/error-response.ts'
import { deprecationHeaders, writeCaller } from './http/headers.ts'
import { checkHost } from './http/host-header.ts'
import { ipRateLimitedError } from './http/ip-rate-limit.ts'
import { markForeignPage } from './http/pages.ts'
import { policies } from './http/policies.ts'
import { withRouteDocs } from './http/route-docs.ts'
import { strictObject, text } from './http/schemas.ts'
import type { Authenticate } from './http/session-routes.ts'
import { createStartQueue } from './http/start-queue.ts'
import { exposition, expositionType, mergeWorkers } from './observability/exposition.ts'
import { answer } from './pipeline/answer.ts'
import { paceStream } from './pipeline/delivery/stream-pacing.ts'
import { planDryRun } from './pipeline/dry-run.ts'
import { offerOf } from './pipeline/enrich.ts'
import { loadQuotaStatus } from './pipeline/load-quota-status.ts'
import { healthKey } from './pipeline/routing/health-key.ts'
import { account } from './routes/account/routes.ts'
import { auth } from './routes/auth/routes.ts'
import { billing } from './routes/billing/routes.ts'
import { webhooks } from './routes/billing/webhooks.ts'
import { dashboard } from './routes/dashboard/routes.ts'
import { dryRun } from './routes/dry-run/routes.ts'
import { enhancement } from './routes/enhance/routes.ts'
import { estimate } from './routes/estimate/routes.ts'
import { insights } from './routes/insights/routes.ts'
import { keys } from './routes/keys/routes.ts'
import { metrics } from './routes/metrics/routes.ts'
import { models } from './routes/models/routes.ts'
import { reference } from './routes/reference/routes.ts'
import { team } from './routes/team/routes.ts'
import { usage } from './routes/usage/routes.ts'
import type { WorkerPeers } from './server/worker-metrics.ts'

export const version = packageJson.version

/** Enough for the compiler to take an interest, too few to be felt at the start (a few milliseconds). */
const warmUpRounds = 20

/** How long a connection may be silent before it has shown a key; authenticated requests lift it for themselves. */
const strangerTimeoutSeconds = 10
/** A connection that a caller keeps for the next request, or for the rest of an answer. Whoever vanished must not keep it. */
const keptTimeoutSeconds = 60

/** Refused credentials. Far above what a mistake makes, far below what guessing needs; who shows a good one is not counted. */
const refusedCredentials = { perMinute: 60, burst: 100 }

/**
 * The whole HTTP surface over one set of dependencies. Nothing here knows what is embedded and what is not. `siblings` are the
 * other workers on this port, where there are some.
 */
export function createApp(deps: Deps, siblings: Pick<WorkerPeers, 'gather'> | null = null) {
  const strangers = deps.limits('refused', refusedCredentials)
  const told = async (error: GatewayError, address: () => string) => {
    // A key that is not known was counted before it was looked up.
    const wait = error.status === 401 && error.code !== 'invalid_api_key' ? await strangers.take(address()) : 0
    // The same credential would be refused again.
    return wait === 0 ? error : ipRateLimitedError(wait, false)
  }
  const callers = createCallers(deps.keys, strangers)
  const callerOf = (request: Request) =>
    callers.authenticate(request.headers, () => deps.addressOf(request, root.server))
  const identify: Authenticate = {
    principal: headers => authenticateSession(deps.tokens, deps.sessions, headers),
    bodies: deps.bodies,
  }
  const ownAddresses = { publicUrl: deps.config.publicUrl, hosts: deps.config.allowedHosts }
  const leaving = new Map(
    deps.catalogue.list
      .filter(model => model.deprecated)
      .map(model => [fullName(model), deprecationHeaders(catalogueDate, model.deprecationDate, model.successor)]),
  )
  const exchangeDeps: ChatRouteDeps = {
    answer: (caller, ask, request) => answer(deps, caller, ask, request),
    pace: (events, mode, over) => paceStream(events, mode, deps.paceClock, over),
    inFlight: deps.inFlight,
    startQueue: createStartQueue({
      monotonic: deps.clock.monotonic,
      used: processorMs,
      nextTurn: action => void setImmediate(action),
    }),
    rejected: countRejections(deps),
    bodies: deps.bodies,
    callerOf,
    idempotency: deps.idempotency,
    longestMs: deps.config.deadlines.totalMs,
    connectionOf: request => ({
      liftIdleTimeout: () => void root.server?.timeout(request, 0),
      setIdleTimeout: () => void root.server?.timeout(request, keptTimeoutSeconds),
      address: () => deps.addressOf(request, root.server),
    }),
    clock: deps.clock,
    meter: deps.meter,
    look: caller => loadQuotaStatus(deps, caller),
    budget: deps.budget,
    newRequestId: deps.newRequestId,
    deprecation: name => leaving.get(name) ?? null,
    logFailure: (requestId, error) => {
      logFailure(deps, requestId, error)
      deps.observe.failed('chat', error)
    },
    traceOf: deps.observe.traceOf,
    refused: told,
  }
  // Its server is taken from here and never from a handler's context, where Elysia defines it anew for every request.
  const root = new Elysia({
    normalize: false,
    // Else the path of a request to a host of one to three characters begins at its second slash.
    handler: { standardHostname: false },
    serve: { maxRequestBodySize: serverBodyLimit, idleTimeout: strangerTimeoutSeconds },
  })
  const routes = () => root.routes
  return (
    root
      .onRequest(({ request }) => {
        // Before all else: what a rejection costs is taken from those that are answered.
        if (exchangeDeps.startQueue.isFull() && isChat(request))
          return rejected(exchangeDeps, { refusal: refusalFormOf(request) })
        checkHost(request, deps.allowedHosts)
        markForeignPage(request, ownAddresses)
        return undefined
      })
      .onError(async ({ error, code, request }) => {
        const requestId = deps.newRequestId()
        const thrown =
          code === 'NOT_FOUND'
            ? new GatewayError('not_found', notFoundMessage(routes(), new URL(request.url).pathname))
            : toGatewayError(error)
        const refusal = await told(thrown, () => deps.addressOf(request, root.server))
        logFailure(deps, requestId, refusal)
        deps.observe.failed('other', refusal)
        const written = refusalFormOf(request)(refusal, requestId)
        return withQuotaHeaders(deps, callers, request.headers, written)
      })
      .use(chat(exchangeDeps))
      .use(compatible(exchangeDeps))
      .use(
        responses({
          ...exchangeDeps,
          reasoningSeal: deps.reasoningSeal,
          unixTime: () => Math.floor(deps.clock.now() / 1000),
        }),
      )
      .use(messages({ ...exchangeDeps, reasoningSeal: deps.reasoningSeal, now: deps.clock.now }))
      // Below the chat routes, which write their own and pay for no hook.
      .onAfterHandle(async ({ request, response }) => {
        if (!(response instanceof Response)) return
        const requestId = deps.newRequestId()
        response.headers.set('x-request-id', requestId)
        await withQuotaHeaders(deps, callers, request.headers, response)
      })
      .use(models({ ...deps, health: { report: () => healthReport(deps) } }))
      .use(
        estimate({
          ...deps,
          chooseModel: messages => likelyChoice(deps, messages),
          planWeb: (messages, reading) => planWebAccess({ messages, web: 'auto' }, reading, {}, offerOf(deps)),
          recall: callers.recall,
        }),
      )
      .use(
        dryRun({
          ...deps,
          callerOf,
          look: exchangeDeps.look,
          readAsk: readNative,
          askSchema: nativeSchema,
          preview: (caller, ask) => planDryRun(deps, caller, ask, offerOf(deps)),
        }),
      )
      .use(enhancement({ ...deps, recall: callers.recall }))
      .use(auth(deps, identify))
      .use(account(deps, identify))
      .use(keys(deps, identify))
      .use(team(deps, identify))
      .use(usage(deps, identify))
      .use(insights({ ...deps, callerOf }, identify))
      .use(billing(deps, identify))
      .use(webhooks(deps))
      .use(
        metrics({
          exposition: async () =>
            exposition(siblings === null ? deps.observe.families() : mergeWorkers(await siblings.gather())),
          expositionType,
          token: deps.config.metricsToken,
        }),
      )
      .use(
        dashboard({
          site: deps.site,
          welcome: () => ({ name: 'gateway-ai', version, endpoints: endpointsOf(routes()) }),
        }),
      )
      .use(probes(deps))
      .use(reference(version, routes))
  )
}

/**
 * From now on every answer also asks for its connection to be closed, so that who keeps one open goes elsewhere before this
 * gateway stops. Wrapped around a whole server that is about to leave: what serves pays nothing for it.
 */
export function closeConnectionsAfterResponse(app: ReturnType<typeof createApp>, server: Bun.Server<unknown>): void {
  const { fetch } = app
  server.reload({
    routes: {},
    async fetch(request) {
      const response = await fetch.call(app, request)
      response.headers.set('connection', 'close')
      return response
    },
  })
}

/**
 * Does once, on a sample, what the first request would otherwise wait for: the request schemas are compiled at their first
 * use, and the loops over a prompt's text are slow until they have run a while.
 */
export function warmUp(deps: Pick<Deps, 'read' | 'safety'>): void {
  const sample = { messages: [{ role: 'user', content: 'Explain in two sentences why the sky is blue. '.repeat(20) }] }
  const noHeaders = new Headers()
  for (let round = 0; round < warmUpRounds; round++) {
    const ask = readNative(sample, noHeaders, 0)
    readCompatible(sample, noHeaders, 0)
    deps.read(ask.messages)
    estimateInputTokens(ask)
    deps.safety.screenMessages(ask.messages)
  }
}

/** Every offered model's health; a model without attempts counts as healthy. */
function healthReport(deps: Deps) {
  return deps.catalogue.list.map(model => {
    const { state, since } = deps.health.entryOf(healthKey({ model }))
    return { model: fullName(model), state, since: since === null ? null : new Date(since).toISOString() }
  })
}

/** The model that auto-routing would choose for these messages, account and health aside. */
function likelyChoice(deps: Deps, messages: readonly Message[]): Model | null {
  const today = new Date(deps.clock.now()).toISOString().slice(0, 10)
  const staying = deps.catalogue.list.filter(model => !leavingSoon(model, today))
  const level = levelOf(deps.read(messages).strongGain, deps.shares)
  return score(staying, { strategy: null, level })[0]?.model ?? null
}

function probes(deps: Deps) {
  const app = new Elysia({ name: 'probes' })
    .get(
      '/healthz',
      () => json({ status: 'ok', version }),
      withRouteDocs(policies.open, { summary: 'Whether the process lives', answer: aliveShape }),
    )
    .get(
      '/readyz',
      () =>
        deps.readiness.isReady ? json({ status: 'ready' }) : json({ status: 'not_ready' }, 503, { 'retry-after': '1' }),
      withRouteDocs(policies.open, {
        summary: 'Whether it takes requests',
        answer: readyShape,
        alsoWith: { 503: readyShape },
      }),
    )
  const directives = deps.simulator?.directives
  if (directives === undefined) return app
  return app.get(
    '/simulator/directives',
    () => json({ usage: directivesUsage, data: directives }),
    withRouteDocs(policies.open, {
      summary: 'What a prompt can make a simulated provider do',
      description: `There only while the providers are simulated. ${directivesUsage}`,
      answer: directivesShape,
    }),
  )
}

const aliveShape = strictObject({ status: Type.Literal('ok'), version: text(version) })
const readyShape = strictObject({ status: oneOf(['ready', 'not_ready']) })
const directivesUsage =
  'Written into a user message: `[[sim:tokens=200, pace_ms=20]]`, or `[[sim:status=503, only=openai]]`. A flag is its name alone: `[[sim:hang]]`.'
const directivesShape = strictObject({
  usage: text(directivesUsage),
  data: Type.Array(
    strictObject({ name: text('status'), value: text('number'), meaning: text('fails with that status') }),
  ),
})

function json(body: object, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...headers } })
}

/** Every answer to a key that is known says how its account stands; chat routes write it themselves. */
async function withQuotaHeaders(
  deps: Deps,
  { recall }: Callers,
  headers: Headers,
  response: Response,
): Promise<Response> {
  try {
    const caller = await recall(headers)
    if (caller === null) return response
    if (deps.meter.standing(caller.accountId, caller.limits) === null) await loadQuotaStatus(deps, caller)
    writeCaller(response.headers, deps, caller)
  } catch {
    // What keeps the key from being found is told by the answer already.
  }
  return response
}

const chatPaths = /\/(?:v1\/chat\/completions|api\/v1\/chat|v1\/messages|v1\/responses)(?:\?|$)/

function isChat({ method, url }: Request): boolean {
  return method === 'POST' && chatPaths.test(url)
}

/** Paths whose clients read refusals in another form than the API's own, wherever in the gateway these are made. */
const refusalForms: readonly { readonly path: RegExp; readonly form: Refusal }[] = [
  { path: /\/messages(?:\/count_tokens)?\/?(?:\?|$)/, form: messagesRefusal },
]

function refusalFormOf({ url }: Request): Refusal {
  return refusalForms.find(({ path }) => path.test(url))?.form ?? errorResponse
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

const rejectionsLoggedEveryMs = 1_000

/** Counts each rejection, and logs how many there were at most once per second: a line for each would be part of the overload. */
function countRejections({ log, clock, observe }: Pick<Deps, 'log' | 'clock' | 'observe'>) {
  let failures = 0
  let loggedAt = Number.NEGATIVE_INFINITY
  return (error: GatewayError) => {
    observe.failed('chat', error)
    failures++
    if (clock.monotonic() - loggedAt < rejectionsLoggedEveryMs) return
    log.error('overloaded', { failures })
    loggedAt = clock.monotonic()
    failures = 0
  }
}

function logFailure(deps: Pick<Deps, 'log'>, requestId: string, error: GatewayError): void {
  const fields = { request_id: requestId, code: error.code, status: error.status, detail: error.detail }
  if (error.status >= 500) deps.log.error('request_failed', fields)
  else deps.log.debug('request_refused', fields)
}
