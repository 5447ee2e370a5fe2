/** Keys of providers that owners add, sealed in the database. */

import { and, asc, eq, sql } from 'drizzle-orm'
import type { KnownProvider, StoredKey, StoredKeysSetting } from '../../config/stored-keys.ts'
import { environmentKey } from '../../core/models/configured-models.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { type Transaction, withAccountRls } from '../../database/statement.ts'
import { accounts, type ProviderKey, providerKeys } from '../../database/tables.ts'
import { createTextSeal } from '../../http/text-seal.ts'

export const maximumProviderKeys = 64
const hintCharacters = 4
/** The last characters of a shorter key would be too much of it. */
const shortestHinted = 16

/** What a sealed key is bound to: a changed row must not take it to another provider, account or project. */
type KeyPlace = Pick<ProviderKey, 'id' | 'accountId' | 'projectId' | 'provider'>
type SealedKey = KeyPlace & Pick<ProviderKey, 'secret'>

/** A `TextSeal` whose owners are rows. */
export type ProviderKeySeal = {
  seal(place: KeyPlace, key: string): string
  open(row: SealedKey): string | null
  reseal(row: SealedKey): string | null
}

/** Seals keys of providers, each for its row, account, project and provider. */
export function createProviderKeySeal(secret: string, previousSecret: string | null): ProviderKeySeal {
  const texts = createTextSeal({ secret, previousSecret, purpose: 'gateway-ai provider keys', prefix: 'gwp1.' })
  const getOwner = ({ id, accountId, projectId, provider }: KeyPlace) =>
    JSON.stringify([id, accountId, projectId, provider])
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

type ServedProvider = {
  readonly simulated: boolean
  readonly access: { readonly baseUrl: string; readonly authorizer?: unknown }
}

/**
 * Returns why a provider takes no own keys of accounts, as the end of a sentence; null = it takes them. Calls with an own
 * key cost an account nothing here, so the provider must be one that charges the key and not the operator.
 */
export function findOwnKeyObstacle(
  { knownProviders: known, storedKeys }: OwnKeyConfig,
  id: string,
  served: ServedProvider | undefined,
): string | null {
  if (storedKeys === 'off' || storedKeys === 'operator')
    return `takes no keys of accounts: the operator allows none (STORED_PROVIDER_KEYS=${storedKeys})`
  const provider = known.find(other => other.id === id)
  if (provider === undefined || served === undefined || served.simulated || served.access.authorizer !== undefined)
    return 'must be one that the gateway serves, with a key'
  if (!provider.isLocal && (storedKeys === 'anywhere' || served.access.baseUrl === provider.url)) return null
  return 'is at an address of the operator, who pays for its calls. The operator can allow own keys there with STORED_PROVIDER_KEYS=anywhere'
}

export type OwnKeyConfig = { readonly knownProviders: readonly KnownProvider[]; readonly storedKeys: StoredKeysSetting }

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

type NewProviderKey = Pick<ProviderKey, 'id' | 'projectId' | 'provider' | 'name' | 'secret' | 'hint' | 'fallback'>

/**
 * Stores a key of an account: of the operator's account without a project for all accounts, else an own key. `configured`:
 * names of the provider's keys elsewhere, which are taken.
 */
export function addProviderKey(
  database: Database,
  accountId: string,
  key: NewProviderKey,
  configured: readonly string[],
): Promise<ProviderKey | 'full' | 'name_taken' | 'no_project'> {
  return withAccountRls(database, accountId).orm(async step => {
    await step.execute(sql`select 1 from accounts where id = ${accountId} for no key update`)
    if (key.projectId !== null && !(await lockProject(step, accountId, key.projectId))) return 'no_project'
    const own = await step
      .select({ projectId: providerKeys.projectId, provider: providerKeys.provider, name: providerKeys.name })
      .from(providerKeys)
      .where(eq(providerKeys.accountId, accountId))
    if (own.length >= maximumProviderKeys) return 'full'
    const isTaken = own.some(
      ({ projectId, provider, name }) => projectId === key.projectId && provider === key.provider && name === key.name,
    )
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

/** Changes whether the operator's keys serve when an own key fails. Returns null if the account has no such key. */
export function setKeyFallback(
  database: Database,
  accountId: string,
  id: string,
  fallback: boolean,
): Promise<ProviderKey | null> {
  return withAccountRls(database, accountId).orm(async step => {
    const [row] = await step
      .update(providerKeys)
      .set({ fallback, updatedAt: sql`clock_timestamp()` })
      .where(and(eq(providerKeys.accountId, accountId), eq(providerKeys.id, id)))
      .returning()
    if (row === undefined) return null
    const { provider, name } = row
    const details = { provider, name, fallback }
    await recordAudit(step, database, { accountId, action: 'provider_key.changed', target: id, details })
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

/** Keeps a project from being archived meanwhile. Returns false if the account has no such project. */
async function lockProject(step: Transaction, accountId: string, projectId: string): Promise<boolean> {
  const rows = await step.execute(
    sql`select 1 from projects where id = ${projectId} and account_id = ${accountId} and archived_at is null for share`,
  )
  return rows.length > 0
}

function recordKeyAudit(
  step: Transaction,
  database: Database,
  what: 'created' | 'rotated' | 'deleted',
  { accountId, id, projectId, provider, name }: ProviderKey,
): Promise<void> {
  const details = { provider, name, ...(projectId === null ? null : { projectId }) }
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

/** Opens a key for its calls. */
export function toStoredKey(
  row: SealedKey & Pick<ProviderKey, 'name'>,
  seal: Pick<ProviderKeySeal, 'open'>,
): StoredKey {
  const { id, provider, name } = row
  return { id, provider, name, apiKey: seal.open(row) }
}
