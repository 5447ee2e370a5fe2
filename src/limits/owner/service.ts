/**
 * The owner's side of its workers' connections. One process meters all accounts, so limits are as exact as in a single
 * process. When a worker's connection ends, its open requests are settled to their last reported usage, and
 * reservations without a report are released.
 */

import type { Limits } from '../../core/limits/plans.ts'
import type { RateLimiter, RateLimiterFactory } from '../../core/limits/rate-limits.ts'
import { getSpent } from '../../core/usage/usage-record.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { LocalMeter } from '../local/meter.ts'
import type { InterimUsage, QuotaStatus, Reservation } from '../meter.ts'
import type { Call, Counters, OwnerCalls, OwnerMessage, SentError, WithCounters, WorkerMessage } from './messages.ts'

type OwnerServiceOptions = {
  readonly meter: Pick<
    LocalMeter,
    'admit' | 'check' | 'raise' | 'settle' | 'checkpoint' | 'release' | 'quotaStatus' | 'loadStatus'
  >
  readonly limits: RateLimiterFactory
  readonly spent: (accountId: string, day: number) => Promise<OwnerCalls['spent']['result']>
  /** Called before anything else of a worker, which may have left usage records in its folder. */
  readonly onJoined?: (worker: number) => void
  readonly onEvent?: (event: string, detail: string) => void
}

type OwnerConnection = {
  receive(message: WorkerMessage): void
  /** Settles the requests that the worker left open. */
  close(): Promise<void>
}

type OwnerService = {
  /** Serves one worker; `send` delivers messages to it. */
  connect(send: (message: OwnerMessage) => void): OwnerConnection
  /** Sends a message to all workers. */
  broadcast(message: OwnerMessage): void
}

type Open = { reservation: Reservation; progress: InterimUsage | null }

/** Creates a service without connections. It has no timer. */
export function createOwnerService(options: OwnerServiceOptions): OwnerService {
  const { meter, limits, spent, onJoined = () => {}, onEvent = () => {} } = options
  const peers = new Set<(message: OwnerMessage) => void>()
  const opened = new Map<string, RateLimiter>()

  const getLimit = ({ title, rule }: OwnerCalls['take']['input']): RateLimiter => {
    const known = opened.get(title)
    if (known !== undefined) return known
    const limit = limits(title, rule)
    opened.set(title, limit)
    return limit
  }

  const counted = <T>(accountId: string, value: T): WithCounters<T> => {
    const quotaStatus = meter.quotaStatus(accountId, unbounded)
    return { value, counters: quotaStatus === null ? null : getCounters(quotaStatus) }
  }

  const connect = (send: (message: OwnerMessage) => void): OwnerConnection => {
    const open = new Map<string, Open>()
    /** Admissions that wait until their account is loaded; true = the worker no longer waits. */
    const admitting = new Map<string, boolean>()
    let isClosed = false
    peers.add(send)

    const admit = async (request: OwnerCalls['admit']['input']) => {
      const { requestId } = request
      admitting.set(requestId, false)
      try {
        const admission = await meter.admit(request)
        if (!admission.admitted) return admission
        if (isClosed || admitting.get(requestId) === true) meter.release(admission.reservation)
        else if (!open.has(requestId)) open.set(requestId, { reservation: admission.reservation, progress: null })
        return admission
      } finally {
        admitting.delete(requestId)
      }
    }

    const raise = async ({ reservation, tokens, microcents }: OwnerCalls['raise']['input']) => {
      const raised = await meter.raise(reservation, tokens, microcents)
      const held = open.get(reservation.requestId)
      if (raised !== null && held !== undefined) held.reservation = raised
      return raised
    }

    const settle = (settlement: OwnerCalls['settle']['input']) => {
      open.delete(settlement.reservation.requestId)
      return meter.settle(settlement)
    }

    const cancel = (requestId: string) => {
      if (admitting.has(requestId)) admitting.set(requestId, true)
      const held = open.get(requestId)
      if (held === undefined) return
      open.delete(requestId)
      meter.release(held.reservation)
    }

    const getResult = async (call: Call): Promise<unknown> => {
      switch (call.type) {
        case 'admit':
          return counted(call.input.accountId, await admit(call.input))
        case 'check':
          return counted(call.input.accountId, await meter.check(call.input))
        case 'raise':
          return counted(call.input.reservation.accountId, await raise(call.input))
        case 'loadStatus':
          await meter.loadStatus(call.input.accountId, unbounded)
          return counted(call.input.accountId, null)
        case 'settle':
          await settle(call.input)
          return counted(call.input.reservation.accountId, null)
        case 'take':
          return getLimit(call.input).take(call.input.name)
        case 'spent':
          return spent(call.input.accountId, call.input.day)
        default:
          return call satisfies never
      }
    }

    const reply = async (call: Call) => {
      try {
        send({ type: 'result', id: call.id, result: await getResult(call) })
      } catch (cause) {
        send({ type: 'failed', id: call.id, error: sentError(cause) })
      }
    }

    return {
      receive(message) {
        switch (message.type) {
          case 'joined':
            return onJoined(message.worker)
          case 'cancelled':
            return cancel(message.requestId)
          case 'progress':
            for (const record of message.records) {
              const held = open.get(record.request_id)
              if (held === undefined) continue
              // The worker has limited what is not owed in full.
              const progress = { ...getSpent(record), isOwedInFull: true, record } as const
              held.progress = progress
              meter.checkpoint(held.reservation, () => progress)
            }
            return
          case 'changed':
            for (const peer of peers) if (peer !== send) peer({ type: 'changed' })
            return
          default:
            void reply(message)
        }
      },
      async close() {
        isClosed = true
        peers.delete(send)
        const left = [...open.values()]
        open.clear()
        await Promise.all(
          left.map(async ({ reservation, progress }) => {
            if (progress === null) return meter.release(reservation)
            await meter
              .settle({ reservation, ...progress })
              .catch(cause => onEvent('request_not_settled', getText(cause)))
          }),
        )
      },
    }
  }

  return {
    connect,
    broadcast(message) {
      for (const peer of peers) peer(message)
    },
  }
}

const most = Number.MAX_SAFE_INTEGER
/** Without upper bounds, the remaining amounts show exactly what was used. */
const unbounded: Limits = {
  requestsPerMinute: most,
  concurrentRequests: most,
  dailyTokens: most,
  dailyCostMicrocents: most,
}

function getCounters({ requests, tokens, costMicrocents, reservations }: QuotaStatus): Counters {
  return {
    requests: most - requests.remaining,
    resetMs: requests.resetMs,
    tokens: most - tokens.remaining,
    microcents: most - costMicrocents.remaining,
    reservations: most - reservations.remaining,
    dayEndsInMs: tokens.resetMs,
  }
}

function sentError(cause: unknown): SentError {
  if (cause instanceof GatewayError)
    return { message: cause.message, retryAfterMs: cause.retryAfterMs, detail: cause.detail }
  return {
    message: 'Limits cannot be checked. Retry.',
    retryAfterMs: 1000,
    detail: getText(cause),
  }
}

const getText = (cause: unknown) => (cause instanceof Error ? cause.message : 'unknown')
