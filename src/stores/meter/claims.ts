/**
 * What gateways may hand out while Redis cannot decide: claims in Postgres, one row for an account and a gateway. The ledger
 * and the claims of all gateways together never exceed a limit, so however many decide alone, and however unevenly they lost
 * Redis, nothing is handed out twice.
 *
 * Two authorities must not rule at once. Accounts are in partitions; a gateway says here which of them it admits in Redis, and
 * which it must decide without. Nobody is given a claim while another living gateway may still admit in Redis, and nobody goes
 * back to Redis while another must do without: the two sayings are written under one lock.
 *
 * A gateway lives while its last sign is younger than 3 s by the database's clock. What a dead one had claimed stays claimed
 * for 12 s; what it used is in the ledger by then, or settled there when it starts again.
 */
import type { Sql, TransactionSql } from 'postgres'
import type { Limits } from '../../core/plans.ts'
import { type CountedUsage, correctionOf } from '../../core/usage-truth.ts'
import type { Database } from '../database.ts'
import { sumOf, type Waiting } from './spent.ts'

/** An amount of each of the four limits; money in 1e-8 USD, requests of the last minute. */
export type Amounts = {
  readonly tokens: number
  readonly microcents: number
  readonly seats: number
  readonly requests: number
}

/** What a gateway has handed out of an account: open reservations and seats, and the last minute's admissions. */
export type HandedOut = {
  readonly accountId: string
  /** UTC day (since the epoch) of tokens and money. */
  readonly day: number
  readonly out: Amounts
  /** Settled, and perhaps not in the ledger yet. */
  readonly waiting: readonly Waiting[]
}

export type Claim = HandedOut & {
  readonly limits: Limits
  /** Wanted on top of what is out, now. */
  readonly need: Amounts
  /** Claimed already, and may be handed out while this is on its way. */
  readonly kept: Amounts
  /** Welcome on top of what is needed, so that not every request has to ask. */
  readonly spare: Amounts
}

export type Claimed = {
  readonly accountId: string
  readonly day: number
  /** In the ledger, or claimed by others. */
  readonly elsewhere: Amounts
  /** What this gateway has out, those that wait and are not in the ledger included. */
  readonly out: Amounts
  /** What it may have out. */
  readonly mine: Amounts
  /** What nobody has claimed. */
  readonly rest: Amounts
}

/** What a gateway says of itself; sets of partitions, one bit each. */
export type Saying = {
  /** It may be admitting in Redis. */
  readonly inRedis: number
  /** It must decide without. */
  readonly without: number
  /** It has a connection to Redis. */
  readonly seesRedis: boolean
}

/** What the living others say. */
export type Others = {
  readonly count: number
  readonly without: number
  /** Decided without by one that does not see Redis: it will not be back before that one is. */
  readonly barred: number
  /** Those that may be alive: heard of within 6 s. */
  readonly living: readonly string[]
}

export type Claims = {
  /** A sign of life. */
  beat(saying: Saying): Promise<Others>
  /** Says so, and puts down what is out of all accounts of the partitions that it leaves. */
  leave(saying: Saying, partitions: number, all: readonly HandedOut[]): Promise<void>
  /** Says so, unless another must do without one of `wanted`: those are left out. Resolves with the partitions it got. */
  enter(saying: Saying, wanted: number): Promise<number>
  /** Null = another gateway may still admit one of these accounts in Redis. */
  claim(partitions: number, claims: readonly Claim[]): Promise<readonly Claimed[] | null>
  /** Takes this gateway's rows away: it is ending, and has shipped what it had. */
  end(): Promise<void>
}

export type ClaimsOptions = {
  readonly database: Database
  readonly gatewayId: string
  readonly partitionOf: (accountId: string) => number
}

/** Any number will do that no one else uses on this database. */
const sayingLock = 7_245_001_502
const accountLocks = 7_245_001_503
const livesSeconds = 3
/** Longer: what a dead one has left open is settled, which cannot be taken back. */
const mayLiveSeconds = 6
const claimsOutliveSeconds = 12
const forgottenAfterSeconds = 3600

