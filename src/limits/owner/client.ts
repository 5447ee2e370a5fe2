/**
 * The worker's side of its connection to the limits owner: a meter, and rate limiters. Calls are limited in number and
 * time; if the owner does not answer, the client gets a 503. A record that the owner has not confirmed goes to the
 * worker's own journal, which the next owner ships: the ledger keeps one record per request.
 */

import { whenNeeded } from '../../core/jobs/repeating.ts'
import { type Limits, zeroLimits } from '../../core/limits/plans.ts'
import { countIfAllowed, createRateCounter, type RateLimiterFactory } from '../../core/limits/rate-limits.ts'
import type { Clock } from '../../core/ports.ts'
import { formatDay } from '../../core/text/utc-days.ts'
import type { DailyUsage } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { createProgressLog } from '../checkpoint-batch.ts'
import type { Meter } from '../meter.ts'
import { createStatusCache, untouched } from '../quota-status-cache.ts'
import { getRecord, type RecordJournal, spentBy, writeDurably } from '../settled-record.ts'
import { createSettledReservations } from '../settled-reservations.ts'
import type { Call, Counters, OwnerCalls, OwnerMessage, WorkerMessage } from './messages.ts'

type OwnerClientOptions = {
  readonly worker: number
  readonly clock: Pick<Clock, 'now'>
  /** Sends to the owner. Never throws. */
  readonly send: (message: WorkerMessage) => void
  /** Stores records that the owner has not confirmed. Opened on first use. */
  readonly journal: () => RecordJournal
  /** Called when another worker reports that keys or accounts have changed. */
  readonly onChanged: () => void
  /** Maximum milliseconds per call. */
  readonly deadlineMs: number
}

export type OwnerClient = {
  readonly meter: Meter
  readonly limits: RateLimiterFactory
  spent(accountId: string, day: number): Promise<DailyUsage>
  /** Notifies the other workers that keys or accounts have changed. */
  changed(): void
  /** Usage records that the ledger does not have, as last reported by the owner. */
  backlog(): { readonly records: number; readonly aside: number; readonly lagMs: number }
  receive(message: OwnerMessage): void
  /** The connection has ended: all present and future calls fail. */
  lost(): void
  /** Resolves with true when no settlement waits for the owner, with false after `deadlineMs`. */
  drained(deadlineMs: number): Promise<boolean>
}

type Pending = {
  readonly type: Call['type']
  readonly resolve: (result: unknown) => void
  readonly reject: (cause: unknown) => void
  ticksLeft: number
}

/** The owner did not answer in time, or its connection is lost. */
class OwnerAway extends Error {}

/**
 * Deadlines count ticks of this timer. A busy event loop makes no ticks, so its delay is not attributed to the owner.
 */
const tickMs = 100
const maximumPending = 5_000
const drainLookMs = 10

