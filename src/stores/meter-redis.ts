/**
 * The meter in Redis, for any number of gateways: an account's counts are one hash, every decision one script
 * (`scripts/meter.ts`). A warm request costs two round trips, one to admit and one to settle; the usage record enters a
 * stream in the second.
 *
 * Accounts are spread over partitions, each with an epoch, a usage stream and a roll call of its own, all in one slot of a
 * cluster: a script cannot reach beyond its slot, and a stream for every account would be far too many to read.
 */
import { dayMs, dayOf } from '../core/days.ts'
import { GatewayError } from '../core/errors.ts'
import { type Limits, noLimits } from '../core/plans.ts'
import { createRecent } from '../core/recent.ts'
import { createKeptRecords, type KeptRecords } from './kept-records.ts'
import type { Admission, AdmitRequest, Progress, RefusalCode, Seat, Settlement, Standing } from './meter.ts'
import { type LocalMeter, type OpenSeat, recordOf, spentBy } from './meter-local.ts'
import { type Redis, RedisAway, type Script } from './redis.ts'
import { dueScript, registerScript, remindScript, renewScript, sweepScript } from './scripts/meter.ts'
import { admitScript, raiseScript, settleScript } from './scripts/requests.ts'
import { nothing, type Settled, type Spent } from './spent.ts'
import { createStandings, untouched } from './standings.ts'

/** Redis answers, but under another epoch than this gateway knows: it was emptied, or restarted, or given up by someone. */
export class RedisEmptied extends Error {
  constructor() {
    super('redis has lost its counts')
    this.name = 'RedisEmptied'
  }
}

/** A settled request whose record may not be in the ledger yet. */
export type Waiting = Spent & { readonly requestId: string; readonly day: number }

export type RedisMeterOptions = {
  readonly redis: Redis
  /** Unique among the gateways on one Redis, and never used again. */
  readonly gatewayId: string
  /** Epoch milliseconds of this process, for what it remembers. What counts is timed by Redis. */
  readonly clock: { now(): number }
  /** The epoch of a partition; null = none that this gateway may use. */
  readonly epochOf: (partition: number) => string | null
  /** What the ledger knows of an account's UTC day, and of these requests where it has them not yet. */
  readonly seed: (accountId: string, day: number, waiting: readonly Waiting[]) => Promise<Spent>
  /** Hears of every admission in the step that notes it. */
  readonly onAdmitted?: (accountId: string) => void
  /** Hears whenever Redis says what an account has used: all that was registered of it is counted there. */
  readonly onHeard?: (accountId: string) => void
  /** Hears of what was settled in Redis before the account's day had begun there, so that it said nothing of it. */
  readonly onUnread?: (settlement: Settlement) => void
  /** Where checkpoints are kept that Redis cannot be told, until it has been. */
  readonly elsewhere?: Pick<LocalMeter, 'keep' | 'forget'>
  /** How long a seat is held for a gateway that has fallen silent. */
  readonly leaseMs?: number
  /** Tests: the time that Redis is to believe in. */
  readonly time?: () => number
}

export type RedisMeter = {
  /** As in the port. Throws `RedisAway` (it may have happened all the same) or `RedisEmptied`. */
  admit(request: AdmitRequest): Promise<Admission>
  raise(seat: Seat, reservedTokens: number, reservedMicrocents: number): Promise<Seat | null>
  settle(settlement: Settlement): Promise<Standing>
  checkpoint(seat: Seat, progress: () => Progress): void
  standing(accountId: string, limits: Limits): Standing | null
  /** What is used of today as Redis last said; null = never said, or on another day. */
  lastSpent(accountId: string): Spent | null
  /** What Redis last said is settled of accounts of a partition. */
  lastSettled(partition: number): Map<string, Settled>
  held(requestId: string): OpenSeat | null
  /** This gateway's open seats in Redis, of one account or of a partition. */
  seatsOf(accountId: string): OpenSeat[]
  seats(): Iterable<OpenSeat>
  accountsOf(partition: number): Set<string>
  /** Makes a seat of another meter's this one's. It is in Redis already. */
  adopt(held: OpenSeat): void
  /** Gives a seat up to another meter. */
  drop(requestId: string): void
  /** Registers what this gateway knows of an account under an epoch in the making. */
  register(epoch: string, accountId: string, known: Registration): Promise<void>
  /** Tells what is known to be settled of accounts of a partition, ahead of an epoch in the making. */
  remind(epoch: string, partition: number, known: ReadonlyMap<string, Settled>): Promise<void>
  /**
   * Settles what was left open on accounts of a partition whose leases have run out, of any gateway where Redis decides; else
   * of those that are not among the `living`, null = not known which are. Throws `RedisAway`.
   */
  sweep(partition: number, living: readonly string[] | null): Promise<void>
  /** Records in the stream that the ledger is not known to have. */
  readonly kept: KeptRecords
  /** Renews leases: all, or only those with something new to say. Never throws. */
  renew(all: boolean): Promise<void>
}

