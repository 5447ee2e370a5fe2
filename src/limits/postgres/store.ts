/**
 * Limits in Postgres: the limit authority, and decisions while Redis does not decide. Each is one function call
 * (in the migration), so that the rules apply to any number of instances without a lock beyond the statement.
 */

import type { Limits } from '../../core/limits/plans.ts'
import type { Scope, ScopeUsage } from '../../core/limits/scopes.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import type { Epoch } from '../epoch.ts'
import type { AdmissionRequest, Reservation } from '../meter.ts'
import type { LimitDatabase } from '../ports.ts'
import { getNumbers, type Numbers, StaleEpoch } from '../reply.ts'

type PostgresStoreOptions = {
  readonly database: LimitDatabase
  /** Unique among the instances on one database, and never reused. */
  readonly gatewayId: string
  readonly leaseMs: number
  /** For tests: the time that Postgres uses, in epoch milliseconds. */
  readonly time?: (() => number) | undefined
}

/** Reply to a heartbeat. */
export type Beat = {
  readonly epoch: number
  readonly holder: Epoch['holder']
  /** True if requests are admitted under this epoch. */
  readonly isOpen: boolean
  /** True if all living instances have registered for it. */
  readonly isComplete: boolean
  readonly living: readonly string[]
}

/** A request of this instance whose usage is not in the ledger. */
export type Registered = {
  readonly requestId: string
  readonly accountId: string
  readonly day: number
  readonly tokens: number
  readonly microcents: number
  readonly outputCap: number
  readonly isOpen: boolean
  /** Milliseconds since its admission. */
  readonly ageMs: number
  /** Names of the scopes that it may count in. */
  readonly scopes: readonly string[]
}

/** What an account is loaded with under a new epoch: the ledger's day, and rows in the script's form. */
export type AccountLoad = {
  readonly tokens: number
  readonly cost: number
  readonly rows: readonly (readonly unknown[])[]
  /** What the ledger has of each limited scope: name, tokens and cost of the day, cost of the month, and `since` of its limits. */
  readonly scopes: readonly (readonly [string, number, number, number, number])[]
}

export type PostgresStore = ReturnType<typeof createPostgresStore>

const cleanEveryBeats = 20

