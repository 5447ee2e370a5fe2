/** Endpoints of a model: that of its provider, or those of its hosts. */
import type { ChatRequest } from '../../core/chat/chat.ts'
import type { Model } from '../../core/models/models.ts'
import { modelAt } from '../../models/model-hosts.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import { type Candidate, unreadable } from './candidate.ts'

export type Endpoints = ReadonlyMap<string, ConfiguredProvider>

/**
 * Returns the first endpoint of a model; undefined = none is configured. With `ask`, the first one that can read the
 * request, if there is one.
 */
export function endpointOf(
  endpoints: Endpoints,
  model: Pick<Model, 'id' | 'provider' | 'hosts'>,
  ask?: Pick<ChatRequest, 'source'>,
): ConfiguredProvider | undefined {
  const { provider, hosts } = model
  if (hosts === undefined) return endpoints.get(provider)
  const configured = hosts.flatMap(({ host }) => endpoints.get(host) ?? [])
  const reading = ask === undefined ? undefined : configured.find(endpoint => unreadable(endpoint, model, ask) === null)
  return reading ?? configured[0]
}

/**
 * Returns a candidate at each host of its model that can read the request: first the host that has the conversation
 * cached, then in the configured order. `cachedAt` returns its ID.
 */
export function candidatesAtHosts(
  endpoints: Endpoints,
  candidate: Candidate,
  ask: Pick<ChatRequest, 'source'>,
  cachedAt: () => string | undefined,
): readonly Candidate[] {
  const { model } = candidate
  if (model.hosts === undefined) return [candidate]
  const cached = cachedAt()
  const hosts = model.hosts.toSorted((one, other) => Number(other.host === cached) - Number(one.host === cached))
  return hosts.flatMap((host): Candidate[] => {
    const endpoint = endpoints.get(host.host)
    if (endpoint === undefined || unreadable(endpoint, model, ask) !== null) return []
    if (host === candidate.host) return [candidate]
    const { score, place, health } = candidate
    return [
      {
        model: modelAt(model, host).model,
        endpoint,
        host,
        score,
        place,
        health,
        reason: () => candidate.reason(),
        parts: () => candidate.parts(),
      },
    ]
  })
}

/** Returns the model by the name that its first host knows. */
export function nameAtFirstHost(model: Model): Model {
  const first = model.hosts?.[0]
  return first === undefined ? model : modelAt(model, first).wire
}
