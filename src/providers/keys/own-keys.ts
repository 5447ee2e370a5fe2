/**
 * Own keys of accounts and projects: the providers as a caller with own keys sees them. A view is built by the caller's
 * first request after a change and then kept, so that a warm request looks it up in memory.
 */
import type { Clock } from '../../core/ports.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ConfiguredProvider, Endpoints } from '../configured-provider.ts'
import { KeyPool } from './key-pool.ts'

/** A stored own key, still sealed. */
export type OwnKey = {
  readonly id: string
  readonly accountId: string
  /** Null = for all requests of the account. */
  readonly projectId: string | null
  readonly provider: string
  readonly name: string
  readonly secret: string
  /** Whether the operator's keys may serve when it fails. */
  readonly fallback: boolean
}

type KeyOwner = { readonly accountId: string; readonly projectId?: string }

/** Providers and their health for a caller with own keys. */
type OwnView = {
  readonly endpoints: Endpoints
  /** For routing: of the own keys, or of the operator's where an own key may be replaced by them. */
  readonly health: HealthTracker
}

type OwnKeysParts = {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Providers of the operator, which a reload changes. */
  readonly endpoints: Endpoints
  readonly health: HealthTracker
  /** Whether the operator lets a provider take own keys. */
  readonly isAllowed: (provider: ConfiguredProvider) => boolean
}

type Made = { readonly keys: readonly OwnKey[]; readonly pool: KeyPool; readonly provider: ConfiguredProvider }

/** More are built again when they are needed. */
const maximumViews = 1_000

export class OwnKeys {
  private open: (key: OwnKey) => string | null = () => null
  private keys: readonly OwnKey[] = []
  /** By account, then those of its projects by project. */
  private byOwner: ReadonlyMap<string, readonly OwnKey[]> = new Map()
  private readonly views = new Map<string, { readonly accountId: string; readonly view: OwnView | null }>()
  /** By owner and provider: keys that stay keep what is known of them when others of their owner change. */
  private readonly made = new Map<string, Made>()
  /** Health of replaced keys must not decide about the new ones. */
  private built = 0

  constructor(private readonly parts: OwnKeysParts) {}

  /** Replaces all keys. Views of accounts whose keys stay are kept; running requests keep the keys that they claimed. */
  replace(keys: readonly OwnKey[], open: (key: OwnKey) => string | null): void {
    const before = Map.groupBy(this.keys, ({ accountId }) => accountId)
    const after = Map.groupBy(keys, ({ accountId }) => accountId)
    this.open = open
    this.keys = keys
    this.byOwner = Map.groupBy(keys, ({ accountId, projectId }) => projectId ?? accountId)
    for (const [owner, { accountId }] of this.views)
      if (!Bun.deepEquals(before.get(accountId), after.get(accountId))) this.views.delete(owner)
    const ids = new Set(keys.map(({ id }) => id))
    for (const [place, { keys: old }] of this.made) if (!old.some(({ id }) => ids.has(id))) this.made.delete(place)
  }

  /** Forgets the views, after providers were replaced. */
  forget(): void {
    this.views.clear()
    this.made.clear()
  }

  /** Returns the view of a caller; null = it has no own key. */
  of({ accountId, projectId }: KeyOwner): OwnView | null {
    // Callers without own keys take no place of a view: a view that is built again has forgotten what keys were refused.
    if (!this.byOwner.has(accountId) && !this.byOwner.has(projectId ?? accountId)) return null
    const owner = projectId ?? accountId
    const known = this.views.get(owner)
    if (known !== undefined) return known.view
    const view = this.build(accountId, projectId)
    if (this.views.size >= maximumViews) this.forget()
    this.views.set(owner, { accountId, view })
    return view
  }

  private build(accountId: string, projectId: string | undefined): OwnView | null {
    const ofAccount = Map.groupBy(this.byOwner.get(accountId) ?? [], ({ provider }) => provider)
    const ofProject = Map.groupBy(this.byOwner.get(projectId ?? '') ?? [], ({ provider }) => provider)
    const endpoints = new Map(this.parts.endpoints)
    for (const [provider, keys] of new Map([...ofAccount, ...ofProject])) {
      const shared = endpoints.get(provider)
      if (shared !== undefined)
        endpoints.set(provider, this.toOwnProvider(`${projectId ?? accountId} ${provider}`, shared, keys))
    }
    const hasOwn = endpoints.values().some(({ own }) => own !== undefined)
    return hasOwn ? { endpoints, health: withOwnHealth(this.parts.health, endpoints) } : null
  }

  /** A provider whose own keys cannot be used has none: its calls then go to the operator's keys, or are not made. */
  private toOwnProvider(place: string, shared: ConfiguredProvider, keys: readonly OwnKey[]): ConfiguredProvider {
    const known = this.made.get(place)
    if (known !== undefined && Bun.deepEquals(known.keys, keys)) return known.provider
    const usable = this.parts.isAllowed(shared) ? keys : []
    const opened = usable.flatMap(key => {
      const apiKey = this.open(key)
      return apiKey === null ? [] : [{ key, access: { ...shared.access, apiKey } }]
    })
    const pool = known?.pool ?? new KeyPool({ keys: [], quotas: new Map() }, this.parts.clock)
    pool.replace({
      keys: opened.map(({ key: { id, name }, access }) => ({
        ...{ name, access, account: `=${id}`, weight: 1, models: null },
      })),
      quotas: new Map(),
    })
    const mayFallBack = keys.every(({ fallback }) => fallback)
    const provider = {
      ...shared,
      access: opened[0]?.access ?? { ...shared.access, apiKey: null },
      keys: pool,
      own: { credential: `own${++this.built}`, shared: mayFallBack ? shared : null },
    }
    this.made.set(place, { keys, pool, provider })
    return provider
  }
}

/** Returns the health that ranks models for these providers. */
function withOwnHealth(health: HealthTracker, endpoints: OwnView['endpoints']): HealthTracker {
  const findOwn = (key: string) => endpoints.get(key.slice(0, key.indexOf('/')))?.own
  /** Own keys that cannot serve are replaced where they may be. */
  const subject = (key: string): string => {
    const own = findOwn(key)
    if (own === undefined) return key
    const ofOwn = `${key}#${own.credential}`
    return own.shared !== null && !health.getStanding(ofOwn).mayTry ? key : ofOwn
  }
  return {
    ...health,
    getStanding: key => health.getStanding(subject(key)),
    getEntry: key => health.getEntry(subject(key)),
  }
}
