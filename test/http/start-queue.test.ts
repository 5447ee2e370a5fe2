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
      waitMs: usualDeadlines.startMs,
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

const small = new Headers({ 'content-length': '1000' })
const large = new Headers({ 'content-length': '300000' })
const ofUnknownLength = new Headers()

/** Enters requests; the list receives each result when it is known. */
function enter({ queue, now }: Loop, count: number, headers = small): (boolean | null)[] {
  const outcomes: (boolean | null)[] = []
  for (let index = 0; index < count; index++) {
    const start = queue.enter(headers, now)
    outcomes.push(typeof start === 'boolean' ? start : null)
    if (typeof start !== 'boolean') void start.then(mayStart => (outcomes[index] = mayStart))
  }
  return outcomes
}

const count = (outcomes: readonly (boolean | null)[], outcome: boolean | null) =>
  outcomes.filter(item => item === outcome).length

/** Three times more requests than start, for longer than any of them may wait. */
async function overload(loop: Loop): Promise<void> {
  for (let turn = 0; turn < 700; turn++) {
    enter(loop, 24)
    await loop.turn(8)
  }
}

test('start queue: starts requests while a turn has capacity, and the others in later turns, oldest first', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 20)
  expect(outcomes).toEqual([...Array(8).fill(true), ...Array(12).fill(null)])
  await loop.turn(1)
  expect(outcomes).toEqual([...Array(16).fill(true), ...Array(4).fill(null)])
  await loop.turn(1)
  expect(count(outcomes, true)).toBe(20)
})

test('start queue: starts every request of a burst at rest, also one second after an overload', async () => {
  const loop = startLoop()
  await overload(loop)
  // The queue empties, and no request comes for 60 s.
  for (let turn = 0; turn < 300; turn++) await loop.turn(8)
  loop.now += 60_000
  const outcomes = enter(loop, 32)
  expect(enter(loop, 1, large)).toEqual([true])
  for (let turn = 0; turn < 5; turn++) await loop.turn(8)
  expect(count(outcomes, true)).toBe(32)
})

test('start queue: rejects no request of a short queue after a pause of the process', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 40)
  await loop.turn(5_000, 20)
  for (let turn = 0; turn < 5; turn++) await loop.turn(8)
  expect(count(outcomes, true)).toBe(40)
})

test('start queue: rejects requests that waited for 500 ms, oldest first and 32 per turn', async () => {
  const loop = startLoop()
  const outcomes = enter(loop, 1_000)
  for (let turn = 0; turn < 10; turn++) await loop.turn(50)
  expect(count(outcomes, true)).toBe(88)
  expect(count(outcomes, false)).toBe(0)
  await loop.turn(50)
  expect(outcomes.slice(0, 129)).toEqual([...Array(96).fill(true), ...Array(32).fill(false), null])
})

test.each([
  ['a large body', large],
  ['a body of unknown length', ofUnknownLength],
])('start queue: starts a request with %s immediately, and rejects it under an overload', async (_kind, headers) => {
  const loop = startLoop()
  enter(loop, 12)
  expect(enter(loop, 1, headers)).toEqual([true])
  await overload(loop)
  enter(loop, 12)
  expect(enter(loop, 1, headers)).toEqual([false])
})

