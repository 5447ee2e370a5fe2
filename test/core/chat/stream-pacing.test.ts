import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { StreamMode } from '../../../src/core/chat/chat.ts'
import { createTicker, PacedQueue } from '../../../src/core/chat/stream-pacing.ts'
import { type ChatEvent, EventLog, tell } from '../../harness/events.ts'
import { summaryWith } from '../../harness/reply.ts'

type Step = { readonly after: number; readonly batch: readonly ChatEvent[] }
type Write = { readonly at: number; readonly batch: readonly ChatEvent[] }

const step = (after: number, ...batch: readonly ChatEvent[]): Step => ({ after, batch })
const text = (piece: string, choice = 0): ChatEvent => ({ type: 'text', choice, text: piece })
const reasoning = (piece: string): ChatEvent => ({ type: 'reasoning', choice: 0, text: piece })
const call: ChatEvent = { type: 'tool_call', choice: 0, index: 0, id: 'call_1', name: 'look', signature: null }
const finish: ChatEvent = { type: 'finish', choice: 0, reason: 'stop' }
const done: ChatEvent = { type: 'done', receipt: summaryWith({}) }

/** Plays arrivals against a client that always reads. Times are relative to the start of the source. */
function written(steps: readonly Step[], mode: StreamMode): { writes: Write[]; arrivals: number[] } {
  const log = new EventLog()
  const queue = new PacedQueue(mode, log)
  const start = 1000
  let now = start
  const writes: Write[] = []
  const arrivals: number[] = []
  /** Sends all that is due before the next arrival. */
  const sendUntil = (end: number) => {
    for (let dueAt = queue.dueAt(now); dueAt < end || dueAt <= now; dueAt = queue.dueAt(now)) {
      now = Math.max(now, dueAt)
      if (queue.dueAt(now) > now) continue
      queue.release(now)
      writes.push({ at: now - start, batch: log.taken() })
    }
  }
  for (const { after, batch } of steps) {
    const at = now + after - (now - (start + (arrivals.at(-1) ?? 0)))
    sendUntil(at)
    now = at
    arrivals.push(now - start)
    tell(queue, batch).arrived(now)
  }
  queue.end()
  sendUntil(now)
  return { writes, arrivals }
}

const getText = (writes: readonly Write[]) =>
  writes.flatMap(({ batch }) => batch.flatMap(event => (event.type === 'text' ? [event.text] : []))).join('')
const timed = (writes: readonly Write[]) => writes.map(write => [write.at, getText([write])])

describe('pace: realtime', () => {
  test('shows the first text at once and the rest once per 10 ms cell', () => {
    const steps = Array.from({ length: 12 }, (_, index) => step(index === 0 ? 3 : 2, text(`${index} `)))
    const { writes } = written(steps, 'realtime')
    expect(timed(writes)).toEqual([
      [3, '0 '],
      [10, '1 2 3 '],
      [20, '4 5 6 7 8 '],
      [25, '9 10 11 '],
    ])
  })

  test('sends a single text immediately', () => {
    const { writes } = written([step(5, text('a')), step(40, text('b')), step(40, text('c'))], 'realtime')
    expect(writes.map(({ at }) => at)).toEqual([5, 45, 85])
  })
})

