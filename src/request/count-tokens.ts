/**
 * Requests a provider's own count of input tokens. It is free and does not count against limits; its timeout is short.
 */

import type { SourceBody } from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import { readBodyText } from '../core/ports.ts'
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import type { ConfiguredProvider } from '../providers/configured-provider.ts'
import { authorizedFetch } from './authorized-fetch.ts'
import { endpointOf, nameAtFirstHost } from './routing/hosts.ts'

type CountDeps = {
  readonly config: { readonly serviceDeadlines: Pick<ServiceDeadlines, 'tokenCountMs'> }
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly network: { readonly fetch: (url: string, init: RequestInit) => Promise<Response> }
  readonly clock: { after(milliseconds: number, action: () => void): () => void }
}

/** Maximum bytes of a count response; a longer one is ignored. */
const maximumCharacters = 16_384

/** Returns the input tokens as the model's provider counts them; null = it has no such endpoint, failed, or was too slow. */
export async function countInput(deps: CountDeps, model: Model, source: SourceBody): Promise<number | null> {
  const endpoint = endpointOf(deps.endpoints, model)
  const count = endpoint?.provider.count
  if (endpoint === undefined || count === undefined) return null
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