test('start queue: bounds the number and the bytes of the waiting bodies', async () => {
  const [many, big] = [startLoop(), startLoop()]
  expect(count(enter(many, 8_210), false)).toBe(10)
  const outcomes = enter(big, 272, new Headers({ 'content-length': '262144' }))
  expect(count(outcomes, false)).toBe(8)
  // Each that starts leaves room for another.
  await big.turn(8)
  expect(enter(big, 9, new Headers({ 'content-length': '262144' }))).toEqual([...Array(8).fill(null), false])
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

type Load = {
  /** Returns how many requests came until `now`, whether or not earlier ones were answered. */
  readonly due?: (now: number) => number
  /** Clients that send their next request after each response. */
  readonly clients?: number
  /** How long these clients wait after a rejection. */
  readonly pauseMs?: number
}

/**
 * Model of a process for 10 s, measured after 6 s: a request costs 0.6 ms in six turns, a rejection 0.05 ms. Goodput is the
 * answered share of the capacity.
 */
async function simulate({ due = () => 0, clients = 0, pauseMs = 0 }: Load) {
  const loop = startLoop()
  const [from, until] = [6_000, 10_000]
  let running: { readonly at: number; readonly isOfClient: boolean; steps: number }[] = []
  let [arrived, ready, cost, rejected, longestTurnMs, shortestWaitMs] = [0, clients, 0, 0, 0, Number.POSITIVE_INFINITY]
  const times: number[] = []
  /** When clients return, in this order. */
  const returns: number[] = []
  const send = (isOfClient: boolean) => {
    const at = loop.now
    const decide = (mayStart: boolean) => {
      if (mayStart) return void running.push({ at, isOfClient, steps: 6 })
      cost += 0.05
      if (isOfClient) returns.push(loop.now + pauseMs)
      if (loop.now >= from) rejected++
      shortestWaitMs = Math.min(shortestWaitMs, loop.now - at)
    }
    void Promise.resolve(loop.queue.enter(small, at)).then(decide)
  }
  while (loop.now < until) {
    for (const most = due(loop.now); arrived < most; arrived++) send(false)
    for (; returns[0] !== undefined && returns[0] <= loop.now; returns.shift()) ready++
    for (; ready > 0; ready--) send(true)
    const spent = 0.02 + cost + running.length * 0.1
    cost = 0
    await loop.turn(spent)
    if (loop.now >= from) longestTurnMs = Math.max(longestTurnMs, spent)
    for (const request of running)
      if (--request.steps === 0) {
        if (request.isOfClient) ready++
        if (loop.now >= from) times.push(loop.now - request.at)
      }
    running = running.filter(request => request.steps > 0)
  }
  times.sort((time, other) => time - other)
  const p99 = times[Math.floor(times.length * 0.99)] ?? Number.NaN
  return { goodput: (times.length * 0.6) / (loop.now - from), p99, rejected, longestTurnMs, shortestWaitMs }
}

test('start queue: keeps the capacity and short waits when requests come at three times the capacity', async () => {
  const over = await simulate({ due: now => (now * 3) / 0.6 })
  expect(over.goodput).toBeGreaterThan(0.88)
  expect(over.p99).toBeLessThan(50)
  expect(over.shortestWaitMs).toBeGreaterThan(450)
})

test('start queue: starts no request late when requests come in bursts above the capacity', async () => {
  const bursts = await simulate({ due: now => (Math.floor(now / 400) * 250 + Math.min(now % 400, 250)) * (6 / 0.6) })
  expect(bursts.p99).toBeLessThan(100)
  expect(bursts.shortestWaitMs).toBeGreaterThan(450)
})

test('start queue: rejects none of 300 clients that send their next request after each response', async () => {
  const closed = await simulate({ clients: 300 })
  expect(closed.rejected).toBe(0)
  expect(closed.goodput).toBeGreaterThan(0.95)
})

test.each([
  [100, 0],
  [270, 1_000],
  [400, 0],
  [600, 1_000],
])(
  'start queue: rejects none of %d clients that pause for %d ms after a rejection, once an overload beside them is over',
  async (clients, pauseMs) => {
    const closed = await simulate({ due: now => Math.min(now, 2_000) * (3 / 0.6), clients, pauseMs })
    expect(closed.rejected).toBe(0)
    expect(closed.goodput).toBeGreaterThan(0.95)
  },
)

test('start queue: delays no open stream when 2,000 clients repeat a rejected request at once', async () => {
  const closed = await simulate({ clients: 2_000 })
  expect(closed.rejected).toBeGreaterThan(0)
  expect(closed.goodput).toBeGreaterThan(0.85)
  expect(closed.longestTurnMs).toBeLessThan(20)
})
