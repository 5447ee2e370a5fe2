/** `provider-keys …`: manages the stored keys of providers. Keys are read from standard input: arguments are seen by others. */
import { join } from 'node:path'
import { type Config, readConfig, readStoreConfig } from '../config/config.ts'
import type { StoredKey } from '../config/stored-keys.ts'
import { loadOrCreateSessionSecret } from '../console/auth/session-secret.ts'
import { providerKeyNameSchema, providerKeySchema } from '../console/provider-keys/schemas.ts'
import {
  addProviderKey,
  createProviderKeySeal,
  deleteProviderKey,
  findKeyObstacle,
  findOperatorAccount,
  findOwnKeyObstacle,
  getHint,
  listProviderKeys,
  maximumProviderKeys,
  type ProviderKeySeal,
  rotateProviderKey,
  toStoredKey,
} from '../console/provider-keys/store.ts'
import { shellCommand } from '../core/validation/errors.ts'
import type { Database } from '../database/database.ts'
import { findAccountByEmail, hasAccounts } from '../database/repositories/accounts.ts'
import type { ProviderKey } from '../database/tables.ts'
import { CommandFailure, command, json, newId, print, printJson, printTable, UsageError } from './command.ts'
import { withDatabase } from './open-database.ts'

const named = { provider: '<provider>' }
const owned = {
  account: { type: 'string', value: 'EMAIL', about: "account of this user; default: the operator's" },
  project: { type: 'string', value: 'ID', about: 'own keys of this project; default: keys of no project' },
  json,
} as const
const options = { name: { type: 'string', value: 'TEXT', about: 'name of the key; default: main' }, ...owned } as const
const adding = {
  ...options,
  'no-fallback': { type: 'boolean', about: "of an own key: the operator's keys do not serve when it fails" },
} as const

/** The account and project that keys belong to, and whether they are own keys. */
type KeyOwner = { readonly accountId: string; readonly projectId: string | null; readonly isOwn: boolean }

const list = command({
  name: 'provider-keys list',
  about: 'List the stored provider keys, oldest first, by their last characters',
  operands: {},
  options: owned,
  run: ({ options: given }) =>
    withOwner(given, async (database, owner, seal) => {
      const keys = await listKeys(database, owner)
      if (given.json) return printJson({ data: keys.map(key => keyForJson(key, seal)) })
      if (keys.length === 0)
        return print(`No stored keys. Add one:  ${shellCommand('provider-keys add openai < key.txt')}`)
      printTable([
        ['PROVIDER', 'NAME', 'KEY', 'CHANGED', 'STATE'],
        ...keys.map(key => {
          const { provider, name, last_characters: hint, changed_at: at, readable } = keyForJson(key, seal)
          return [provider, name, `…${hint}`, at.slice(0, 16).replace('T', ' '), readable ? 'stored' : unreadable]
        }),
      ])
    }),
})

const unreadable = 'unreadable: sealed under another secret; rotate it'

const add = command({
  name: 'provider-keys add',
  about: 'Add a provider key, read from standard input; the gateway uses it within 1 s',
  operands: named,
  options: adding,
  async run({
    operands: { provider },
    options: { name = 'main', 'no-fallback': noFallback = false, json: asJson, ...given },
  }) {
    const config = readConfig()
    if (!new RegExp(providerKeyNameSchema.pattern ?? '').test(name))
      throw new UsageError(`--name must be ${providerKeyNameSchema.description}.`)
    const key = await keyFromInput()
    const id = newId('pvk')
    await withOwner(given, async (database, owner, seal) => {
      const { accountId, projectId, isOwn } = owner
      const obstacle = findObstacle(config, provider, isOwn)
      if (obstacle !== null) throw new UsageError(`The provider ${obstacle}.`)
      if (noFallback && !isOwn) throw new UsageError('--no-fallback is for own keys: add --account or --project.')
      refuseOtherSecret(await listKeys(database, owner), seal)
      const secret = seal.seal({ id, accountId, projectId, provider }, key)
      const made = { id, projectId, provider, name, secret, hint: getHint(key), fallback: !noFallback }
      const settings = isOwn ? undefined : config.providers.find(({ id: other }) => other === provider)
      const configured = settings?.pool?.keys ?? []
      const row = await addProviderKey(
        database,
        accountId,
        made,
        configured.map(other => other.name),
      )
      // A repeated attempt finds the key that the first one stored.
      const stored = typeof row === 'string' ? (await listKeys(database, owner)).find(other => other.id === id) : row
      if (row === 'no_project')
        throw new CommandFailure(`The account has no project ${projectId} that is not archived.`)
      if (stored === undefined)
        throw new CommandFailure(row === 'full' ? full : `${provider} already has a key "${name}".`)
      if (asJson) printJson(keyForJson(stored, seal))
      else print(`${provider}: key "${name}" was added.`)
    })
  },
})

const full = `The account has ${maximumProviderKeys} stored keys. Remove unused ones first.`

function findObstacle(config: Config, id: string, isOwn: boolean): string | null {
  const { knownProviders: known, providers, dormantProviders: dormant } = config
  if (!isOwn) return findKeyObstacle(known, id, served => providers.some(other => other.id === served))
  const settings = [...providers, ...dormant.map(other => other.settings)].find(other => other.id === id)
  const access = settings && { baseUrl: settings.baseUrl, authorizer: settings.cloud?.credentials ?? undefined }
  return findOwnKeyObstacle(config, id, access && { simulated: false, access })
}

