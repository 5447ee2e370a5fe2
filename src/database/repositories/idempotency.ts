/**
 * Results of requests with an `Idempotency-Key`, kept for one day. Postgres decides for all instances; if a row is
 * incomplete (its instance died or could not write), the ledger is read. While Postgres is unavailable Redis decides,
 * and is checked afterwards as long as it may know more. Cost: if one instance reaches only Postgres and another only
 * Redis, both would run a request. No content is stored: keys and bodies are HMACs.
 */

import { intervalTimer, whenNeeded } from '../../core/jobs/repeating.ts'
import type { Log } from '../../core/ports.ts'
import { toCompletedUsage } from '../../core/usage/money.ts'
import { hasClientEffect, type UsageRecord } from '../../core/usage/usage-record.ts'
import { type CompletedUsage, GatewayError } from '../../core/validation/errors.ts'
import type { ClaimOutcome, IdempotencyClaim, IdempotencyResult, IdempotencyStore } from '../../http/idempotency.ts'
import type { Database } from '../database.ts'
import type { Redis } from '../redis.ts'

export type IdempotencyRegistry = IdempotencyStore & { close(): Promise<void> }

type IdempotencyOptions = {
  readonly database: Database
  /** Null = no Redis. */
  readonly redis?: Pick<Redis, 'send'> | null
  readonly log: Pick<Log, 'warn'>
}

type Row = {
  readonly taken: boolean
  readonly digest: string
  readonly status: 'running' | 'finished'
  readonly result_id: string | null
  readonly usage: CompletedUsage | string | null
  readonly is_held: boolean
}

const rememberedHours = 24
const maximumTries = 3
const retryMs = 1_000
const sweepMs = 60_000
const maximumSwept = 10_000
const maximumUnwritten = 10_000

