/**
 * Redis while it answers, this process while it does not. A request is never lost between the two: a seat is settled by
 * whichever meter has it, and what Redis may or may not have carried out is keyed by request id.
 *
 * Without Redis gateways hand out what they have claimed in Postgres (`meter/allowances.ts`), once none of them uses Redis any more
 * (`meter/authority.ts`). Counts are made anew, from the ledger and from what every gateway registers, before Redis decides again
 * (`meter/roll-call.ts`), so that nothing is counted twice and nothing is missed.
 */
import { dayOf } from '../core/days.ts'
import { noLimits } from '../core/plans.ts'
import type { UsageRecord } from '../core/usage.ts'
import type { Checkpoints } from './checkpoints.ts'
import { type Journal, JournalUnwritable } from './journal.ts'
import { createAllowances, undecided } from './meter/allowances.ts'
import { startAuthority } from './meter/authority.ts'
import type { Claims } from './meter/claims.ts'
import { type Corrections, createCorrections } from './meter/corrections.ts'
import { createHoldings, reservedOn } from './meter/holdings.ts'
import { createOpenings, DecidedInRedis } from './meter/openings.ts'
import { allPartitions, partitionOf, partitions, partitionsIn } from './meter/partitions.ts'
import { createRecentAdmissions } from './meter/recent-admissions.ts'
import { type RollCall, startRollCall } from './meter/roll-call.ts'
import { createSettledAlone } from './meter/settled-alone.ts'
import type { Seed, Settled } from './meter/spent.ts'
import { noStanding } from './meter/standings.ts'
import { RedisEmptied } from './meter/under-epoch.ts'
import { startUpkeep } from './meter/upkeep.ts'
import type { Admission, AdmitRequest, Meter, Settlement, Standing } from './meter.ts'
import { createLocalMeter } from './meter-local.ts'
import { createRedisMeter, defaultLeaseMs, type RedisMeter } from './meter-redis.ts'
import { type Redis, RedisAway } from './redis.ts'

export type FailoverOptions = {
  readonly redis: Redis
  readonly clock: { now(): number; monotonic(): number }
  readonly journal: Pick<Journal, 'append' | 'appendTogether' | 'isWritable' | 'untilDurable' | 'unshipped'>
  readonly checkpoints?: Checkpoints
  /** Unique among the gateways on one Redis, and never used again. */
  readonly gatewayId: string
  readonly newName: () => string
  readonly seed: Seed
  /** What is handed out while Redis cannot decide. */
  readonly claims: Claims
  /** Hears of what Postgres refuses of the claims. */
  readonly onTrouble?: (detail: string) => void
  readonly rebuildMs?: number
  /** How long a seat in Redis is held for a gateway that has fallen silent; renewed four times as often. */
  readonly leaseMs?: number
  /** Tests: the time that Redis is to believe in. */
  readonly time?: () => number
}

export type FailoverMeter = Meter & {
  /** For the shipper: what the stream holds of this gateway's. */
  readonly kept: RedisMeter['kept']
  /** Whether Redis decides for an account now. */
  isShared(accountId: string): boolean
  /** Share of all accounts for which it does, 0–1. */
  sharedRatio(): number
  /** For the shipper: corrects what Redis has counted of requests that were settled to a checkpoint too. */
  readonly correct: Corrections['correct']
}

/** How long an admission waits while counts are being made anew; then it is decided without Redis. */
const holdMs = 1000
/** How often an admission goes back to Redis, which came to decide again while Postgres was asked. */
const mostTries = 4
/** How long a caller waits for Redis in all, however often its connection breaks meanwhile. */
const decisionMs = 50
/** While Postgres is away nobody else can say what an account has left that this process has not seen. */
const soleDecisionMs = 1_000
/** How long Redis is asked to settle what is in the journal already. */
const lateSettlingMs = 250

