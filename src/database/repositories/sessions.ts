/**
 * Sessions: who is signed in, their rotating refresh tokens, and the failures that lock sign-in. A lock refuses new sign-ins
 * from unknown network addresses and nothing else. All times are the database's own, so that gateways whose clocks disagree
 * decide alike.
 */
import { and, desc, eq, gt, sql as sqlText } from 'drizzle-orm'
import type { Sql, TransactionSql } from 'postgres'
import { digestOf } from '../../core/accounts/api-keys.ts'
import type { Role } from '../../core/accounts/roles.ts'
import { withAccountRls } from '../account-transaction.ts'
import type { Database } from '../database.ts'
import { type Session, sessions } from '../tables.ts'
import { isKnownTo, rememberAddress } from './known-addresses.ts'

/** Who a session speaks for, as of the moment it was read. */
export type SessionHolder = {
  readonly sessionId: string
  readonly accountId: string
  readonly userId: string
  readonly email: string
  readonly role: Role
  /** The email address waits for its confirmation. */
  readonly isUnverified: boolean
}

export type NewSession = {
  readonly id: string
  readonly accountId: string
  readonly userId: string
  readonly userAgent: string | null
  /** SHA-256 of its first refresh token, hex. */
  readonly tokenDigest: string
  /** The hash that the password was checked against: where it has changed since, nobody is signed in. */
  readonly passwordHash: string
  /** None of them may be locked by now, unless the network address is known; the first one's failures are forgotten. */
  readonly subjects: readonly string[]
  /** What the network address is remembered as: `composition/address-digests.ts`. */
  readonly addressDigests: readonly string[]
}

/** `repeated`: the token had just been used, and what it led to then is still good. */
export type Rotation =
  | { readonly outcome: 'rotated' | 'repeated'; readonly holder: SessionHolder }
  | { readonly outcome: 'unknown' }
  /** The token had been used before: it was copied, and its session is ended. */
  | { readonly outcome: 'reused'; readonly sessionId: string; readonly userId: string }

export const maximumSessions = 5
const idleDays = 30
/** How long two tabs of one browser may present the same token without looking like a thief. */
const repeatSeconds = 10
const freshMs = 500
const maximumEntries = 50_000
const failures = {
  allowed: 10,
  withinMinutes: 15,
  firstLockMinutes: 15,
  longestLockMinutes: 24 * 60,
  forgottenAfterDays: 1,
}

/** What failures of an e-mail address are counted under; says nothing of the address itself. */
export function mailSubject(email: string): string {
  return `mail:${digestOf(email)}`
}

/** What wrong current passwords at a change of password are counted under: only a user's own sessions can add to them. */
export function changeSubject(userId: string): string {
  return `change:${userId}`
}

/** What failures of a network address (IPv6 by /64) are counted under. */
export function addressSubject(address: string): string {
  return `address:${address}`
}

/**
 * Signs a user in; the oldest session leaves where there would be a sixth. False where user or password is no longer what
 * was checked, or a lock that applies here began meanwhile. The user's row serialises it: of 50 at once exactly 5 stay.
 */
export function startSession(database: Database, session: NewSession): Promise<boolean> {
  const { id, accountId, userId, userAgent, tokenDigest, passwordHash, subjects, addressDigests } = session
  return database.run(({ sql }) =>
    sql.begin(async step => {
      // Statements that do not wait for one another's answers are sent together: the row is held for that much less.
      const holding = step`
        select 1 from users
        where id = ${userId} and account_id = ${accountId} and removed_at is null and password_hash = ${passwordHash}
        for no key update`.execute()
      const [user, isLocked] = await Promise.all([holding, anyLocked(step, subjects)])
      if (user.length === 0 || (isLocked && !(await isKnownTo(step, userId, addressDigests)))) return false
      const begun = step`
        insert into sessions (id, account_id, user_id, user_agent, created_at, last_used_at, expires_at)
        select ${id}, ${accountId}, ${userId}, ${userAgent}, now, now, now + make_interval(days => ${idleDays})
        from clock_timestamp() as now`.execute()
      const named = step`
        insert into session_tokens (digest, session_id, created_at)
        values (${tokenDigest}, ${id}, clock_timestamp())`.execute()
      const ended = step`
        delete from sessions where user_id = ${userId} and (expires_at <= clock_timestamp() or id in (
          select id from sessions where user_id = ${userId} and expires_at > clock_timestamp()
          order by created_at desc, id desc offset ${maximumSessions}))`.execute()
      // A running lock stays: it applies to other network addresses, and its cause must not get ten more tries.
      const forgotten = step`
        delete from sign_in_failures
        where subject = ${subjects[0] ?? ''} and (locked_until is null or locked_until <= clock_timestamp())`.execute()
      await Promise.all([begun, named, ended, forgotten, rememberAddress(step, userId, addressDigests)])
      return true
    }),
  )
}

