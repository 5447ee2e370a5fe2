/**
 * Redis while it answers, this process while it does not. A request is never lost between the two: a seat is settled by
 * whichever meter has it, and what Redis may or may not have carried out is keyed by request id.
 *
 * Without Redis each gateway hands out its share of what is left: the limit less what the ledger holds, by the number of
 * gateways last seen alive, of which its own open reservations and records on their way take their part. Counts are made
 * anew, from the ledger and from what every gateway registers, before Redis decides again (`roll-call.ts`), so that nothing
 * is counted twice and nothing is missed.
 */
import type { Limits } from '../core/plans.ts'
import type { UsageRecord } from '../core/usage.ts'
import { createWindowLog, type WindowLog } from '../core/windows-log.ts'
import type { Checkpoints } from './checkpoints.ts'
import { type Journal, JournalUnwritable } from './journal.ts'
import type { Admission, AdmitRequest, Meter, Seat, Settlement, Standing } from './meter.ts'
import { createLocalMeter, remember, type Spent } from './meter-local.ts'
import {
  createRedisMeter,
  defaultLeaseMs,
  partitionOf,
  partitions,
  RedisEmptied,
  type RedisMeter,
  type Waiting,
} from './meter-redis.ts'
import { type Redis, RedisAway } from './redis.ts'
import { type RollCall, startRollCall } from './roll-call.ts'

export type FailoverOptions = {
  readonly redis: Redis
  readonly clock: { now(): number; monotonic(): number }
  readonly journal: Pick<Journal, 'append' | 'appendTogether' | 'isWritable' | 'untilDurable' | 'unshipped'>
  readonly checkpoints?: Checkpoints
  /** Unique among the gateways on one Redis, and never used again. */
  readonly gatewayId: string
  readonly newName: () => string
  /** What the ledger holds of an account's UTC day, and of these requests where it has them not yet. */
  readonly seed: (accountId: string, day: number, waiting: readonly Waiting[]) => Promise<Spent>
  readonly rebuildMs?: number
  /** How long a seat in Redis is held for a gateway that has fallen silent; renewed three times as often. */
  readonly leaseMs?: number
  /** Tests: the time that Redis is to believe in. */
  readonly time?: () => number
}

export type FailoverMeter = Meter & {
  /** For the shipper: what the stream holds of this gateway's. */
  readonly kept: RedisMeter['kept']
  /** Whether Redis decides for an account now. */
  isShared(accountId: string): boolean
}

const dayMs = 86_400_000
const minuteMs = 60_000
/** How long an admission waits while counts are being made anew; then it is decided without Redis. */
const holdMs = 1000
const tickMs = 1000
const maximumAccounts = 100_000
/** As many as it takes the breaker to open. */
const maximumTries = 5