/** A meter over both. `close` ends its timers and leaves Redis' connection to its owner. */
export function createFailoverMeter(options: FailoverOptions): FailoverMeter {
  const { redis, clock, journal, leaseMs = defaultLeaseMs } = options
  const recent = createRecentAdmissions(clock)
  const alone = createSettledAlone()

  // Whatever Postgres answers shows that it is there.
  const seed: Seed = async (accountId, day, waiting) => {
    const spent = await options.seed(accountId, day, waiting)
    authority.answered()
    return spent
  }
  const claims: Claims = {
    ...options.claims,
    async claim(partitionSet, all) {
      const answer = await options.claims.claim(partitionSet, all)
      authority.answered()
      return answer
    },
  }

  const shared: RedisMeter = createRedisMeter({
    redis,
    clock,
    gatewayId: options.gatewayId,
    seed,
    leaseMs,
    epochOf: partition => calls.epochOf(partition),
    onAdmitted: recent.note,
    onHeard(accountId) {
      // An answer under an epoch that has been given up since does not count what was settled alone.
      if (isShared(accountId)) alone.forget(accountId)
    },
    onUnread: alone.note,
    elsewhere: { keep: (seat, progress) => local.keep(seat, progress), forget: requestId => local.forget(requestId) },
    ...(options.time === undefined ? {} : { time: options.time }),
  })

  const local = createLocalMeter({
    clock,
    journal,
    ...(options.checkpoints === undefined ? {} : { checkpoints: options.checkpoints }),
    seed: (accountId, day) => openings.of(accountId, day),
    adopt(accountId) {
      const seats = shared.seatsOf(accountId)
      for (const { seat } of seats) shared.drop(seat.requestId)
      return { seats, ages: recent.ages(accountId) }
    },
    onAdmitted: recent.note,
    allowed: (accountId, limits) => allowances.allowed(accountId, limits),
  })

  const holdings = createHoldings({ shared, local, recent, journal })

  const openings = createOpenings({
    seed,
    waitingOf: holdings.waitingOf,
    isShared,
    lastSpent: shared.lastSpent,
    reservedOf: (accountId, day) => reservedOn(day, shared.seatsOf(accountId)),
    settledAlone: alone.of,
  })

  const authority = startAuthority({
    claims: options.claims,
    monotonic: clock.monotonic,
    seesRedis: redis.isReady,
    outOf: partitionSet => {
      const accounts = partitionsIn(partitionSet).flatMap(partition => [...holdings.accountsOf(partition)])
      return holdings.handedOut(accounts, today())
    },
    left: accountIds => allowances.begin(accountIds),
    mustLeave: partition => void leave(partition),
  })

  const allowances = createAllowances({
    claims,
    authority,
    leave,
    local,
    clock,
    partitionOf,
    outOf: holdings.handedOut,
    gatewaysOf: accountId => Math.max(authority.gateways(), calls.gatewaysIn(partitionOf(accountId))),
    baseOf: accountId => openings.baseOf(accountId, today()),
    deciding: accountId => calls.distrust(partitionOf(accountId)),
    onTrouble: options.onTrouble ?? (() => {}),
  })

  const calls: RollCall = startRollCall({
    redis,
    gatewayId: options.gatewayId,
    newName: options.newName,
    monotonic: clock.monotonic,
    ...(options.rebuildMs === undefined ? {} : { rebuildMs: options.rebuildMs }),
    hasAnything: partition => holdings.accountsOf(partition).size > 0,
    register,
    mayEnter: authority.mayEnter,
    isBarred: authority.isBarred,
    stands,
    oldestEntry: shared.kept.releaseBefore,
  })

  function isShared(accountId: string): boolean {
    return calls.epochOf(partitionOf(accountId)) !== null
  }

  const today = () => dayOf(clock.now())

  /** Redis is not used for a partition until its counts are made anew. */
  function leave(partition: number): Promise<void> {
    calls.distrust(partition)
    return authority.leave(partition)
  }

  /**
   * What Redis decides; null = it cannot be asked, or no longer decides by the time it answers. Asked again where its connection
   * broke and is there again: a repeated id is answered as before.
   */
  const fromRedis = async <T>(partition: number, patienceMs: number, ask: () => Promise<T>): Promise<T | null> => {
    const since = clock.monotonic()
    for (let epoch = calls.epochOf(partition); epoch !== null; epoch = calls.epochOf(partition)) {
      try {
        const answer = await ask()
        return calls.epochOf(partition) === epoch ? answer : null
      } catch (cause) {
        if (!isGone(cause)) throw cause
        if (cause instanceof RedisEmptied) calls.lost(partition)
      }
      const patient = authority.readiness() === 'away' ? Math.max(patienceMs, soleDecisionMs) : patienceMs
      if (clock.monotonic() - since >= patient) return null
    }
    return null
  }

  /** What Redis says too late was not counted by those who have decided since. */
  function takeBack({ accountId, requestId }: AdmitRequest): void {
    if (shared.held(requestId) === null) return
    shared.drop(requestId)
    recent.takeBack(accountId)
  }

  /** Null = while this was being prepared Redis has come to decide again. */
  const admitLocally = async (request: AdmitRequest): Promise<Admission | null> => {
    const { accountId, limits } = request
    await leave(partitionOf(accountId))
    if (!(await opened(accountId))) return null
    const admission = await allowances.admit(request)
    return { ...admission, standing: local.standing(accountId, limits) ?? admission.standing }
  }

  const opened = async (accountId: string): Promise<boolean> => {
    try {
      if (!(await local.knows(accountId))) await local.open(accountId)
      return true
    } catch (cause) {
      if (cause instanceof DecidedInRedis) return false
      throw cause
    }
  }

  /** A seat that Redis gave, of an account that has come under local limits since. */
  const bringHome = (requestId: string) => {
    const held = shared.held(requestId)
    if (held !== null && local.take(held)) shared.drop(requestId)
  }

  const settleLocally = async (settlement: Settlement): Promise<Standing> => {
    const { seat } = settlement
    const partition = partitionOf(seat.accountId)
    // Whether Redis has carried it out nobody knows: its counts are made anew.
    if (calls.isRegistered(partition)) alone.postpone(settlement)
    else {
      calls.distrust(partition)
      alone.note(settlement)
    }
    if (await local.knows(seat.accountId)) {
      bringHome(seat.requestId)
      const standing = await local.settle(settlement)
      allowances.settled(seat.accountId)
      return standing
    }
    const held = shared.held(seat.requestId)
    await local.record({ ...settlement, seat: held?.seat ?? seat })
    shared.drop(seat.requestId)
    return shared.standing(seat.accountId, held?.limits ?? noLimits) ?? noStanding
  }

  async function register(partition: number, epoch: string): Promise<void> {
    const accounts = holdings.accountsOf(partition)
    allowances.forget(partition)
    const aside = authority.standAside(partition)
    // An emptied stream has lost them: from here on the journal keeps and ships them.
    for (const record of shared.kept.takeOut(partition)) write(record)
    // Of an epoch that never came to stand: they are registered as settled now.
    for (const settlement of alone.takePostponed(partition)) alone.note(settlement)
    const registrations = [...accounts].map(accountId =>
      shared.register(epoch, accountId, {
        ...holdings.registered(accountId, today()),
        settled: alone.of(accountId) ?? null,
      }),
    )
    await Promise.all([aside, shared.remind(epoch, partition, settledOf(partition)), ...registrations])
  }

  /** The most that this gateway knows to be settled, whoever has done so; its own without Redis comes on top. */
  const settledOf = (partition: number): Map<string, Settled> => {
    const known = shared.lastSettled(partition)
    openings.raise(known, accountId => partitionOf(accountId) === partition)
    return known
  }

  function stands(partition: number): void {
    allowances.forget(partition)
    for (const accountId of [...local.accounts()]) {
      if (partitionOf(accountId) !== partition) continue
      for (const held of local.release(accountId)) shared.adopt(held)
      openings.forget(accountId)
    }
    for (const settlement of alone.takePostponed(partition))
      queueMicrotask(
        () =>
          void shared.settle(settlement).catch(() => {
            calls.distrust(partition)
            alone.note(settlement)
          }),
      )
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
    if (isReady) return authority.speak()
    // At once, and of all: whoever is the first to need a claim need not wait for this gateway.
    for (const partition of allPartitions) void leave(partition)
    for (const partition of allPartitions) shared.kept.takeOut(partition).forEach(write)
  })

  const corrections = createCorrections({ redis, time: options.time })
  const upkeep = startUpkeep({ shared, redis, monotonic: clock.monotonic, leaseMs, living: authority.living })

  return {
    kept: shared.kept,
    correct: corrections.correct,
    isShared,
    sharedRatio() {
      return allPartitions.filter(partition => calls.epochOf(partition) !== null).length / partitions
    },

    async admit(request) {
      const partition = partitionOf(request.accountId)
      for (let tries = 0; tries < mostTries; tries++) {
        await calls.settledSoon(partition, holdMs)
        await authority.overslept()
        const isNew = shared.held(request.requestId) === null
        const decided = await fromRedis(partition, decisionMs, () => shared.admit(request))
        if (decided === null && isNew) takeBack(request)
        const admission = decided ?? (await admitLocally(request))
        if (admission === null) continue
        bringHome(request.requestId)
        return admission
      }
      throw undecided('redis came and went')
    },

    async raise(seat, reservedTokens, reservedMicrocents) {
      const partition = partitionOf(seat.accountId)
      if (shared.held(seat.requestId) !== null) {
        const raised = await fromRedis(partition, decisionMs, async () => [
          await shared.raise(seat, reservedTokens, reservedMicrocents),
        ])
        if (raised !== null) return raised[0] ?? null
        if (!(await local.knows(seat.accountId))) return null
        bringHome(seat.requestId)
      }
      await leave(partition)
      const held = local.seatsOf(seat.accountId).find(one => one.seat.requestId === seat.requestId)
      return held === undefined ? null : allowances.raise(held, reservedTokens, reservedMicrocents)
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
        void fromRedis(partition, lateSettlingMs, () => shared.settle(settlement))
          .then(standing => standing ?? settleLocally(settlement))
          .catch(() => calls.distrust(partition))
        return shared.standing(seat.accountId, shared.held(seat.requestId)?.limits ?? noLimits) ?? noStanding
      } finally {
        local.forget(seat.requestId)
      }
    },

    checkpoint(seat, progress) {
      if (shared.held(seat.requestId) === null) local.checkpoint(seat, progress)
      else shared.checkpoint(seat, progress)
    },

    standing: (accountId, limits) => local.standing(accountId, limits) ?? shared.standing(accountId, limits),

    async close() {
      upkeep.close()
      corrections.close()
      allowances.close()
      await calls.close()
      await local.close()
      await authority.close()
    },
  }
}

const isGone = (cause: unknown) => cause instanceof RedisAway || cause instanceof RedisEmptied