/** Creates the client of one connection. Its timers only run while a call or a checkpoint waits. */
export function createOwnerClient(options: OwnerClientOptions): OwnerClient {
  const { clock, send, journal, onChanged, deadlineMs } = options
  const pending = new Map<number, Pending>()
  const open = new Map<string, Limits>()
  const settled = createSettledReservations()
  const statusCache = createStatusCache(clock)
  const notes = createProgressLog({
    write(progress) {
      if (progress.size > 0 && !isLost) send({ type: 'progress', records: [...progress.values()] })
    },
  })
  let lastId = 0
  let isLost = false
  let backlog = { records: 0, aside: 0, lagMs: 0 }

  const ticking = whenNeeded(tickMs, () => {
    for (const [id, call] of pending) if (--call.ticksLeft < 0) fail(id, new OwnerAway('no answer in time'))
    if (pending.size > 0) ticking.need()
  })
  send({ type: 'joined', worker: options.worker })

  const fail = (id: number, cause: unknown) => {
    const call = pending.get(id)
    pending.delete(id)
    call?.reject(cause)
  }

  const query = <K extends keyof OwnerCalls>(
    type: K,
    input: OwnerCalls[K]['input'],
  ): Promise<OwnerCalls[K]['result']> => {
    if (isLost) return Promise.reject(new OwnerAway('the connection is lost'))
    // Settlements always pass, so that open requests can end. Only new work is rejected.
    if (pending.size >= maximumPending && type !== 'settle') return Promise.reject(new OwnerAway('too many calls wait'))
    const id = ++lastId
    return new Promise((done, reject) => {
      const resolve = done as (result: unknown) => void
      pending.set(id, { type, resolve, reject, ticksLeft: Math.ceil(deadlineMs / tickMs) })
      ticking.need()
      send({ type, id, input } as Call)
    })
  }

  const note = (accountId: string, counters: Counters) => {
    const at = clock.now()
    if (counters !== null) statusCache.note(accountId, { ...counters, at, day: formatDay(at) })
  }

  const lastKnown = (accountId: string, limits: Limits) => statusCache.now(accountId, limits) ?? untouched(limits)

  const meter: Meter = {
    async admit(request) {
      const { requestId, accountId, limits } = request
      const { value: admission, counters } = await query('admit', request).catch(cause => {
        // Messages keep their order, so the owner receives this after the admission.
        if (cause instanceof OwnerAway && !isLost) send({ type: 'cancelled', requestId })
        throw refusal(cause)
      })
      note(accountId, counters)
      if (admission.admitted) open.set(requestId, limits)
      return { ...admission, quotaStatus: lastKnown(accountId, limits) }
    },
    async check(request) {
      const { value, counters } = await query('check', request).catch(cause => {
        throw refusal(cause)
      })
      note(request.accountId, counters)
      return value
    },
    async raise(reservation, tokens, microcents) {
      const raised = await query('raise', { reservation, tokens, microcents }).catch(() => null)
      if (raised !== null) note(reservation.accountId, raised.counters)
      return raised?.value ?? null
    },
    async settle(settlement) {
      const { reservation, record } = settlement
      const limits = open.get(reservation.requestId) ?? settled.get(reservation.requestId)?.limits ?? zeroLimits
      open.delete(reservation.requestId)
      settled.set(reservation.requestId, { reservation, limits })
      notes.forget(reservation.requestId)
      try {
        note(reservation.accountId, (await query('settle', settlement)).counters)
      } catch (cause) {
        if (!(cause instanceof OwnerAway)) throw cause
        await writeDurably(journal(), getRecord(record, reservation, spentBy(settlement, reservation)))
      }
      return lastKnown(reservation.accountId, limits)
    },
    checkpoint(reservation, progress) {
      if (open.has(reservation.requestId)) notes.keep(reservation, progress)
    },
    async loadStatus(accountId, limits) {
      const { counters } = await query('loadStatus', { accountId }).catch(cause => {
        throw refusal(cause)
      })
      note(accountId, counters)
      return lastKnown(accountId, limits)
    },
    quotaStatus: (accountId, limits) => statusCache.now(accountId, limits),
    async close() {
      void ticking.close()
      notes.close()
    },
  }

  return {
    meter,
    limits(title, rule) {
      const counter = createRateCounter(rule)
      return {
        async take(name) {
          // Requests that this worker has admitted recently are known without a call, and counted while the owner does
          // not answer.
          const now = clock.now()
          const known = counter.waitMs(name, now)
          if (known > 0) return known
          const wait = await query('take', { title, rule, name }).catch(() => null)
          if (wait === null) return countIfAllowed(counter, name, now)
          if (wait === 0) counter.count(name, now)
          return wait
        },
      }
    },
    spent: (accountId, day) =>
      query('spent', { accountId, day }).catch(cause => {
        throw refusal(cause)
      }),
    changed: () => send({ type: 'changed' }),
    backlog: () => backlog,
    receive(message) {
      switch (message.type) {
        case 'result': {
          const call = pending.get(message.id)
          pending.delete(message.id)
          return call?.resolve(message.result)
        }
        case 'failed': {
          const { message: text, ...rest } = message.error
          return fail(message.id, new GatewayError('service_unavailable', text, rest))
        }
        case 'changed':
          return onChanged()
        case 'backlog':
          backlog = { records: message.records, aside: message.aside, lagMs: message.lagMs }
          return
        default:
          return message satisfies never
      }
    },
    lost() {
      isLost = true
      for (const id of [...pending.keys()]) fail(id, new OwnerAway('the connection is lost'))
    },
    async drained(withinMs) {
      const isSettling = () => [...pending.values()].some(({ type }) => type === 'settle')
      for (let leftMs = withinMs; isSettling() && leftMs > 0; leftMs -= drainLookMs) await Bun.sleep(drainLookMs)
      return !isSettling()
    },
  }
}

function refusal(cause: unknown): unknown {
  if (!(cause instanceof OwnerAway)) return cause
  return new GatewayError('service_unavailable', 'Limits cannot be checked. Retry.', {
    retryAfterMs: 1000,
    detail: `limits owner: ${cause.message}`,
  })
}
