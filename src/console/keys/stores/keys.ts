/**
 * API keys: their records, and the key directory for the request path. The directory answers from memory by the full
 * digest. A poll reads all changes within half a second, so entries stay correct without expiring. It also holds the
 * digests of all valid keys, so that an invalid key is recognized without a query.
 */

import { timingSafeEqual } from 'node:crypto'
import { and, desc, eq, inArray, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import { getDigest, hasKeyLength, parseApiKey } from '../../../core/accounts/api-keys.ts'
import { paymentRequiredFrom } from '../../../core/billing/grace.ts'
import { strictestPolicy, toContinuation } from '../../../core/chat/chat.ts'
import { startFollowing, whenNeeded } from '../../../core/jobs/repeating.ts'
import { type Caller, findPause, type Plans } from '../../../core/limits/plans.ts'
import type { ScopeLimits } from '../../../core/limits/scopes.ts'
import { type ConstraintsRow, toDemand } from '../../../core/policy/constraints.ts'
import { prepareRules } from '../../../core/policy/rules.ts'
import type { Clock } from '../../../core/ports.ts'
import { setBounded } from '../../../core/text/recent-map.ts'
import type { Database } from '../../../database/database.ts'
import { getLimits } from '../../../database/repositories/accounts.ts'
import { recordAudit } from '../../../database/repositories/audit.ts'
import { databaseTime, withAccountRls } from '../../../database/statement.ts'
import { type ApiKey, accounts, apiKeys, type NewApiKey } from '../../../database/tables.ts'
import type { KeyLookup } from '../../../http/authentication.ts'
import { toDues } from '../../billing/stores/billing-notices.ts'
import { mayHoldKeys } from '../../projects/store.ts'
import { createKeyLookups } from './key-lookups.ts'

/**
 * Stores a key's record. Repeating it with the same ID changes nothing. Returns false if the key's user may
 * not have keys in its project, or without one.
 */
export function createKey(database: Database, key: NewApiKey): Promise<boolean> {
  return database.run(({ orm }) =>
    orm.transaction(async step => {
      const { accountId, projectId = null, id: target, name } = key
      if (!(await mayHoldKeys(step, accountId, key.userId, projectId))) return false
      const made = await step
        .insert(apiKeys)
        .values(key)
        .onConflictDoNothing({ target: apiKeys.id })
        .returning({ id: apiKeys.id })
      if (made.length === 0) return true
      const details = { name, ...(projectId === null ? {} : { project_id: projectId }) }
      await recordAudit(step, database, { accountId, action: 'key.created', target, details })
      return true
    }),
  )
}

/** Returns an account's keys, oldest first; at most 1,000, including the newest revoked ones. */
export async function listKeys(database: Database, accountId: string): Promise<ApiKey[]> {
  const keys = await withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.accountId, accountId))
      .orderBy(isNotNull(apiKeys.revokedAt), desc(apiKeys.createdAt), desc(apiKeys.id))
      .limit(1000),
  )
  return keys.sort((key, other) => Number(key.createdAt) - Number(other.createdAt) || (key.id < other.id ? -1 : 1))
}

/** Revokes an account's key as of `at`. Returns false if the account has no such valid key. */
export async function revokeKey(database: Database, accountId: string, keyId: string, at: Date): Promise<boolean> {
  return withAccountRls(database, accountId).orm(async step => {
    const [revoked] = await step
      .update(apiKeys)
      .set({ revokedAt: at, updatedAt: sql`clock_timestamp()` })
      .where(and(eq(apiKeys.id, keyId), eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt)))
      .returning({ name: apiKeys.name })
    if (revoked === undefined) return false
    await recordAudit(step, database, { accountId, action: 'key.revoked', target: keyId, details: revoked })
    return true
  })
}

/** Sets the shortfall of an account's keys to zero, which ends their pauses. Returns the sum. Takes effect within 1 s. */
export function resumeKeys(database: Database, accountId: string): Promise<number> {
  return withAccountRls(database, accountId).orm(async step => {
    const of = and(eq(apiKeys.accountId, accountId), isNotNull(apiKeys.shortfallDay))
    const held = await step.select({ owed: apiKeys.shortfallMicrocents }).from(apiKeys).where(of).for('update')
    await step
      .update(apiKeys)
      .set({ ...noShortfall, updatedAt: sql`clock_timestamp()` })
      .where(of)
    await recordAudit(step, database, { accountId, action: 'account.resumed' })
    return held.reduce((sum, { owed }) => sum + owed, 0)
  })
}

