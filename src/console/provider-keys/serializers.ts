/** Providers and their keys as responses show them. None contains a key. */

import type { KnownProvider } from '../../config/stored-keys.ts'
import type { RegistrationConfig } from '../../core/accounts/single-sign-on.ts'
import type { AttemptFailure } from '../../core/chat/attempts.ts'
import type { Catalog } from '../../core/models/models.ts'
import type { ProviderKey } from '../../database/tables.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import type { ShownProvider, ShownProviderKey } from './schemas.ts'
import { environmentKey, type ProviderKeySeal } from './store.ts'

export type ShownProviderDeps = {
  readonly catalog: Pick<Catalog, 'list'>
  readonly health: Pick<HealthTracker, 'getActivity'>
  readonly providerKeySeal: Pick<ProviderKeySeal, 'open'>
  readonly config: {
    readonly registration: Pick<RegistrationConfig, 'mode'>
    readonly knownProviders: readonly KnownProvider[]
  }
}

export function shownProviderKey({ id, provider, name, hint, createdAt, updatedAt }: ProviderKey): ShownProviderKey {
  return { id, provider, name, hint, created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() }
}

function getPlace({ config }: ShownProviderDeps, provider: string) {
  const known = config.knownProviders.find(({ id }) => id === provider)
  return {
    variable: known?.variable ?? null,
    base_url_variable: known?.baseVariable ?? null,
    local: known?.isLocal ?? false,
  }
}

/** Returns a provider that lacks a key. */
export function shownWithoutKey(deps: ShownProviderDeps, id: string, stored: readonly ProviderKey[]): ShownProvider {
  return {
    ...{ id, simulated: false, state: 'not_set', ...getPlace(deps, id), models: 0, reachable: 'unknown' },
    ...{ last_success_at: null, last_error: null, pool: null },
    keys: stored.filter(({ provider }) => provider === id).map(key => shownStored(deps, key, 'unused')),
  }
}

function shownStored(
  { providerKeySeal }: ShownProviderDeps,
  key: ProviderKey,
  state: 'unused' | 'working' | 'rejected' | 'rate_limited',
) {
  const { id, name, hint } = key
  const isReadable = providerKeySeal.open(key) !== null
  return { name, source: 'stored', id, hint, state: isReadable ? state : 'unreadable' } as const
}

/** Returns a configured provider; `stored` null = its keys are not shown. */
export function shownProvider(
  deps: ShownProviderDeps,
  { id, simulated, keys, access }: ConfiguredProvider,
  stored: readonly ProviderKey[] | null,
): ShownProvider {
  const { lastSuccessAt, lastFailure } = deps.health.getActivity(id)
  const isFailureLast = lastFailure !== null && lastFailure.at >= (lastSuccessAt ?? 0)
  const failure = isFailureLast ? lastFailure.kind : null
  const pool = keys?.status() ?? null
  const state = getState(pool?.keys ?? [], failure, lastSuccessAt !== null)
  // With open registration anyone becomes an owner, who is not the operator.
  const shownPool = deps.config.registration.mode === 'open' ? null : pool
  return {
    id,
    simulated,
    state,
    ...getPlace(deps, id),
    models: deps.catalog.list.filter(({ provider }) => provider === id).length,
    reachable: lastSuccessAt === null && lastFailure === null ? 'unknown' : isUnanswered(failure) ? 'no' : 'yes',
    last_success_at: lastSuccessAt === null ? null : new Date(lastSuccessAt).toISOString(),
    last_error: lastFailure && { code: lastFailure.kind, at: new Date(lastFailure.at).toISOString() },
    pool: shownPool && {
      keys: shownPool.keys.length,
      rejected_keys: shownPool.keys.filter(key => key.state === 'rejected').length,
      limits: [...shownPool.limits],
    },
    keys: stored && [
      ...configuredKeys(pool, { isAlone: access.apiKey !== null && !simulated, state }, stored),
      ...stored
        .filter(({ provider }) => provider === id)
        .map(key =>
          shownStored(deps, key, pool?.keys.find(({ account }) => account === `=${key.id}`)?.state ?? 'unused'),
        ),
    ],
  }
}

type Pool = ReturnType<NonNullable<ConfiguredProvider['keys']>['status']>

const isUnanswered = (failure: AttemptFailure | null) => failure === 'connection_failed' || failure === 'timeout'

/** Returns the keys that are not stored: those of a pool, or the only one (`isAlone`), which has the provider's state. */
function configuredKeys(
  pool: Pool | null,
  only: { readonly isAlone: boolean; readonly state: ShownProvider['state'] },
  stored: readonly ProviderKey[],
): NonNullable<ShownProvider['keys']> {
  const shared = { id: null, hint: '' }
  if (pool === null) {
    const { state } = only
    const isKnown = state === 'working' || state === 'rejected' || state === 'rate_limited'
    const own = { name: environmentKey, source: 'environment', state: isKnown ? state : 'unused' } as const
    return only.isAlone ? [{ ...shared, ...own }] : []
  }
  return pool.keys
    .filter(({ account }) => !stored.some(({ id }) => account === `=${id}`))
    .map(({ name, account, state }) => ({
      ...shared,
      ...{ name, state, source: account === `:${environmentKey}` ? 'environment' : 'file' },
    }))
}

/** Returns the state of a provider: that of its keys if none of them can serve, else that of its last call. */
function getState(keys: Pool['keys'], failure: AttemptFailure | null, hasSucceeded: boolean): ShownProvider['state'] {
  const down = keys.filter(({ state }) => state === 'rejected' || state === 'rate_limited')
  if (keys.length > 0 && down.length === keys.length)
    return down.some(({ state }) => state === 'rate_limited') ? 'rate_limited' : 'rejected'
  if (failure === 'credential_refused') return 'rejected'
  if (failure === 'rate_limited' || failure === 'quota_exhausted') return 'rate_limited'
  if (isUnanswered(failure)) return 'unreachable'
  return hasSucceeded || failure !== null ? 'working' : 'unused'
}