/** A meter over both. `close` ends its timers and leaves Redis' connection to its owner. */
export function createFailoverMeter(options: FailoverOptions): FailoverMeter {
  const { redis, clock, journal, seed, leaseMs = defaultLeaseMs } = options
  /** The last minute's admissions by this gateway, whichever meter decided. */
  const recent = new Map<string, WindowLog>()
  /** What the ledger held, and whoever else is known to have used, when an account came under local limits. */
  const bases = new Map<string, Spent & { readonly day: number }>()
  /** Settled between registering and the new epoch, which holds their leases. */
  const late: Settlement[] = []

  const shared: RedisMeter = createRedisMeter({
    redis,
    clock,
    seed,
    leaseMs,
    epochOf: partition => calls.epochOf(partition),
    ...(options.time === undefined ? {} : { time: options.time }),
  })

  const local = createLocalMeter({
    clock,
    journal,
    ...(options.checkpoints === undefined ? {} : { checkpoints: options.checkpoints }),
    seed: openingOf,
    adopt(accountId) {
      const seats = shared.seatsOf(accountId)
      for (const { seat } of seats) shared.drop(seat.requestId)
      return { seats, ages: recent.get(accountId)?.ages(clock.now()) ?? [] }
    },
  })

  const calls: RollCall = startRollCall({
    redis,
    gatewayId: options.gatewayId,
    newName: options.newName,
    monotonic: clock.monotonic,
    ...(options.rebuildMs === undefined ? {} : { rebuildMs: options.rebuildMs }),
    hasAnything: partition => accountsOf(partition).size > 0,
    register,
    stands,
    sweep: (partition, accountId) => void shared.sweep(partition, accountId).catch(() => {}),
    oldestEntry: shared.kept.releaseBefore,
  })

  /** What an account begins its local day with; where Postgres is gone too, what Redis last said. */
  async function openingOf(accountId: string, day: number): Promise<Spent> {
    const own = waitingOf(accountId, day)
    const reserved = sumOf(
      shared
        .seatsOf(accountId)
        .filter(({ seat }) => seat.day === day)
        .map(({ seat }) => reservedBy(seat)),
    )
    const last = shared.lastSpent(accountId)
    try {
      const ledger = await seed(accountId, day, [])
      const known = await seed(accountId, day, own)
      // Others may have more open than the ledger knows: Redis said so a moment ago.
      const more = last === null ? nothing : less(last, sumOf([known, reserved]))
      remember(bases, accountId, { ...sumOf([ledger, more]), day }, maximumAccounts)
      return sumOf([known, more])
    } catch (cause) {
      if (last === null) throw cause
      remember(bases, accountId, { ...less(last, reserved), day }, maximumAccounts)
      return less(last, reserved)
    }
  }

  const waitingOf = (accountId: string, day: number): Waiting[] => {
    const waiting = new Map<string, Waiting>()
    for (const record of [...journal.unshipped(accountId, day), ...shared.kept.of(accountId, day)])
      waiting.set(record.request_id, waitingFor(record, day))
    return [...waiting.values()]
  }

  /** One gateway's part of an account's limits while nobody can ask Redis. */
  const shareOf = (accountId: string, limits: Limits): Limits => {
    const gateways = calls.gatewaysIn(partitionOf(accountId))
    if (gateways === 1) return limits
    const known = bases.get(accountId)
    const base = known?.day === today() ? known : nothing
    const part = (limit: number, used: number) =>
      Math.min(limit, used + Math.floor(Math.max(0, limit - used) / gateways))
    return {
      requestsPerMinute:
        limits.requestsPerMinute === 0 ? 0 : Math.max(1, Math.floor(limits.requestsPerMinute / gateways)),
      concurrentRequests:
        limits.concurrentRequests === 0 ? 0 : Math.max(1, Math.floor(limits.concurrentRequests / gateways)),
      dailyTokens: part(limits.dailyTokens, base.tokens),
      dailyCostMicrocents: part(limits.dailyCostMicrocents, base.microcents),
    }
  }

  const admitLocally = async (request: AdmitRequest): Promise<Admission> => {
    const { accountId, limits } = request
    if (!(await local.knows(accountId))) await local.open(accountId)
    // Before it is decided: counts that are being made anew meanwhile must not be believed.
    calls.distrust(partitionOf(accountId))
    const admission = await local.admit({ ...request, limits: shareOf(accountId, limits) })
    return { ...admission, standing: local.standing(accountId, limits) ?? admission.standing }
  }

  /** A seat that Redis gave, of an account that has come under local limits since. */
  const bringHome = (requestId: string) => {
    const held = shared.held(requestId)
    if (held !== null && local.take(held)) shared.drop(requestId)
  }

  /**
   * What Redis decides; null = it cannot be asked. An answer that is late is asked for again while Redis is there: a repeated
   * id is answered as before, and a stall of this process must not make it decide alone.
   */
  const fromRedis = async <T>(partition: number, ask: () => Promise<T>): Promise<T | null> => {
    for (let tries = 0; tries < maximumTries && calls.epochOf(partition) !== null; tries++) {
      try {
        return await ask()
      } catch (cause) {
        if (!isGone(cause)) throw cause
        if (cause instanceof RedisEmptied) calls.lost(partition)
      }
    }
    return null
  }

  const settleLocally = async (settlement: Settlement): Promise<Standing> => {
    const { seat } = settlement
    const partition = partitionOf(seat.accountId)
    // Whether Redis has carried it out nobody knows: its counts are made anew.
    if (calls.isRegistered(partition)) late.push(settlement)
    else calls.distrust(partition)
    if (await local.knows(seat.accountId)) {
      bringHome(seat.requestId)
      return local.settle(settlement)
    }
    const held = shared.held(seat.requestId)
    await local.record({ ...settlement, seat: held?.seat ?? seat })
    shared.drop(seat.requestId)
    return shared.standing(seat.accountId, held?.limits ?? noLimits) ?? noStanding
  }

  const admitted = (accountId: string) => {
    const log = recent.get(accountId) ?? createWindowLog(minuteMs)
    log.add(clock.now())
    recent.delete(accountId)
    remember(recent, accountId, log, maximumAccounts)
  }

  function accountsOf(partition: number): Set<string> {
    const accounts = shared.accountsOf(partition)
    const mine = (accountId: string) => partitionOf(accountId) === partition
    for (const accountId of local.accounts()) if (mine(accountId)) accounts.add(accountId)
    for (const accountId of shared.kept.accounts()) if (mine(accountId)) accounts.add(accountId)
    for (const [accountId, log] of recent) if (mine(accountId) && log.count(clock.now()) > 0) accounts.add(accountId)
    return accounts
  }

  async function register(partition: number, epoch: string): Promise<void> {
    const accounts = accountsOf(partition)
    // An emptied stream has lost them: from here on the journal keeps and ships them.
    for (const record of shared.kept.takeOut(partition)) write(record)
    const registrations = [...accounts].map(accountId =>
      shared.register(epoch, accountId, {
        seats: [...shared.seatsOf(accountId), ...local.seatsOf(accountId)].map(({ seat }) => seat),
        ages: recent.get(accountId)?.ages(clock.now()) ?? [],
        waiting: [today() - 1, today()].flatMap(day => waitingOf(accountId, day)),
      }),
    )
    await Promise.all(registrations)
  }

  function stands(partition: number): void {
    for (const accountId of [...local.accounts()]) {
      if (partitionOf(accountId) !== partition) continue
      for (const held of local.release(accountId)) shared.adopt(held)
      bases.delete(accountId)
    }
    const settled = late.filter(({ seat }) => partitionOf(seat.accountId) === partition)
    for (const settlement of settled) {
      late.splice(late.indexOf(settlement), 1)
      queueMicrotask(() => void shared.settle(settlement).catch(() => calls.distrust(partition)))
    }
  }

  const write = (record: UsageRecord) => {
    try {
      journal.append(record)
    } catch (cause) {
      // It is in the journal's memory then, and still shipped from there.
      if (!(cause instanceof JournalUnwritable)) throw cause
    }
  }

  // What a dead Redis may never give back must not wait for it: shipped twice, it is in the ledger once.
  redis.onChange(isReady => {
    if (isReady) return
    for (let partition = 0; partition < partitions; partition++) shared.kept.takeOut(partition).forEach(write)
  })

  const today = () => Math.floor(clock.now() / dayMs)

  let renewedAt = clock.monotonic()
  const timer = setInterval(() => {
    const isTime = clock.monotonic() - renewedAt >= leaseMs / 3 - tickMs / 2
    if (isTime) renewedAt = clock.monotonic()
    void shared.renew(isTime)
  }, tickMs)
  timer.unref()

  return {
    kept: shared.kept,
    isShared: accountId => calls.epochOf(partitionOf(accountId)) !== null,

    async admit(request) {
      const partition = partitionOf(request.accountId)
      await calls.settledSoon(partition, holdMs)
      const isNew = shared.held(request.requestId) === null
      const admission = (await fromRedis(partition, () => shared.admit(request))) ?? (await admitLocally(request))
      if (admission.admitted && isNew) admitted(request.accountId)
      bringHome(request.requestId)
      return admission
    },

    async raise(seat, reservedTokens, reservedMicrocents) {
      const partition = partitionOf(seat.accountId)
      if (shared.held(seat.requestId) !== null) {
        const raised = await fromRedis(partition, async () => [
          await shared.raise(seat, reservedTokens, reservedMicrocents),
        ])
        if (raised !== null) return raised[0] ?? null
        if (!(await local.knows(seat.accountId))) return null
        bringHome(seat.requestId)
      }
      calls.distrust(partition)
      return local.raise(seat, reservedTokens, reservedMicrocents)
    },

    async settle(settlement) {
      const { seat } = settlement
      const partition = partitionOf(seat.accountId)
      if (shared.held(seat.requestId) === null && local.holds(seat)) return settleLocally(settlement)
      try {
        return await shared.settle(settlement)
      } catch (cause) {
        if (!isGone(cause)) throw cause
        if (cause instanceof RedisEmptied) calls.lost(partition)
        if (!redis.isReady() || cause instanceof RedisEmptied) return settleLocally(settlement)
        // Late, and perhaps done: the caller need not wait to hear which, once the record is on disk.
        await local.record({ ...settlement, seat: shared.held(seat.requestId)?.seat ?? seat })
        void fromRedis(partition, () => shared.settle(settlement))
          .then(standing => standing ?? settleLocally(settlement))
          .catch(() => calls.distrust(partition))
        return shared.standing(seat.accountId, shared.held(seat.requestId)?.limits ?? noLimits) ?? noStanding
      }
    },

    checkpoint(seat, progress) {
      if (shared.held(seat.requestId) === null) local.checkpoint(seat, progress)
      else shared.checkpoint(seat, progress)
    },

    standing: (accountId, limits) => local.standing(accountId, limits) ?? shared.standing(accountId, limits),

    async close() {
      clearInterval(timer)
      await calls.close()
      await local.close()
    },
  }
}

