import { Elysia } from 'elysia'
import packageJson from '../package.json'
import type { Deps } from './compose/deps.ts'
import { account } from './console/account/routes.ts'
import { alerts } from './console/alerts/routes.ts'
import { auditRoutes } from './console/audit/routes.ts'
import { auth } from './console/auth/routes.ts'
import { webhooks } from './console/billing/cards.ts'
import { billing } from './console/billing/routes.ts'
import { createDashboardBundle } from './console/dashboard/bundle.ts'
import { dashboard } from './console/dashboard/routes.ts'
import { insights } from './console/insights/routes.ts'
import { keys } from './console/keys/routes.ts'
import { managementKeys } from './console/management-keys/routes.ts'
import { projectRoutes } from './console/projects/routes.ts'
import { providerRoutes } from './console/provider-keys/routes.ts'
import { modelSwitchRoutes } from './console/provider-keys/switch-routes.ts'
import type { Authenticate } from './console/routes.ts'
import { status } from './console/status/routes.ts'
import { tags } from './console/tags/routes.ts'
import { team } from './console/team/routes.ts'
import { usage } from './console/usage/routes.ts'
import { webhookRoutes } from './console/webhooks/routes.ts'
import type { SourceBody } from './core/chat/chat.ts'
import type { Caller } from './core/limits/plans.ts'
import type { Model } from './core/models/models.ts'
import type { Demand } from './core/policy/constraints.ts'
import { toRejection } from './core/usage/rejection.ts'
import { compatible } from './dialects/chat-completions/routes.ts'
import { decisions } from './dialects/decisions/routes.ts'
import { describeField } from './dialects/describe-field.ts'
import { embeddings } from './dialects/embeddings/routes.ts'
import { geminiRefusal } from './dialects/gemini/errors.ts'
import { gemini } from './dialects/gemini/routes.ts'
import { messagesRefusal } from './dialects/messages/errors.ts'
import { messages } from './dialects/messages/routes.ts'
import { models } from './dialects/models/routes.ts'
import { moderations } from './dialects/moderations/routes.ts'
import { dryRun } from './dialects/native/dry-run.ts'
import { enhancement } from './dialects/native/enhance.ts'
import { estimate } from './dialects/native/estimate.ts'
import { chat } from './dialects/native/routes.ts'
import { inputTokens, responses } from './dialects/responses/routes.ts'
import { adoptQueryKey, authenticateSession, type Callers, createCallers } from './http/authentication.ts'
import { serverLimits, strangerTimeoutSeconds } from './http/body.ts'
import type { ChatRouteDeps, Refusal } from './http/chat-handler.ts'
import { getEndpoints, isClientProbe, isGeminiForm, isMessagesForm, noRouteError } from './http/endpoints.ts'
import { createFailures, errorResponse, type Failures, toGatewayError } from './http/error-response.ts'
import { createDeprecationLookup, type QuotaHeaderDeps, withQuotaHeaders } from './http/headers.ts'
import { checkHost, markForeignPage } from './http/pages.ts'
import { createTokenCountLimit } from './http/rate-limits.ts'
import { reference } from './http/reference/routes.ts'
import { exposition, expositionType, mergeWorkers } from './observability/instruments.ts'
import { probes } from './observability/probes.ts'
import { metrics } from './observability/routes.ts'
import { loadQuotaStatus } from './request/admit.ts'
import { getOffer } from './request/enrich.ts'
import { countInput } from './request/internal-completion.ts'
import { reportModelHealth } from './request/routing/hosts.ts'
import { likelyModel } from './request/routing/score-candidates.ts'
import { answerInView } from './request/shadow/compare.ts'
import { planWebAccess } from './web/web-plan.ts'

export const version = packageJson.version

/** Time in which the database must answer the status page. */
const databaseReachMs = 2_000

/** Metrics of all workers on this port, this worker's first. */
type WorkerMetricsSource = { gather(): Promise<Parameters<typeof mergeWorkers>[0]> }

