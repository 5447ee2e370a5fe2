/** The providers, and the keys that owners of the operator's account add to them. */

import type { Clock, Network } from '../../core/ports.ts'
import type { ServiceDeadlines } from '../../core/request/deadlines.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField } from '../../core/validation/validate.ts'
import type { Database } from '../../database/database.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import { checkCredential } from '../../request/internal-completion.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Authenticate, notFound, type SessionRequest, sessionRoute, sessionRoutes } from '../routes.ts'
import {
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
  getHint,
  isOperatorAccount,
  listProviderKeys,
  maximumProviderKeys,
  type ProviderKeyFollower,
  type ProviderKeySeal,
  rotateProviderKey,
} from './store.ts'

type ProviderKeysDeps = ShownProviderDeps &
  Pick<ConsoleDeps, 'newId' | 'announce'> & {
    readonly clock: Pick<Clock, 'after'>
    readonly network: Pick<Network, 'fetch'>
    readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
    readonly providerKeySeal: ProviderKeySeal
    /** Null = keys come from the environment and the configuration file only. */
    readonly storedKeys: Pick<ProviderKeyFollower, 'look'> | null
    readonly config: { readonly serviceDeadlines: Pick<ServiceDeadlines, 'discoveryMs'> }
  }

/** Routes under `/api/v1/providers` and `/api/v1/provider-keys`. */
export function providerRoutes(deps: ProviderKeysDeps, identify: Authenticate) {
  const action = 'provider_keys.manage'
  return sessionRoutes('providers', identify, [
    sessionRoute({
      method: 'GET',
      path: '/api/v1/providers',
      action: 'providers.see',
      summary: 'List providers',
      description:
        'State, last error, keys and reported limits, as this process saw them since its start. Owners of the operator’s account also see providers without a key. Pools are shown unless registration is open.',
      answer: providerListShape,
      handle: call => list(deps, call),
    }),
    sessionRoute({
      method: 'POST',
      path: '/api/v1/providers/:id/test',
      action,
      summary: 'Test a key of a provider',
      description: 'Requests the list of models from the provider, which costs nothing.',
      body: providerTestSchema,
      bodyRequired: false,
      examples: { 'one of several keys': { key: 'main' } },
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
      method: 'GET',
      path: '/api/v1/provider-keys',
      action,
      summary: 'List stored provider keys, oldest first',
      answer: providerKeysShape,
      handle: async ({ principal, database }) => ({
        data: (await listProviderKeys(database, principal.accountId)).map(shownProviderKey),
      }),
    }),
    sessionRoute({
      method: 'POST',
      path: '/api/v1/provider-keys',
      action,
      summary: 'Add a provider key',
      description: `For owners of the operator’s account. It is sealed in the database, never shown again, and used by every process within 1 s beside the keys of the environment. At most ${maximumProviderKeys}.`,
      body: providerKeyCreationSchema,
      examples: { 'a key of OpenAI': { provider: 'openai', key: 'sk-proj-0000000000' } },
      answer: providerKeyShape,
      status: 201,
      errors: ['conflict'],
      handle: call => create(deps, call),
    }),
    sessionRoute({
      method: 'POST',
      path: '/api/v1/provider-keys/:id/rotate',
      action,
      summary: 'Replace a provider key',
      description: 'Requests in progress keep the old key; every later one uses the new key within 1 s.',
      body: providerKeyRotationSchema,
      examples: { 'a new key': { key: 'sk-proj-0000000001' } },
      answer: providerKeyShape,
      errors: ['not_found'],
      handle: call => rotate(deps, call),
    }),
    sessionRoute({
      method: 'DELETE',
      path: '/api/v1/provider-keys/:id',
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

/** Returns the error of a test whose key is not in use: it cannot be opened, or there is none. */
async function missingKey(deps: ProviderKeysDeps, { database, principal, provider, key }: Missing) {
  const rows = await listProviderKeys(database, principal.accountId)
  const own = rows.filter(row => row.provider === provider && (key === null || row.name === key))
  return own.some(row => deps.providerKeySeal.open(row) === null)
    ? new GatewayError('conflict', conflicts.unreadable, { shouldRetry: false })
    : notFound()
}

/** This process uses a change before its response, the others at once after. */
async function useChange({ storedKeys, announce }: ProviderKeysDeps): Promise<void> {
  await storedKeys?.look()
  announce()
}

async function create(deps: ProviderKeysDeps, call: SessionRequest<typeof providerKeyCreationSchema>) {
  refuseIfOff(deps)
  const { principal, database } = call
  const { provider, name = 'main', key } = call.body
  await refuseOthers(database, principal.accountId)
  const obstacle = findKeyObstacle(deps.config.knownProviders, provider, served => deps.endpoints.has(served))
  if (obstacle !== null) throw invalidField('provider', obstacle)
  const id = deps.newId('pvk')
  const secret = deps.providerKeySeal.seal({ id, accountId: principal.accountId, provider }, key)
  const configured = deps.endpoints.get(provider)?.keys?.status().keys ?? []
  const row = await addProviderKey(
    database,
    principal.accountId,
    { id, provider, name, secret, hint: getHint(key) },
    configured.map(other => other.name),
  )
  if (row === 'forbidden') throw notOperator()
  if (row === 'full' || row === 'name_taken') throw new GatewayError('conflict', conflicts[row], { shouldRetry: false })
  await useChange(deps)
  return shownProviderKey(row)
}

const conflicts = {
  full: `The gateway has ${maximumProviderKeys} stored provider keys. Remove unused ones first.`,
  name_taken: 'This provider has a key of this name. Replace that key, or choose another name.',
  unreadable: 'The stored key is unreadable. Restore the secret that sealed it, or replace the key.',
}

async function rotate(deps: ProviderKeysDeps, call: SessionRequest<typeof providerKeyRotationSchema>) {
  refuseIfOff(deps)
  const { principal, id, body, database } = call
  const { key } = body
  const row = await rotateProviderKey(database, principal.accountId, id, { seal: deps.providerKeySeal, key })
  if (row === null) throw notFound()
  await useChange(deps)
  return shownProviderKey(row)
}

function refuseIfOff({ storedKeys }: ProviderKeysDeps): void {
  if (storedKeys === null)
    throw new GatewayError(
      'forbidden',
      'Provider keys come from the environment and the configuration file only: STORED_PROVIDER_KEYS is off.',
      { shouldRetry: false },
    )
}

async function refuseOthers(database: Database, accountId: string): Promise<void> {
  if (!(await isOperatorAccount(database, accountId))) throw notOperator()
}

function notOperator(): GatewayError {
  return new GatewayError('forbidden', 'Only owners of the operator’s account manage the keys of providers.', {
    shouldRetry: false,
  })
}

async function list(deps: ProviderKeysDeps, { principal, database }: SessionRequest) {
  const { endpoints, storedKeys, config } = deps
  const { accountId, role } = principal
  const isOperator = role === 'owner' && (await isOperatorAccount(database, accountId))
  const stored = isOperator ? await listProviderKeys(database, accountId) : null
  const known = isOperator ? config.knownProviders.filter(({ id }) => !endpoints.has(id)) : []
  const data = [
    ...endpoints.values().map(endpoint => shownProvider(deps, endpoint, stored)),
    ...known.map(({ id }) => shownWithoutKey(deps, id, stored ?? [])),
  ]
  return { data, stored_keys: isOperator ? (storedKeys === null ? 'off' : 'allowed') : 'not_operator' } as const
}