/** Forgets the failures of a subject and the lock they led to. */
export async function forgetFailures(database: Database, subject: string): Promise<void> {
  await database.run(({ sql }) => sql`delete from sign_in_failures where subject = ${subject}`)
}

/** Exchanges a refresh token for the next one, once. `nextDigest` must follow from the token, so that a repeat finds it. */
export async function rotateToken(database: Database, digest: string, nextDigest: string): Promise<Rotation> {
  const rotated = await database.run(
    ({ sql }) => sql<{ session_id: string }[]>`
      with used as (
        update session_tokens set used_at = clock_timestamp() from sessions
        where session_tokens.digest = ${digest} and used_at is null
          and sessions.id = session_id and expires_at > clock_timestamp()
        returning session_id),
      next as (
        insert into session_tokens (digest, session_id, created_at)
        select ${nextDigest}, session_id, clock_timestamp() from used),
      forgotten as (
        delete from session_tokens using used
        where session_tokens.session_id = used.session_id
          and used_at < clock_timestamp() - make_interval(days => ${idleDays}))
      update sessions
      set last_used_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(days => ${idleDays})
      from used where id = used.session_id
      returning id as session_id`,
  )
  const sessionId = rotated[0]?.session_id
  if (sessionId === undefined) return explainUnused(database, digest, nextDigest)
  const holder = await findSession(database, sessionId)
  return holder === null ? { outcome: 'unknown' } : { outcome: 'rotated', holder }
}

/** Why a token could not be used: unknown, used a moment ago by another tab, or stolen. */
async function explainUnused(database: Database, digest: string, nextDigest: string): Promise<Rotation> {
  const rows = await database.run(
    ({ sql }) => sql<{ session_id: string; user_id: string; recent: boolean; follows: boolean }[]>`
      select session_id, user_id,
        used_at > clock_timestamp() - make_interval(secs => ${repeatSeconds}) as recent,
        exists (select from session_tokens as next where next.digest = ${nextDigest} and next.used_at is null) as follows
      from session_tokens join sessions on sessions.id = session_id
      where digest = ${digest} and used_at is not null`,
  )
  const row = rows[0]
  if (row === undefined || (row.recent && !row.follows)) return { outcome: 'unknown' }
  if (!row.recent) {
    await database.run(({ sql }) => sql`delete from sessions where id = ${row.session_id}`)
    return { outcome: 'reused', sessionId: row.session_id, userId: row.user_id }
  }
  const holder = await findSession(database, row.session_id)
  return holder === null ? { outcome: 'unknown' } : { outcome: 'repeated', holder }
}

/** Who a running session speaks for; null where it has ended. */
export async function findSession(database: Database, sessionId: string): Promise<SessionHolder | null> {
  const rows = await database.run(
    ({ sql }) => sql<SessionHolder[]>`
      select sessions.id as "sessionId", sessions.account_id as "accountId", users.id as "userId", email, role,
        unverified_since is not null as "isUnverified"
      from sessions join users on users.id = user_id
      where sessions.id = ${sessionId} and expires_at > clock_timestamp() and removed_at is null`,
  )
  return rows[0] ?? null
}

/** A user's running sessions, newest first. */
export function listSessions(database: Database, accountId: string, userId: string): Promise<Session[]> {
  return withAccountRls(database, accountId).orm(step =>
    step
      .select()
      .from(sessions)
      .where(
        and(
          eq(sessions.accountId, accountId),
          eq(sessions.userId, userId),
          gt(sessions.expiresAt, sqlText`clock_timestamp()`),
        ),
      )
      .orderBy(desc(sessions.createdAt), desc(sessions.id)),
  )
}

