/**
 * API keys: their records, and the directory that the hot path asks. The directory answers from memory, keyed by the full
 * digest. What keeps it true is not its entries' age but the poll: twice a second it asks for everything that has changed.
 * It also holds the digests of all valid keys, so that a stranger's key is told from a customer's without a query.
 */
import { timingSafeEqual } from 'node:crypto'
import { and, desc, eq, inArray, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import { digestOf, hasKeyLength, parseApiKey } from '../../core/accounts/api-keys.ts'
import { paymentRequiredFrom } from '../../core/billing/grace.ts'
import type { Caller, Plans } from '../../core/limits/plans.ts'
import { setBounded } from '../../core/text/bounded-map.ts'
import { withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { databaseTime } from '../database-time.ts'
import { repeated } from '../repeated.ts'
import { type ApiKey, accounts, apiKeys, type NewApiKey } from '../tables.ts'
import { limitsOf } from './accounts.ts'
import { duesOf } from './billing-notices.ts'
import { createKeyLookups } from './key-lookups.ts'

/** Stores a key's record; the same id again changes nothing. */
export async function createKey(database: Database, key: NewApiKey): Promise<void> {
  await database.run(({ orm }) => orm.insert(apiKeys).values(key).onConflictDoNothing({ target: apiKeys.id }))
}

/** An account's keys, oldest first; 1,000 at most, of the revoked ones the newest. */
export async function listKeys(database: Database, accountId: string): Promise<ApiKey[]> {
  const keys = await withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .orderBy(isNotNull(apiKeys.revokedAt), desc(apiKeys.createdAt), desc(apiKeys.id))
      .limit(1000),
  )
  return keys.sort((one, other) => Number(one.createdAt) - Number(other.createdAt) || (one.id < other.id ? -1 : 1))
}

/** Revokes an account's key as of `at`. False where the account has no such key that is still valid. */
export async function revokeKey(database: Database, accountId: string, keyId: string, at: Date): Promise<boolean> {
  const rows = await withAccountRls(database, accountId).orm(step =>
    step
      .update(apiKeys)
      .set({ revokedAt: at, updatedAt: sql`clock_timestamp()` })
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)))
      .returning({ id: apiKeys.id }),
  )
  return rows.length > 0
}

export type KeyDirectory = {
  /**
   * The same as `find`, but null at once for a key that is not in memory: a store is asked only about keys that certainly
   * exist.
   */
  recall(key: string): Caller | null | Promise<Caller | null>
  /**
   * The caller behind a key; null for one that is malformed, unknown, revoked or expired. Known keys are answered at once,
   * also while Postgres is away. Rejects with `service_unavailable` for a key that cannot be looked up right now.
   */
  find(key: string): Caller | null | Promise<Caller | null>
  /** A key of this digest was made just now: it exists before the next poll says so. */
  expect(digest: string): void
  /** Something has changed: asks for it now rather than at the next poll. Never rejects. */
  look(): Promise<void>
  /** Writes what is pending of `last_used_at` and stops the timers. */
  close(): Promise<void>
}

export type KeyDirectoryOptions = {
  readonly database: Database
  readonly clock: { now(): number }
  readonly plans: Plans
  /** Integer of 1e-8 USD: accounts whose shortfall is above it are paused; absent = none is. */
  readonly maximumShortfall?: number
  /** 0 ≤ x < 1, for the jitter of expiries. */
  readonly random: () => number
}

type Entry = { readonly caller: Caller; readonly expiresAt: number; refreshAt: number }
type Row = Awaited<ReturnType<typeof keyRows>>[number]

const freshMs = 30_000
const unknownMs = 5_000
const pollMs = 500
const touchMs = 1_000
/** Polls look back this far behind the newest change seen: a transaction may commit after a younger one. */
const overlapMs = 5_000
const maximumEntries = 100_000
const maximumUnknown = 10_000
const maximumChanges = 1_000
/** Digests of valid keys that are held; of more keys the newest. The others are looked up as unknown ones are. */
const maximumExisting = 100_000
const digestsDeadlineMs = 10_000
/** Keys that are read in before the first request. */
const maximumWarm = 5_000

