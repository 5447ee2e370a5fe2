import { type ChatRequest, withTurn } from '../core/chat/chat.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { type OmittedSource, type WebDocument, webLimits } from '../core/chat/web-sources.ts'
import type { Clock } from '../core/ports.ts'
import type { PromptAnalyzer } from '../text/analysis/prompt-analysis.ts'
import { insertedText, insertUntrustedContent, visibleText } from '../web/untrusted-content.ts'
import type { Web } from '../web/web-plan.ts'
import { noWeb, type WebAvailability, type WebPlan, type WebUse } from '../web/web-plan.ts'
import type { Enhanced } from './enhance.ts'

declare const prepared: unique symbol

/** A moderated chat request in its final form. Only this type can be sent to a provider. */
export type Prepared = {
  readonly [prepared]: true
  readonly request: ChatRequest
  /** Result of the web access; null = none was planned. */
  readonly web: WebUse | null
  /** Milliseconds that the request waited for the rewrite and the web. */
  readonly waitedMs: number
}

export type OfferDeps = { readonly web: Pick<Web, 'search' | 'prices'>; readonly read: PromptAnalyzer }

/** Web access that a plan may use: a search sends a part of the prompt, which constraints may forbid. */
export function getOffer({ web, read }: OfferDeps, demands?: ChatRequest['demands']): WebAvailability {
  return { canSearch: web.search.isThere(demands), prices: web.prices, read }
}

export type EnrichDeps = {
  readonly web: Pick<Web, 'search' | 'prices' | 'screenPage'> & { readonly pages: Pick<Web['pages'], 'read'> }
  readonly clock: Pick<Clock, 'monotonic'>
  readonly randomBytes: (count: number) => Uint8Array
}

type EnrichInput = {
  readonly accountId: string
  readonly plan: WebPlan
  readonly signal: RequestAbortSignal
}

/**
 * The only way from an enhanced request to a prepared one. Runs the planned searches and page fetches concurrently and
 * adds their results to the conversation as untrusted content. A result never fails the request or changes its route: a
 * failed or blocked source is omitted and listed in `web`. Rejects only when `signal` aborts.
 */
export function enrich(deps: EnrichDeps, enhanced: Enhanced, input: EnrichInput): Prepared | Promise<Prepared> {
  const { request, waitedMs } = enhanced
  return input.plan === noWeb ? ({ request, web: null, waitedMs } as Prepared) : enrichBy(deps, enhanced, input)
}

async function enrichBy(
  deps: EnrichDeps,
  { request, waitedMs }: Enhanced,
  { accountId, plan, signal: ending }: EnrichInput,
): Promise<Prepared> {
  const startedAt = deps.clock.monotonic()
  const { pages, search } = deps.web
  const { signal, release } = abortedBy(ending)
  const [results, ...fetched] = await Promise.all([
    plan.query === null ? [] : search.find(plan.query, signal, request.demands),
    ...plan.urls.map(url => pages.read(url, { accountId, signal })),
  ])
    .catch(cause => {
      throw ending.aborted ? abortError(ending) : cause
    })
    .finally(release)
  const webMs = deps.clock.monotonic() - startedAt
  return { ...withFindings(deps, request, plan, { results, fetched }), waitedMs: waitedMs + webMs } as Prepared
}

/** Converts the request's abort to an `AbortSignal` for sockets. `release` removes the listener. */
function abortedBy(ending: RequestAbortSignal): { readonly signal: AbortSignal; readonly release: () => void } {
  const abort = new AbortController()
  const end = () => abort.abort(ending.reason)
  if (ending.aborted) end()
  ending.addEventListener('abort', end)
  return { signal: abort.signal, release: () => ending.removeEventListener('abort', end) }
}

/** Results of the web access, in the order of arrival. */
type Fetched = {
  readonly results: readonly WebDocument[] | OmittedSource
  readonly fetched: readonly (WebDocument | OmittedSource)[]
}

function withFindings(
  { web: { prices, screenPage }, randomBytes }: EnrichDeps,
  request: ChatRequest,
  plan: WebPlan,
  { results, fetched }: Fetched,
): { readonly request: ChatRequest; readonly web: WebUse } {
  const leftOut: OmittedSource[] = []
  const admitted = (item: WebDocument | OmittedSource, maximumCharacters: number) => {
    if ('code' in item) {
      leftOut.push(item)
      return []
    }
    const finding = seen(item, maximumCharacters)
    if (screenPage(`${finding.title}\n${finding.url}\n${finding.text}`)) return [{ finding, maximumCharacters }]
    leftOut.push({ url: finding.url, code: 'refused' })
    return []
  }
  const read = fetched.flatMap(page => admitted(page, webLimits.pageCharacters))
  const searched = plan.query !== null && !('code' in results)
  const found = ('code' in results ? [results] : results).flatMap(result =>
    admitted(result, webLimits.resultCharacters),
  )
  const known = new Set(read.map(({ finding }) => finding.url))
  const findings = [...read, ...found.filter(({ finding }) => !known.has(finding.url))]
  const nonce = Buffer.from(randomBytes(16)).toString('hex')
  const messages = insertUntrustedContent(request.messages, findings, { nonce, maximumTokens: plan.tokens })
  const enriched = messages === request.messages ? request : withFoundText(request, messages)
  const web = {
    searched,
    sources: enriched === request ? [] : findings.map(({ finding: { url, title } }) => ({ url, title })),
    leftOut: [
      ...leftOut,
      ...[...plan.surplus, ...(enriched === request ? findings.map(({ finding }) => finding.url) : [])].map(
        url => ({ url, code: 'refused' }) as const,
      ),
    ],
    searchMicrocents: searched ? prices.search : 0,
    fetchMicrocents: enriched === request ? 0 : read.length * prices.fetch,
  }
  return { request: enriched, web }
}

/** A body that cannot be changed in place stays as its client wrote it, and its findings are left out. */
function withFoundText(request: ChatRequest, messages: ChatRequest['messages']): ChatRequest {
  if (request.source === null || request.source.messages !== request.messages) return { ...request, messages }
  const before = insertedText(request.messages, messages)
  return before === null ? request : withTurn(request, messages, { before })
}

/** Returns the text of a document, which is the same for moderation, the client and the model. */
function seen({ url, title, text }: WebDocument, maximumCharacters: number): WebDocument {
  return {
    url,
    title: visibleText(title.replace(/\s+/g, ' '), webLimits.titleCharacters) || url,
    text: visibleText(text, maximumCharacters),
  }
}