/** Creates the store of one instance. Starts a timer, which does not keep the process alive. */
export function createIdempotencyStore({ database, redis = null, log }: IdempotencyOptions): IdempotencyRegistry {
  /** By claim: writes that the database has not confirmed. */
  const unwritten = new Map<string, () => Promise<unknown>>()

  const write = async (holder: string, action: () => Promise<unknown>) => {
    try {
      await action()
      unwritten.delete(holder)
    } catch {
      unwritten.delete(holder)
      unwritten.set(holder, action)
      const oldest = unwritten.keys().next()
      if (unwritten.size > maximumUnwritten && !oldest.done) unwritten.delete(oldest.value)
      writing.need()
    }
  }
  const writeLeft = async () => {
    for (const [holder, action] of [...unwritten]) {
      await write(holder, action)
      if (unwritten.has(holder)) return
    }
  }
  const writing = whenNeeded(retryMs, writeLeft)
  /** Claims that Redis granted. */
  const stoodInFor = new Set<string>()

  const release = async (claim: IdempotencyClaim) => {
    if (stoodInFor.delete(claim.holder)) await redis?.send(getPlace(claim), ['DEL', getPlace(claim)]).catch(() => {})
    await write(claim.holder, () => remove(database, claim))
  }
  /** Returns the claim that Redis granted under this key while Postgres was unavailable; null = none. */
  const letRun = async (claim: IdempotencyClaim): Promise<StandIn | null> => {
    const value = await redis?.send(getPlace(claim), ['GET', getPlace(claim)]).catch(() => null)
    const known = typeof value === 'string' ? getStandIn(value) : null
    return known?.holder === claim.holder ? null : known
  }
  const claimInRedis = async (claim: IdempotencyClaim, away: unknown): Promise<ClaimOutcome> => {
    const value = standInFor(claim)
    // Only as long as the request may run: a command that was executed without a reply must not block the key for a
    // day.
    const words = ['SET', getPlace(claim), value, 'NX', 'GET', 'PX', String(claim.leaseMs)]
    const known = await redis?.send(getPlace(claim), words).catch(() => undefined)
    // Neither store can tell whether it ran before.
    if (known === undefined) throw away
    if (known !== null && known !== value) {
      const isOther = getStandIn(String(known)).requestDigest !== claim.requestDigest
      return { outcome: isOther ? 'other_request' : 'running' }
    }
    stoodInFor.add(claim.holder)
    return { outcome: 'taken' }
  }
  /**
   * Postgres would grant the claim. A request that started while Postgres was unavailable may not be stored there yet.
   */
  const confirmed = async (claim: IdempotencyClaim): Promise<ClaimOutcome> => {
    const earlier = redis === null ? null : await letRun(claim)
    if (earlier === null) return { outcome: 'taken' }
    const record = await getRecord(database, claim.accountId, earlier.holder)
    if (record !== null && !hasClientEffect(record)) return { outcome: 'taken' }
    await release(claim)
    if (earlier.requestDigest !== claim.requestDigest) return { outcome: 'other_request' }
    return record === null
      ? { outcome: 'running' }
      : { outcome: 'completed', resultId: earlier.holder, usage: toCompletedUsage(record) }
  }
  const sweepOld = () => sweep(database).catch(() => log.warn('idempotency_cleanup_failed'))

  const stopSweeping = intervalTimer(sweepMs, () => void sweepOld())

  return {
    async claim(claim) {
      try {
        for (let tries = 1; tries < maximumTries; tries++) {
          const row = await take(database, claim)
          // Another request claimed it between this statement's snapshot and its insert: read again.
          if (row === null) continue
          const judgement = await judged(database, claim, row)
          return judgement.outcome === 'taken' ? await confirmed(claim) : judgement
        }
        return { outcome: 'running' }
      } catch (error) {
        // The timed-out claim may still be executed and would block the key for the maximum run time.
        if (redis === null || !(error instanceof GatewayError)) {
          void release(claim)
          throw error
        }
        return claimInRedis(claim, error)
      }
    },
    async finish(claim, result) {
      if (stoodInFor.delete(claim.holder)) {
        const words = ['SET', getPlace(claim), standInFor(claim), 'EX', String(rememberedHours * 3600)]
        await redis?.send(getPlace(claim), words).catch(() => {})
      }
      return write(claim.holder, () => complete(database, claim, result))
    },
    release,
    async close() {
      await writing.close()
      stopSweeping()
      await writeLeft()
    },
  }
}

type StandIn = { readonly holder: string; readonly requestDigest: string }

function getPlace({ accountId, name }: IdempotencyClaim): string {
  return `idempotency:{${accountId}}:${name}`
}

function standInFor({ holder, requestDigest }: IdempotencyClaim): string {
  return `${holder} ${requestDigest}`
}

function getStandIn(value: string): StandIn {
  const [holder = '', requestDigest = ''] = value.split(' ')
  return { holder, requestDigest }
}

/** Claims a key that is unused or expired, or returns its holder; null = neither row was visible. */
async function take(database: Database, claim: IdempotencyClaim): Promise<Row | null> {
  const { accountId, name, requestDigest, holder, leaseMs } = claim
  const rows = await database.run(
    ({ sql }) => sql<Row[]>`
      with taken as (
        insert into idempotency_keys as known (
          account_id, name, request_digest, status, result_id, lease_ends_at, created_at)
        select ${accountId}, ${name}, ${requestDigest}, 'running', ${holder},
          now + ${leaseMs} * interval '1 millisecond', now
        from clock_timestamp() as now
        on conflict (account_id, name) do update set
          request_digest = excluded.request_digest, status = 'running', result_id = excluded.result_id, usage = null,
          lease_ends_at = excluded.lease_ends_at, created_at = excluded.created_at
        where known.created_at < excluded.created_at - make_interval(hours => ${rememberedHours})
        returning *)
      select true as taken, request_digest as digest, status, result_id, usage, true as is_held from taken
      union all
      select false, request_digest, status, result_id, usage, lease_ends_at > clock_timestamp()
      from idempotency_keys
      where account_id = ${accountId} and name = ${name} and not exists (select from taken)`,
  )
  return rows[0] ?? null
}

