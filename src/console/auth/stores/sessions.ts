/**
 * Sessions, their rotating refresh tokens, and sign-in lockouts. A lockout only rejects new sign-ins from unknown
 * network addresses. All times are the database's own, so that instances with different clocks decide alike.
 */

import type { Sql, TransactionSql } from 'postgres'
import { getDigest } from '../../../core/accounts/api-keys.ts'
import type { ProjectRole } from '../../../core/accounts/roles.ts'
import type { Clock } from '../../../core/ports.ts'
import { createRecentMap } from '../../../core/text/recent-map.ts'
import type { Database } from '../../../database/database.ts'
import { changeAudited, recordAudit } from '../../../database/repositories/audit.ts'
import { withAccountRls } from '../../../database/statement.ts'
import type { Principal } from '../../../http/authentication.ts'
import type { ShownSession } from '../schemas.ts'
import { isKnownTo, rememberAddress } from './known-addresses.ts'

type NewSession = {
  readonly id: string
  readonly accountId: string
  readonly userId: string
  readonly userAgent: string | null
  /** SHA-256 of its first refresh token, hex. */
  readonly tokenDigest: string
  /** The hash that the password was checked against. If it has changed since, the sign-in fails. */
  readonly passwordHash: string
  /**
   * The sign-in fails if one of them is locked now, unless the network address is known. On success, the failures of
   * the first one are deleted.
   */
  readonly subjects: readonly string[]
  /** Digests under which the network address is stored: `createAddressDigests`. */
  readonly addressDigests: readonly string[]
  /** Hours after which the user must sign in again, for single sign-on; null = a session in use continues. */
  readonly maximumHours: number | null
}

/** `repeated`: the token was used a moment ago, and its successor is still valid. */
type Rotation =
  | { readonly outcome: 'rotated' | 'repeated'; readonly holder: Principal }
  | { readonly outcome: 'unknown' }
  /** The token was used before, so it was copied. Its session is ended. */
  | { readonly outcome: 'reused'; readonly sessionId: string; readonly userId: string }

const maximumSessions = 5
const idleDays = 30
/** How long two tabs of one browser may send the same token without being treated as theft. */
const repeatSeconds = 10
const freshMs = 500
const maximumEntries = 50_000
const maximumKnownKeys = 10_000
const failures = {
  allowed: 10,
  // An office or a proxy is one address. A locked email address adds no failures, so these are of ten users or more.
  allowedPerAddress: 100,
  withinMinutes: 15,
  firstLockMinutes: 15,
  longestLockMinutes: 24 * 60,
  forgottenAfterDays: 1,
}

/** Returns the subject under which failures of an email address are counted. Contains only its digest. */
export function mailSubject(email: string): string {
  return `mail:${getDigest(email)}`
}

/** Returns the subject for wrong current passwords at a password change. Only a user's own sessions can add to it. */
export function changeSubject(userId: string): string {
  return `change:${userId}`
}

/** Returns the subject for wrong codes of two-factor sign-in. Only clients that know the password can add to it. */
export function twoFactorSubject(userId: string): string {
  return `two-factor:${userId}`
}

/** Returns the subject for failures of a network address (IPv6 by /64). */
export function addressSubject(address: string): string {
  return `address:${address}`
}

/**
 * Signs a user in and ends the oldest session if there would be a sixth. Returns false if user or password hash have
 * changed since the check, or an applicable lockout began. The lock on the user's row serializes it: of 50 concurrent
 * sign-ins exactly 5 sessions remain.
 */
