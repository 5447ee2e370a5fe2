/**
 * The meter in Redis, for any number of gateways: an account's counts are one hash, every decision one script
 * (`scripts/requests.ts`). A warm request costs two round trips, one to admit and one to settle; the usage record enters a
 * stream in the second.
 */
import { dayMs, dayOf } from '../core/days.ts'
import { type Limits, noLimits } from '../core/plans.ts'
import { createKeptRecords, type KeptRecords } from './meter/kept-records.ts'
import { createLeases, type Leases, type LeasesOptions } from './meter/leases.ts'
import { type PartitionKeys, partitionOf } from './meter/partitions.ts'
import { createRedisOpenings } from './meter/redis-openings.ts'
import { createRegistrar, type Registrar } from './meter/registration.ts'
import { recordOf, spentBy } from './meter/settled-record.ts'
import { createSettledSeats } from './meter/settled-seats.ts'
import { nothing, type Seed, type Settled, type Spent } from './meter/spent.ts'
import { createStandings, untouched } from './meter/standings.ts'
import { createSweep, type Sweep } from './meter/sweep.ts'
import { type UnderEpochOptions, underEpoch } from './meter/under-epoch.ts'
import type { Admission, AdmitRequest, Meter, RefusalCode, Seat, Settlement, Standing } from './meter.ts'
import { whole } from './scripts/account.ts'
import { admitScript, raiseScript, settleScript } from './scripts/requests.ts'

export type RedisMeterOptions = Pick<UnderEpochOptions, 'redis' | 'epochOf'> & {
  /** Unique among the gateways on one Redis, and never used again. */
  readonly gatewayId: string
  /** Epoch milliseconds of this process, for what it remembers. What counts is timed by Redis. */
  readonly clock: { now(): number }
  readonly seed: Seed
  /** Hears of every admission in the step that notes it. */
  readonly onAdmitted?: (accountId: string) => void
  /** Hears whenever Redis says what an account has used: all that was registered of it is counted there. */
  readonly onHeard?: (accountId: string) => void
  /** Hears of what was settled in Redis before the account's day had begun there, so that it said nothing of it. */
  readonly onUnread?: (settlement: Settlement) => void
  readonly elsewhere?: LeasesOptions['elsewhere']
  /** How long a seat is held for a gateway that has fallen silent. */
  readonly leaseMs?: number
  /** Tests: the time that Redis is to believe in. */
  readonly time?: () => number
}

/** The port's three throw `RedisAway` (it may have happened all the same) or `RedisEmptied`. */
export type RedisMeter = Pick<Meter, 'admit' | 'raise' | 'settle' | 'standing'> &
  Leases &
  Registrar & {
    /** What is used of today as Redis last said; null = never said, or on another day. */
    lastSpent(accountId: string): Spent | null
    /** What Redis last said is settled of accounts of a partition. */
    lastSettled(partition: number): Map<string, Settled>
    readonly sweep: Sweep
    /** Records in the stream that the ledger is not known to have. */
    readonly kept: KeptRecords
  }

/** With what it takes to find out, to settle and to ship, a dead gateway's requests are in the ledger within 15 s. */
export const defaultLeaseMs = 8_000
const million = 1_000_000n
const refusals: readonly (RefusalCode | null)[] = [
  null,
  null,
  'requests_per_minute_exceeded',
  'concurrent_requests_exceeded',
  'daily_tokens_exceeded',
  'daily_cost_exceeded',
]

