/**
 * A clock that stands still until a test moves it. Due timers run in order, with a turn of the event loop after each, so
 * that work in this process has reacted to one before the next is due.
 */

import type { Clock } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'

/** Resolves after all work of this process that waits for no timer, file or socket. */
export const oneTurn = (): Promise<void> => Bun.sleep(0)

/** Bodies in memory are read in one turn. */
const idleTurns = 10

/** Starts at `start` epoch milliseconds. `running` counts the timers that wait. */
export function movedClock(start = 0) {
  let now = start
  const timers = new Map<object, { readonly at: number; readonly action: () => void }>()
  const after = (milliseconds: number, action: () => void) => {
    const key = {}
    timers.set(key, { at: now + milliseconds, action })
    return () => void timers.delete(key)
  }
  const clock: Clock = {
    now: () => now,
    monotonic: () => now,
    sleep: milliseconds => new Promise(resolve => after(milliseconds, resolve)),
    after,
  }
  /** Runs the next timer that is due at `end`; false = none is. */
  const runNext = async (end: number) => {
    const due = [...timers].filter(([, { at }]) => at <= end).toSorted(([, item], [, other]) => item.at - other.at)[0]
    if (due === undefined) return false
    timers.delete(due[0])
    now = Math.max(now, due[1].at)
    due[1].action()
    await oneTurn()
    return true
  }
  const move = async (milliseconds: number) => {
    await oneTurn()
    const end = now + milliseconds
    while (await runNext(end));
    now = end
    await oneTurn()
  }
  /** Resolves with `work`. Time passes only while it has nothing else to do, up to the next timer. */
  const run = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false
    const stop = () => {
      isOver = true
    }
    work.then(stop, stop)
    for (let idle = 0; !isOver; idle++) {
      await oneTurn()
      if (idle < idleTurns || isOver) continue
      await runNext(Number.POSITIVE_INFINITY)
      idle = 0
    }
    return work
  }
  return { clock, move, run, running: () => timers.size }
}

/**
 * A clock that runs like the system's until it leaps: then all timers that are due by its new time run. For gateways on
 * real sockets, whose deadlines a busy machine must not reach.
 */
export function leapingClock() {
  let ahead = 0
  const timers = new Map<object, { readonly at: number; run(): void }>()
  const monotonic = () => systemClock.monotonic() + ahead
  const after = (milliseconds: number, action: () => void) => {
    const key = {}
    const stop = () => {
      timers.delete(key)
      cancel()
    }
    const run = () => {
      stop()
      action()
    }
    const cancel = systemClock.after(milliseconds, run)
    timers.set(key, { at: monotonic() + milliseconds, run })
    return stop
  }
  const clock: Clock = {
    now: () => systemClock.now() + ahead,
    monotonic,
    sleep: milliseconds => new Promise(resolve => after(milliseconds, resolve)),
    after,
  }
  const leap = (milliseconds: number) => {
    ahead += milliseconds
    const due = [...timers.values()].filter(({ at }) => at <= monotonic())
    for (const { run } of due.toSorted((item, other) => item.at - other.at)) run()
  }
  return { clock, leap }
}