/** Claims over one database. Every call rejects with `service_unavailable` where it is away, after 1 s at most. */
export function createClaims({ database, gatewayId, partitionOf }: ClaimsOptions): Claims {
  // A call that was given up on may be carried out later: it must not overwrite what was said since.
  let turn = 0

  /** No row where something later was said already. */
  const say = (sql: Sql | TransactionSql, own: number, { inRedis, without, seesRedis }: Saying) => sql`
    insert into gateways (id, at, turn, in_redis, without_redis, sees_redis)
    values (${gatewayId}, clock_timestamp(), ${own}, ${inRedis}, ${without}, ${seesRedis})
    on conflict (id) do update set
      at = clock_timestamp(), turn = excluded.turn, in_redis = excluded.in_redis,
      without_redis = excluded.without_redis, sees_redis = excluded.sees_redis
    where gateways.turn < excluded.turn
    returning id`

  const others = async (sql: Sql | TransactionSql): Promise<Others> => {
    const [found] = await sql<(Omit<Others, 'living'> & { living: string })[]>`
      select count(*) filter (where lives)::int as count,
        coalesce(bit_or(without_redis) filter (where lives), 0)::int as without,
        coalesce(bit_or(without_redis) filter (where lives and not sees_redis), 0)::int as barred,
        coalesce(string_agg(id, ','), '') as living
      from (
        select *, at > clock_timestamp() - ${livesSeconds} * interval '1 second' as lives
        from gateways
        where id <> ${gatewayId} and at > clock_timestamp() - ${mayLiveSeconds} * interval '1 second') as heard`
    const { living = '', ...said } = found ?? { count: 0, without: 0, barred: 0 }
    return { ...said, living: living === '' ? [] : living.split(',') }
  }

  const write = async (
    sql: TransactionSql,
    own: number,
    rows: readonly (Pick<Claimed, 'accountId' | 'day'> & Amounts)[],
  ) => {
    await sql`
      insert into limit_claims (account_id, gateway_id, turn, partition, day, tokens, microcents, seats, requests)
      select account_id, ${gatewayId}, ${own}::bigint, partition, day, tokens, microcents, seats, requests
      from json_to_recordset(${json(rows.map(row => ({ ...row, account_id: row.accountId, partition: partitionOf(row.accountId) })))}::text::json)
        as claimed(account_id text, partition int, day int, tokens bigint, microcents bigint, seats int, requests int)
      order by account_id
      on conflict (account_id, gateway_id) do update set
        turn = excluded.turn, day = excluded.day, tokens = excluded.tokens, microcents = excluded.microcents, seats = excluded.seats,
        requests = excluded.requests
      where limit_claims.turn < excluded.turn`
  }

  return {
    async beat(saying) {
      const own = ++turn
      return database.run(async ({ sql }) => {
        const [, found] = await Promise.all([say(sql, own, saying), others(sql)])
        return found
      })
    },

    async leave(saying, partitions, all) {
      const own = ++turn
      await database.run(({ sql }) =>
        sql.begin(async transaction => {
          await transaction`select pg_advisory_xact_lock(${sayingLock})`
          const said = await say(transaction, own, saying)
          if (said.length === 0) return
          await transaction`
            delete from limit_claims where gateway_id = ${gatewayId} and (1 << partition) & ${partitions} <> 0`
          if (all.length === 0) return
          const known = await ledgerOf(transaction, gatewayId, all)
          const rows = all.map((one, index) => ({
            accountId: one.accountId,
            day: one.day,
            ...outWith(one, known[index]?.present ?? []),
          }))
          await write(transaction, own, rows)
        }),
      )
    },

    async enter(saying, wanted) {
      const own = ++turn
      return database.run(({ sql }) =>
        sql.begin(async transaction => {
          await transaction`select pg_advisory_xact_lock(${sayingLock})`
          const { without } = await others(transaction)
          const entered = wanted & ~without
          const said = await say(transaction, own, { ...saying, inRedis: saying.inRedis | entered })
          if (said.length === 0) return 0
          await transaction`
            delete from limit_claims where gateway_id = ${gatewayId} and (1 << partition) & ${entered} <> 0`
          return entered
        }),
      )
    },

    async claim(partitions, claims) {
      const own = ++turn
      return database.run(({ sql }) =>
        sql.begin(async transaction => {
          const names = json(claims.map(({ accountId }) => accountId))
          await transaction`
            select pg_advisory_xact_lock(key) from (
              select hashtextextended(name, ${accountLocks}) as key
              from json_array_elements_text(${names}::text::json) as name order by 1) as keys`
          // Only now: this statement sees what whoever had the lock before has written.
          const [living] = await transaction<{ admitting: boolean; count: number }[]>`
            select coalesce(bool_or(in_redis & ${partitions} <> 0), false) as admitting, count(*)::int as count
            from gateways
            where id <> ${gatewayId} and at > clock_timestamp() - ${livesSeconds} * interval '1 second'`
          if (living === undefined || living.admitting) return null
          // And only now: what whoever has left Redis since has put down must be seen, too.
          const known = await ledgerOf(transaction, gatewayId, claims)
          const claimed = claims.map((one, index) => {
            const { present, ...elsewhere } = known[index] ?? nothingKnown
            return granted(one, elsewhere, outWith(one, present), living.count + 1)
          })
          await write(
            transaction,
            own,
            claimed.map(({ accountId, day, mine }) => ({ accountId, day, ...mine })),
          )
          return claimed
        }),
      )
    },

    async end() {
      await database.run(async ({ sql }) => {
        await Promise.all([
          sql`delete from gateways where id = ${gatewayId} or at < clock_timestamp() - ${forgottenAfterSeconds} * interval '1 second'`,
          sql`delete from limit_claims where gateway_id = ${gatewayId} or gateway_id not in (select id from gateways)`,
        ])
      })
    },
  }
}