describe('pace: buffered', () => {
  test('sends the first text immediately, then whole sentences at intervals', () => {
    const words =
      'First it rains. Then the sun is out. Later it snows, and the wind blows. At last it is night. '.split(/(?<= )/)
    const { writes } = written(
      words.map(word => step(20, text(word))),
      'buffered',
    )
    expect(timed(writes)).toEqual([
      [20, 'First '],
      [120, 'it rains. '],
      [220, 'Then the sun is out. '],
      [320, 'Later it snows, and the wind blows. '],
      [400, 'At last it is night. '],
    ])
  })

  test('flushes when the source ends', () => {
    const steps = [step(5, text('One. ')), step(1, text('Two. Three. '.repeat(500)))]
    const { writes } = written(steps, 'buffered')
    expect(writes.at(-1)?.at).toBe(6)
  })

  test('never delays a tool call and the end of reasoning, and sends pending events before them', () => {
    const steps = [
      step(1, text('Let me')),
      step(1, text(' see')),
      step(1, call),
      step(50, text(' so')),
      step(1, call),
      step(500),
    ]
    const { writes } = written(steps, 'buffered')
    expect(writes).toEqual([
      { at: 1, batch: [text('Let me')] },
      { at: 3, batch: [text(' see'), call] },
      { at: 54, batch: [text(' so'), call] },
    ])
    const thought = written(
      [step(1, reasoning('hm')), step(1, reasoning(' ha')), step(1, text('Yes')), step(300)],
      'buffered',
    )
    expect(thought.writes).toEqual([
      { at: 1, batch: [reasoning('hm')] },
      { at: 3, batch: [reasoning(' ha'), text('Yes')] },
    ])
  })

  test('sends the last text, the finish and the end in one write', () => {
    const steps = [step(1, text('Yes')), step(1, text(', indeed')), step(0, finish), step(1, done)]
    for (const mode of ['realtime', 'buffered'] as const)
      expect(written(steps, mode).writes.slice(1)).toEqual([{ at: 3, batch: [text(', indeed'), finish, done] }])
  })

  test('sends the last text in its time when the end is late', () => {
    const steps = [step(1, text('Yes')), step(1, text(', indeed')), step(0, finish), step(900, done)]
    expect(written(steps, 'realtime').writes.map(({ at }) => at)).toEqual([1, 10, 902])
    expect(written(steps, 'buffered').writes.map(({ at }) => at)).toEqual([1, 101, 902])
  })

  test('sends the words of a slow writer after 250 ms', () => {
    const { writes } = written(
      Array.from({ length: 12 }, (_, index) => step(60, text(`w${index} `))),
      'buffered',
    )
    expect(writes.slice(0, 3)).toEqual([
      { at: 60, batch: [text('w0 ')] },
      { at: 370, batch: [text('w1 w2 w3 w4 w5 ')] },
      { at: 670, batch: [text('w6 w7 w8 w9 w10 ')] },
    ])
  })

  test('sends reasoning every 10 ms instead of by sentences', () => {
    const { writes } = written(
      Array.from({ length: 50 }, () => step(2, reasoning('x'))),
      'buffered',
    )
    expect(writes.length).toBeGreaterThanOrEqual(10)
  })
})

