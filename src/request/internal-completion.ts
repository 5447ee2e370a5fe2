/** Calls that the gateway makes for itself, which no account pays: completions of its own, and counts of input tokens. */
import { isKeyFailure } from '../core/chat/attempts.ts'
import type { ChatRequest, ReasoningEffort, SourceBody } from '../core/chat/chat.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import { ResponseCollector } from '../core/chat/response-collector.ts'
import { type Catalog, fullName, type Model } from '../core/models/models.ts'
import type { Breach, Demand } from '../core/policy/constraints.ts'
import { type Clock, type Network, readBodyText } from '../core/ports.ts'
import { chatRequestWithDefaults } from '../core/request/chat-request.ts'
import type { Deadlines, ServiceDeadlines } from '../core/request/deadlines.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import type { ConfiguredProvider, Endpoints } from '../providers/configured-provider.ts'
import { ReceivedAnswer } from '../providers/received-answer.ts'
import { estimateTokens } from '../text/tokens/tokens.ts'
import { UpstreamAttempt } from './attempt.ts'
import { authorizedFetch } from './authorized-fetch.ts'
import { placeBreach } from './routing/constrained.ts'
import { findEndpoint, nameAtFirstHost } from './routing/hosts.ts'
import { RankedCandidate } from './routing/score-candidates.ts'

export type CompleteDeps = {
  readonly clock: Clock
  readonly network: Network
  readonly catalog: Catalog
  readonly endpoints: Endpoints
  readonly deadlines: Deadlines
}

type Question = {
  readonly system: string
  readonly user: string
  readonly outputCap: number
  /** Constraints of the request whose text it has; null = there are none, or the text is of the gateway. */
  readonly demands: readonly Demand[] | null
  /** Absent = the model's default. */
  readonly reasoningEffort?: ReasoningEffort
}

/**
 * Returns the output of a catalog model for a request of the gateway itself, which is billed to no account. Throws an
 * `Error` if the model is not offered or its output is incomplete.
 */
export async function completeInternally(
  deps: CompleteDeps,
  name: string,
  question: Question,
  signal: RequestAbortSignal,
): Promise<string> {
  const model = deps.catalog.resolve(name)
  const endpoint = model === null ? undefined : findEndpoint(deps.endpoints, model)
  if (model === null || endpoint === undefined) throw new Error('the model is not offered here')
  const { outputCap, demands } = question
  if (demands !== null && findModelBreach(deps, name, demands) !== null)
    throw new Error('a constraint excludes the model')
  const tokens = estimateTokens(question.system + question.user, model.provider) + outputCap
  const claim = endpoint.keys?.claim({ model: fullName(model), tokens, except: new Set() }) ?? null
  if (claim?.key === null) throw new Error('no key of its provider has capacity')
  const request = toRequest(question)
  const response = new ReceivedAnswer(request)
  const attempt = new UpstreamAttempt(deps, {
    claim,
    candidate: new RankedCandidate(
      { model, score: 1, place: 'requested' },
      endpoint,
      'requested by the gateway itself',
    ),
    request: {
      request,
      model: nameAtFirstHost(model),
      outputCap: Math.min(outputCap, model.maxOutputTokens),
      stream: false,
    },
    deadlines: deps.deadlines,
    deadlineAt: deps.clock.monotonic() + deps.deadlines.totalMs,
    signal,
    response,
  })
  try {
    while (!response.isOver() && (await attempt.next()));
  } finally {
    const { failure } = response
    attempt.close(response.ended)
    if (failure === null) claim?.settle(null)
    else claim?.settle(isKeyFailure(failure.kind) ? 0 : null, { ...failure, status: attempt.status })
  }
  if (response.failure !== null) throw new Error(response.failure.kind, { cause: response.failure })
  if (!response.ended) throw new Error('the output was truncated')
  const output = new ResponseCollector()
  response.release(output)
  return output.result()[0]?.text ?? ''
}