const noShortfall = {
  shortfallDay: null,
  shortfallMicrocents: 0,
  shortfallRequestId: null,
  shortfallRequestMicrocents: 0,
} as const

export type KeyDirectory = KeyLookup & {
  /** Announces a new key by its digest, which the next poll would only report later. */
  expect(digest: string): void
  /** Reads changes now instead of at the next poll. Never rejects. */
  look(): Promise<void>
  /** Writes pending `last_used_at` values and stops the timers. */
  close(): Promise<void>
}

type KeyDirectoryOptions = {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  readonly plans: Plans
  /** Integer of 1e-8 USD: keys with a larger shortfall on one day are paused; absent = none is. */
  readonly maximumShortfall?: number
  /** 0 ≤ x < 1, for the jitter of expiries. */
  readonly random: () => number
  /** Awaited before keys are read: a request must find the providers that are stored beside them. Absent = nothing. */
  readonly before?: () => Promise<void> | undefined
}

type Entry = { readonly caller: Caller; readonly expiresAt: number; refreshAt: number }
type Row = Awaited<ReturnType<typeof keyRows>>[number]

const freshMs = 30_000
const unknownMs = 5_000
const pollMs = 800
const touchMs = 1_000
/** Polls overlap by this much, since a transaction may commit after a later one. */
const overlapMs = 5_000
const maximumEntries = 100_000
const maximumUnknown = 10_000
const maximumChanges = 1_000
/** Maximum digests of valid keys in memory, the newest ones. Others are looked up like unknown keys. */
const maximumExisting = 100_000
const digestsDeadlineMs = 10_000
/** Maximum keys that are loaded before the first request. */
const maximumWarm = 5_000

