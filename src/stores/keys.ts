/**
 * API keys: their records, and the directory that the hot path asks. The directory answers from memory, keyed by the full
 * digest. What keeps it true is not its entries' age but the poll: twice a second it asks for everything that has changed.
 */
import { timingSafeEqual } from 'node:crypto'
import { and, desc, eq, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import { refusedFrom } from '../core/billing.ts'
import { GatewayError } from '../core/errors.ts'
import type { Caller, Plans } from '../core/plans.ts'
import { digestOf, isKeyLong, parseApiKey } from '../core/secrets.ts'
import { limitsOf } from './accounts.ts'
import type { Database } from './database.ts'
import { databaseTime } from './database-time.ts'
import { onAccount } from './on-account.ts'
import { remember } from './remember.ts'
import { type ApiKey, accounts, apiKeys, type NewApiKey } from './tables.ts'

/** Stores a key's record; the same id again changes nothing. */
export async function createKey(database: Database, key: NewApiKey): Promise<void> {
  await database.run(({ orm }) => orm.insert(apiKeys).values(key).onConflictDoNothing({ target: apiKeys.id }))
}

/** An account's keys, oldest first; 1,000 at most, of the revoked ones the newest. */
export async function listKeys(database: Database, accountId: string): Promise<ApiKey[]> {
  const keys = await onAccount(database, accountId).orm(step =>
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
  const rows = await onAccount(database, accountId).orm(step =>
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
   * The caller behind a key; null for one that is malformed, unknown, revoked or expired. Known keys are answered at once,
   * also while Postgres is away. Rejects with `service_unavailable` for a key that cannot be looked up right now.
   */
  find(key: string): Caller | null | Promise<Caller | null>
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
const maximumLookups = 256
const maximumChanges = 1_000

/** The directory of keys for one process. Starts two timers, neither of which keeps the process alive. */
export function createKeyDirectory(options: KeyDirectoryOptions): KeyDirectory {
  const { database, clock, plans, random, maximumShortfall = Number.POSITIVE_INFINITY } = options
  const known = new Map<string, Entry>()
  const unknown = new Map<string, number>()
  const lookups = new Map<string, Promise<Caller | null>>()
  const touched = new Map<string, number>()
  /** Newest change seen, by the database's clock; null before the first poll. */
  let changesSeen: Date | null = null

  const take = (digest: string, row: Row | null): Caller | null => {
    const isValid =
      row !== null && row.revokedAt === null && !(row.expiresAt !== null && row.expiresAt.getTime() <= clock.now())
    if (row === null || !isValid) {
      known.delete(digest)
      remember(unknown, digest, clock.now() + unknownMs, maximumUnknown)
      return null
    }
    unknown.delete(digest)
    const caller: Caller = {
      accountId: row.accountId,
      keyId: row.keyId,
      plan: row.plan,
      limits: limitsOf(row, plans),
      ...duesOf(row),
      ...(row.shortfallMicrocents > maximumShortfall ? { isPaused: true } : {}),
      ...(row.keyWeb && row.accountWeb ? {} : { webOff: true }),
    }
    const refreshAt = clock.now() + freshMs * (0.9 + 0.2 * random())
    remember(
      known,
      digest,
      { caller, expiresAt: row.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY, refreshAt },
      maximumEntries,
    )
    return caller
  }

  /** Null at once for what cannot be a key. */
  const lookUp = (digest: string, key: string): Promise<Caller | null> | null => {
    const parsed = parseApiKey(key)
    if (parsed === null) return null
    const running = lookups.get(digest)
    if (running !== undefined) return running
    if (lookups.size >= maximumLookups) return Promise.reject(tooManyLookups())
    const lookup = keyRows(database, eq(apiKeys.publicId, parsed.id), 1)
      .then(rows => take(digest, rows.find(row => sameDigest(row.digest, digest)) ?? null))
      .finally(() => lookups.delete(digest))
    lookups.set(digest, lookup)
    return lookup
  }

  const poll = async () => {
    const since = changesSeen === null ? null : new Date(changesSeen.getTime() - overlapMs)
    if (since === null) {
      changesSeen = await databaseTime(database)
      return
    }
    const rows = await keyRows(database, changedSince(since), maximumChanges)
    for (const row of rows) {
      if (row.changedAt.getTime() > (changesSeen?.getTime() ?? 0)) changesSeen = row.changedAt
      if (known.has(row.digest) || unknown.has(row.digest)) take(row.digest, row)
    }
    // More changed than a poll carries: forget rather than be wrong about the rest.
    if (rows.length === maximumChanges) {
      known.clear()
      unknown.clear()
      changesSeen = await databaseTime(database)
    }
  }

  const touch = async () => {
    const batch = [...touched].map(([id, at]) => ({ id, at: new Date(at).toISOString() }))
    touched.clear()
    if (batch.length > 0) await writeLastUsed(database, batch)
  }

  const [polling, touching] = [repeated(pollMs, poll), repeated(touchMs, touch)]

  return {
    find(key) {
      // A digest that is known needs no look at the key's shape.
      if (!isKeyLong(key)) return null
      const digest = digestOf(key)
      const now = clock.now()
      const entry = known.get(digest)
      if (entry !== undefined) {
        if (entry.expiresAt <= now) return null
        if (entry.refreshAt <= now) {
          // Behind the caller's back: a store that does not answer is no reason to make a known key wait.
          entry.refreshAt = now + unknownMs
          lookUp(digest, key)?.catch(() => {})
        }
        touched.set(entry.caller.keyId, now)
        return entry.caller
      }
      const refusedUntil = unknown.get(digest)
      if (refusedUntil !== undefined && refusedUntil > now) return null
      return lookUp(digest, key)
    },
    look: polling.now,
    async close() {
      polling.stop()
      touching.stop()
      await touch().catch(() => {})
    },
  }
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

/** When the account has to pay first, and its soft cap; nothing where there is neither. */
function duesOf({ plan, graceEndsAt, unpaidSince, softCapMicrocents }: Row): Partial<Caller> {
  const from = refusedFrom({
    plan,
    graceEndsAt: graceEndsAt?.getTime() ?? null,
    unpaidSince: unpaidSince?.getTime() ?? null,
  })
  return {
    ...(from === null ? {} : { refusedFrom: from }),
    ...(softCapMicrocents === null ? {} : { softCapMicrocents }),
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

function writeLastUsed(database: Database, batch: readonly { readonly id: string; readonly at: string }[]) {
  return database.run(
    ({ sql: query }) => query`
      update api_keys set last_used_at = used.at
      from json_to_recordset(${JSON.stringify(batch)}::text::json) as used(id text, at timestamptz)
      where api_keys.id = used.id and (last_used_at is null or last_used_at < used.at)`,
  )
}

function sameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))
}

/** Repeats `work`, one run at a time; a failed run is made good by the next. `now` is a run that begins after it was asked for. */
function repeated(periodMs: number, work: () => Promise<void>): { now(): Promise<void>; stop(): void } {
  let running: Promise<void> | null = null
  let following: Promise<void> | null = null
  const run = () => {
    running = work()
      .catch(() => {})
      .finally(() => {
        running = null
      })
    return running
  }
  const timer = setInterval(() => {
    if (running === null) void run()
  }, periodMs)
  timer.unref()
  return {
    now() {
      if (running === null) return run()
      // However often it is asked for meanwhile, once more is enough.
      following ??= running.then(() => {
        following = null
        return run()
      })
      return following
    },
    stop: () => clearInterval(timer),
  }
}

function tooManyLookups(): GatewayError {
  return new GatewayError('service_unavailable', 'Too many unknown keys are being looked up. Try again shortly.', {
    retryAfterMs: 1000,
    detail: 'key lookups at their bound',
  })
}