const rotate = command({
  name: 'provider-keys rotate',
  about: 'Replace a stored provider key by one from standard input; requests in progress finish with the old one',
  operands: named,
  options,
  async run({ operands: { provider }, options: { name = 'main', json: asJson, ...given } }) {
    const key = await keyFromInput()
    await withOwner(given, async (database, owner, seal) => {
      const { id } = await namedKey(database, owner, provider, name)
      const row = await rotateProviderKey(database, owner.accountId, id, { seal, key })
      if (row === null) throw noSuchKey(provider, name)
      if (asJson) printJson(keyForJson(row, seal))
      else print(`${provider}: key "${name}" was replaced.`)
    })
  },
})

const remove = command({
  name: 'provider-keys remove',
  about: 'Remove a stored provider key; takes effect within 1 s',
  operands: named,
  options,
  run: ({ operands: { provider }, options: { name = 'main', json: asJson, ...given } }) =>
    withOwner(given, async (database, owner) => {
      const { id } = await namedKey(database, owner, provider, name)
      await deleteProviderKey(database, owner.accountId, id)
      if (asJson) printJson({ id, provider, name })
      else print(`${provider}: key "${name}" was removed.`)
    }),
})

export const providerKeyCommands = [list, add, rotate, remove]

/** Returns the stored keys of the operator that this environment can read, for checks; empty if the setting allows none. */
export async function readStoredKeys(): Promise<readonly StoredKey[]> {
  if (readStoreConfig().storedKeys === 'off') return []
  let found: readonly StoredKey[] = []
  await withOwner({}, async (database, owner, seal) => {
    const keys = await listKeys(database, owner)
    found = keys.map(key => toStoredKey(key, seal))
  })
  return found
}

/** Runs `work` for the owner of keys with the seal of the gateway that has the same environment. */
function withOwner(
  { account, project = null }: { readonly account?: string | undefined; readonly project?: string | null | undefined },
  work: (database: Database, owner: KeyOwner, seal: ProviderKeySeal) => Promise<void>,
): Promise<void> {
  const { databaseUrl, dataDirectory, jwtSecret, jwtSecretPrevious, storedKeys } = readStoreConfig()
  if (storedKeys === 'off')
    throw new CommandFailure('STORED_PROVIDER_KEYS is off: keys come from the environment only.')
  if (databaseUrl !== null && jwtSecret === null)
    throw new CommandFailure('JWT_SECRET is not set: it seals the keys. Set it as the gateway has it.')
  return withDatabase(async database => {
    const secret = jwtSecret ?? loadOrCreateSessionSecret(join(dataDirectory, 'session-secret'))
    const operator = await findOperatorAccount(database)
    if (operator === null && !(await hasAccounts(database)))
      throw new CommandFailure('No account exists yet: the first start of the gateway creates it. Start it once.')
    const found = account === undefined ? null : await findAccountByEmail(database, account)
    if (account !== undefined && found === null) throw new CommandFailure(`No account with email ${account}.`)
    const accountId = found?.account.id ?? operator
    if (accountId === null)
      throw new CommandFailure(`No account is the operator’s. Choose it:  ${shellCommand('accounts operator <email>')}`)
    const owner = { accountId, projectId: project, isOwn: accountId !== operator || project !== null }
    return work(database, owner, createProviderKeySeal(secret, jwtSecretPrevious))
  })
}

async function keyFromInput(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('Send the key on standard input: provider-keys add openai < key.txt')
  const key = (await Bun.stdin.text()).trim()
  if (!new RegExp(providerKeySchema.pattern ?? '').test(key))
    throw new UsageError(`Standard input must be ${providerKeySchema.description}.`)
  return key
}

/** A key under another secret than the gateway's would be of no use there. */
function refuseOtherSecret(keys: readonly ProviderKey[], seal: ProviderKeySeal): void {
  if (keys.some(key => seal.open(key) === null))
    throw new CommandFailure(
      'A stored key cannot be read: its secret is another one. Set JWT_SECRET and GATEWAY_DATA_DIR as the gateway has them, or rotate or remove that key.',
    )
}

async function listKeys(database: Database, { accountId, projectId }: KeyOwner): Promise<readonly ProviderKey[]> {
  return (await listProviderKeys(database, accountId)).filter(key => key.projectId === projectId)
}

async function namedKey(database: Database, owner: KeyOwner, provider: string, name: string): Promise<ProviderKey> {
  const key = (await listKeys(database, owner)).find(item => item.provider === provider && item.name === name)
  if (key === undefined) throw noSuchKey(provider, name)
  return key
}

function noSuchKey(provider: string, name: string): CommandFailure {
  return new CommandFailure(
    `${provider} has no stored key "${name}". See:  ${shellCommand('provider-keys list')}. Keys of the environment change there.`,
  )
}

function keyForJson(key: ProviderKey, seal: ProviderKeySeal) {
  const { id, projectId, provider, name, hint, fallback, updatedAt } = key
  const readable = seal.open(key) !== null
  return {
    id,
    project_id: projectId,
    provider,
    name,
    fallback,
    last_characters: hint,
    changed_at: updatedAt.toISOString(),
    readable,
  }
}
