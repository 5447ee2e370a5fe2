/** Sends an upstream request with its credentials, and fetches these first if needed. */
import type { Network } from '../core/ports.ts'
import type { Access, Authorizer, ProviderFailure, SignableRequest } from '../providers/provider.ts'

/** The request was not sent: there are no credentials for it. */
export class CredentialsMissingError extends Error {
  constructor(readonly failure: ProviderFailure) {
    super(failure.detail)
  }
}

/**
 * Sends a request. If the upstream refuses credentials that can be renewed, sends it once more: a refused request was
 * not processed. Rejects with `CredentialsMissingError`, and as `fetch` does.
 */
export function authorizedFetch(
  network: Pick<Network, 'fetch'>,
  { authorizer }: Access,
  request: SignableRequest,
  init: RequestInit & { readonly signal: AbortSignal },
): Promise<Response> {
  if (authorizer === undefined) return network.fetch(request.url, init)
  return withCredentials(network, authorizer, request, init)
}

async function withCredentials(
  network: Pick<Network, 'fetch'>,
  authorizer: Authorizer,
  request: SignableRequest,
  init: RequestInit & { readonly signal: AbortSignal },
): Promise<Response> {
  const sent = await headersFor(authorizer, request, init.signal)
  const send = (headers: Readonly<Record<string, string>>) =>
    network.fetch(request.url, { ...init, headers: { ...getHeaders(init), ...headers } })
  const response = await send(sent)
  const isRefused = response.status === 401 || response.status === 403
  if (!isRefused || !authorizer.isRenewable(response, sent)) return response
  void response.body?.cancel().catch(() => {})
  return send(await headersFor(authorizer, request, init.signal))
}

async function headersFor(authorizer: Authorizer, request: SignableRequest, signal: AbortSignal) {
  const authorization = await untilAborted(authorizer.authorize(request), signal)
  if ('failure' in authorization) throw new CredentialsMissingError(authorization.failure)
  return authorization.headers
}

function getHeaders({ headers }: RequestInit): Record<string, string> {
  return Object.fromEntries(new Headers(headers))
}

/** Credentials are fetched for all requests together, so one request's end does not end the fetch, only the wait. */
async function untilAborted<T>(value: T | Promise<T>, signal: AbortSignal): Promise<T> {
  if (!(value instanceof Promise)) return value
  return await new Promise<T>((resolve, reject) => {
    const leave = () => reject(new DOMException('The request has ended.', 'AbortError'))
    if (signal.aborted) return leave()
    signal.addEventListener('abort', leave, { once: true })
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
