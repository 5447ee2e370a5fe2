import { expect, test } from 'bun:test'
import { systemClock } from '../../src/composition/clock.ts'
import { catalog } from '../../src/core/models/catalog.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { bodyReader } from '../../src/pipeline/body-reader.ts'
import { openai } from '../../src/providers/openai.ts'
import { framesOf, streamText } from '../faults/support.ts'

test('body reader: parses one large network read over many turns of the event loop without loss', async () => {
  const [model] = catalog
  if (model === undefined) throw new Error('the catalogue has models')
  const pieces = Array.from({ length: 1_500 }, (_, index) => `${index} `)
  const bytes = new TextEncoder().encode(streamText(framesOf('openai', pieces)))
  const response = new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes)
        controller.close()
      },
    }),
    { headers: { 'content-type': 'text/event-stream' } },
  )
  const ask = {
    ask: readNative({ prompt: 'Count.', stream: true }, new Headers(), 10),
    model,
    outputCap: 9_000,
    stream: true,
  }
  const body = bodyReader(response, ask, {
    provider: openai({ official: true }),
    clock: systemClock,
    byteArrived() {},
  })
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
  expect(turns).toBeGreaterThan(bytes.length / 8_192 - 5)
})