/** Returns the constraint that forbids `completeInternally` to send a text to a model; null = none, or it is not offered. */
export function findModelBreach(
  { catalog, endpoints }: Pick<CompleteDeps, 'catalog' | 'endpoints'>,
  name: string,
  demands: readonly Demand[],
): Breach | null {
  const model = catalog.resolve(name)
  const endpoint = model === null ? undefined : findEndpoint(endpoints, model)
  if (model === null || endpoint === undefined) return null
  return placeBreach(demands, { model, endpoint, host: model.hosts?.[0] })
}

function toRequest({ system, user, reasoningEffort }: Question): ChatRequest {
  const messages = [
    { role: 'system', text: system },
    { role: 'user', content: [{ type: 'text', text: user }], name: null },
  ] as const
  return chatRequestWithDefaults(messages, {
    reasoningEffort: reasoningEffort ?? null,
    bodyCharacters: system.length + user.length,
  })
}

type CountDeps = {
  readonly config: { readonly serviceDeadlines: Pick<ServiceDeadlines, 'tokenCountMs'> }
  readonly endpoints: Endpoints
  readonly network: Pick<Network, 'fetch'>
  readonly clock: Pick<Clock, 'after'>
}

/** Maximum bytes of a count response; a longer one is ignored. */
const maximumCharacters = 16_384

/** Returns the input tokens as the model's provider counts them; null = it has no such endpoint for this API form, failed, was too slow, or a constraint excludes it. */
export async function countInput(
  deps: CountDeps,
  model: Model,
  source: SourceBody,
  demands: readonly Demand[] | undefined,
): Promise<number | null> {
  const endpoint = findEndpoint(deps.endpoints, model)
  const count = endpoint?.provider.count
  const isOwnForm = endpoint?.provider.takesSource?.(model).includes(source.dialect)
  if (endpoint === undefined || count === undefined || !isOwnForm) return null
  if (placeBreach(demands, { model, endpoint, host: model.hosts?.[0] }) !== null) return null
  const request = count.toRequest(source, nameAtFirstHost(model), endpoint.access)
  if (request === null) return null
  const abort = new AbortController()
  const cancel = deps.clock.after(deps.config.serviceDeadlines.tokenCountMs, () => abort.abort())
  try {
    // A redirect would send the provider's key to its target.
    const { headers, body } = request
    const init = { method: 'POST', headers, body, signal: abort.signal, redirect: 'error' } as const
    const response = await authorizedFetch(deps.network, endpoint.access, request, init)
    const text = response.ok ? await readBodyText(response, maximumCharacters) : ''
    return count.read(parseUntrustedJson(text))
  } catch {
    return null
  } finally {
    cancel()
    abort.abort()
  }
}

/** Result of a free call with a credential. `unsupported`: the provider has no such call. */
type CredentialCheck = {
  readonly result: 'working' | 'rejected' | 'rate_limited' | 'unreachable' | 'unsupported'
  /** HTTP status of the provider; null = none. */
  readonly status: number | null
}

/** Requests the list of models, which costs nothing, with the provider's key of this name; null = with its first one. */
export async function checkCredential(
  deps: Pick<CountDeps, 'network' | 'clock'> & { readonly timeoutMs: number },
  { provider, access: first, keys }: Pick<ConfiguredProvider, 'provider' | 'access' | 'keys'>,
  keyName: string | null,
): Promise<CredentialCheck> {
  const access = (keyName === null ? null : keys?.find(keyName)?.access) ?? first
  const request = provider.listModels?.(access)
  if (request === undefined) return { result: 'unsupported', status: null }
  const abort = new AbortController()
  const cancel = deps.clock.after(deps.timeoutMs, () => abort.abort())
  try {
    const init = { headers: request.headers, signal: abort.signal, redirect: 'error' } as const
    const response = await authorizedFetch(deps.network, access, { ...request, body: '' }, init)
    const { status, headers } = response
    if (response.ok) return { result: 'working', status }
    const { kind } = provider.readFailure(status, headers, await readBodyText(response, maximumCharacters))
    if (kind === 'credential_refused') return { result: 'rejected', status }
    return { result: kind === 'rate_limited' || kind === 'quota_exhausted' ? 'rate_limited' : 'unreachable', status }
  } catch {
    return { result: 'unreachable', status: null }
  } finally {
    cancel()
    abort.abort()
  }
}