/** Creates the key directory of one process. */
export function createKeyDirectory(options: KeyDirectoryOptions): KeyDirectory {
  const { database, clock, plans, random, maximumShortfall = Number.POSITIVE_INFINITY } = options
  const known = new Map<string, Entry>()
  const unknown = new Map<string, number>()
  const expired = new Map<string, true>()
  const existing = new Set<string>()
  const touched = new Map<string, number>()
  /** Newest change read, by the database's clock; null before the first poll. */
  let changesSeen: Date | null = null

  const take = (digest: string, row: Row | null): Caller | null => {
    if (row === null || !isValid(row, clock.now())) {
      known.delete(digest)
      existing.delete(digest)
      setBounded(unknown, digest, clock.now() + unknownMs, maximumUnknown)
      if (row !== null && row.revokedAt === null) setBounded(expired, digest, true, maximumUnknown)
      else expired.delete(digest)
      return null
    }
    unknown.delete(digest)
    expired.delete(digest)
    if (existing.size < maximumExisting) existing.add(digest)
    const pause = findPause(row.plan, row, maximumShortfall)
    const caller: Caller = {
      accountId: row.accountId,
      keyId: row.keyId,
      plan: row.plan,
      limits: getLimits(row, plans),
      ...getPayment(row),
      ...(pause === null ? {} : { pause: { ...pause, userId: row.userId } }),
      ...(row.keyWeb && row.accountWeb ? {} : { webOff: true }),
      ...getRules(row),
      ...((row.keyHedge ?? row.accountHedge) ? { hedges: true } : {}),
      ...(row.baseline === null ? {} : { baseline: row.baseline }),
      ...(row.shadow === null ? {} : { shadow: row.shadow }),
      ...getPolicy(row),
      ...getDemands(row),
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
    await options.before?.()
    const ids = wanted.map(({ publicId }) => publicId)
    const rows = await keyRows(database, inArray(apiKeys.publicId, ids), ids.length)
    const callers = new Map<string, Caller>()
    for (const { digest } of wanted) {
      const caller = take(digest, rows.find(row => sameDigest(row.digest, digest)) ?? null)
      if (caller !== null) callers.set(digest, caller)
    }
    return callers
  })
  /** Looks up a key; null at once if it is malformed. */
  const lookUp = (digest: string, key: string): Promise<Caller | null> | null => {
    const parsed = parseApiKey(key)
    if (parsed === null) return null
    return lookups.find({ digest, publicId: parsed.id }, known.has(digest) || existing.has(digest))
  }

  const begin = async () => {
    await options.before?.()
    // Read before the digests, so that changes in between are in the next poll.
    const now = await databaseTime(database)
    const digests = await validDigests(database)
    existing.clear()
    for (const digest of digests) existing.add(digest)
    // An instance that replaces another receives requests with all its keys within the first second.
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
    // More changes than a poll returns: clears the cache, since the rest may be outdated.
    if (rows.length === maximumChanges) {
      known.clear()
      unknown.clear()
      await begin()
    }
  }

  /** Records the use of a key for the next batch. If the batch is full, a new key waits for its next request. */
  const noteUse = ({ keyId }: Caller) => {
    if (touched.size < maximumEntries || touched.has(keyId)) touched.set(keyId, clock.now())
    touching.need()
  }

  /** The first request of a key in this process counts as a use too. */
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
      // If the database is unavailable, the uses wait for the next batch, unless the same key has a newer one.
      for (const [keyId, at] of batch) if (!touched.has(keyId) && touched.size < maximumEntries) touched.set(keyId, at)
      touching.need()
      throw cause
    }
  }

  const [polling, touching] = [startFollowing(pollMs, poll, database.onWrite), whenNeeded(touchMs, touch)]

  /** Returns undefined if the key is not in memory. */
  const inMemory = (digest: string, key: string): Caller | null | undefined => {
    const now = clock.now()
    const entry = known.get(digest)
    if (entry === undefined) return (unknown.get(digest) ?? 0) > now ? null : undefined
    if (entry.expiresAt <= now) {
      setBounded(expired, digest, true, maximumUnknown)
      return null
    }
    if (entry.refreshAt <= now) {
      // Refreshed in the background: an unavailable database must not delay a known key.
      entry.refreshAt = now + unknownMs
      lookUp(digest, key)?.catch(() => {})
    }
    noteUse(entry.caller)
    return entry.caller
  }

  return {
    recall(key) {
      // A known digest needs no format check.
      if (!hasKeyLength(key)) return null
      const digest = getDigest(key)
      const caller = inMemory(digest, key)
      return caller === undefined && existing.has(digest) ? lookUpUsed(digest, key) : (caller ?? null)
    },
    find(key) {
      if (!hasKeyLength(key)) return null
      const digest = getDigest(key)
      const caller = inMemory(digest, key)
      return caller === undefined ? lookUpUsed(digest, key) : caller
    },
    isExpired: key => hasKeyLength(key) && expired.has(getDigest(key)),
    expect: digest => void existing.add(digest),
    look: () => polling.run().catch(() => {}),
    async close() {
      await Promise.all([polling.close(), touching.close()])
      await touch().catch(() => {})
    },
  }
}

function isValid({ revokedAt, expiresAt }: Pick<Row, 'revokedAt' | 'expiresAt'>, now: number): boolean {
  return revokedAt === null && !(expiresAt !== null && expiresAt.getTime() <= now)
}

/** Returns the rows of keys that were used within the last minutes. */
function recentlyUsed(database: Database) {
  return keyRows(database, sql`${apiKeys.lastUsedAt} > clock_timestamp() - interval '10 minutes'`, maximumWarm)
}

