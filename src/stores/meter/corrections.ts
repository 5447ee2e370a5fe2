/**
 * What Redis has counted of requests that were settled to a checkpoint, and of which the ledger has the end: their difference
 * goes to the counters. A correction is keyed by its request and safe to repeat. One that Redis does not take waits; a gateway
 * that dies meanwhile loses it, and the account's next day, or the next epoch, begins with the ledger.
 */
import { type Redis, RedisAway } from '../redis.ts'
import { whole } from '../scripts/account.ts'
import { correctScript } from '../scripts/meter.ts'
import type { SettledTwice } from '../shipper.ts'
import { keysOf, partitionOf } from './partitions.ts'

export type Corrections = {
  /** Never rejects. */
  correct(settledTwice: readonly SettledTwice[]): Promise<void>
  /** Ends the timer. */
  close(): void
}

export type CorrectionsOptions = {
  readonly redis: Pick<Redis, 'evaluate' | 'isReady'>
  /** Tests: the time that Redis is to believe in. */
  readonly time: (() => number) | undefined
}

const deadlineMs = 500
const retryEveryMs = 1_000
/** So many requests are cut by a crash; the oldest are forgotten. */
const maximumWaiting = 10_000
const maximumAtOnce = 500

/** Without any. The timer does not keep the process alive. */
export function createCorrections({ redis, time }: CorrectionsOptions): Corrections {
  const waiting = new Map<string, SettledTwice>()

  const send = async (one: SettledTwice) => {
    const keys = keysOf(partitionOf(one.accountId))
    const values = ['', String(time?.() ?? ''), one.requestId, whole(one.tokens), whole(one.microcents)]
    try {
      await redis.evaluate(correctScript, [keys.account(one.accountId), keys.epoch], values, deadlineMs)
    } catch (cause) {
      if (cause instanceof RedisAway) return
      // What Redis refuses it refuses again.
    }
    waiting.delete(one.requestId)
  }
  const sendAll = async () => {
    if (redis.isReady()) await Promise.all([...waiting.values()].slice(0, maximumAtOnce).map(send))
  }
  const timer = setInterval(() => void sendAll(), retryEveryMs)
  timer.unref()

  return {
    async correct(settledTwice) {
      for (const one of settledTwice) waiting.set(one.requestId, one)
      for (const requestId of waiting.keys()) {
        if (waiting.size <= maximumWaiting) break
        waiting.delete(requestId)
      }
      if (waiting.size > 0) await sendAll()
    },
    close: () => clearInterval(timer),
  }
}
