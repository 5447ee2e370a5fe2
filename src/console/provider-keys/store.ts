/** Keys of providers that owners add, sealed in the database. */

import type { TransactionSql } from 'postgres'
import type { ProviderKey } from '../../../drizzle/tables.ts'
import type { KnownProvider, StoredKey, StoredKeysSetting } from '../../config/stored-keys.ts'
import { environmentKey } from '../../core/models/configured-models.ts'
import type { Database } from '../../database/database.ts'
import { recordAudit } from '../../database/repositories/audit.ts'
import { inTransaction, typedRows, withAccountRls } from '../../database/statement.ts'
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
export async function isOperatorAccount(database: Database, accountId: string): Promise<boolean> {
  return (await findOperatorAccount(database)) === accountId
}

/** Returns the operator's account; null = none is. */
export async function findOperatorAccount(database: Database): Promise<string | null> {
  const [row] = await database.run(({ sql }) => sql<{ id: string }[]>`select id from accounts where is_operator`)
  return row?.id ?? null
}

/** Makes an account the operator's instead of the one that is. */
export function moveOperator(database: Database, accountId: string): Promise<void> {
  return inTransaction(database, async step => {
    await step`update accounts set is_operator = false where is_operator`
    await step`update accounts set is_operator = true where id = ${accountId}`
    await recordAudit(step, database, { accountId, action: 'account.changed', details: { operator: true } })
  })
}

/** Returns the stored keys of an account, oldest first. */
export function listProviderKeys(database: Database, accountId: string): Promise<ProviderKey[]> {
  return withAccountRls(database, accountId, step =>
    typedRows(step`select * from provider_keys where account_id = ${accountId} order by created_at, id`),
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
  return withAccountRls(database, accountId, async step => {
    await step`select 1 from accounts where id = ${accountId} for no key update`
    // Keeps the project from being archived meanwhile.
    const projects = await step`
      select 1 from projects where id = ${key.projectId} and account_id = ${accountId} and archived_at is null for share`
    if (key.projectId !== null && projects.length === 0) return 'no_project'
    const own = await typedRows<ProviderKey>(step`select * from provider_keys where account_id = ${accountId}`)
    if (own.length >= maximumProviderKeys) return 'full'
    const isTaken = own.some(
      other => other.projectId === key.projectId && other.provider === key.provider && other.name === key.name,
    )
    if (isTaken || [environmentKey, ...configured].includes(key.name)) return 'name_taken'
    const { id, projectId, provider, name, secret, hint, fallback } = key
    const [row] = await typedRows<ProviderKey>(step`
      insert into provider_keys (id, account_id, project_id, provider, name, secret, hint, fallback, created_at)
      values (${id}, ${accountId}, ${projectId}, ${provider}, ${name}, ${secret}, ${hint}, ${fallback}, clock_timestamp())
      returning *`)
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
  return withAccountRls(database, accountId, async step => {
    const [old] = await typedRows<ProviderKey>(
      step`select * from provider_keys where id = ${id} and account_id = ${accountId} for update`,
    )
    if (old === undefined) return null
    const [row] = await typedRows<ProviderKey>(step`
      update provider_keys set secret = ${seal.seal(old, key)}, hint = ${getHint(key)}, updated_at = clock_timestamp()
      where id = ${id} returning *`)
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
  return withAccountRls(database, accountId, async step => {
    const [row] = await typedRows<ProviderKey>(step`
      update provider_keys set fallback = ${fallback}, updated_at = clock_timestamp()
      where id = ${id} and account_id = ${accountId} returning *`)
    if (row === undefined) return null
    const { provider, name } = row
    const details = { provider, name, fallback }
    await recordAudit(step, database, { accountId, action: 'provider_key.changed', target: id, details })
    return row
  })
}

/** Deletes a key with its secret. Returns false if the account has no such key. */
export function deleteProviderKey(database: Database, accountId: string, id: string): Promise<boolean> {
  return withAccountRls(database, accountId, async step => {
    const [row] = await typedRows<ProviderKey>(
      step`delete from provider_keys where id = ${id} and account_id = ${accountId} returning *`,
    )
    if (row === undefined) return false
    await recordKeyAudit(step, database, 'deleted', row)
    return true
  })
}

function recordKeyAudit(
  step: TransactionSql,
  database: Database,
  what: 'created' | 'rotated' | 'deleted',
  { accountId, id, projectId, provider, name }: ProviderKey,
): Promise<void> {
  const details = { provider, name, ...(projectId === null ? null : { projectId }) }
  return recordAudit(step, database, { accountId, action: `provider_key.${what}`, target: id, details })
}

/** Seals all keys again after a change of the session secret. `reseal` returns null for one that needs no change. */
export async function resealProviderKeys(database: Database, reseal: ProviderKeySeal['reseal']): Promise<void> {
  const rows = await database.run(({ sql }) => typedRows<ProviderKey>(sql`select * from provider_keys`))
  for (const row of rows) {
    const next = reseal(row)
    if (next !== null)
      await database.run(
        ({ sql }) => sql`update provider_keys set secret = ${next} where id = ${row.id} and secret = ${row.secret}`,
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
