/** Keys of providers that owners add: sealed in the database, followed by every gateway process. */

import { and, asc, eq, sql } from 'drizzle-orm'
import type { KnownProvider, StoredKey } from '../../config/stored-keys.ts'
import { startFollowing } from '../../core/jobs/repeating.ts'
import type { Log } from '../../core/ports.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../database/statement.ts'
import { accounts, type ProviderKey, providerKeys } from '../../database/tables.ts'
import { createTextSeal } from '../../http/text-seal.ts'

export const maximumProviderKeys = 64
/** Name of the key of a provider's variable. No stored key may have it: a name finds one key of a provider. */
export const environmentKey = 'environment'
const hintCharacters = 4
/** The last characters of a shorter key would be too much of it. */
const shortestHinted = 16

/** What a sealed key is bound to: a changed row must not take it to another provider. */
type KeyPlace = Pick<ProviderKey, 'id' | 'accountId' | 'provider'>
type SealedKey = KeyPlace & Pick<ProviderKey, 'secret'>

/** A `TextSeal` whose owners are rows. */
export type ProviderKeySeal = {
  seal(place: KeyPlace, key: string): string
  open(row: SealedKey): string | null
  reseal(row: SealedKey): string | null
}

/** Seals keys of providers, each for its row, account and provider. */
export function createProviderKeySeal(secret: string, previousSecret: string | null): ProviderKeySeal {
  const texts = createTextSeal({ secret, previousSecret, purpose: 'gateway-ai provider keys', prefix: 'gwp1.' })
  const getOwner = ({ id, accountId, provider }: KeyPlace) => JSON.stringify([id, accountId, provider])
  return {
    seal: (place, key) => texts.seal(getOwner(place), key),
    open: row => texts.open(getOwner(row), row.secret),
    reseal: row => texts.reseal(getOwner(row), row.secret),
  }
}

/** Returns the part of a key that is shown. */
export function getHint(key: string): string {
  return key.length < shortestHinted ? '' : key.slice(-hintCharacters)
}

/** Returns why a provider takes no stored key, as the end of a sentence; null = it takes one. */
export function findKeyObstacle(
  known: readonly KnownProvider[],
  id: string,
  isServed: (id: string) => boolean,
): string | null {
  const provider = known.find(other => other.id === id)
  if (provider === undefined) return `must be one of ${known.map(other => other.id).join(', ')}`
  return provider.isLocal && !isServed(id) ? `must have its address first: set ${provider.baseVariable}` : null
}

/** Returns whether the account is the operator's. */
export function isOperatorAccount(database: Database, accountId: string): Promise<boolean> {
  return withAccountRls(database, accountId).orm(async step => {
    const [row] = await step.select({ is: accounts.isOperator }).from(accounts).where(eq(accounts.id, accountId))
    return row?.is === true
  })
}

/** Returns the operator's account; null = none is. */
export async function findOperatorAccount(database: Database): Promise<string | null> {
  const [row] = await database.run(({ orm }) =>
    orm.select({ id: accounts.id }).from(accounts).where(eq(accounts.isOperator, true)),
  )
  return row?.id ?? null
}

/** Makes an account the operator's instead of the one that is. */
export function moveOperator(database: Database, accountId: string): Promise<void> {
  return database.run(({ orm }) =>
    orm.transaction(async step => {
      await step.update(accounts).set({ isOperator: false }).where(eq(accounts.isOperator, true))
      await step.update(accounts).set({ isOperator: true }).where(eq(accounts.id, accountId))
      await recordAudit(step, database, { accountId, action: 'account.changed', details: { operator: true } })
    }),
  )
}

/** Returns the stored keys of an account, oldest first. */
export function listProviderKeys(database: Database, accountId: string): Promise<ProviderKey[]> {
  return withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(providerKeys)
      .where(eq(providerKeys.accountId, accountId))
      .orderBy(asc(providerKeys.createdAt), asc(providerKeys.id)),
  )
}

type NewProviderKey = Pick<ProviderKey, 'id' | 'provider' | 'name' | 'secret' | 'hint'>

/** Stores a key of the operator's account. `configured`: names of the provider's keys elsewhere, which are taken. */
export function addProviderKey(
  database: Database,
  accountId: string,
  key: NewProviderKey,
  configured: readonly string[],
): Promise<ProviderKey | 'full' | 'name_taken' | 'forbidden'> {
  return withAccountRls(database, accountId).orm(async step => {
    if (!(await lockOperator(step, accountId))) return 'forbidden'
    const own = await step
      .select({ provider: providerKeys.provider, name: providerKeys.name })
      .from(providerKeys)
      .where(eq(providerKeys.accountId, accountId))
    if (own.length >= maximumProviderKeys) return 'full'
    const isTaken = own.some(({ provider, name }) => provider === key.provider && name === key.name)
    if (isTaken || [environmentKey, ...configured].includes(key.name)) return 'name_taken'
    const [row] = await step
      .insert(providerKeys)
      .values({ ...key, accountId, createdAt: sql`clock_timestamp()` })
      .returning()
    if (row === undefined) throw new Error('the database stored no row')
    await recordKeyAudit(step, database, 'created', row)
    return row
  })
}