export type Registration = {
  /** By this gateway and without Redis, since Redis last spoke of the account. */
  readonly settled: Settled | null
  readonly seats: readonly Seat[]
  /** Admissions of the last minute, ms ago, oldest first. */
  readonly ages: readonly number[]
  readonly waiting: readonly Waiting[]
}

export const partitions = 16
/** With what it takes to find out, to settle and to ship, a dead gateway's requests are in the ledger within 15 s. */
export const defaultLeaseMs = 8_000
const maximumSettled = 20_000
const million = 1_000_000n
const registrationDeadlineMs = 500
/** Nobody waits for it, and it must not make Redis look slow. */
const sweepDeadlineMs = 1_000
const mostOpenings = 5
/** Accounts that are told of in one call. */
const remindersAtOnce = 250
/** Of a partition with more accounts than that none are told of: registering must not take longer than others wait. */
const maximumReminders = 5_000

/** Which partition an account is in: the same for every gateway, for ever. */
export function partitionOf(accountId: string): number {
  return Bun.hash.crc32(accountId) % partitions
}

/** Names of a partition's keys. The braces are what a cluster hashes. */
export const keysOf = (partition: number) => {
  const prefix = `gateway:{${partition}}:`
  return {
    account: (accountId: string) => `${prefix}account:${accountId}`,
    epoch: `${prefix}epoch`,
    gateways: `${prefix}gateways`,
    announced: `${prefix}announced`,
    stream: `${prefix}usage`,
    checkpointed: `${prefix}checkpointed`,
  }
}
const allKeys = Array.from({ length: partitions }, (_, partition) => keysOf(partition))
const keysFor = (partition: number) => allKeys[partition] ?? keysOf(partition)