/** Creates the calls on one database. All throw `GatewayError` `service_unavailable` if Postgres is unavailable. */
export function createPostgresStore({ database, gatewayId, leaseMs, time }: PostgresStoreOptions) {
  const now = () => (time === undefined ? null : time())
  /**
   * Heartbeats, changes of the epoch and renewals must not wait behind admissions: an instance that is 3 s late counts as ended,
   * and other instances then decide without its open requests.
   */
  const urgently: LimitDatabase['run'] = (work, deadlineMs) => database.run(work, deadlineMs, true)
  let beats = 0
  /** Releases of requests that settled in one turn of the event loop, sent as one statement. */
  let batch: { readonly rows: (readonly unknown[])[]; readonly epoch: Epoch; readonly sent: Promise<boolean> } | null =
    null

  const release = async (epoch: Epoch, rows: readonly (readonly unknown[])[]) => {
    const [reply] = await database.run(
      ({ sql }) => sql<{ done: boolean }[]>`
        select limit_settle(${epoch.number}, ${JSON.stringify(rows)}::text::json) as done`,
    )
    return reply?.done === true
  }

  const decide = async (epoch: Epoch, request: AdmissionRequest, forMs: number): Promise<Numbers> => {
    const { limits, scopes } = request
    const wanted = scopes === undefined ? null : JSON.stringify(scopes.map(scopeRow))
    const [row] = await database.run(
      ({ sql }) => sql<{ reply: number[] }[]>`
        select to_json(limit_admit(
          ${epoch.number}, ${now()}, ${request.requestId}, ${request.accountId}, ${gatewayId}, ${forMs},
          ${list(limits)}::text::bigint[], ${request.inputTokens}, ${Math.max(1, Math.round(request.outputTokens))},
          ${request.choices}, ${request.fairShare}, ${request.inputPrice}, ${request.outputPrice},
          ${request.extraMicrocents}, ${wanted}::text::json
        )) as reply`,
    )
    return valid(row?.reply)
  }

  return {
    /**
     * Reserves if all limits allow it. A repeated request ID gets the same reply, also if its reservation has ended: IDs are
     * unique, and the only repetition is that of an unanswered call, within 3 s (`DecidingStore.decided`). The meter answers one that it has
     * settled from memory, and a lease outlives the repetition. Throws `StaleEpoch`.
     */
    admit: (epoch: Epoch, request: AdmissionRequest) => decide(epoch, request, leaseMs),

    /** Decides like `admit` and reserves nothing. */
    check: (epoch: Epoch, request: AdmissionRequest) => decide(epoch, request, 0),

    /** Reads an account's counters, in the order of an admission's reply. Throws `StaleEpoch`. */
    async status(epoch: Epoch, accountId: string): Promise<Numbers> {
      const [row] = await database.run(
        ({ sql }) => sql<{ reply: number[] }[]>`
          select case when limit_decides(${epoch.number}) then to_json(array[
            1, 0, 0, 0, 0, time.ms / 86400000, counted.requests,
            case when counted.requests > 0 then counted.newest_ms + 60000 - time.ms else 0 end,
            counted.tokens, counted.microcents, counted.open, time.ms, counted.settled_tokens, counted.settled_microcents
          ]) else '[-1]' end as reply
          from (select limit_now(${now()}) as ms) as time, lateral limit_counts(${accountId}, time.ms) as counted`,
      )
      return valid(row?.reply)
    },

    /** Increases a reservation; null = the account cannot pay for it. Throws `StaleEpoch`. */
    async raise(epoch: Epoch, reservation: Reservation, held: LimitsHeld, wanted: DailyUsage): Promise<Numbers | null> {
      const scopes = JSON.stringify(held.scopes.map(raiseRow))
      const [row] = await database.run(
        ({ sql }) => sql<{ reply: number[] }[]>`
          select to_json(limit_raise(
            ${epoch.number}, ${now()}, ${reservation.requestId}, ${wanted.tokens}, ${wanted.microcents},
            ${list(held.limits)}::text::bigint[], ${scopes}::text::json
          )) as reply`,
      )
      const numbers = valid(row?.reply)
      return numbers[0] === 1 ? numbers : null
    },

    /** Releases a reservation. Its usage counts until the ledger has it. Throws `StaleEpoch`. */
    async settle(epoch: Epoch, requestId: string, spent: DailyUsage): Promise<void> {
      if (batch === null || batch.epoch !== epoch) {
        const rows: (readonly unknown[])[] = []
        const sent = new Promise<void>(done => setImmediate(done)).then(() => {
          if (batch?.rows === rows) batch = null
          return release(epoch, rows)
        })
        batch = { rows, epoch, sent }
      }
      batch.rows.push([requestId, spent.tokens, spent.microcents])
      if (!(await batch.sent)) throw new StaleEpoch()
    },

    /** Renews the leases of these open requests. */
    async renew(requestIds: readonly string[]): Promise<void> {
      if (requestIds.length === 0) return
      await urgently(
        ({ sql }) => sql`
          update limit_reservations set lease_until_ms = limit_now(${now()}) + ${leaseMs}
          where is_open and request_id in (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))`,
      )
    },

    /**
     * Writes a heartbeat and returns the authority. `seesRedis` = this instance has reached Redis long enough to return
     * to it.
     */
    async beat(registered: number, seesRedis: boolean): Promise<Beat> {
      const [row] = await urgently(
        ({ sql }) => sql<{ beat: Beat }[]>`select limit_beat(${gatewayId}, ${registered}, ${seesRedis}) as beat`,
      )
      if (row === undefined) throw new StaleEpoch()
      // The heartbeat is written; the next cleaning deletes what this one leaves.
      if (++beats % cleanEveryBeats === 0) await clean(database, now()).catch(() => {})
      return row.beat
    },

    /**
     * Returns true if other instances have not ended and wrote no heartbeat for 1.5 s: they were killed, or could not reach
     * Postgres. One with a younger heartbeat writes the next before the present one is 3 s old, since its call fails after 1 s.
     */
    async hasSilent(): Promise<boolean> {
      const [row] = await urgently(
        ({ sql }) => sql<{ has: boolean }[]>`
          select exists (
            select from limit_gateways where id <> ${gatewayId} and at <= clock_timestamp() - interval '1.5 seconds'
          ) as has`,
      )
      return row?.has === true
    },

    /** Ends the heartbeat, so that a change of the holder need not wait for this instance. */
    async leave(): Promise<void> {
      await urgently(({ sql }) => sql`delete from limit_gateways where id = ${gatewayId}`)
    },

    /** Makes `holder` decide under a new epoch, at least `atLeast`, unless another instance changed it first. */
    async change(known: number, holder: Epoch['holder'], atLeast = 0): Promise<void> {
      await urgently(({ sql }) => sql`select limit_switch(${known}, ${holder}, ${atLeast})`)
    },

    /** Claims an epoch of Redis that is not open. Returns true once per epoch, although a reply may be lost. */
    async claim(epoch: number): Promise<boolean> {
      // The time of the change is not needed before the epoch is open, and a change of the epoch sets it again.
      const claimed = await urgently(
        ({ sql }) => sql`
          update limit_authority set changed_at = 'infinity'
          where epoch = ${epoch} and holder = 'redis' and not is_open and changed_at < 'infinity' returning id`,
      )
      return claimed.length > 0
    },

    /** Opens a claimed epoch of Redis: requests are admitted under it from now on. Returns false if there is a newer one. */
    async open(epoch: number): Promise<boolean> {
      const opened = await urgently(
        ({ sql }) => sql`
          update limit_authority set is_open = true, changed_at = clock_timestamp() where epoch = ${epoch} returning id`,
      )
      return opened.length > 0
    },

    /**
     * Registers this instance's requests for an epoch. Returns whether the epoch is open by then; null = there is a newer one.
     * The lock makes an instance that opens it meanwhile wait, and then it counts these requests.
     */
    async register(epoch: number, all: readonly Registered[]): Promise<{ readonly isOpen: boolean } | null> {
      const rows = all.map(registered => [
        registered.requestId,
        registered.accountId,
        registered.day,
        registered.tokens,
        registered.microcents,
        registered.outputCap,
        registered.isOpen ? 1 : 0,
        Math.max(0, Math.round(registered.ageMs)),
        ...(registered.scopes.length === 0 ? [] : [registered.scopes]),
      ])
      const [row] = await urgently(
        ({ sql }) => sql<{ done: boolean; isOpen: boolean }[]>`
          select limit_register(${gatewayId}, ${now()}, ${epoch}, ${leaseMs}, ${JSON.stringify(rows)}::text::json) as done,
            held.is_open as "isOpen"
          from (select is_open from limit_authority where epoch = ${epoch} for share) as held`,
        registerDeadlineMs,
      )
      return row?.done === true ? { isOpen: row.isOpen } : null
    },

    /** Returns which of these requests are in the ledger. */
    async inLedger(requestIds: readonly string[]): Promise<readonly string[]> {
      const rows = await database.run(
        ({ sql }) => sql<{ id: string }[]>`
          select request_id as id from usage_records
          where request_id in (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))`,
      )
      return rows.map(({ id }) => id)
    },

    /** Reads what an account is loaded with in one statement, hence one snapshot of ledger and reservations. */
    async load(accountId: string, day: number): Promise<AccountLoad> {
      const [row] = await database.run(
        ({ sql }) => sql<AccountLoad[]>`
          select
            (select coalesce(sum(input_tokens + output_tokens), 0)::float8 from usage_daily
              where account_id = ${accountId} and day = date '1970-01-01' + ${day}::int) as tokens,
            (select coalesce(sum(billed_microcents), 0)::float8 from usage_daily
              where account_id = ${accountId} and day = date '1970-01-01' + ${day}::int) as cost,
            (select coalesce(json_agg(json_build_array(
              request_id, case when counts then tokens else 0 end, case when counts then microcents else 0 end, output_cap, day,
              case when counts and is_open then 1 else 0 end, greatest(0, now_ms - admitted_ms), coalesce(to_json(scopes), '[]'))), '[]')
            from (
              select one.*, limit_now(${now()}) as now_ms, lease_until_ms > limit_now(${now()}) and not exists (
                select from usage_records where usage_records.request_id = one.request_id
                  and at >= to_timestamp(one.day * 86400.0) and at < to_timestamp((one.day + 1) * 86400.0)
              ) as counts
              from limit_reservations as one
              where account_id = ${accountId} and greatest(lease_until_ms, admitted_ms + 60000) > limit_now(${now()})
            ) as beside) as rows,
            (select coalesce(json_agg(json_build_array(name, used.tokens, used.microcents, used.month_microcents, since)), '[]')
            from limit_scopes(${accountId}), lateral limit_scope_used(${accountId}, name, ${day}::bigint) as used) as scopes`,
      )
      return row ?? { tokens: 0, cost: 0, rows: [], scopes: [] }
    },

    /** Reads what the ledger has of these scopes. */
    async loadScopes(accountId: string, names: readonly string[], day: number): Promise<readonly ScopeUsage[]> {
      return database.run(
        ({ sql }) => sql<ScopeUsage[]>`
          select name, used.tokens::float8, used.microcents::float8, used.month_microcents::float8 as "monthMicrocents"
          from json_array_elements_text(${JSON.stringify(names)}::text::json) as name,
            lateral limit_scope_used(${accountId}, name, ${day}::bigint) as used`,
      )
    },
  }
}

