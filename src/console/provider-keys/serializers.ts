/** Providers and their keys as responses show them. None contains a key. */

import type { RegistrationConfig } from '../../core/accounts/single-sign-on.ts'
import type { AttemptFailure } from '../../core/chat/attempts.ts'
import { environmentKey } from '../../core/models/configured-models.ts'
import type { Catalog } from '../../core/models/models.ts'
import { pick, shownFields } from '../../core/usage/shown-fields.ts'
import type { ProviderKey } from '../../database/tables.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ConfiguredProvider, Endpoints } from '../../providers/configured-provider.ts'
import type { OwnKeys } from '../../providers/keys/own-keys.ts'
import type { ShownProvider, ShownProviderKey } from './schemas.ts'
import { findOwnKeyObstacle, type OwnKeyConfig, type ProviderKeySeal } from './store.ts'

export type ShownProviderDeps = {
  readonly catalog: Pick<Catalog, 'list'>
  readonly health: Pick<HealthTracker, 'getActivity'>
  readonly providerKeySeal: Pick<ProviderKeySeal, 'open'>
  readonly endpoints: Endpoints
  readonly ownKeys: Pick<OwnKeys, 'of'>
  readonly config: OwnKeyConfig & { readonly registration: Pick<RegistrationConfig, 'mode'> }
}

/** Returns a stored key; `isOperator`: its account is the operator's. */
export function shownProviderKey(deps: ShownProviderDeps, key: ProviderKey, isOperator: boolean): ShownProviderKey {
  const { accountId, projectId, provider } = key
  const serves = projectId === null ? (isOperator ? 'gateway' : 'account') : 'project'
  const owner = { accountId, ...(projectId === null ? null : { projectId }) }
  const { endpoints } = (serves === 'gateway' ? null : deps.ownKeys.of(owner)) ?? deps
  return {
    ...shownFields(pick(key, ['id', 'projectId', 'provider', 'name', 'hint', 'createdAt', 'updatedAt'])),
    ...{ serves, fallback: serves === 'gateway' ? null : key.fallback },
    state: getKeyState(deps, key, endpoints.get(provider)?.keys?.status() ?? null),
  }
}

function getKeyState({ providerKeySeal }: ShownProviderDeps, key: ProviderKey, pool: Pool | null) {
  if (providerKeySeal.open(key) === null) return 'unreadable'
  return pool?.keys.find(({ account }) => account === `=${key.id}`)?.state ?? 'unused'
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
    ...{ last_success_at: null, last_error: null, pool: null, takes_own_keys: false },
    keys: stored.filter(({ provider }) => provider === id).map(key => shownStored(deps, key, null)),
  }
}

function shownStored(deps: ShownProviderDeps, key: ProviderKey, pool: Pool | null) {
  const { id, name, hint } = key
  return { name, source: 'stored', id, hint, state: getKeyState(deps, key, pool) } as const
}

/** Returns a configured provider; `stored` null = its keys are not shown. */
export function shownProvider(
  deps: ShownProviderDeps,
  provider: ConfiguredProvider,
  stored: readonly ProviderKey[] | null,
): ShownProvider {
  const { id, simulated, keys, access } = provider
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
    takes_own_keys: findOwnKeyObstacle(deps.config, id, provider) === null,
    models: deps.catalog.list.filter(model => model.provider === id).length,
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
      ...stored.filter(key => key.provider === id).map(key => shownStored(deps, key, pool)),
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