/** Replaces a key, sealed for the row as it is now. Returns null if the account has no such key. */
export function rotateProviderKey(
  database: Database,
  accountId: string,
  id: string,
  { seal, key }: { readonly seal: Pick<ProviderKeySeal, 'seal'>; readonly key: string },
): Promise<ProviderKey | null> {
  return withAccountRls(database, accountId).orm(async step => {
    const isRow = and(eq(providerKeys.accountId, accountId), eq(providerKeys.id, id))
    const [old] = await step.select().from(providerKeys).where(isRow).for('update')
    if (old === undefined) return null
    const [row] = await step
      .update(providerKeys)
      .set({ secret: seal.seal(old, key), hint: getHint(key), updatedAt: sql`clock_timestamp()` })
      .where(isRow)
      .returning()
    if (row === undefined) return null
    await recordKeyAudit(step, database, 'rotated', row)
    return row
  })
}

/** Deletes a key with its secret. Returns false if the account has no such key. */
export function deleteProviderKey(database: Database, accountId: string, id: string): Promise<boolean> {
  return withAccountRls(database, accountId).orm(async step => {
    const [row] = await step
      .delete(providerKeys)
      .where(and(eq(providerKeys.accountId, accountId), eq(providerKeys.id, id)))
      .returning()
    if (row === undefined) return false
    await recordKeyAudit(step, database, 'deleted', row)
    return true
  })
}

/** Serializes creations of one account. Returns false if it is not the operator's. */
async function lockOperator(step: Transaction, accountId: string): Promise<boolean> {
  const rows = await step.execute(sql`select 1 from accounts where id = ${accountId} and is_operator for no key update`)
  return rows.length > 0
}

function recordKeyAudit(
  step: Transaction,
  database: Database,
  what: 'created' | 'rotated' | 'deleted',
  { accountId, id, provider, name }: ProviderKey,
): Promise<void> {
  const details = { provider, name }
  return recordAudit(step, database, { accountId, action: `provider_key.${what}`, target: id, details })
}

/** Seals all keys again after a change of the session secret. `reseal` returns null for one that needs no change. */
export async function resealProviderKeys(database: Database, reseal: ProviderKeySeal['reseal']): Promise<void> {
  const rows = await database.run(({ orm }) => orm.select().from(providerKeys))
  for (const row of rows) {
    const { id, secret } = row
    const next = reseal(row)
    if (next !== null)
      await database.run(({ orm }) =>
        orm
          .update(providerKeys)
          .set({ secret: next })
          .where(and(eq(providerKeys.id, id), eq(providerKeys.secret, secret))),
      )
  }
}

export type ProviderKeyFollower = {
  /** Resolves when the keys were read once; rejects as the database does. */
  loaded(): Promise<void>
  /** Reads changes now instead of at the next poll. Never rejects. */
  look(): Promise<void>
  close(): Promise<void>
}

type FollowerOptions = {
  readonly database: Database
  readonly log: Pick<Log, 'error'>
  readonly seal: Pick<ProviderKeySeal, 'open'>
  /** Receives the keys of the operator's account, at the first read and after each change. */
  readonly onChange: (keys: readonly StoredKey[]) => void
}

const pollMs = 800

/** Follows the keys of the operator's account: each process reads a change within a second. */
export function followProviderKeys({ database, log, seal, onChange }: FollowerOptions): ProviderKeyFollower {
  let seen: string | null = null
  const poll = async () => {
    const rows = await operatorKeys(database)
    const version = JSON.stringify(rows)
    if (version === seen) return
    const keys = rows.map(row => toStoredKey(row, seal))
    const unreadable = keys.filter(({ apiKey }) => apiKey === null).map(({ provider, name }) => `${provider}#${name}`)
    if (unreadable.length > 0)
      log.error('provider_keys_unreadable', {
        names: unreadable.join(', '),
        detail:
          'They were sealed under another secret, or their rows were changed. Restore JWT_SECRET or session-secret, or rotate the keys.',
      })
    onChange(keys)
    seen = version
  }
  const job = startFollowing(pollMs, poll, database.onWrite)
  const done = Promise.resolve()
  return {
    loaded: () => (seen === null ? job.run() : done),
    look: () => job.run().catch(() => {}),
    close: job.close,
  }
}

/** Opens a key for its calls. */
export function toStoredKey(
  row: SealedKey & Pick<ProviderKey, 'name'>,
  seal: Pick<ProviderKeySeal, 'open'>,
): StoredKey {
  const { id, provider, name } = row
  return { id, provider, name, apiKey: seal.open(row) }
}

/** Returns the keys of the operator's account in a stable order. */
function operatorKeys(database: Database) {
  return database.run(({ orm }) =>
    orm
      .select({
        id: providerKeys.id,
        accountId: providerKeys.accountId,
        provider: providerKeys.provider,
        name: providerKeys.name,
        secret: providerKeys.secret,
      })
      .from(providerKeys)
      .innerJoin(accounts, eq(accounts.id, providerKeys.accountId))
      .where(eq(accounts.isOperator, true))
      .orderBy(asc(providerKeys.createdAt), asc(providerKeys.id)),
  )
}