/** A meter over `redis`. Owns no timer: leases live only as long as somebody calls `renew` a few times in each. */
export function createRedisMeter(options: RedisMeterOptions): RedisMeter {
  const { redis, clock, gatewayId, epochOf, seed, elsewhere, time, leaseMs = defaultLeaseMs } = options
  const { onAdmitted = () => {}, onHeard = () => {}, onUnread = () => {} } = options
  const standings = createStandings(clock)
  const kept = createKeptRecords()
  const settled = createSettledSeats()
  const run = underEpoch({ redis, epochOf, time })
  const openings = createRedisOpenings(seed, (accountId, values) => run(admitScript, accountId, streamOf, values))
  const { open, ...leases } = createLeases({ run, gatewayId, leaseMs, epochOf, elsewhere })

  const standing = (accountId: string, limits: Limits): Standing =>
    standings.now(accountId, limits) ?? untouched(limits)

  const admit = async (request: AdmitRequest): Promise<Admission> => {
    const { requestId, accountId, limits } = request
    const before = settled.get(requestId)
    if (before !== undefined) return { admitted: true, seat: before.seat, standing: standing(accountId, limits) }
    const values = admitValues(request, leaseMs)
    const first = await run(admitScript, accountId, streamOf, values)
    const reply = first[0] === 0 ? await openings.begin(accountId, values, first) : first
    const [
      status,
      wait,
      outputCap,
      reservedTokens,
      reservedMicrocents,
      day,
      requests,
      resetMs,
      tokens,
      microcents,
      seats,
      at,
      settledTokens,
      settledMicrocents,
    ] = numbers(reply)
    standings.note(accountId, {
      at: clock.now(),
      day: dayOf(at),
      requests,
      resetMs,
      tokens,
      microcents,
      seats,
      dayEndsInMs: dayMs - (at % dayMs),
      settled: { tokens: settledTokens, microcents: settledMicrocents },
    })
    onHeard(accountId)
    const code = refusals[status] ?? null
    if (code !== null)
      return {
        admitted: false,
        code,
        retryAfterMs: Math.max(1, Math.ceil(wait)),
        standing: standing(accountId, limits),
      }
    const seat: Seat = { requestId, accountId, outputCap, reservedTokens, reservedMicrocents, day }
    if (!open.has(requestId)) {
      open.set(requestId, { seat, limits, admittedAt: clock.now(), progress: null, isDue: false, isUnheard: false })
      onAdmitted(accountId)
    }
    return { admitted: true, seat, standing: standing(accountId, limits) }
  }

  return {
    ...leases,
    ...createRegistrar({ redis, gatewayId, leaseMs, time }),
    sweep: createSweep({ redis, gatewayId, epochOf, time }),
    kept,
    admit,

    async raise(seat, reservedTokens, reservedMicrocents) {
      const held = open.get(seat.requestId)
      if (held === undefined) return null
      const { limits } = held
      const reply = numbers(
        await run(raiseScript, seat.accountId, () => [], [
          seat.requestId,
          whole(reservedTokens),
          whole(reservedMicrocents),
          whole(limits.dailyTokens),
          whole(limits.dailyCostMicrocents),
        ]),
      )
      if (reply[0] !== 1) return null
      held.seat = { ...held.seat, reservedTokens: reply[1], reservedMicrocents: reply[2] }
      const noted = standings.last(seat.accountId)
      if (noted !== null) standings.note(seat.accountId, { ...noted, tokens: reply[3], microcents: reply[4] })
      return held.seat
    },

    async settle(settlement) {
      const { requestId, accountId } = settlement.seat
      const held = open.get(requestId)
      if (held === undefined && settled.has(requestId))
        return standing(accountId, settled.get(requestId)?.limits ?? noLimits)
      const seat = held?.seat ?? settlement.seat
      const limits = held?.limits ?? noLimits
      const spent = spentBy(settlement, seat)
      const record = recordOf(settlement.record, seat, spent)
      // From here on no renewal names it: one that came after the settling would speak of a lease that is gone.
      open.delete(requestId)
      let reply: readonly unknown[]
      try {
        reply = await run(settleScript, accountId, streamOf, [
          requestId,
          whole(spent.tokens),
          whole(spent.microcents),
          JSON.stringify(record),
          held === undefined || held.progress !== null ? '1' : '0',
        ])
      } catch (cause) {
        if (held !== undefined) open.set(requestId, held)
        throw cause
      }
      settled.set(requestId, { seat, limits })
      const entryId = String(reply[1])
      if (entryId !== '') kept.add(partitionOf(accountId), entryId, record)
      const [, , countedDay, tokens, microcents, seats, told, settledTokens, settledMicrocents] = numbers(reply)
      // An entry's id begins with the milliseconds of its writing.
      const at = told || Number.parseInt(entryId, 10)
      const noted = standings.last(accountId)
      if (countedDay === -1) {
        onUnread({ ...settlement, seat })
        return standing(accountId, limits)
      }
      standings.note(accountId, {
        at: clock.now(),
        day: dayOf(at),
        requests: noted?.requests ?? 0,
        resetMs: noted === null ? 0 : Math.max(0, noted.resetMs - (clock.now() - noted.at)),
        // The hash may still hold the day before: it turns with the next admission.
        ...(countedDay === dayOf(at) ? { tokens, microcents } : nothing),
        seats,
        dayEndsInMs: dayMs - (at % dayMs),
        settled: countedDay === dayOf(at) ? { tokens: settledTokens, microcents: settledMicrocents } : nothing,
      })
      onHeard(accountId)
      // A map keeps for a while what is deleted from it (`core/roster.ts`): let that not be the whole request.
      if (held !== undefined) held.progress = null
      return standing(accountId, limits)
    },

    standing: standings.now,
    lastSpent: standings.lastSpent,
    lastSettled: partition => standings.lastSettled(accountId => partitionOf(accountId) === partition),
  }
}

function admitValues(request: AdmitRequest, leaseMs: number): string[] {
  const { limits, inputTokens, choices } = request
  const cap = Math.max(1, Math.round(request.outputTokens))
  const inputCost = BigInt(inputTokens) * BigInt(request.inputPrice)
  const price = BigInt(choices) * BigInt(request.outputPrice)
  const extra = BigInt(request.extraMicrocents)
  const wantedCost = (inputCost + BigInt(cap) * price + million - 1n) / million + extra
  return [
    request.requestId,
    whole(limits.requestsPerMinute),
    whole(limits.concurrentRequests),
    whole(limits.dailyTokens),
    whole(limits.dailyCostMicrocents),
    String(cap),
    String(inputTokens + cap * choices),
    String(wantedCost),
    request.fairShare ? '1' : '0',
    String(leaseMs),
    `${whole(inputTokens)}:${whole(choices)}:${inputCost / million + extra}:${inputCost % million}:${price / million}:${price % million}`,
  ]
}

type Numbers = readonly [
  ...(readonly [number, number, number, number, number, number, number]),
  ...(readonly [number, number, number, number, number, number, number]),
]
const numbers = (reply: readonly unknown[]): Numbers => {
  const at = (index: number) => Number(reply[index] ?? 0)
  return [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11), at(12), at(13)]
}
const streamOf = ({ stream }: PartitionKeys) => [stream]
