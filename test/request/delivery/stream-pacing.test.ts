import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { StreamMode } from '../../../src/core/chat/chat.ts'
import type { ChatEvent, ChatEvents } from '../../../src/core/chat/chat-events.ts'
import { createTicker, type PaceClock, paceStream } from '../../../src/request/delivery/stream-pacing.ts'

type Step = { readonly after: number; readonly batch: readonly ChatEvent[] }
type Write = { readonly at: number; readonly batch: readonly ChatEvent[] }

const text = (piece: string, choice = 0): ChatEvent => ({ type: 'text', choice, text: piece })
const reasoning = (piece: string): ChatEvent => ({ type: 'reasoning', choice: 0, text: piece })
const call: ChatEvent = { type: 'tool_call', choice: 0, index: 0, id: 'call_1', name: 'look', signature: null }
const finish: ChatEvent = { type: 'finish', choice: 0, reason: 'stop' }

/** A clock that stands still until moved to the next sleeper, after all ready work has run. */
function fakeClock(): PaceClock & { run<T>(work: Promise<T>): Promise<T> } {
  let now = 1000
  let sleepers: { at: number; wake: () => void }[] = []
  return {
    now: () => now,
    sleep(milliseconds) {
      const { promise, resolve } = Promise.withResolvers<void>()
      sleepers.push({ at: now + milliseconds, wake: resolve })
      return promise
    },
    async run(work) {
      let running = true
      const stop = () => {
        running = false
      }
      work.then(stop, stop)
      while (running) {
        for (let turn = 0; turn < 25; turn++) await Promise.resolve()
        if (!running) break
        const next = Math.min(...sleepers.map(({ at }) => at))
        if (next === Number.POSITIVE_INFINITY) break
        now = Math.max(now, next)
        const due = sleepers.filter(({ at }) => at <= now)
        sleepers = sleepers.filter(({ at }) => at > now)
        for (const { wake } of due) wake()
      }
      return work
    },
  }
}

async function* source(clock: PaceClock, steps: readonly Step[], arrivals?: (at: number) => void): ChatEvents {
  for (const { after, batch } of steps) {
    if (after > 0) await clock.sleep(after)
    arrivals?.(clock.now())
    yield batch
  }
}

async function written(steps: readonly Step[], mode: StreamMode): Promise<{ writes: Write[]; arrivals: number[] }> {
  const clock = fakeClock()
  const writes: Write[] = []
  const arrivals: number[] = []
  const consume = async () => {
    for await (const batch of paceStream(
      source(clock, steps, at => arrivals.push(at)),
      mode,
      clock,
    ))
      writes.push({ at: clock.now() - 1000, batch })
  }
  await clock.run(consume())
  return { writes, arrivals: arrivals.map(at => at - 1000) }
}

const getText = (writes: readonly Write[]) =>
  writes.flatMap(({ batch }) => batch.flatMap(event => (event.type === 'text' ? [event.text] : []))).join('')
const timed = (writes: readonly Write[]) => writes.map(write => [write.at, getText([write])])

describe('pace: realtime', () => {
  test('shows the first text at once and the rest once per 10 ms cell', async () => {
    const steps = Array.from({ length: 12 }, (_, index) => ({ after: index === 0 ? 3 : 2, batch: [text(`${index} `)] }))
    const { writes } = await written(steps, 'realtime')
    expect(timed(writes)).toEqual([
      [3, '0 '],
      [10, '1 2 3 '],
      [20, '4 5 6 7 8 '],
      [25, '9 10 11 '],
    ])
  })

  test('sends a single text immediately', async () => {
    const { writes } = await written(
      [
        { after: 5, batch: [text('a')] },
        { after: 40, batch: [text('b')] },
        { after: 40, batch: [text('c')] },
      ],
      'realtime',
    )
    expect(writes.map(({ at }) => at)).toEqual([5, 45, 85])
  })
})

