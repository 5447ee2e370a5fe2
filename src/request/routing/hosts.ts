/** Hosts of a model: their endpoints, the keys of their health, and the order in which they are called. */
import { healthStates } from '../../core/chat/attempts.ts'
import type { ChatRequest } from '../../core/chat/chat.ts'
import { type Catalog, fullName, type Model, type ModelHost } from '../../core/models/models.ts'
import type { SkipReason } from '../../models/circuit-breaker.ts'
import type { HealthTracker, Standing } from '../../models/health-tracker.ts'
import { modelAt } from '../../models/model-hosts.ts'
import type { ConfiguredProvider, Endpoints } from '../../providers/configured-provider.ts'
import { type Candidate, unreadable } from './candidate.ts'
import { allowedCandidates } from './constrained.ts'

/**
 * Returns the first endpoint of a model; undefined = none is configured. With `request`, the first one that can read the
 * request, if there is one.
 */
export function findEndpoint(
  endpoints: Endpoints,
  model: Pick<Model, 'id' | 'provider' | 'hosts'>,
  request?: Pick<ChatRequest, 'source'>,
): ConfiguredProvider | undefined {
  const { provider, hosts } = model
  if (hosts === undefined) return endpoints.get(provider)
  const configured = hosts.flatMap(({ host }) => endpoints.get(host) ?? [])
  const scan =
    request === undefined ? undefined : configured.find(endpoint => unreadable(endpoint, model, request) === null)
  return scan ?? configured[0]
}

/**
 * Returns a candidate at each host of its model that can read the request: first the host that has the conversation
 * cached, or one drawn by weight (`beginsAt`), then in their order. Own keys come before those of the operator. Hosts that
 * a constraint excludes are none of them.
 */
export function candidatesAtHosts(
  endpoints: Endpoints,
  candidate: Candidate,
  request: Pick<ChatRequest, 'source' | 'demands'>,
  beginsAt: () => string | undefined,
): readonly Candidate[] {
  const { model } = candidate
  if (model.hosts === undefined) return allowedCandidates(request.demands, ownFirst([candidate]))
  const first = beginsAt()
  const hosts = model.hosts.toSorted((host, other) => Number(other.host === first) - Number(host.host === first))
  const candidates = hosts.flatMap((host): Candidate[] => {
    const endpoint = endpoints.get(host.host)
    if (endpoint === undefined || unreadable(endpoint, model, request) !== null) return []
    if (host === candidate.host && endpoint === candidate.endpoint) return [candidate]
    return [{ ...moved(candidate, endpoint), model: modelAt(model, host).model, host }]
  })
  return allowedCandidates(request.demands, ownFirst(candidates))
}

/** Returns the ID of a host drawn by weight; undefined = none has a weight. */
export function drawHost({ hosts = [] }: Pick<Model, 'hosts'>, random: () => number): string | undefined {
  const total = hosts.reduce((sum, { weight = 0 }) => sum + weight, 0)
  if (total === 0) return undefined
  let left = random() * total
  return hosts.find(({ weight = 0 }) => {
    left -= weight
    return left < 0
  })?.host
}

function moved(candidate: Candidate, endpoint: ConfiguredProvider): Candidate {
  const { model, host, score, place, health, effort = null } = candidate
  return {
    ...{ model, endpoint, score, place, health, effort },
    ...(host === undefined ? null : { host }),
    reason: () => candidate.reason(),
    parts: () => candidate.parts(),
  }
}

/** Puts own keys first, and adds the operator's keys of the same host where those may replace them. */
function ownFirst(candidates: readonly Candidate[]): readonly Candidate[] {
  const own = candidates.filter(({ endpoint }) => endpoint.own !== undefined)
  if (own.length === 0) return candidates
  const others = candidates.flatMap((candidate): Candidate[] => {
    const { own: credential } = candidate.endpoint
    if (credential === undefined) return [candidate]
    return credential.shared === null ? [] : [moved(candidate, credential.shared)]
  })
  return [...own, ...others]
}

/** Returns the model by the name that its first host knows. */
export function nameAtFirstHost(model: Model): Model {
  const first = model.hosts?.[0]
  return first === undefined ? model : modelAt(model, first).wire
}

type HealthSubject = {
  readonly model: Pick<Model, 'id' | 'provider'>
  readonly host?: ModelHost
  /** Absent = with the operator's keys. */
  readonly endpoint?: Pick<ConfiguredProvider, 'own'>
}

/**
 * Health is kept per host and model. Keys of one host share it: an exhausted key says nothing about the model. Own keys
 * of accounts have a health of their own, so that a bad one affects no other account.
 */
export function healthKey({ model, host, endpoint }: HealthSubject): string {
  const key = host === undefined || host.host === model.provider ? fullName(model) : hostKey(host)
  return endpoint?.own === undefined ? key : `${key}#${endpoint.own.credential}`
}

