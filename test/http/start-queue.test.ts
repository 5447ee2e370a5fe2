/** The start queue on an event loop of its own: time passes only by what turns and requests are said to cost. */
import { expect, test } from 'bun:test'
import { createStartQueue, type StartQueue } from '../../src/http/start-queue.ts'

type Loop = {
  readonly queue: StartQueue
  now: number
  used: number
  /** Ends a turn that took so long, of which the process had the processor for `usedMs`. */
  turn(milliseconds: number, usedMs?: number): Promise<void>
}

function startLoop(): Loop {
  let actions: (() => void)[] = []
  const loop: Loop = {
    now: 0,
    used: 0,
    queue: createStartQueue({
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

/** Enters so many requests; what became of each stands in the list as soon as it is known. */
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
  outcomes.filter(one => one === outcome).length

test('requests start at once while a turn has room, and the others in the turns after it, newest first', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 12)
  expect(outcomes).toEqual([...Array(8).fill(true), null, null, null, null])
  await loop.turn(1)
  expect(count(outcomes, true)).toBe(12)
  const more = enter(loop, 20)
  await loop.turn(1)
  expect(more.slice(-8)).toEqual(Array(8).fill(true))
})

test('a burst of a thousand starts to the last request, however slow its turns are', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 1_000)
  for (let turn = 0; turn < 130; turn++) await loop.turn(30)
  expect(count(outcomes, true)).toBe(1_000)
})

test('a request that may not wait starts at once, and one that finds the queue full is rejected at once', async () => {
  const loop = startLoop()
  enter(loop, 8)
  expect(enter(loop, 1, false)).toEqual([true])
  const outcomes = enter(loop, 1_030)
  expect(count(outcomes, false)).toBe(6)
  expect(loop.queue.isFull()).toBe(true)
})

test('a request that may not wait is rejected under a lasting overload', async () => {
  const loop = startLoop()
  for (let turn = 0; turn < 700; turn++) {
    enter(loop, 24)
    await loop.turn(8)
  }
  enter(loop, 12)
  expect(enter(loop, 1, false)).toEqual([false])
})

test('under a lasting overload few wait, and briefly; it ends when nobody had to wait for a second', async () => {
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

test('nothing starts after turns that took the process too long, and as usual where others had the processor', async () => {
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
 * A process whose requests cost 0.6 ms each, in six turns, and a rejection 0.03 ms; `load` in capacities. Returns the share of the
 * capacity that was answered, and the 99th percentile of how long the answered ones took.
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
  times.sort((one, other) => one - other)
  return { goodput: (done / (until - from)) * 0.6, p99: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
}

test('in a model of the process: three times the capacity leaves most of it, and the answered ones wait briefly', async () => {
  const over = await simulate(3)
  expect(over.goodput).toBeGreaterThan(0.88)
  expect(over.p99).toBeLessThan(100)
})