export function startSession(database: Database, session: NewSession): Promise<boolean> {
  const { id, accountId, userId, userAgent, tokenDigest, passwordHash, subjects, addressDigests, maximumHours } =
    session
  return database.run(({ sql }) =>
    sql.begin(async step => {
      // Independent statements are sent together, which shortens the lock on the row.
      const holding = step`
        select 1 from users
        where id = ${userId} and account_id = ${accountId} and removed_at is null and password_hash = ${passwordHash}
        for no key update`.execute()
      const [user, isLocked] = await Promise.all([holding, anyLocked(step, subjects)])
      if (user.length === 0 || (isLocked && !(await isKnownTo(step, userId, addressDigests)))) return false
      const begun = step`
        insert into sessions (id, account_id, user_id, user_agent, created_at, last_used_at, expires_at, ends_at)
        select ${id}, ${accountId}, ${userId}, ${userAgent}, now, now,
          least(now + make_interval(days => ${idleDays}), ends_at), ends_at
        from clock_timestamp() as now, lateral (select now + make_interval(hours => ${maximumHours}::int) as ends_at) as bound
      `.execute()
      const named = step`
        insert into session_tokens (digest, session_id, created_at)
        values (${tokenDigest}, ${id}, clock_timestamp())`.execute()
      const ended = step`
        delete from sessions where user_id = ${userId} and (expires_at <= clock_timestamp() or id in (
          select id from sessions where user_id = ${userId} and expires_at > clock_timestamp() and scopes is null
          order by created_at desc, id desc offset ${maximumSessions}))`.execute()
      // A running lockout stays for other network addresses; otherwise its cause would get ten more attempts.
      const forgotten = step`
        delete from sign_in_failures
        where subject = ${subjects[0] ?? ''} and (locked_until is null or locked_until <= clock_timestamp())`.execute()
      const recorded = recordAudit(step, database, { accountId, action: 'session.created', target: id })
      await Promise.all([begun, named, ended, forgotten, rememberAddress(step, userId, addressDigests), recorded])
      return true
    }),
  )
}

/** Deletes the failures of a subject and its lockout. */
export async function forgetFailures(database: Database, subject: string): Promise<void> {
  await database.run(({ sql }) => sql`delete from sign_in_failures where subject = ${subject}`)
}

