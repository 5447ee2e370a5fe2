/** `provider-keys …`: manages the stored keys of providers. Keys are read from standard input: arguments are seen by others. */
import { join } from 'node:path'
import { readConfig, readStoreConfig } from '../config/config.ts'
import type { StoredKey } from '../config/stored-keys.ts'
import { loadOrCreateSessionSecret } from '../console/auth/session-secret.ts'
import { providerKeyNameSchema, providerKeySchema } from '../console/provider-keys/schemas.ts'
import {
  addProviderKey,
  createProviderKeySeal,
  deleteProviderKey,
  findKeyObstacle,
  findOperatorAccount,
  getHint,
  listProviderKeys,
  maximumProviderKeys,
  type ProviderKeySeal,
  rotateProviderKey,
  toStoredKey,
} from '../console/provider-keys/store.ts'
import type { Database } from '../database/database.ts'
import { hasAccounts } from '../database/repositories/accounts.ts'
import type { ProviderKey } from '../database/tables.ts'
import { shellCommand } from '../server/banner.ts'
import { CommandFailure, columns, command, json, newId, print, printJson, UsageError } from './command.ts'
import { withDatabase } from './open-database.ts'

const named = { provider: '<provider>' }
const options = { name: { type: 'string', value: 'TEXT', about: 'name of the key; default: main' }, json } as const

const list = command({
  name: 'provider-keys list',
  about: 'List the stored provider keys, oldest first, by their last characters',
  operands: {},
  options: { json },
  run: ({ options: { json: asJson } }) =>
    withOperator(async (database, accountId, seal) => {
      const keys = await listProviderKeys(database, accountId)
      if (asJson) return printJson({ data: keys.map(key => keyForJson(key, seal)) })
      if (keys.length === 0)
        return print(`No stored keys. Add one:  ${shellCommand('provider-keys add openai < key.txt')}`)
      print(
        ...columns([
          ['PROVIDER', 'NAME', 'KEY', 'CHANGED', 'STATE'],
          ...keys.map(key => {
            const { provider, name, last_characters: hint, changed_at: at, readable } = keyForJson(key, seal)
            return [provider, name, `…${hint}`, at.slice(0, 16).replace('T', ' '), readable ? 'stored' : unreadable]
          }),
        ]),
      )
    }),
})

const unreadable = 'unreadable: sealed under another secret; rotate it'

const add = command({
  name: 'provider-keys add',
  about: 'Add a provider key, read from standard input; the gateway uses it within 1 s',
  operands: named,
  options,
  async run({ operands: { provider }, options: { name = 'main', json: asJson } }) {
    const { knownProviders, providers } = readConfig()
    const obstacle = findKeyObstacle(knownProviders, provider, served => providers.some(({ id }) => id === served))
    if (obstacle !== null) throw new UsageError(`The provider ${obstacle}.`)
    if (!new RegExp(providerKeyNameSchema.pattern ?? '').test(name))
      throw new UsageError(`--name must be ${providerKeyNameSchema.description}.`)
    const key = await keyFromInput()
    const id = newId('pvk')
    await withOperator(async (database, accountId, seal) => {
      refuseOtherSecret(await listProviderKeys(database, accountId), seal)
      const made = { id, provider, name, secret: seal.seal({ id, accountId, provider }, key), hint: getHint(key) }
      const configured = providers.find(({ id: other }) => other === provider)?.pool?.keys ?? []
      const row = await addProviderKey(
        database,
        accountId,
        made,
        configured.map(other => other.name),
      )
      // A repeated attempt finds the key that the first one stored.
      const stored =
        typeof row === 'string' ? (await listProviderKeys(database, accountId)).find(other => other.id === id) : row
      if (stored === undefined)
        throw new CommandFailure(row === 'full' ? full : `${provider} already has a key "${name}".`)
      if (asJson) printJson(keyForJson(stored, seal))
      else print(`${provider}: key "${name}" was added.`)
    })
  },
})

const full = `There are ${maximumProviderKeys} stored keys. Remove unused ones first.`

const rotate = command({
  name: 'provider-keys rotate',
  about: 'Replace a stored provider key by one from standard input; requests in progress finish with the old one',
  operands: named,
  options,
  async run({ operands: { provider }, options: { name = 'main', json: asJson } }) {
    const key = await keyFromInput()
    await withOperator(async (database, accountId, seal) => {
      const { id } = await namedKey(database, accountId, provider, name)
      const row = await rotateProviderKey(database, accountId, id, { seal, key })
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
  run: ({ operands: { provider }, options: { name = 'main', json: asJson } }) =>
    withOperator(async (database, accountId) => {
      const { id } = await namedKey(database, accountId, provider, name)
      await deleteProviderKey(database, accountId, id)
      if (asJson) printJson({ id, provider, name })
      else print(`${provider}: key "${name}" was removed.`)
    }),
})

export const providerKeyCommands = [list, add, rotate, remove]

/** Returns the stored keys that this environment can read, for checks; empty if the setting allows none. */
export async function readStoredKeys(): Promise<readonly StoredKey[]> {
  if (!readStoreConfig().storedKeys) return []
  let found: readonly StoredKey[] = []
  await withOperator(async (database, accountId, seal) => {
    const keys = await listProviderKeys(database, accountId)
    found = keys.map(key => toStoredKey(key, seal))
  })
  return found
}

/** Runs `work` on the operator's account with the seal of the gateway that has the same environment. */
function withOperator(
  work: (database: Database, accountId: string, seal: ProviderKeySeal) => Promise<void>,
): Promise<void> {
  const { databaseUrl, dataDirectory, jwtSecret, jwtSecretPrevious, storedKeys } = readStoreConfig()
  if (!storedKeys) throw new CommandFailure('STORED_PROVIDER_KEYS is off: keys come from the environment only.')
  if (databaseUrl !== null && jwtSecret === null)
    throw new CommandFailure('JWT_SECRET is not set: it seals the keys. Set it as the gateway has it.')
  return withDatabase(async database => {
    const secret = jwtSecret ?? loadOrCreateSessionSecret(join(dataDirectory, 'session-secret'))
    const accountId = await findOperatorAccount(database)
    if (accountId === null && !(await hasAccounts(database)))
      throw new CommandFailure('No account exists yet: the first start of the gateway creates it. Start it once.')
    if (accountId === null)
      throw new CommandFailure(`No account is the operator’s. Choose it:  ${shellCommand('accounts operator <email>')}`)
    return work(database, accountId, createProviderKeySeal(secret, jwtSecretPrevious))
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

async function namedKey(database: Database, accountId: string, provider: string, name: string): Promise<ProviderKey> {
  const key = (await listProviderKeys(database, accountId)).find(
    item => item.provider === provider && item.name === name,
  )
  if (key === undefined) throw noSuchKey(provider, name)
  return key
}

function noSuchKey(provider: string, name: string): CommandFailure {
  return new CommandFailure(
    `${provider} has no stored key "${name}". See:  ${shellCommand('provider-keys list')}. Keys of the environment change there.`,
  )
}

function keyForJson(key: ProviderKey, seal: ProviderKeySeal) {
  const { id, provider, name, hint, updatedAt } = key
  const readable = seal.open(key) !== null
  return { id, provider, name, last_characters: hint, changed_at: updatedAt.toISOString(), readable }
}