/** The directory of keys for one process. Starts two timers, neither of which keeps the process alive. */
export function createKeyDirectory(options: KeyDirectoryOptions): KeyDirectory {
  const { database, clock, plans, random, maximumShortfall = Number.POSITIVE_INFINITY } = options
  const known = new Map<string, Entry>()
  const unknown = new Map<string, number>()
  const existing = new Set<string>()
  const touched = new Map<string, number>()
  /** Newest change seen, by the database's clock; null before the first poll. */
  let changesSeen: Date | null = null

  const take = (digest: string, row: Row | null): Caller | null => {
    if (row === null || !isValid(row, clock.now())) {
      known.delete(digest)
      existing.delete(digest)
      setBounded(unknown, digest, clock.now() + unknownMs, maximumUnknown)
      return null
    }
    unknown.delete(digest)
    if (existing.size < maximumExisting) existing.add(digest)
    const caller: Caller = {
      accountId: row.accountId,
      keyId: row.keyId,
      plan: row.plan,
      limits: limitsOf(row, plans),
      ...paymentOf(row),
      ...(row.shortfallMicrocents > maximumShortfall ? { isPaused: true } : {}),
      ...(row.keyWeb && row.accountWeb ? {} : { webOff: true }),
    }
    const refreshAt = clock.now() + freshMs * (0.9 + 0.2 * random())
    setBounded(
      known,
      digest,
      { caller, expiresAt: row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, refreshAt },
      maximumEntries,
    )
    return caller
  }

  const lookups = createKeyLookups<Caller>(async wanted => {
    const ids = wanted.map(({ publicId }) => publicId)
    const rows = await keyRows(database, inArray(apiKeys.publicId, ids), ids.length)
    const callers = new Map<string, Caller>()
    for (const { digest } of wanted) {
      const caller = take(digest, rows.find(row => sameDigest(row.digest, digest)) ?? null)
      if (caller !== null) callers.set(digest, caller)
    }
    return callers
  })
  /** Null at once for what cannot be a key. */
  const lookUp = (digest: string, key: string): Promise<Caller | null> | null => {
    const parsed = parseApiKey(key)
    if (parsed === null) return null
    return lookups.find({ digest, publicId: parsed.id }, known.has(digest) || existing.has(digest))
  }

  const begin = async () => {
    // Before the digests are read: what changes meanwhile is in the next poll.
    const now = await databaseTime(database)
    const digests = await validDigests(database)
    existing.clear()
    for (const digest of digests) existing.add(digest)
    // A gateway that takes the place of another is asked for its keys at once, all of them in the first second.
    if (changesSeen === null) for (const row of await recentlyUsed(database)) take(row.digest, row)
    changesSeen = now
  }
  const poll = async () => {
    if (changesSeen === null) return begin()
    const rows = await keyRows(database, changedSince(new Date(changesSeen.getTime() - overlapMs)), maximumChanges)
    for (const row of rows) {
      if (row.changedAt.getTime() > changesSeen.getTime()) changesSeen = row.changedAt
      if (known.has(row.digest) || unknown.has(row.digest)) take(row.digest, row)
      else if (!isValid(row, clock.now())) existing.delete(row.digest)
      else if (existing.size < maximumExisting) existing.add(row.digest)
    }
    // More changed than a poll carries: forget rather than be wrong about the rest.
    if (rows.length === maximumChanges) {
      known.clear()
      unknown.clear()
      await begin()
    }
  }

  /** Notes the use of a key, to be written with the next batch. At the bound a new key waits for its next request. */
  const noteUse = ({ keyId }: Caller) => {
    if (touched.size < maximumEntries || touched.has(keyId)) touched.set(keyId, clock.now())
  }

  /** The first request of a key in this process is a use of it like any other. */
  const lookUpUsed = (digest: string, key: string) =>
    lookUp(digest, key)?.then(caller => {
      if (caller !== null) noteUse(caller)
      return caller
    }) ?? null

  const touch = async () => {
    if (touched.size === 0) return
    const batch = new Map(touched)
    touched.clear()
    try {
      await writeLastUsed(database, batch)
    } catch (cause) {
      // The store is away: the uses wait for the next batch, behind any newer use of the same key.
      for (const [keyId, at] of batch) if (!touched.has(keyId) && touched.size < maximumEntries) touched.set(keyId, at)
      throw cause
    }
  }

  const [polling, touching] = [repeated(pollMs, poll), repeated(touchMs, touch)]

  /** Undefined where memory says nothing of the key. */
  const inMemory = (digest: string, key: string): Caller | null | undefined => {
    const now = clock.now()
    const entry = known.get(digest)
    if (entry === undefined) return (unknown.get(digest) ?? 0) > now ? null : undefined
    if (entry.expiresAt <= now) return null
    if (entry.refreshAt <= now) {
      // Behind the caller's back: a store that does not answer is no reason to make a known key wait.
      entry.refreshAt = now + unknownMs
      lookUp(digest, key)?.catch(() => {})
    }
    noteUse(entry.caller)
    return entry.caller
  }

  return {
    recall(key) {
      // A digest that is known needs no look at the key's shape.
      if (!hasKeyLength(key)) return null
      const digest = digestOf(key)
      const caller = inMemory(digest, key)
      return caller === undefined && existing.has(digest) ? lookUpUsed(digest, key) : (caller ?? null)
    },
    find(key) {
      if (!hasKeyLength(key)) return null
      const digest = digestOf(key)
      const caller = inMemory(digest, key)
      return caller === undefined ? lookUpUsed(digest, key) : caller
    },
    expect: digest => void existing.add(digest),
    look: polling.now,
    async close() {
      polling.stop()
      touching.stop()
      await touching.now()
    },
  }
}

