/** Counts in Redis are valid under one epoch only: what is asked under another gets no answer. */

import { type Redis, RedisAway, type Script } from '../redis.ts'
import { keysOf, type PartitionKeys, partitionOf } from './partitions.ts'

export type UnderEpochOptions = {
  readonly redis: Redis
  /** The epoch of a partition; null = none that this gateway may use. */
  readonly epochOf: (partition: number) => string | null
  /** Tests: the time that Redis is to believe in. */
  readonly time: (() => number) | undefined
}

/** Throws `RedisAway` (it may have run all the same) or `RedisEmptied`. */
export type RunScript = (
  script: Script,
  accountId: string,
  /** Keys behind the account's own and the epoch's. */
  more: (keys: PartitionKeys) => readonly string[],
  /** Behind the epoch and the time. */
  values: readonly string[],
) => Promise<readonly unknown[]>

/** Runs scripts on an account's counts, under the epoch of its partition. */
export function underEpoch({ redis, epochOf, time }: UnderEpochOptions): RunScript {
  return async (script, accountId, more, values) => {
    const partition = partitionOf(accountId)
    const keys = keysOf(partition)
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
}

/** Redis answers, but under another epoch than this gateway knows: it was emptied, or restarted, or given up by someone. */
export class RedisEmptied extends Error {
  constructor() {
    super('redis has lost its counts')
    this.name = 'RedisEmptied'
  }
}