/** Returns digests of the valid keys, newest first. */
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
        userId: apiKeys.userId,
        shortfallDay: apiKeys.shortfallDay,
        shortfallMicrocents: apiKeys.shortfallMicrocents,
        shortfallRequestId: apiKeys.shortfallRequestId,
        keyWeb: apiKeys.web,
        accountWeb: accounts.web,
        lineId: apiKeys.lineId,
        limits: apiKeys.limits,
        models: apiKeys.models,
        tags: apiKeys.tags,
        strategy: apiKeys.strategy,
        projectId: apiKeys.projectId,
        rules: accounts.rules,
        accountConstraints: accounts.constraints,
        keyConstraints: apiKeys.constraints,
        projectConstraints: sql<ConstraintsRow | null>`(
          select projects.constraints from projects where projects.id = ${apiKeys.projectId})`,
        tagLimits: sql<Record<string, ScopeLimits> | null>`(
          select json_object_agg('tag:' || tag_limits.name || '=' || tag_limits.value, tag_limits.limits)
          from tag_limits where tag_limits.account_id = ${accounts.id})`,
        keyHedge: apiKeys.hedge,
        accountHedge: accounts.hedge,
        baseline: accounts.baselineModel,
        shadow: accounts.shadow,
        keyFallback: apiKeys.fallback,
        accountFallback: accounts.fallback,
        keyContinue: apiKeys.continue,
        accountContinue: accounts.continue,
        changedAt: sql`greatest(${apiKeys.updatedAt}, ${accounts.updatedAt})`.mapWith(apiKeys.updatedAt),
      })
      .from(apiKeys)
      .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
      .where(condition)
      .limit(limit),
  )
}

/** Returns the stricter policies of key and account; empty if both allow any fallback, and the request decides who continues a text. */
function getPolicy({ keyFallback, accountFallback, keyContinue, accountContinue }: Row): Partial<Caller> {
  const fallback = strictestPolicy(keyFallback, accountFallback)
  const continuation =
    keyContinue === null && accountContinue === null
      ? undefined
      : strictestPolicy(toContinuation(keyContinue), toContinuation(accountContinue))
  return { ...(fallback !== 'any' && { fallback }), ...(continuation !== undefined && { continuation }) }
}

/** Returns the rules of the account, and the constraints of account, project and key; empty if there are none. */
function getDemands(row: Row): Partial<Caller> {
  const demands = [
    toDemand('account', row.accountConstraints),
    toDemand('project', row.projectConstraints),
    toDemand('key', row.keyConstraints),
  ].filter(demand => demand !== null)
  const rules = row.rules ?? []
  return {
    ...(demands.length === 0 ? {} : { demands }),
    ...(rules.length === 0 ? {} : { rules: prepareRules(rules, 'account') }),
  }
}

/** Returns when the account has to pay, and its soft cap with the billing cycle; empty if there is neither. */
function getPayment(row: Row): Partial<Caller> {
  const from = paymentRequiredFrom(toDues(row))
  const { softCapMicrocents, cycleStartedAt } = row
  return {
    ...(from === null ? {} : { refusedFrom: from }),
    ...(softCapMicrocents === null ? {} : { softCapMicrocents }),
    ...(softCapMicrocents === null || cycleStartedAt === null ? {} : { cycleStartedAt: cycleStartedAt.getTime() }),
  }
}

/** Returns the rules of a key and of its account's tags; most keys have none. */
function getRules({ lineId, limits, models, tags, strategy, projectId, tagLimits }: Row): Partial<Caller> {
  return {
    ...(lineId === null ? {} : { lineageId: lineId }),
    ...(limits === null ? {} : { keyLimits: limits }),
    ...(models === null ? {} : { models }),
    ...(tags === null ? {} : { tags }),
    ...(strategy === null ? {} : { strategy }),
    ...(projectId === null ? {} : { projectId }),
    ...(tagLimits === null ? {} : { tagLimits: new Map(Object.entries(tagLimits)) }),
  }
}

/** Joins two index ranges: an `or` across the two tables would scan both of them twice per second. */
function changedSince(since: Date): SQL {
  const at = since.toISOString()
  return sql`${apiKeys.id} in (
    select id from api_keys where updated_at > ${at}::timestamptz
    union
    select api_keys.id from accounts join api_keys on api_keys.account_id = accounts.id
    where accounts.updated_at > ${at}::timestamptz)`
}

/** Writes use times in epoch milliseconds by key ID. */
function writeLastUsed(database: Database, uses: ReadonlyMap<string, number>) {
  const rows = [...uses].map(([id, at]) => ({ id, at: new Date(at).toISOString() }))
  return database.run(
    ({ sql: query }) => query`
      update api_keys set last_used_at = used.at
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as used(id text, at timestamptz)
      where api_keys.id = used.id and (last_used_at is null or last_used_at < used.at)`,
  )
}

function sameDigest(text: string, other: string): boolean {
  return text.length === other.length && timingSafeEqual(Buffer.from(text), Buffer.from(other))
}
