/** The providers, and the keys that owners of the operator's account add to them. */

import type { Clock, Network } from '../../core/ports.ts'
import type { ServiceDeadlines } from '../../core/request/deadlines.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { ProviderKey } from '../../database/tables.ts'
import { checkCredential } from '../../request/internal-completion.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import type { StoredSettingsFollower } from './follow.ts'
import {
  providerKeyChangeSchema,
  providerKeyCreationSchema,
  providerKeyRotationSchema,
  providerKeyShape,
  providerKeysShape,
  providerListShape,
  providerTestedShape,
  providerTestSchema,
} from './schemas.ts'
import { type ShownProviderDeps, shownProvider, shownProviderKey, shownWithoutKey } from './serializers.ts'
import {
  addProviderKey,
  deleteProviderKey,
  findKeyObstacle,
  findOwnKeyObstacle,
  getHint,
  isOperatorAccount,
  listProviderKeys,
  maximumProviderKeys,
  type ProviderKeySeal,
  rotateProviderKey,
  setKeyFallback,
} from './store.ts'

type ProviderKeysDeps = ShownProviderDeps &
  Pick<ConsoleDeps, 'newId' | 'announce'> & {
    readonly clock: Pick<Clock, 'after'>
    readonly network: Pick<Network, 'fetch'>
    readonly providerKeySeal: ProviderKeySeal
    readonly storedSettings: Pick<StoredSettingsFollower, 'look'>
    readonly config: { readonly serviceDeadlines: Pick<ServiceDeadlines, 'discoveryMs'> }
  }