const isGone = (cause: unknown) => cause instanceof RedisAway || cause instanceof RedisEmptied

const nothing: Spent = { tokens: 0, microcents: 0 }
const reservedBy = (seat: Seat): Spent => ({ tokens: seat.reservedTokens, microcents: seat.reservedMicrocents })

function sumOf(all: readonly Spent[]): Spent {
  return all.reduce(
    (sum, one) => ({ tokens: sum.tokens + one.tokens, microcents: sum.microcents + one.microcents }),
    nothing,
  )
}

function less(from: Spent, amount: Spent): Spent {
  return {
    tokens: Math.max(0, from.tokens - amount.tokens),
    microcents: Math.max(0, from.microcents - amount.microcents),
  }
}

function waitingFor(record: UsageRecord, day: number): Waiting {
  const tokens = record.input_tokens + record.output_tokens
  return { requestId: record.request_id, tokens, microcents: record.billed_microcents, day }
}

const noLimits: Limits = { requestsPerMinute: 0, concurrentRequests: 0, dailyTokens: 0, dailyCostMicrocents: 0 }
const noStanding: Standing = {
  requests: { limit: 0, remaining: 0, resetMs: 0 },
  tokens: { limit: 0, remaining: 0, resetMs: 0 },
  costMicrocents: { limit: 0, remaining: 0 },
  seats: { limit: 0, remaining: 0 },
}