/**
 * Composes the HTTP surface from its dependencies: hooks, error handling and routes. `workers` collects the metrics of
 * the other workers on this port; null = there are no other workers.
 */
export function createApp(deps: Deps, workers: WorkerMetricsSource | null = null) {
  // The server is read from here: on a handler's context, Elysia defines the property again for every request.
  const root = new Elysia({
    normalize: false,
    // Without this option, the path of a request to a host name of one to three characters begins at its second slash.
    handler: { standardHostname: false },
    serve: serverLimits,
  })
  const failures = createFailures(deps)
  const callers = createCallers(deps.keys, failures.strangers)
  const look: Look = caller => loadQuotaStatus(deps, caller)
  const quota: QuotaHeaderDeps = { meter: deps.meter, budget: deps.budget, recall: callers.recall, look }
  const ownAddresses = { publicUrl: deps.config.publicUrl, hosts: deps.config.allowedHosts }
  const limitTokenCounts = createTokenCountLimit(deps.limits, deps.config.tokenCountsPerMinute)
  const exchangeDeps = chatRouteDeps(deps, { root, failures, callers, look })
  const counting = {
    ...exchangeDeps,
    reasoningSeal: deps.reasoningSeal,
    limitTokenCounts,
    catalog: deps.catalog,
    countInput: (model: Model, source: SourceBody, demands: readonly Demand[] | undefined) =>
      countInput(deps, model, source, demands),
  }
  root
    .onRequest(({ request }) => {
      checkHost(request, deps.allowedHosts)
      // Claude Code sends this request to check a base URL.
      if (request.method === 'HEAD' && isClientProbe(new URL(request.url).pathname)) return new Response(null)
      markForeignPage(request, ownAddresses)
      adoptQueryKey(request)
      return undefined
    })
    .onError(async ({ error, code, request }) => {
      const requestId = deps.newRequestId()
      const thrown = code === 'NOT_FOUND' ? noRouteError(root.routes, request) : toGatewayError(error)
      const refusal = await failures.toClientError(thrown, () => deps.getAddress(request, root.server))
      failures.report('other', requestId, refusal)
      return withQuotaHeaders(quota, request.headers, getRefusalForm(request)(refusal, requestId), requestId)
    })
    .use(chat(exchangeDeps))
    .use(compatible({ ...exchangeDeps, reasoningSeal: deps.reasoningSeal }))
    .use(
      responses({
        ...exchangeDeps,
        reasoningSeal: deps.reasoningSeal,
        unixTime: () => Math.floor(deps.clock.now() / 1000),
      }),
    )
    .use(messages({ ...counting, now: deps.clock.now }))
    .use(gemini({ ...counting, embeddingCatalog: deps.embeddingCatalog }))
    .use(decisions({ ...exchangeDeps, reasoningSeal: deps.reasoningSeal }))
    .use(embeddings({ ...exchangeDeps, embeddingCatalog: deps.embeddingCatalog }))
    // Registered after the chat routes: they write their own headers and must not pay for this hook.
    .onAfterHandle(async ({ request, response }) => {
      if (!(response instanceof Response)) return
      const requestId = deps.newRequestId()
      response.headers.set('x-request-id', requestId)
      await withQuotaHeaders(quota, request.headers, response, requestId)
    })
    .use(inputTokens(counting))
  const { strangers } = failures
  useResources(root, deps, {
    recall: callers.recall,
    getCaller: exchangeDeps.getCaller,
    look,
    strangers,
  })
  return useOperations(root, deps, workers)
}

type Look = (caller: Caller, requestId: string) => Promise<void>

/** Returns the form in which the client of a request reads errors, also those outside of its handler. */
function getRefusalForm(request: Request): Refusal {
  if (isGeminiForm(request)) return geminiRefusal
  return isMessagesForm(request) ? messagesRefusal : errorResponse
}