function isValid({ revokedAt, expiresAt }: Pick<Row, 'revokedAt' | 'expiresAt'>, now: number): boolean {
  return revokedAt === null && !(expiresAt !== null && expiresAt.getTime() <= now)
}

/** The rows of keys that were used within the last minutes. */
function recentlyUsed(database: Database) {
  return keyRows(database, sql`${apiKeys.lastUsedAt} > clock_timestamp() - interval '10 minutes'`, maximumWarm)
}

/** Digests of the keys that are valid now, the newest first. */
async function validDigests(database: Database): Promise<readonly string[]> {
  const rows = await database.run(
    ({ sql: query }) => query<{ digest: string }[]>`
      select digest from api_keys
      where revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
      order by created_at desc limit ${maximumExisting}`,
    digestsDeadlineMs,
  )
  return rows.map(({ digest }) => digest)
}

function keyRows(database: Database, condition: SQL, limit: number) {
  return database.run(({ orm }) =>
    orm
      .select({
        digest: apiKeys.digest,
        keyId: apiKeys.id,
        accountId: apiKeys.accountId,
        revokedAt: apiKeys.revokedAt,
        expiresAt: apiKeys.expiresAt,
        plan: accounts.plan,
        requestsPerMinute: accounts.requestsPerMinute,
        concurrentRequests: accounts.concurrentRequests,
        dailyTokens: accounts.dailyTokens,
        dailyCostMicrocents: accounts.dailyCostMicrocents,
        graceEndsAt: accounts.graceEndsAt,
        unpaidSince: accounts.unpaidSince,
        softCapMicrocents: accounts.softCapMicrocents,
        cycleStartedAt: accounts.cycleStartedAt,
        shortfallMicrocents: accounts.shortfallMicrocents,
        keyWeb: apiKeys.web,
        accountWeb: accounts.web,
        changedAt: sql`greatest(${apiKeys.updatedAt}, ${accounts.updatedAt})`.mapWith(apiKeys.updatedAt),
      })
      .from(apiKeys)
      .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
      .where(condition)
      .limit(limit),
  )
}

/** When the account has to pay first, and its soft cap with the billing cycle; nothing where there is neither. */
function paymentOf(row: Row): Partial<Caller> {
  const from = paymentRequiredFrom(duesOf(row))
  const { softCapMicrocents, cycleStartedAt } = row
  return {
    ...(from === null ? {} : { refusedFrom: from }),
    ...(softCapMicrocents === null ? {} : { softCapMicrocents }),
    ...(softCapMicrocents === null || cycleStartedAt === null ? {} : { cycleStartedAt: cycleStartedAt.getTime() }),
  }
}

/** Two index ranges joined: an `or` across the two tables would read both of them whole, twice a second. */
function changedSince(since: Date): SQL {
  const at = since.toISOString()
  return sql`${apiKeys.id} in (
    select id from api_keys where updated_at > ${at}::timestamptz
    union
    select api_keys.id from accounts join api_keys on api_keys.account_id = accounts.id
    where accounts.updated_at > ${at}::timestamptz)`
}

/** Times are epoch milliseconds by the key's id. */
function writeLastUsed(database: Database, uses: ReadonlyMap<string, number>) {
  const rows = [...uses].map(([id, at]) => ({ id, at: new Date(at).toISOString() }))
  return database.run(
    ({ sql: query }) => query`
      update api_keys set last_used_at = used.at
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as used(id text, at timestamptz)
      where api_keys.id = used.id and (last_used_at is null or last_used_at < used.at)`,
  )
}

function sameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}
