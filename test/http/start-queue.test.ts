/** The start queue on its own event loop: time passes only by the cost of turns and requests in the test. */
import { expect, test } from 'bun:test'
import { usualDeadlines } from '../../src/core/request/deadlines.ts'
import { StartQueue } from '../../src/http/start-queue.ts'

type Loop = {
  readonly queue: StartQueue
  now: number
  used: number
  /** Ends a turn of this length, of which the process had the processor for `usedMs`. */
  turn(milliseconds: number, usedMs?: number): Promise<void>
}

function startLoop(): Loop {
  let actions: (() => void)[] = []
  const loop: Loop = {
    now: 0,
    used: 0,
    queue: new StartQueue({
      burstMs: usualDeadlines.burstMs,
      monotonic: () => loop.now,
      used: () => loop.used,
      nextTurn: action => void actions.push(action),
    }),
    async turn(milliseconds, usedMs = milliseconds) {
      loop.now += milliseconds
      loop.used += usedMs
      const due = actions
      actions = []
      for (const action of due) action()
      await Promise.resolve()
    },
  }
  return loop
}

/** Enters requests; the list receives each result when it is known. */
function enter({ queue }: Loop, count: number, mayWait = true): (boolean | null)[] {
  const outcomes: (boolean | null)[] = []
  for (let index = 0; index < count; index++) {
    const start = queue.enter(() => mayWait)
    outcomes.push(typeof start === 'boolean' ? start : null)
    if (typeof start !== 'boolean') void start.then(mayStart => (outcomes[index] = mayStart))
  }
  return outcomes
}

const count = (outcomes: readonly (boolean | null)[], outcome: boolean | null) =>
  outcomes.filter(item => item === outcome).length

test('start queue: starts requests while a turn has capacity, and the others in later turns, newest first', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 12)
  expect(outcomes).toEqual([...Array(8).fill(true), null, null, null, null])
  await loop.turn(1)
  expect(count(outcomes, true)).toBe(12)
  const more = enter(loop, 20)
  await loop.turn(1)
  expect(more.slice(-8)).toEqual(Array(8).fill(true))
})

test('start queue: starts every request of a burst of a thousand, however slow its turns are', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 1_000)
  for (let turn = 0; turn < 130; turn++) await loop.turn(30)
  expect(count(outcomes, true)).toBe(1_000)
})

test('start queue: starts a request that may not wait immediately, and rejects one when it is full', async () => {
  const loop = startLoop()
  enter(loop, 8)
  expect(enter(loop, 1, false)).toEqual([true])
  const outcomes = enter(loop, 1_030)
  expect(count(outcomes, false)).toBe(6)
  expect(loop.queue.isFull()).toBe(true)
})

test('start queue: rejects a request that may not wait under a lasting overload', async () => {
  const loop = startLoop()
  for (let turn = 0; turn < 700; turn++) {
    enter(loop, 24)
    await loop.turn(8)
  }
  enter(loop, 12)
  expect(enter(loop, 1, false)).toEqual([false])
})

test('start queue: lets few requests wait briefly under a lasting overload, which ends after 1 s without waiting', async () => {
  const loop = startLoop()
  for (let turn = 0; turn < 700; turn++) {
    enter(loop, 24)
    await loop.turn(8)
  }
  const outcomes = enter(loop, 40)
  expect(count(outcomes, false)).toBeGreaterThanOrEqual(24)
  for (let turn = 0; turn < 10; turn++) await loop.turn(8)
  expect(count(outcomes, null)).toBe(0)
  await loop.turn(1_100)
  enter(loop, 1)
  await loop.turn(1)
  await loop.turn(1)
  expect(count(enter(loop, 500), false)).toBe(0)
})

test('start queue: starts nothing after turns with too much processor time, and as usual after time of other processes', async () => {
  const loop = startLoop()
  enter(loop, 1)
  await loop.turn(150)
  const outcomes = enter(loop, 4)
  await loop.turn(150)
  expect(outcomes).toEqual([null, null, null, null])
  await loop.turn(150, 20)
  expect(outcomes).toEqual([true, true, true, true])
})

/**
 * Model of a process: a request costs 0.6 ms in six turns, a rejection 0.03 ms; `load` in capacities. Returns the
 * answered share of the capacity, and the p99 time of answered requests.
 */
async function simulate(load: number): Promise<{ goodput: number; p99: number }> {
  const loop = startLoop()
  const [stepMs, rejectionMs, steps, perMs] = [0.1, 0.03, 6, load / 0.6]
  let running: { readonly dueAt: number; steps: number }[] = []
  let [arrived, done, cost] = [0, 0, 0]
  const times: number[] = []
  const [from, until] = [6_000, 10_000]
  while (loop.now < until) {
    for (; arrived / perMs <= loop.now; arrived++) {
      const dueAt = arrived / perMs
      const start = loop.queue.enter(() => true)
      const take = (mayStart: boolean) => {
        if (mayStart) running.push({ dueAt, steps })
        else cost += rejectionMs
      }
      if (typeof start === 'boolean') take(start)
      else void start.then(take)
    }
    const spent = 0.02 + cost + running.length * stepMs
    cost = 0
    await loop.turn(spent)
    for (const request of running) {
      if (--request.steps > 0 || loop.now < from) continue
      if (request.steps === 0) {
        done++
        times.push(loop.now - request.dueAt)
      }
    }
    running = running.filter(request => request.steps > 0)
  }
  times.sort((time, other) => time - other)
  return { goodput: (done / (until - from)) * 0.6, p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
}

test('start queue: keeps most of the capacity and short waits at three times the capacity', async () => {
  const over = await simulate(3)
  expect(over.goodput).toBeGreaterThan(0.88)
  expect(over.p99).toBeLessThan(100)
})
