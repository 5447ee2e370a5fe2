import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/database/clock.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog } from '../../src/models/catalog.ts'
import { openai } from '../../src/providers/openai.ts'
import { bodyReader } from '../../src/request/body-reader.ts'
import { getFrames, streamText } from '../faults/support.ts'
import { type AnswerPart, recordedAnswer } from '../harness/answer-parts.ts'

type Source = { push(text: string): void; break(): void; readonly response: Response }

function eventStream(): Source {
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given
    },
  })
  return {
    push: text => controller?.enqueue(new TextEncoder().encode(text)),
    break: () => controller?.error(new Error('reset')),
    response: new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  }
}

function openBody(response: Response, clock: Parameters<typeof bodyReader>[2]['clock']) {
  const [model] = catalog
  if (model === undefined) throw new Error('the catalogue has models')
  const request = {
    request: readNative({ prompt: 'Count.', stream: true }, new Headers(), 10),
    model,
    outputCap: 9_000,
    stream: true,
  }
  const { answer, drain } = recordedAnswer(request.request)
  const body = bodyReader(response, request, { provider: openai({ official: true }), clock, byteArrived() {}, answer })
  /** Returns what the next read says; null after the end. */
  return { next: async () => ((await body.next()) ? drain() : null) }
}

const frame = (content: string) =>
  `data: ${JSON.stringify({ id: 'x', model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`
const getText = (parts: readonly AnswerPart[] | null) =>
  (parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('')
const settled = () => new Promise<void>(resolve => setImmediate(resolve))

describe('body reader: reads of a stream within 10 ms', () => {
  const open = () => {
    const state = { now: 1_000, due: () => {} }
    const clock = {
      monotonic: () => state.now,
      after(_milliseconds: number, action: () => void) {
        state.due = action
        return () => {
          state.due = () => {}
        }
      },
    }
    const source = eventStream()
    return { state, source, body: openBody(source.response, clock) }
  }

  test('are one batch, after the first content, which never waits', async () => {
    const { state, source, body } = open()
    source.push(frame('one '))
    expect(getText(await body.next())).toBe('one ')
    const joined = body.next()
    for (const text of ['two ', 'three ']) {
      state.now += 2
      source.push(frame(text))
      await settled()
    }
    state.now = 1_010
    state.due()
    expect(getText(await joined)).toBe('two three ')
    state.now = 1_030
    source.push(frame('four'))
    expect(getText(await body.next())).toBe('four')
  })

  test('precede a broken connection, which does not wait', async () => {
    const { source, body } = open()
    source.push(frame('one '))
    await body.next()
    const rest = body.next()
    source.push(frame('two'))
    await settled()
    source.break()
    expect(getText(await rest)).toBe('two')
    expect(body.next()).rejects.toThrow('reset')
  })

  test('precede the end, which does not wait', async () => {
    const { source, body } = open()
    source.push(frame('one '))
    await body.next()
    const rest = body.next()
    source.push(frame('two'))
    await settled()
    source.push('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    expect((await rest)?.map(({ type }) => type)).toEqual(['text', 'finish', 'end'])
  })
})

test('body reader: parses one large network read over many turns of the event loop without loss', async () => {
  const pieces = Array.from({ length: 1_500 }, (_, index) => `${index} `)
  const sent = streamText(getFrames('openai', pieces))
  const response = new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(sent))
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )
  const body = openBody(response, systemClock)
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  let text = ''
  for (let parts = await body.next(); parts !== null; parts = await body.next())
    for (const part of parts) if (part.type === 'text') text += part.text
  isOver = true
  expect(text).toBe(pieces.join(''))
  // 8 KB per turn.
  expect(turns).toBeGreaterThan(sent.length / 8_192 - 5)
})