/** What the script is to begin a day with: day, tokens, cost, and the ids that were looked for in the ledger. */
type Opening = readonly string[]
type Held = Omit<OpenSeat, 'seat' | 'progress'> & {
  seat: Seat
  progress: OpenSeat['progress']
  /** There is something new to say. */
  isDue: boolean
  /** What was said last Redis has not heard. */
  isUnheard: boolean
}

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
  const open = new Map<string, Held>()
  const settled = createRecent<Pick<Held, 'seat' | 'limits'>>(maximumSettled)
  const seeding = new Map<string, Promise<Opening>>()
  const kept = createKeptRecords()

  const run = async (
    script: Script,
    accountId: string,
    more: (keys: ReturnType<typeof keysOf>) => readonly string[],
    values: readonly string[],
  ): Promise<readonly unknown[]> => {
    const partition = partitionOf(accountId)
    const keys = keysFor(partition)
    const epoch = epochOf(partition)
    if (epoch === null) throw new RedisEmptied()
    const reply = await redis.evaluate(
      script,
      [keys.account(accountId), keys.epoch, ...more(keys)],
      [epoch, time === undefined ? '' : String(time()), ...values],
    )
    if (!Array.isArray(reply)) throw new RedisAway('an answer that is none of our scripts’')
    if (reply[0] === -1) throw new RedisEmptied()
    return reply
  }

  const standing = (accountId: string, limits: Limits): Standing =>
    standings.now(accountId, limits) ?? untouched(limits)

  /** However many come at once, the ledger is asked once: whoever is first begins the day with it, the others find it begun. */
  const openingOf = (accountId: string, day: number, waiting: readonly Waiting[]): Promise<Opening> => {
    const running = seeding.get(accountId)
    if (running !== undefined) return running
    const asked = seed(accountId, day, waiting)
      .then(({ tokens, microcents }) => [
        String(day),
        String(tokens),
        String(microcents),
        ...waiting.map(({ requestId }) => requestId),
      ])
      .finally(() => seeding.delete(accountId))
    seeding.set(accountId, asked)
    return asked
  }

  const admit = async (request: AdmitRequest): Promise<Admission> => {
    const { requestId, accountId, limits } = request
    const before = settled.get(requestId)
    if (before !== undefined) return { admitted: true, seat: before.seat, standing: standing(accountId, limits) }
    const values = admitValues(request, leaseMs)
    let reply = await run(admitScript, accountId, keys => [keys.stream], values)
    // Again where something was settled meanwhile that the ledger was not asked for.
    for (let tries = 0; reply[0] === 0; tries++) {
      if (tries === mostOpenings) throw new RedisAway('an account that does not come to rest')
      const day = Number(reply[1])
      try {
        const opening = await openingOf(accountId, day, readWaiting(reply.slice(2)))
        reply = await run(admitScript, accountId, keys => [keys.stream], [...values, ...opening])
      } catch (cause) {
        if (!(cause instanceof GatewayError)) throw cause
        // The ledger is away: what gateways have registered is what it would say, and what none of them knows must wait for it.
        reply = await run(admitScript, accountId, keys => [keys.stream], [...values, String(day), '', ''])
        if (reply[0] === 0) throw cause
      }
    }
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

  const renewAccount = async (accountId: string, due: readonly Held[]) => {
    const values = [String(leaseMs), accountId, gatewayId]
    const said: Held[] = []
    for (const held of due) {
      const isNew = held.progress !== null && (held.isDue || held.isUnheard)
      values.push(held.seat.requestId, isNew && held.progress ? checkpointText(held.seat, held.progress()) : '')
      held.isDue = false
      if (isNew) said.push(held)
    }
    try {
      await run(renewScript, accountId, keys => [keys.checkpointed], values)
      for (const held of said) {
        held.isUnheard = false
        elsewhere?.forget(held.seat.requestId)
      }
    } catch {
      for (const held of said) held.isUnheard = true
    }
  }

  return {
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
        reply = await run(settleScript, accountId, keys => [keys.stream], [
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

    checkpoint(seat, progress) {
      const held = open.get(seat.requestId)
      if (held === undefined) return
      held.progress = progress
      held.isDue = true
    },

    standing: standings.now,
    lastSpent(accountId) {
      const noted = standings.last(accountId)
      return noted === null || noted.day !== dayOf(clock.now()) ? null : noted
    },
    lastSettled(partition) {
      const known = new Map<string, Settled>()
      for (const [accountId, { day, settled }] of standings.all())
        if (partitionOf(accountId) === partition) known.set(accountId, { ...settled, day })
      return known
    },
    held: requestId => open.get(requestId) ?? null,
    seatsOf: accountId => [...open.values()].filter(held => held.seat.accountId === accountId),
    seats: () => open.values(),
    accountsOf(partition) {
      const accounts = new Set<string>()
      for (const { seat } of open.values()) if (partitionOf(seat.accountId) === partition) accounts.add(seat.accountId)
      return accounts
    },
    adopt: held =>
      void open.set(held.seat.requestId, { ...held, isDue: held.progress !== null, isUnheard: held.progress !== null }),
    drop(requestId) {
      open.delete(requestId)
    },

    async register(epoch, accountId, { settled, seats, ages, waiting }) {
      const keys = keysFor(partitionOf(accountId))
      const known = {
        gateway: gatewayId,
        leases: seats.map(seat => [
          seat.requestId,
          seat.reservedTokens,
          seat.reservedMicrocents,
          seat.outputCap,
          seat.day,
        ]),
        ages,
        waiting: waiting.map(one => [one.requestId, one.tokens, one.microcents, one.day]),
        settled: settled === null ? [] : [settled.day, settled.tokens, settled.microcents],
      }
      const reply = await redis.evaluate(
        registerScript,
        [keys.account(accountId), keys.announced],
        [epoch, time === undefined ? '' : String(time()), String(leaseMs), JSON.stringify(known)],
        registrationDeadlineMs,
      )
      if (!Array.isArray(reply) || reply[0] !== 1) throw new RedisEmptied()
    },

    async remind(epoch, partition, known) {
      if (known.size > maximumReminders) return
      const keys = keysFor(partition)
      const all = [...known]
      const parts = Array.from({ length: Math.ceil(all.length / remindersAtOnce) }, (_, index) =>
        all.slice(index * remindersAtOnce, (index + 1) * remindersAtOnce),
      )
      const told = parts.map(async part => {
        const reply = await redis.evaluate(
          remindScript,
          [...part.map(([accountId]) => keys.account(accountId)), keys.announced],
          [
            epoch,
            time === undefined ? '' : String(time()),
            ...part.map(([, { day, tokens, microcents }]) => `${day}:${whole(tokens)}:${whole(microcents)}`),
          ],
          registrationDeadlineMs,
        )
        if (!Array.isArray(reply) || reply[0] !== 1) throw new RedisEmptied()
      })
      await Promise.all(told)
    },

    async sweep(partition, living) {
      const keys = keysFor(partition)
      const now = time === undefined ? '' : String(time())
      const due = await redis.evaluate(dueScript, [keys.checkpointed], [now], sweepDeadlineMs)
      const alive = living === null ? [] : [gatewayId, ...living]
      const swept = (Array.isArray(due) ? due.map(String) : []).map(accountId =>
        redis.evaluate(
          sweepScript,
          [keys.account(accountId), keys.epoch, keys.stream, keys.checkpointed],
          [epochOf(partition) ?? '', now, accountId, ...alive],
          sweepDeadlineMs,
        ),
      )
      await Promise.all(swept)
    },

    async renew(all) {
      const due = new Map<string, Held[]>()
      for (const held of open.values()) {
        const { accountId } = held.seat
        if (epochOf(partitionOf(accountId)) === null) {
          if (held.isDue && held.progress !== null) elsewhere?.keep(held.seat, held.progress)
          held.isUnheard ||= held.isDue
          held.isDue = false
        } else if (all || held.isDue || held.isUnheard) {
          const ofAccount = due.get(accountId)
          if (ofAccount === undefined) due.set(accountId, [held])
          else ofAccount.push(held)
        }
      }
      // One tick, one write: the client sends them as one pipeline.
      await Promise.all([...due].map(([accountId, ofAccount]) => renewAccount(accountId, ofAccount)))
    },
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

function checkpointText(seat: Seat, { tokens, microcents, record }: Progress): string {
  const spent = spentBy({ tokens, microcents }, seat)
  return `${whole(spent.tokens)}:${whole(spent.microcents)}:${JSON.stringify(recordOf(record, seat, spent))}`
}

/** `id, tokens:cost:day` pairs as a script replies them. */
function readWaiting(fields: readonly unknown[]): Waiting[] {
  const waiting: Waiting[] = []
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [tokens = 0, microcents = 0, day = 0] = String(fields[index + 1])
      .split(':')
      .map(Number)
    waiting.push({ requestId: String(fields[index]), tokens, microcents, day })
  }
  return waiting
}

type Numbers = readonly [
  ...(readonly [number, number, number, number, number, number, number]),
  ...(readonly [number, number, number, number, number, number, number]),
]
const numbers = (reply: readonly unknown[]): Numbers => {
  const at = (index: number) => Number(reply[index] ?? 0)
  return [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11), at(12), at(13)]
}
const whole = (number: number) => String(Math.round(number))