/** Dependencies of the chat routes: those of the gateway, and the server. */
function chatRouteDeps(
  deps: Deps,
  {
    root,
    failures,
    callers,
    look,
  }: {
    readonly root: { readonly server: Bun.Server<unknown> | null }
    readonly failures: Failures
    readonly callers: Callers
    readonly look: Look
  },
): ChatRouteDeps {
  const getAddress = (request: Request) => deps.getAddress(request, root.server)
  return {
    answer: (caller, question, request) => answerInView(deps, caller, question, request),
    ticker: deps.ticker,
    inFlight: deps.inFlight,
    startQueue: deps.startQueue,
    rejected: failures.countRejection,
    bodies: deps.bodies,
    getCaller: request => callers.authenticate(request.headers, () => getAddress(request)),
    idempotency: deps.idempotency,
    longestMs: deps.config.deadlines.totalMs,
    setIdleTimeout: (request, seconds) => void root.server?.timeout(request, seconds),
    getAddress,
    clock: deps.clock,
    meter: deps.meter,
    look,
    budget: deps.budget,
    newRequestId: deps.newRequestId,
    deprecation: createDeprecationLookup(deps.catalog),
    recordRejection: facts =>
      deps.rejections.add(toRejection([deps.catalog.resolve, deps.embeddingCatalog.resolve], facts, deps.clock.now())),
    logFailure: (requestId, error) => failures.report('chat', requestId, error),
    findTrace: deps.observe.findTrace,
    refused: failures.toClientError,
  }
}

/** Adds the other resources of the API. */
function useResources(
  root: Elysia,
  deps: Deps,
  {
    recall,
    getCaller,
    look,
    strangers,
  }: Pick<Callers, 'recall'> & Pick<ChatRouteDeps, 'getCaller' | 'look'> & Pick<Failures, 'strangers'>,
) {
  const getAddress = (request: Request) => deps.getAddress(request, root.server)
  const identify: Authenticate = {
    database: deps.database,
    principal: request => authenticateSession({ ...deps, strangers }, request.headers, () => getAddress(request)),
    bodies: deps.bodies,
    getAddress,
  }
  return root
    .use(models({ ...deps, recall, health: { report: () => reportModelHealth(deps) } }))
    .use(
      estimate({
        ...deps,
        chooseModel: messages => likelyModel(deps, messages),
        planWeb: (messages, scan) => planWebAccess({ messages, web: 'auto' }, scan, {}, getOffer(deps)),
        recall,
      }),
    )
    .use(dryRun({ ...deps, getCaller, look }))
    .use(moderations({ ...deps, getCaller }))
    .use(enhancement({ ...deps, recall }))
    .use(auth(deps, identify))
    .use(account(deps, identify))
    .use(keys(deps, identify))
    .use(managementKeys(deps, identify))
    .use(tags(deps, identify))
    .use(projectRoutes(deps, identify))
    .use(team(deps, identify))
    .use(auditRoutes(identify))
    .use(alerts(deps, identify))
    .use(usage({ ...deps, describeField }, identify))
    .use(providerRoutes(deps, identify))
    .use(modelSwitchRoutes(deps, identify))
    .use(
      status(
        { ...deps, version, pingDatabase: () => deps.database.run(({ sql }) => sql`select 1`, databaseReachMs) },
        identify,
      ),
    )
    .use(insights({ ...deps, getCaller }, identify))
    .use(billing(deps, identify))
    .use(webhooks(deps))
    .use(webhookRoutes(deps, identify))
}

/** Adds metrics, probes, the dashboard and the API reference. */
function useOperations(root: Elysia, deps: Deps, workers: WorkerMetricsSource | null) {
  const routes = () => root.routes
  return root
    .use(
      metrics({
        exposition: async () =>
          exposition(workers === null ? deps.observe.families() : mergeWorkers(await workers.gather())),
        expositionType,
        token: deps.config.metricsToken,
      }),
    )
    .use(
      dashboard({
        site: createDashboardBundle(),
        welcome: () => ({ name: 'gateway-ai', version, endpoints: getEndpoints(routes()) }),
        setIdleTimeout: (request, seconds) => void root.server?.timeout(request, seconds ?? strangerTimeoutSeconds),
      }),
    )
    .use(probes({ ...deps, version }))
    .use(reference(version, routes))
}