const registerDeadlineMs = 5_000

/** Deletes rows that no longer count, and instances that ended long ago. */
function clean(database: LimitDatabase, now: number | null): Promise<unknown> {
  return database.run(
    ({ sql }) => sql`
      with over as (
        delete from limit_reservations where request_id in (
          select request_id from limit_reservations as one
          where admitted_ms < limit_now(${now}) - 60000
            and (lease_until_ms < limit_now(${now}) or not is_open and tokens + microcents = 0)
          limit 1000)
      )
      delete from limit_gateways where at < clock_timestamp() - interval '1 hour'`,
  )
}

function valid(reply: readonly number[] | undefined): Numbers {
  if (reply === undefined || reply[0] === -1) throw new StaleEpoch()
  return getNumbers(reply)
}

/** Limits that a reservation was made under. */
export type LimitsHeld = { readonly limits: Limits; readonly scopes: readonly Scope[] }

function scopeRow({ name, limits }: Scope) {
  return [name, limits.requestsPerMinute, limits.concurrentRequests, ...raiseRow({ name, limits }).slice(1)]
}

function raiseRow({ name, limits }: Scope) {
  return [name, limits.dailyTokens, limits.dailyCostMicrocents, limits.monthlyCostMicrocents]
}

function list(limits: Limits): string {
  const { requestsPerMinute, concurrentRequests, dailyTokens, dailyCostMicrocents } = limits
  return `{${requestsPerMinute},${concurrentRequests},${dailyTokens},${dailyCostMicrocents}}`
}