function hostKey(host: ModelHost): string {
  let key = keys.get(host)
  if (key === undefined) {
    key = `${host.host}/${host.upstreamId}`
    keys.set(host, key)
  }
  return key
}

/** Cached, since every attempt looks up its host. */
const keys = new WeakMap<ModelHost, string>()

/** Returns the key of a model's first host. */
export function firstHealthKey(model: Model): string {
  const host = model.hosts?.[0]
  return host === undefined ? fullName(model) : healthKey({ model, host })
}

/** Returns the keys of all hosts of a model, in the order of calls. */
function getHealthKeys(model: Pick<Model, 'id' | 'provider'> & Partial<Pick<Model, 'hosts'>>): readonly string[] {
  return model.hosts?.map(host => healthKey({ model, host })) ?? [fullName(model)]
}

type RoutedModel = Pick<Model, 'id' | 'provider' | 'hosts'>

/** Returns the health by which routing judges a model. */
export function routingHealth(health: Pick<HealthTracker, 'getStanding'>, model: RoutedModel): Standing {
  return health.getStanding(model.hosts === undefined ? fullName(model) : routingHealthKey(health, model))
}

/** Returns the key of that health: of the model's first host in good health, else of its first host. */
export function routingHealthKey(health: Pick<HealthTracker, 'getStanding'>, model: RoutedModel): string {
  const hosts = getHealthKeys(model)
  const all = hosts.map(health.getStanding)
  const healthy = all.findIndex(({ state, mayTry }) => state === 'healthy' && mayTry)
  const at = healthy === -1 ? all.findIndex(({ mayTry }) => mayTry) : healthy
  return hosts[Math.max(0, at)] ?? fullName(model)
}

type Plan = {
  readonly mode: 'auto' | 'manual'
  readonly first: Candidate
  readonly candidates: readonly Candidate[]
}

export type CandidateOrderDeps = {
  readonly health: Pick<HealthTracker, 'skipReason'>
  /** Called for each candidate that comes last because it must not be called now, with the reason. */
  readonly rests?: (candidate: Candidate, reason: SkipReason) => void
}

/**
 * Yields the plan's candidates in the order of calls: those with an open circuit come last, since one request at a time
 * probes a failing model and the last resort is never removed. A named model is called unless its circuit is open.
 * `skipped` is called with the reason when another candidate replaces the first one.
 */
export function* inOrder(
  { health, rests }: CandidateOrderDeps,
  plan: Plan,
  skipped: (candidate: Candidate, reason: SkipReason) => void,
  /** The candidate at each host of its model; absent = only at its first host. */
  atHosts: (candidate: Candidate) => readonly Candidate[] = candidate => [candidate],
): Generator<Candidate, void, void> {
  const { first } = plan
  const resting: Candidate[] = []
  let reason: SkipReason | null = null
  let isCalled = false
  for (const planned of plannedOnce(plan)) {
    for (const candidate of atHosts(planned)) {
      const own = health.skipReason(healthKey(candidate), planned === first && plan.mode === 'manual')
      if (own !== null) {
        if (planned === first) reason ??= own
        rests?.(candidate, own)
        resting.push(candidate)
        continue
      }
      if (planned === first) isCalled = true
      else if (reason !== null && !isCalled) skipped(first, reason)
      if (planned !== first) reason = null
      yield candidate
    }
  }
  yield* resting
}

/** Fallbacks of a named model are ranked only when they are needed. */
function* plannedOnce(plan: Plan): Generator<Candidate, void, void> {
  yield plan.first
  for (const fallback of plan.candidates) if (fallback !== plan.first) yield fallback
}

type HealthReportDeps = {
  readonly catalog: Pick<Catalog, 'list'>
  readonly embeddingCatalog: { readonly list: readonly Pick<Model, 'id' | 'provider'>[] }
  readonly health: Pick<HealthTracker, 'getEntry'>
}

/**
 * Reports the health of every offered model, embedding models last; a model without attempts counts as healthy. Every
 * client may read it: it has causes as codes, and nothing of accounts or of an upstream's text.
 */
export function reportModelHealth({ catalog, embeddingCatalog, health }: HealthReportDeps) {
  const toTime = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  return [...catalog.list, ...embeddingCatalog.list].map(model => {
    const entries = getHealthKeys(model).map(health.getEntry)
    // A model is as healthy as its healthiest host.
    const [best] = healthStates.flatMap(healthState => entries.filter(entry => entry.state === healthState))
    const { state, since, cause, retryAt } = best ?? health.getEntry(fullName(model))
    return {
      model: fullName(model),
      state,
      since: toTime(since),
      cause: state === 'healthy' ? null : cause,
      retry_at: state === 'healthy' ? null : toTime(retryAt),
    }
  })
}