/** Routes under `/api/v1/providers` and `/api/v1/provider-keys`. */
export function providerRoutes(deps: ProviderKeysDeps, identify: Authenticate) {
  const action = 'provider_keys.manage'
  return sessionRoutes('providers', identify, [
    sessionRoute({
      route: 'GET /api/v1/providers',
      action: 'providers.see',
      summary: 'List providers',
      description:
        'State, last error, keys and reported limits, as this process saw them since its start. Owners of the operator’s account also see providers without a key. Pools are shown unless registration is open.',
      answer: providerListShape,
      handle: call => list(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/providers/:id/test',
      action,
      summary: 'Test a key of a provider',
      description: 'Requests the list of models from the provider, which costs nothing.',
      body: providerTestSchema,
      bodyRequired: false,
      answer: providerTestedShape,
      errors: ['conflict'],
      async handle({ principal, id, body: { key = null }, database }) {
        await refuseOthers(database, principal.accountId)
        const endpoint = deps.endpoints.get(id)
        if (endpoint === undefined) throw notFound()
        const { keys } = endpoint
        // Without a key the call would have no credential, and its rejection would tell of none.
        const isThere = key === null ? keys?.status().keys.length !== 0 : keys?.find(key) != null
        if (!isThere) throw await missingKey(deps, { database, principal, provider: id, key })
        return checkCredential({ ...deps, timeoutMs: deps.config.serviceDeadlines.discoveryMs }, endpoint, key)
      },
    }),
    sessionRoute({
      route: 'GET /api/v1/provider-keys',
      action,
      summary: 'List stored provider keys, oldest first',
      answer: providerKeysShape,
      async handle({ principal: { accountId }, database }) {
        const isOperator = await isOperatorAccount(database, accountId)
        const rows = await listProviderKeys(database, accountId)
        return { data: rows.map(row => shownProviderKey(deps, row, isOperator)) }
      },
    }),
    sessionRoute({
      route: 'POST /api/v1/provider-keys',
      action,
      summary: 'Add a provider key',
      description: `It is sealed in the database, never shown again, and used by every process within 1 s. A key of the operator’s account serves all accounts, beside the keys of the environment. A key of another account, or with \`project_id\`, is an own key: requests of the account or project use it first, and its calls are not billed. At most ${maximumProviderKeys} of an account.`,
      body: providerKeyCreationSchema,
      answer: providerKeyShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      route: 'PATCH /api/v1/provider-keys/:id',
      action,
      summary: 'Change an own key',
      description: 'Changes whether the operator’s keys serve when it fails.',
      body: providerKeyChangeSchema,
      answer: providerKeyShape,
      errors: ['not_found'],
      handle: call => change(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/provider-keys/:id/test',
      action,
      summary: 'Test a stored provider key',
      description: 'Requests the list of models from the provider, which costs nothing.',
      answer: providerTestedShape,
      errors: ['conflict'],
      handle: call => testKey(deps, call),
    }),
    sessionRoute({
      route: 'POST /api/v1/provider-keys/:id/rotate',
      action,
      summary: 'Replace a provider key',
      description: 'Requests in progress keep the old key; every later one uses the new key within 1 s.',
      body: providerKeyRotationSchema,
      answer: providerKeyShape,
      errors: ['not_found'],
      handle: call => rotate(deps, call),
    }),
    sessionRoute({
      route: 'DELETE /api/v1/provider-keys/:id',
      action,
      summary: 'Remove a provider key',
      description: 'Takes effect on every process within 1 s. Requests in progress finish.',
      answer: null,
      errors: ['not_found'],
      async handle({ principal, id, database }) {
        if (!(await deleteProviderKey(database, principal.accountId, id))) throw notFound()
        await useChange(deps)
        return null
      },
    }),
  ])
}

type Missing = Pick<SessionRequest, 'database' | 'principal'> & {
  readonly provider: string
  /** Null = any. */
  readonly key: string | null
}

/** Keys of projects are own keys, also of the operator's account. */
const isShared = ({ projectId }: ProviderKey) => projectId === null

/** Returns the error of a test whose key is not in use: it cannot be opened, or there is none. */
async function missingKey(deps: ProviderKeysDeps, { database, principal, provider, key }: Missing) {
  const rows = (await listProviderKeys(database, principal.accountId)).filter(isShared)
  const own = rows.filter(row => row.provider === provider && (key === null || row.name === key))
  return own.some(row => deps.providerKeySeal.open(row) === null)
    ? new GatewayError('conflict', conflicts.unreadable, { shouldRetry: false })
    : notFound()
}

/** This process uses a change before its response, the others at once after. */
async function useChange({ storedSettings, announce }: ProviderKeysDeps): Promise<void> {
  await storedSettings.look()
  announce()
}

async function create(deps: ProviderKeysDeps, call: SessionRequest<typeof providerKeyCreationSchema>) {
  refuseIfOff(deps)
  const { principal, database } = call
  const { provider, name = 'main', key, project_id: projectId = null, fallback } = call.body
  const { accountId } = principal
  const isOperator = await isOperatorAccount(database, accountId)
  const isOwn = !isOperator || projectId !== null
  const endpoint = deps.endpoints.get(provider)
  const obstacle = isOwn
    ? findOwnKeyObstacle(deps.config, provider, endpoint)
    : findKeyObstacle(deps.config.knownProviders, provider, served => deps.endpoints.has(served))
  if (obstacle !== null) throw invalidField('provider', obstacle)
  if (!isOwn && fallback !== undefined) throw invalidField('fallback', 'is a setting of own keys')
  const id = deps.newId('pvk')
  const secret = deps.providerKeySeal.seal({ id, accountId, projectId, provider }, key)
  const configured = isOwn ? [] : (endpoint?.keys?.status().keys ?? [])
  const row = await addProviderKey(
    database,
    accountId,
    { id, projectId, provider, name, secret, hint: getHint(key), fallback: fallback ?? true },
    configured.map(other => other.name),
  )
  if (row === 'no_project') throw invalidField('project_id', 'must be a project of the account that is not archived')
  if (row === 'full' || row === 'name_taken') throw new GatewayError('conflict', conflicts[row], { shouldRetry: false })
  await useChange(deps)
  return shownProviderKey(deps, row, isOperator)
}

const conflicts = {
  full: `The account has ${maximumProviderKeys} stored provider keys. Remove unused ones first.`,
  name_taken: 'This provider has a key of this name. Replace that key, or choose another name.',
  unserved: 'The gateway does not serve this provider.',
  unreadable: 'The stored key is unreadable. Restore the secret that sealed it, or replace the key.',
}

async function rotate(deps: ProviderKeysDeps, call: SessionRequest<typeof providerKeyRotationSchema>) {
  refuseIfOff(deps)
  const { principal, id, body, database } = call
  const { key } = body
  const row = await rotateProviderKey(database, principal.accountId, id, { seal: deps.providerKeySeal, key })
  if (row === null) throw notFound()
  await useChange(deps)
  return shownProviderKey(deps, row, await isOperatorAccount(database, principal.accountId))
}

async function change(deps: ProviderKeysDeps, call: SessionRequest<typeof providerKeyChangeSchema>) {
  const { principal, id, body, database } = call
  const row = await setKeyFallback(database, principal.accountId, id, body.fallback)
  if (row === null) throw notFound()
  await useChange(deps)
  return shownProviderKey(deps, row, await isOperatorAccount(database, principal.accountId))
}

async function testKey(deps: ProviderKeysDeps, { principal, id, database }: SessionRequest) {
  const { accountId } = principal
  const row = (await listProviderKeys(database, accountId)).find(other => other.id === id)
  if (row === undefined) throw notFound()
  const endpoint = deps.endpoints.get(row.provider)
  const isOwn = !isShared(row) || !(await isOperatorAccount(database, accountId))
  // The provider may have moved to another address since the key was added.
  const obstacle = isOwn && endpoint !== undefined ? findOwnKeyObstacle(deps.config, row.provider, endpoint) : null
  if (obstacle !== null) throw new GatewayError('conflict', `The provider ${obstacle}.`, { shouldRetry: false })
  const apiKey = deps.providerKeySeal.open(row)
  if (apiKey === null) throw new GatewayError('conflict', conflicts.unreadable, { shouldRetry: false })
  if (endpoint === undefined) throw new GatewayError('conflict', conflicts.unserved, { shouldRetry: false })
  const { provider, access } = endpoint
  const timeoutMs = deps.config.serviceDeadlines.discoveryMs
  return checkCredential({ ...deps, timeoutMs }, { provider, access: { ...access, apiKey } }, null)
}

function refuseIfOff({ config }: ProviderKeysDeps): void {
  if (config.storedKeys === 'off')
    throw new GatewayError(
      'forbidden',
      'Provider keys come from the environment and the configuration file only: STORED_PROVIDER_KEYS is off.',
      { shouldRetry: false },
    )
}

/** Throws unless the account is the operator's. */
export async function refuseOthers(database: Database, accountId: string): Promise<void> {
  if (!(await isOperatorAccount(database, accountId))) throw notOperator()
}

function notOperator(): GatewayError {
  return new GatewayError('forbidden', 'Only owners of the operator’s account manage providers and models.', {
    shouldRetry: false,
  })
}

async function list(deps: ProviderKeysDeps, { principal, database }: SessionRequest) {
  const { endpoints, config } = deps
  const { accountId, role } = principal
  const isOperator = role === 'owner' && (await isOperatorAccount(database, accountId))
  const stored = isOperator ? (await listProviderKeys(database, accountId)).filter(isShared) : null
  const known = isOperator ? config.knownProviders.filter(({ id }) => !endpoints.has(id)) : []
  const data = [
    ...endpoints.values().map(endpoint => shownProvider(deps, endpoint, stored)),
    ...known.map(({ id }) => shownWithoutKey(deps, id, stored ?? [])),
  ]
  return { data, stored_keys: isOperator ? (config.storedKeys === 'off' ? 'off' : 'allowed') : 'not_operator' } as const
}