/** Ends one of a user's sessions. False where the user has none of this id. */
export async function endSession(
  database: Database,
  accountId: string,
  userId: string,
  sessionId: string,
): Promise<boolean> {
  const rows = await withAccountRls(database, accountId).sql(
    sql => sql`
      delete from sessions where account_id = ${accountId} and user_id = ${userId} and id = ${sessionId} returning id`,
  )
  return rows.length > 0
}

/** Whether any of these is locked right now. */
export function isAnyLocked(database: Database, subjects: readonly string[]): Promise<boolean> {
  return database.run(({ sql }) => anyLocked(sql, subjects))
}

async function anyLocked(sql: Sql | TransactionSql, subjects: readonly string[]): Promise<boolean> {
  const rows = await sql`
    select 1 from sign_in_failures
    where subject in (select json_array_elements_text(${JSON.stringify(subjects)}::text::json))
      and locked_until > clock_timestamp()`
  return rows.length > 0
}

/**
 * Counts a failed sign-in against each subject and locks those that have had ten in 15 minutes, each time for twice as
 * long. Returns the subjects that this very failure locked: only a lock's first moment leaves no failure behind it.
 * Failures during a lock do not lengthen it.
 */
export async function recordFailure(database: Database, subjects: readonly string[]): Promise<readonly string[]> {
  const { allowed, withinMinutes, firstLockMinutes, longestLockMinutes, forgottenAfterDays } = failures
  const names = JSON.stringify([...subjects].sort())
  const rows = await database.run(
    ({ sql }) => sql<{ subject: string }[]>`
      with forgotten as (
        delete from sign_in_failures where subject in (
          select subject from sign_in_failures
          where updated_at < clock_timestamp() - make_interval(days => ${forgottenAfterDays * 3})
            and subject not in (select json_array_elements_text(${names}::text::json))
          order by updated_at limit 10 for update skip locked)),
      counted as (
        insert into sign_in_failures as known (subject, failed_at)
        select json_array_elements_text(${names}::text::json), array[clock_timestamp()]
        on conflict (subject) do update set (failed_at, locks, locked_until, updated_at) = (
          select
            case when locked then array[clock_timestamp()] when full_now then '{}' else times end,
            case when locked or not full_now then known.locks else locks_before + 1 end,
            case when locked or not full_now then known.locked_until
              else clock_timestamp() + make_interval(mins =>
                least(${longestLockMinutes}::int, ${firstLockMinutes}::int * (2 ^ least(locks_before, 12))::int)) end,
            clock_timestamp()
          from (select times, cardinality(times) >= ${allowed}::int as full_now,
              coalesce(known.locked_until > clock_timestamp(), false) as locked,
              case when known.locked_until < clock_timestamp() - make_interval(days => ${forgottenAfterDays})
                then 0 else known.locks end as locks_before
            from (select array(select at from unnest(known.failed_at) as at
                where at > clock_timestamp() - make_interval(mins => ${withinMinutes})) || clock_timestamp() as times
            ) as recent) as tried)
        returning subject, failed_at, locked_until)
      select subject from counted where cardinality(failed_at) = 0 and locked_until > clock_timestamp()`,
  )
  return rows.map(row => row.subject)
}

export type SessionDirectory = {
  /** Who a session speaks for; null where it has ended. At most half a second old. Rejects where the store is away. */
  find(sessionId: string): Promise<SessionHolder | null>
  /** Makes what this process itself has changed act at once. */
  forget(): void
}

/** The sessions that one process has just looked up. */
export function createSessionDirectory(options: {
  readonly database: Database
  readonly clock: { monotonic(): number }
}): SessionDirectory {
  const { database, clock } = options
  const entries = new Map<string, { readonly askedAt: number; readonly answer: Promise<SessionHolder | null> }>()

  return {
    find(sessionId) {
      const now = clock.monotonic()
      const entry = entries.get(sessionId)
      if (entry !== undefined && now - entry.askedAt < freshMs) return entry.answer
      // By the time of asking: an answer on its way may already be older than what has happened since.
      const answer = findSession(database, sessionId)
      entries.delete(sessionId)
      entries.set(sessionId, { askedAt: now, answer })
      answer.catch(() => {
        if (entries.get(sessionId)?.answer === answer) entries.delete(sessionId)
      })
      for (const [oldest, { askedAt }] of entries) {
        if (entries.size <= maximumEntries && now - askedAt < freshMs) break
        entries.delete(oldest)
      }
      return answer
    },
    forget: () => entries.clear(),
  }
}