/**
 * Exchanges a refresh token once for the next one. `nextDigest` must be derived from the token, so that a repetition
 * finds it.
 */
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
      set last_used_at = clock_timestamp(),
        expires_at = least(clock_timestamp() + make_interval(days => ${idleDays}), ends_at)
      from used where id = used.session_id
      returning id as session_id`,
  )
  const sessionId = rotated[0]?.session_id
  if (sessionId === undefined) return explainUnused(database, digest, nextDigest)
  const holder = await findSession(database, sessionId)
  return holder === null ? { outcome: 'unknown' } : { outcome: 'rotated', holder }
}

/** Returns why a token could not be used: unknown, used a moment ago by another tab, or stolen. */
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

/** Returns the holder of an active session; null if it has ended. `name` is its ID, or the digest of a management key. */
export async function findSession(database: Database, name: string): Promise<Principal | null> {
  const rows = await database.run(
    ({ sql }) => sql<(Omit<Principal, 'projects'> & { projects: Record<string, ProjectRole> })[]>`
      select sessions.id as "sessionId", sessions.account_id as "accountId", users.id as "userId", email, users.role,
        unverified_since is not null as "isUnverified",
        requires_totp and ends_at is null and not exists (
          select from totp_secrets where totp_secrets.user_id = users.id and confirmed_at is not null
        ) as "mustSetUpTwoFactor",
        ends_at is not null and scopes is null as "isSingleSignOn",
        case when scopes is not null then json_build_object('name', sessions.name, 'scopes', scopes) end as "managementKey",
        coalesce((select json_object_agg(project_id, project_members.role) from project_members
          where project_members.user_id = users.id), '{}') as projects
      from sessions join users on users.id = user_id join accounts on accounts.id = users.account_id
      where (sessions.id = ${name} or key_digest = ${name}) and expires_at > clock_timestamp() and removed_at is null`,
  )
  const [row] = rows
  return row === undefined ? null : { ...row, projects: new Map(Object.entries(row.projects)) }
}

/** Returns a user's active sessions, newest first; `current` is the one that asks. */
export function listSessions(
  database: Database,
  accountId: string,
  userId: string,
  current: string,
): Promise<ShownSession[]> {
  return withAccountRls(database, accountId).sql(
    sql => sql<ShownSession[]>`
      select id, user_agent, iso_time(created_at) as created_at, iso_time(last_used_at) as last_used_at,
        iso_time(expires_at) as expires_at, id = ${current} as current
      from sessions
      where account_id = ${accountId} and user_id = ${userId} and scopes is null and expires_at > clock_timestamp()
      order by sessions.created_at desc, id desc`,
  )
}

/** Ends one of a user's sessions. */
export function endSession(
  database: Database,
  accountId: string,
  userId: string,
  sessionId: string,
): Promise<'done' | 'not_found'> {
  return changeAudited<'not_found'>(database, accountId, async step => {
    const rows = await step`
      delete from sessions
      where account_id = ${accountId} and user_id = ${userId} and id = ${sessionId} and scopes is null returning id`
    return rows.length === 0 ? 'not_found' : { action: 'session.ended', target: sessionId }
  })
}

/** Returns true if any of these subjects is locked now. */
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
 * Counts a failed sign-in against each subject and locks those with ten in 15 minutes, network addresses with 100, each
 * time for twice as long.
 * Returns the subjects that this failure locked. Failures during a lockout do not extend it.
 */
export async function recordFailure(database: Database, subjects: readonly string[]): Promise<readonly string[]> {
  const { allowed, allowedPerAddress, withinMinutes, firstLockMinutes, longestLockMinutes, forgottenAfterDays } =
    failures
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
          from (select times, cardinality(times) >=
                case when known.subject like ${addressSubject('%')} then ${allowedPerAddress}::int else ${allowed}::int end
                as full_now,
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

async function noteUse(database: Database, sessionId: string): Promise<void> {
  await database.run(
    ({ sql }) => sql`
      update sessions set last_used_at = clock_timestamp()
      where id = ${sessionId} and last_used_at < clock_timestamp() - interval '1 minute'`,
  )
}

type SessionDirectory = {
  /**
   * Returns the holder of a session by its ID, or by the digest of a management key, at most 500 ms old; null if it has
   * ended. Rejects if the database is unavailable.
   */
  find(name: string): Promise<Principal | null>
  /** Returns true if the digest was that of a management key a moment ago. */
  isKnownKey(digest: string): boolean
  /** Clears the cache after this process changed a session. */
  forget(): void
}

/** Creates the session cache of one process. */
export function createSessionDirectory(options: {
  readonly database: Database
  readonly clock: Pick<Clock, 'monotonic'>
}): SessionDirectory {
  const { database, clock } = options
  const known = createRecentMap<true>(maximumKnownKeys)
  const entries = new Map<string, { readonly askedAt: number; readonly answer: Promise<Principal | null> }>()

  return {
    find(name) {
      const now = clock.monotonic()
      const entry = entries.get(name)
      if (entry !== undefined && now - entry.askedAt < freshMs) return entry.answer
      // Cached by request time: a reply may already be older than a later change.
      const answer = findSession(database, name)
      entries.delete(name)
      entries.set(name, { askedAt: now, answer })
      answer.then(
        holder => {
          if (holder === null || holder.managementKey === null) return
          known.set(name, true)
          // Without this, only the date of the last use would be older.
          noteUse(database, holder.sessionId).catch(() => {})
        },
        () => {
          if (entries.get(name)?.answer === answer) entries.delete(name)
        },
      )
      for (const [oldest, { askedAt }] of entries) {
        if (entries.size <= maximumEntries && now - askedAt < freshMs) break
        entries.delete(oldest)
      }
      return answer
    },
    isKnownKey: digest => known.has(digest),
    forget: () => entries.clear(),
  }
}