/**
 * Of what is free, what is needed, and what is kept or a part of the rest: at most so much that every gateway could still be
 * given as much again, since what one holds and does not use is refused to the others until it is given back.
 */
export function granted(claim: Claim, elsewhere: Amounts, out: Amounts, gateways: number): Claimed {
  const { accountId, day, need, kept, spare, limits } = claim
  const limit = amountsOf(limits)
  const room = (one: keyof Amounts) => {
    const free = Math.max(0, limit[one] - elsewhere[one] - out[one])
    const bonus = Math.min(spare[one], fairPart(free - need[one], gateways))
    return Math.min(free, need[one] + Math.max(kept[one], bonus))
  }
  const mine = each(one => out[one] + room(one))
  return {
    accountId,
    day,
    elsewhere,
    out,
    mine,
    rest: each(one => Math.max(0, limit[one] - elsewhere[one] - mine[one])),
  }
}

/** So much of what is free that every gateway could be given it twice. */
export function fairPart(free: number, gateways: number): number {
  return Math.floor(Math.max(0, free) / (2 * gateways))
}

/** `present` = the requests among those that wait that the ledger has. */
type Known = Amounts & { readonly present: readonly (CountedUsage & { readonly id: string })[] }

/** What the ledger and the others' claims hold of each account, and which of the requests that wait are in the ledger. */
async function ledgerOf(sql: TransactionSql, gatewayId: string, all: readonly HandedOut[]): Promise<readonly Known[]> {
  const wanted = all.map(({ accountId, day, waiting }) => ({
    account_id: accountId,
    day,
    ids: waiting.map(({ requestId }) => requestId),
  }))
  const rows = await sql<{ known: string }[]>`
    select json_build_object(
      'tokens', coalesce(used.tokens, 0) + coalesce(claimed.tokens, 0),
      'microcents', coalesce(used.microcents, 0) + coalesce(claimed.microcents, 0),
      'seats', coalesce(claimed.seats, 0), 'requests', coalesce(claimed.requests, 0),
      'present', coalesce(found.rows, '[]'::json))::text as known
    from json_array_elements(${json(wanted)}::text::json) with ordinality as listed(wanted, place)
    cross join lateral (select wanted ->> 'account_id' as account_id, (wanted ->> 'day')::int as day) as asked
    left join lateral (
      select sum(input_tokens + output_tokens) as tokens, sum(billed_microcents) as microcents
      from usage_daily
      where usage_daily.account_id = asked.account_id and usage_daily.day = date '1970-01-01' + asked.day) as used on true
    left join lateral (
      select
        sum(tokens) filter (where limit_claims.day = asked.day) as tokens,
        sum(microcents) filter (where limit_claims.day = asked.day) as microcents,
        sum(seats) as seats, sum(requests) as requests
      from limit_claims join gateways on gateways.id = gateway_id
      where limit_claims.account_id = asked.account_id and gateway_id <> ${gatewayId}
        and gateways.at > clock_timestamp() - ${claimsOutliveSeconds} * interval '1 second') as claimed on true
    left join lateral (
      select json_agg(json_build_object(
        'id', request_id, 'truth', truth, 'tokens', input_tokens + output_tokens, 'microcents', billed_microcents)) as rows
      from usage_records
      where usage_records.account_id = asked.account_id
        and request_id in (select json_array_elements_text(wanted -> 'ids'))) as found on true
    order by place`
  return rows.map(({ known }) => JSON.parse(known) as Known)
}

/** What is out, with those that wait and are not in the ledger, or only to a checkpoint. */
function outWith({ out, waiting, day }: HandedOut, present: Known['present']): Amounts {
  const inLedger = new Map(present.map(one => [one.id, one]))
  const ofDay = waiting.filter(one => one.day === day)
  const added = ofDay.map(one => correctionOf(inLedger.get(one.requestId), one))
  const { tokens, microcents } = sumOf([out, ...added])
  return { ...out, tokens: Math.max(0, tokens), microcents: Math.max(0, microcents) }
}

export function amountsOf(limits: Limits): Amounts {
  return {
    tokens: limits.dailyTokens,
    microcents: limits.dailyCostMicrocents,
    seats: limits.concurrentRequests,
    requests: limits.requestsPerMinute,
  }
}

/** Amounts, each as `of` says. */
export function each(of: (one: keyof Amounts) => number): Amounts {
  return { tokens: of('tokens'), microcents: of('microcents'), seats: of('seats'), requests: of('requests') }
}

export const noAmounts: Amounts = { tokens: 0, microcents: 0, seats: 0, requests: 0 }

const nothingKnown: Known = { ...noAmounts, present: [] }
const json = (value: unknown) => JSON.stringify(value)
