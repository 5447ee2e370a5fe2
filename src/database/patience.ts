/**
 * Deadlines in the process' own time. A wall clock cannot tell a late store from a busy process: the reply may lie in the socket
 * while the event loop is at other work. So one timer ticks for all waits, and a wait ends after so many ticks; between two ticks
 * the loop has read what had arrived. A loop that is blocked for two seconds makes one tick of them.
 */
import { RedisUnavailableError } from '../core/limits/redis-away.ts'

/** Milliseconds between two ticks of an idle process. */
const tickMs = 10

type Wait = { ticksLeft: number; readonly deadlineMs: number; readonly fail: (cause: RedisUnavailableError) => void }

export type Patience = {
  /** Resolves as `promise` does. Rejects with `RedisAway` after `deadlineMs` of the process' own time. */
  within<T>(promise: Promise<T>, deadlineMs: number): Promise<T>
}

/** Returns waits that share one timer. It runs only while something is waited for. */
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
        // One more than fit in: the first tick may come at once.
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
