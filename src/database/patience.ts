/**
 * Deadlines in the process's own time. Wall-clock time cannot distinguish a late store from a busy process, whose event
 * loop has not read the reply yet. One timer ticks for all waits, and a wait ends after a number of ticks; between two
 * ticks the loop has read everything that arrived. A loop that is blocked for 2 s makes one tick.
 */
import { RedisUnavailableError } from '../core/limits/redis.ts'

/** Milliseconds between two ticks of an idle process. */
const tickMs = 10

type Wait = { ticksLeft: number; readonly deadlineMs: number; readonly fail: (cause: RedisUnavailableError) => void }

type Patience = {
  /** Resolves like `promise`. Rejects with `RedisUnavailableError` after `deadlineMs` of the process's own time. */
  within<T>(promise: Promise<T>, deadlineMs: number): Promise<T>
}

/** Creates deadlines that share one timer, which only runs while something waits. */
export function createPatience(): Patience {
  const waits = new Set<Wait>()
  let timer: ReturnType<typeof setInterval> | null = null

  const tick = () => {
    for (const wait of waits) {
      if (--wait.ticksLeft > 0) continue
      waits.delete(wait)
      wait.fail(new RedisUnavailableError(`no answer within ${wait.deadlineMs} ms`))
    }
    if (waits.size > 0 || timer === null) return
    clearInterval(timer)
    timer = null
  }

  return {
    within: (promise, deadlineMs) =>
      new Promise((done, fail) => {
        // One tick more than fit in, since the first may come at once.
        const wait: Wait = { ticksLeft: Math.ceil(deadlineMs / tickMs) + 1, deadlineMs, fail }
        waits.add(wait)
        timer ??= setInterval(tick, tickMs)
        promise.then(
          value => {
            waits.delete(wait)
            done(value)
          },
          cause => {
            waits.delete(wait)
            fail(cause)
          },
        )
      }),
  }
}