describe('pace: buffered', () => {
  test('sends the first text immediately, then whole sentences at intervals', async () => {
    const words =
      'First it rains. Then the sun is out. Later it snows, and the wind blows. At last it is night. '.split(/(?<= )/)
    const { writes } = await written(
      words.map(word => ({ after: 20, batch: [text(word)] })),
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

  test('flushes when the source ends', async () => {
    const steps = [
      { after: 5, batch: [text('One. ')] },
      { after: 1, batch: [text('Two. Three. '.repeat(500))] },
    ]
    const { writes } = await written(steps, 'buffered')
    expect(writes.at(-1)?.at).toBe(6)
  })

  test('never delays a tool call, a finish and the end of reasoning, and sends pending events before them', async () => {
    const steps = [
      { after: 1, batch: [text('Let me')] },
      { after: 1, batch: [text(' see')] },
      { after: 1, batch: [call] },
      { after: 50, batch: [text(' so')] },
      { after: 1, batch: [finish] },
      { after: 500, batch: [] },
    ]
    const { writes } = await written(steps, 'buffered')
    expect(writes).toEqual([
      { at: 1, batch: [text('Let me')] },
      { at: 3, batch: [text(' see'), call] },
      { at: 54, batch: [text(' so'), finish] },
    ])
    const thought = await written(
      [
        { after: 1, batch: [reasoning('hm')] },
        { after: 1, batch: [reasoning(' ha')] },
        { after: 1, batch: [text('Yes')] },
        { after: 300, batch: [] },
      ],
      'buffered',
    )
    expect(thought.writes).toEqual([
      { at: 1, batch: [reasoning('hm')] },
      { at: 3, batch: [reasoning(' ha'), text('Yes')] },
    ])
  })

  test('sends the words of a slow writer after 250 ms', async () => {
    const { writes } = await written(
      Array.from({ length: 12 }, (_, index) => ({ after: 60, batch: [text(`w${index} `)] })),
      'buffered',
    )
    expect(writes.slice(0, 3)).toEqual([
      { at: 60, batch: [text('w0 ')] },
      { at: 370, batch: [text('w1 w2 w3 w4 w5 ')] },
      { at: 670, batch: [text('w6 w7 w8 w9 w10 ')] },
    ])
  })

  test('sends reasoning every 10 ms instead of by sentences', async () => {
    const { writes } = await written(
      Array.from({ length: 50 }, () => ({ after: 2, batch: [reasoning('x')] })),
      'buffered',
    )
    expect(writes.length).toBeGreaterThanOrEqual(10)
  })
})

describe('pace: for any chunking', () => {
  const pieces = fc.array(
    fc.tuple(
      fc.nat({ max: 120 }),
      fc.string({
        unit: fc.constantFrom('a', 'b', ' ', '. ', ', ', '\n', '。', '漢', '😀'),
        minLength: 1,
        maxLength: 40,
      }),
    ),
    {
      minLength: 1,
      maxLength: 40,
    },
  )

  test.each(['realtime', 'buffered'] as const)(
    '%s: keeps the text and its order, and sends each event once',
    async mode => {
      await fc.assert(
        fc.asyncProperty(pieces, fc.array(fc.nat({ max: 39 })), async (parts, toolsAt) => {
          const steps = parts.map(([after, piece], index) => ({
            after,
            batch: toolsAt.includes(index) ? [text(piece, index % 2), call] : [text(piece, index % 2)],
          }))
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
          const { writes } = await written(steps, mode)
          expect(flat(writes.map(({ batch }) => batch))).toEqual(flat(steps.map(({ batch }) => batch)))
          expect(writes.every(({ batch }) => batch.length > 0)).toBe(true)
        }),
        { numRuns: 60 },
      )
    },
  )

  const fewEnds = fc.array(fc.tuple(fc.nat({ max: 400 }), fc.stringMatching(/^[a-z]{0,2}[ ,]?[a-z]{1,3}[ .漢]?$/)), {
    minLength: 1,
    maxLength: 60,
  })

  test('keeps latency and rate within their bounds', async () => {
    await fc.assert(
      fc.asyncProperty(fewEnds, fc.constantFrom('realtime' as const, 'buffered' as const), async (parts, mode) => {
        const steps = parts.map(([after, piece]) => ({ after, batch: [text(piece)] }))
        const { writes, arrivals } = await written(steps, mode)
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

describe('pace: ends', () => {
  test('throws a failure of the source after the text before it', async () => {
    const clock = fakeClock()
    async function* broken(): ChatEvents {
      yield [text('One. ')]
      yield [text('Tw')]
      throw new Error('cut')
    }
    const seen: string[] = []
    const consume = async () => {
      for await (const batch of paceStream(broken(), 'buffered', clock)) seen.push(getText([{ at: 0, batch }]))
    }
    await expect(clock.run(consume())).rejects.toThrow('cut')
    expect(seen.join('')).toBe('One. Tw')
  })

  test('ends a silent source at a disconnect without waiting for its pending read', async () => {
    const clock = fakeClock()
    let returned = false
    const hanging: ChatEvents = {
      next: () => Promise.withResolvers<IteratorResult<readonly ChatEvent[], void>>().promise,
      return: () => {
        returned = true
        return Promise.withResolvers<IteratorResult<readonly ChatEvent[], void>>().promise
      },
      throw: cause => Promise.reject(cause),
      [Symbol.asyncIterator]: () => hanging,
      [Symbol.asyncDispose]: async () => {},
    }
    const paced = paceStream(hanging, 'realtime', clock)
    const pending = paced.next()
    expect(await paced.return()).toEqual({ value: undefined, done: true })
    expect(returned).toBe(true)
    expect((await pending).done).toBe(true)
    expect((await paced.next()).done).toBe(true)
  })

  test('runs the finally of a source between two reads before return() resolves', async () => {
    const clock = fakeClock()
    let settled = false
    async function* settling(): ChatEvents {
      try {
        for (;;) yield [text('x'.repeat(70_000))]
      } finally {
        await Promise.resolve()
        settled = true
      }
    }
    const paced = paceStream(settling(), 'realtime', clock)
    await paced.next()
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    await paced.return()
    expect(settled).toBe(true)
  })

  test('stops the source within 64 KB and one batch when the consumer does not read', async () => {
    const clock = fakeClock()
    let pulled = 0
    async function* endless(): ChatEvents {
      for (;;) {
        pulled += 1000
        yield [text('x'.repeat(1000))]
      }
    }
    const paced = paceStream(endless(), 'realtime', clock)
    await paced.next()
    for (let turn = 0; turn < 2000; turn++) await Promise.resolve()
    expect(pulled).toBeLessThanOrEqual(1000 + 64 * 1024 + 2000)
    await paced.return()
  })
})

describe('createTicker', () => {
  test('shares one timer among a thousand sleepers, which wake on the grid and not early', async () => {
    let now = 3
    let armed: { at: number; action: () => void } | null = null
    let timers = 0
    const ticker = createTicker({
      monotonic: () => now,
      after(milliseconds, action) {
        timers++
        armed = { at: now + milliseconds, action }
        return () => {}
      },
    })
    const woken: number[] = []
    for (let index = 0; index < 1000; index++) void ticker.sleep(index % 3 === 0 ? 7 : 20).then(() => woken.push(now))
    while (armed !== null) {
      const { at, action } = armed as { at: number; action: () => void }
      armed = null
      now = at
      action()
      await Promise.resolve()
    }
    expect(timers).toBe(3)
    expect(woken.filter(at => at === 10).length).toBe(334)
    expect(woken.filter(at => at === 30).length).toBe(666)
  })

  test('keeps time on a real clock', async () => {
    const ticker = createTicker({
      monotonic: () => performance.now(),
      after: (milliseconds, action) => {
        const timer = setTimeout(action, milliseconds)
        return () => clearTimeout(timer)
      },
    })
    const start = ticker.now()
    await ticker.sleep(20)
    expect(ticker.now() - start).toBeGreaterThanOrEqual(19)
  })
})
