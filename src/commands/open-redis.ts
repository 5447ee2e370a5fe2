/** Redis access of operator commands. */
import type { ServiceDeadlines } from '../core/request/deadlines.ts'
import { openRedis, type Redis } from '../database/redis.ts'
import { CommandFailure } from './command.ts'

/** Connections that failed, each with an error of its own or after the whole deadline. */
const maximumFailed = 3

/**
 * Runs `work` on the Redis of `REDIS_URL`. Rejects with `CommandFailure` if it cannot be reached. No request waits for a
 * command, so that its deadline is not that of a request: a busy machine misses that one.
 */
export async function withRedis<T>(
  urls: readonly string[],
  { commandConnectMs: patienceMs }: Pick<ServiceDeadlines, 'commandConnectMs'>,
  work: (redis: Redis) => Promise<T>,
): Promise<T> {
  let reason = `no answer within ${patienceMs / 1_000} s`
  const redis = openRedis({
    urls,
    deadlineMs: patienceMs,
    onEvent: (event, detail) => {
      if (event === 'redis_unavailable') reason = detail
    },
  })
  try {
    for (const until = Date.now() + patienceMs; !redis.isReady(); await Bun.sleep(20))
      if (Date.now() > until || redis.failedConnections() >= maximumFailed)
        throw new CommandFailure(`Redis is unreachable: ${reason}.`)
    return await work(redis)
  } finally {
    redis.close()
  }
}