async function judged(database: Database, claim: IdempotencyClaim, row: Row): Promise<ClaimOutcome> {
  // A timed-out statement may have been executed: then the claim already belongs to this request.
  if (row.taken || (row.status === 'running' && row.result_id === claim.holder)) return { outcome: 'taken' }
  if (row.digest !== claim.requestDigest) return { outcome: 'other_request' }
  const { result_id: earlier, usage } = row
  if (row.status === 'finished')
    return { outcome: 'completed', resultId: earlier, usage: typeof usage === 'string' ? JSON.parse(usage) : usage }
  const record = earlier === null ? null : await getRecord(database, claim.accountId, earlier)
  if (record !== null && hasClientEffect(record))
    return { outcome: 'completed', resultId: earlier, usage: toCompletedUsage(record) }
  // It ended without effect, or its instance died before it had one.
  if (record === null && row.is_held) return { outcome: 'running' }
  return (await takeOver(database, claim, earlier)) ? { outcome: 'taken' } : { outcome: 'running' }
}

type Recorded = Pick<
  UsageRecord,
  | 'status'
  | 'billed_microcents'
  | 'own_key_microcents'
  | 'streamed'
  | 'first_token_ms'
  | 'input_tokens'
  | 'output_tokens'
  | 'estimated'
>

/** Returns the ledger's record of a request. A recent one requires reading at most two partitions. */
async function getRecord(database: Database, accountId: string, requestId: string): Promise<Recorded | null> {
  const rows = await database.run(
    ({ sql }) => sql<Recorded[]>`
      select status, billed_microcents::float8, coalesce(own_key_microcents, 0)::float8 as own_key_microcents, streamed,
        first_token_ms::float8, input_tokens::float8,
        output_tokens::float8, estimated
      from usage_records
      where request_id = ${requestId} and account_id = ${accountId}
        and at > clock_timestamp() - make_interval(hours => ${rememberedHours + 2})`,
  )
  return rows[0] ?? null
}

/** Returns true for one of several concurrent callers. */
async function takeOver(database: Database, claim: IdempotencyClaim, earlier: string | null): Promise<boolean> {
  const { accountId, name, holder, leaseMs } = claim
  const rows = await database.run(
    ({ sql }) => sql`
      update idempotency_keys set
        result_id = ${holder}, created_at = clock_timestamp(),
        lease_ends_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      where account_id = ${accountId} and name = ${name} and status = 'running'
        and result_id is not distinct from ${earlier}
      returning name`,
  )
  return rows.length > 0
}

/** Creates the row if Redis had granted the claim. */
function complete(
  database: Database,
  claim: IdempotencyClaim,
  { resultId, usage }: IdempotencyResult,
): Promise<unknown> {
  const { accountId, name, requestDigest, holder } = claim
  return database.run(
    ({ sql }) => sql`
      insert into idempotency_keys as known (
        account_id, name, request_digest, status, result_id, usage, lease_ends_at, created_at)
      select ${accountId}, ${name}, ${requestDigest}, 'finished', ${resultId},
        ${usage === null ? null : JSON.stringify(usage)}::text::jsonb, now, now
      from clock_timestamp() as now
      on conflict (account_id, name) do update set
        status = 'finished', result_id = excluded.result_id, usage = excluded.usage
      where known.status = 'running' and known.result_id = ${holder}`,
  )
}

function remove(database: Database, { accountId, name, holder }: IdempotencyClaim): Promise<unknown> {
  return database.run(
    ({ sql }) => sql`
      delete from idempotency_keys
      where account_id = ${accountId} and name = ${name} and status = 'running' and result_id = ${holder}`,
  )
}

/** Deletes rows older than one day. */
function sweep(database: Database): Promise<unknown> {
  return database.run(
    ({ sql }) => sql`
      delete from idempotency_keys where (account_id, name) in (
        select account_id, name from idempotency_keys
        where created_at < clock_timestamp() - make_interval(hours => ${rememberedHours})
        order by created_at limit ${maximumSwept} for update skip locked)`,
  )
}