describe('pace: for any chunking', () => {
  const unit = fc.constantFrom('a', 'b', ' ', '. ', ', ', '\n', '。', '漢', '😀')
  const piece = fc.string({ unit, minLength: 1, maxLength: 40 })
  const pieces = fc.array(fc.tuple(fc.nat({ max: 120 }), piece), { minLength: 1, maxLength: 40 })

  test.each(['realtime', 'buffered'] as const)('%s: keeps the text and its order, and sends each event once', mode => {
    fc.assert(
      fc.property(pieces, fc.array(fc.nat({ max: 39 })), (parts, toolsAt) => {
        const steps = parts.map(([after, piece], index) =>
          step(after, text(piece, index % 2), ...(toolsAt.includes(index) ? [call] : [])),
        )
        const flat = (batches: readonly (readonly ChatEvent[])[]) => {
          const joined: string[] = []
          for (const event of batches.flat()) {
            const label = event.type === 'text' ? `${event.choice}:` : event.type
            const piece = event.type === 'text' ? event.text : ''
            if (piece !== '' && joined.at(-1)?.startsWith(label)) joined.push(joined.pop() + piece)
            else joined.push(label + piece)
          }
          return joined
        }
        const { writes } = written(steps, mode)
        expect(flat(writes.map(({ batch }) => batch))).toEqual(flat(steps.map(({ batch }) => batch)))
        expect(writes.every(({ batch }) => batch.length > 0)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  const fewEnds = fc.array(fc.tuple(fc.nat({ max: 400 }), fc.stringMatching(/^[a-z]{0,2}[ ,]?[a-z]{1,3}[ .漢]?$/)), {
    minLength: 1,
    maxLength: 60,
  })

  test('keeps latency and rate within their bounds', () => {
    fc.assert(
      fc.property(fewEnds, fc.constantFrom('realtime' as const, 'buffered' as const), (parts, mode) => {
        const steps = parts.map(([after, piece]) => step(after, text(piece)))
        const { writes, arrivals } = written(steps, mode)
        let seen = 0
        let index = 0
        for (const { at, batch } of writes) {
          seen += getText([{ at, batch }]).length
          for (let length = 0; index < parts.length; index++) {
            length = parts.slice(0, index + 1).reduce((sum, [, piece]) => sum + piece.length, 0)
            if (length > seen) break
            expect(at - (arrivals[index] ?? 0)).toBeLessThanOrEqual(mode === 'realtime' ? 10 : 1000)
          }
        }
        const inner = writes.slice(0, -1).map(({ at }) => at)
        if (mode === 'realtime') expect(new Set(inner.map(at => Math.floor(at / 10))).size).toBe(inner.length)
        else
          for (let i = 1; i < inner.length; i++)
            expect((inner[i] ?? 0) - (inner[i - 1] ?? 0)).toBeGreaterThanOrEqual(100)
      }),
      { numRuns: 100 },
    )
  })
})

test('PacedQueue: stays full from 64 KB on until it is read', () => {
  const queue = new PacedQueue('realtime', new EventLog())
  const piece = text('x'.repeat(1000))
  let count = 0
  for (; !queue.isFull(); count++) tell(queue, [piece])
  expect(count).toBe(66)
  queue.release(0)
  expect([queue.isFull(), queue.isEmpty()]).toEqual([false, true])
})

const fail = (thrown: unknown) => {
  throw thrown
}

describe('createTicker', () => {
  test('shares one timer among a thousand actions, which run on the grid and not early', () => {
    let now = 3
    let armed: { at: number; action: () => void } | null = null
    let timers = 0
    const ticker = createTicker(
      {
        monotonic: () => now,
        after(milliseconds, action) {
          timers++
          armed = { at: now + milliseconds, action }
          return () => {}
        },
      },
      fail,
    )
    const woken: number[] = []
    for (let index = 0; index < 1000; index++) ticker.at(now + (index % 3 === 0 ? 7 : 20), () => woken.push(now))
    while (armed !== null) {
      const { at, action } = armed as { at: number; action: () => void }
      armed = null
      now = at
      action()
    }
    expect(timers).toBe(3)
    expect(woken.filter(at => at === 10).length).toBe(334)
    expect(woken.filter(at => at === 30).length).toBe(666)
  })

  test('runs all actions of a tick when one of them throws', () => {
    let tick = () => {}
    const reported: unknown[] = []
    const source = {
      monotonic: () => 0,
      after(_: number, action: () => void) {
        tick = action
        return () => {}
      },
    }
    const ticker = createTicker(source, thrown => reported.push(thrown))
    let ran = 0
    ticker.at(0, () => {
      throw new Error('one stream')
    })
    ticker.at(0, () => ran++)
    tick()
    expect([ran, reported]).toEqual([1, [new Error('one stream')]])
  })

  test('keeps time on a real clock', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const start = performance.now()
    const ticker = createTicker(
      {
        monotonic: () => performance.now(),
        after: (milliseconds, action) => {
          const timer = setTimeout(action, milliseconds)
          return () => clearTimeout(timer)
        },
      },
      fail,
    )
    ticker.at(start + 20, resolve)
    await promise
    expect(performance.now() - start).toBeGreaterThanOrEqual(19)
  })
})
