/**
 * Ways in which a provider fails before its first content. Another provider must serve the client and be reported
 * correctly.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { silence, startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'
import { isLongVariant } from '../harness/variants.ts'
import { rig } from './shared-rig.ts'
import {
  asksForStream,
  canary,
  errorFrame,
  eventStream,
  type Format,
  formats,
  getFrames,
  models,
  modes,
  type Reply,
  requestsTo,
  reservationsTaken,
  type Script,
  servedBy,
  streamText,
  writeWholeAnswer,
} from './support.ts'

const json = { 'content-type': 'application/json' } as const
const html = `<html><body>${canary}</body></html>`

/** Set by `beforeAll`: the target of redirects. */
let elsewhere: Upstream

type Fault = (format: Format) => Script
const always =
  (answer: UpstreamAnswer): Fault =>
  () =>
  () =>
    answer

const status = (code: number, headers: Readonly<Record<string, string>> = {}): Fault =>
  always({ status: code, headers: { ...json, ...headers }, pieces: [JSON.stringify({ error: { message: canary } })] })

/** A valid response that is truncated in the middle of its first content. */
const cutShort =
  (framing: 'length' | 'chunked' | 'close', end: 'fin' | 'rst'): Fault =>
  format =>
  request => {
    const stream = asksForStream(format, request)
    const frames = getFrames(format, ['lost'])
    const text = stream ? streamText(frames) : JSON.stringify(writeWholeAnswer(format, 'lost'))
    const cutAt = stream ? frames.opening.join('').length + 10 : Math.floor(text.length / 2)
    return { headers: stream ? eventStream : json, framing, pieces: [text], cutAt, end }
  }

const inStream = (text: (format: Format) => string): Fault => {
  return format => () => ({ headers: eventStream, framing: 'chunked', pieces: [text(format)] })
}

const bomb = gzipSync(Buffer.alloc(64 * 1_048_576, ' '))

const faults: Readonly<Record<string, Fault>> = {
  'a connection reset before the headers': always({ framing: 'none', cutAt: 0, end: 'rst' }),
  'a connection closed before the headers': always({ framing: 'none', cutAt: 0, end: 'fin' }),
  'silence before the headers': always(silence),
  'headers, then silence': always({ headers: eventStream, framing: 'chunked', cutAt: 0, end: 'hang' }),
  'bytes that are not HTTP': always({ framing: 'none', pieces: [`${canary}\r\n\r\n`] }),
  500: status(500),
  502: status(502),
  503: status(503),
  529: status(529),
  429: status(429, { 'retry-after': '7' }),
  401: status(401),
  403: status(403),
  '404, the model is not there': status(404),
  'a page of HTML with status 200': always({ headers: { 'content-type': 'text/html' }, pieces: [html] }),
  'an error with status 200': always({ headers: json, pieces: [JSON.stringify({ error: { message: canary } })] }),
  'an error with status 200 as the only event': inStream(errorFrame),
  'an empty body with status 200': always({ headers: json }),
  'an empty event stream': always({ headers: eventStream, framing: 'chunked' }),
  'JSON that is none': always({ headers: json, pieces: [`{"choices":[{"${canary}`] }),
  'a body shorter than its length, FIN': cutShort('length', 'fin'),
  'a body shorter than its length, RST': cutShort('length', 'rst'),
  'a chunked body cut by FIN': cutShort('chunked', 'fin'),
  'a chunked body cut by RST': cutShort('chunked', 'rst'),
  'a close-delimited body cut by FIN': cutShort('close', 'fin'),
  'a close-delimited body cut by RST': cutShort('close', 'rst'),
  'a gzip bomb': always({ headers: { ...json, 'content-encoding': 'gzip' }, pieces: [bomb] }),
  'a gzip bomb as an event stream': always({ headers: { ...eventStream, 'content-encoding': 'gzip' }, pieces: [bomb] }),
  'an error frame first': inStream(format => getFrames(format, []).opening.join('') + errorFrame(format)),
  'a malformed frame first': inStream(() => `data: {"choices":[{"delta":{"content":"${canary}\n\n`),
  'the role alone, then the end': inStream(format => getFrames(format, []).opening.join('')),
  'an answer without content': format => request =>
    asksForStream(format, request)
      ? { headers: eventStream, framing: 'chunked', pieces: [streamText(getFrames(format, []))] }
      : { headers: json, pieces: [JSON.stringify(writeWholeAnswer(format, ''))] },
  'one line of 3 MB': inStream(() => `data: {"choices":[{"delta":{"content":"${'x'.repeat(3 * 1_048_576)}"}}]}\n\n`),
  'an image': always({ headers: { 'content-type': 'image/png' }, pieces: [`PNG ${canary}`] }),
  'a redirect': () => () => ({ status: 302, headers: { location: `${elsewhere.url}/stolen` } }),
}

beforeAll(() => {
  elsewhere = startUpstream(() => ({ headers: json, pieces: ['{}'] }))
})
afterAll(() => elsewhere.stop())

/** Expects a complete response from another provider that names it. */
function expectServedElsewhere(reply: Reply, failing: Format): void {
  expect(reply.httpStatus).toBe(200)
  expect([reply.errors, reply.endings, reply.finishReason]).toEqual([[], 1, 'stop'])
  const server = formats.find(format => reply.text === servedBy(format))
  expect(server).toBeDefined()
  expect(server).not.toBe(failing)
  expect(reply.model).toStartWith(`${server}/`)
  expect(reply.raw).not.toContain(canary)
  if (reply.attempts !== null) {
    expect(reply.attempts[0]).toStartWith(models[failing])
    expect(reply.attempts[0]).not.toEndWith('served')
    expect(reply.attempts.at(-1)).toBe(`${reply.model} served`)
  } else expect(Number(reply.headers.get('x-gateway-attempts'))).toBeGreaterThan(1)
}

/** `takesTime` = all ways concurrently, since each of them waits for a deadline. */
async function everyMode(failing: Format, takesTime = false): Promise<void> {
  const askFor = async (mode: (typeof modes)[number]) =>
    expectServedElsewhere(await rig.send(mode, { model: models[failing] }), failing)
  if (takesTime) await Promise.all(modes.map(askFor))
  else
    for (const mode of modes) {
      rig.heal()
      await askFor(mode)
    }
}

describe.each([...formats])('fallback before the first content of %s', failing => {
  test.each(Object.entries(faults))('%s', async (name, fault) => {
    rig.play(failing, fault(failing))
    rig.waitBriefly(name.includes('silence'))
    const asked = requestsTo(rig, failing)
    await everyMode(failing, name.includes('silence'))
    // The first one may meet a pooled connection, and is repeated on a new one.
    const repeated = name.endsWith('before the headers') ? requestsTo(rig, failing) - asked - modes.length : 0
    expect([0, 1]).toContain(repeated)
    expect(requestsTo(rig, failing)).toBe(asked + modes.length + repeated)
  })

  test('serves from another provider when the connection is refused', async () => {
    const gone = startUpstream(() => silence)
    gone.stop()
    rig.divert(failing, gone.url)
    await everyMode(failing)
  })

  test('serves from another provider when the host does not answer', async () => {
    rig.divert(failing, 'hole')
    rig.waitBriefly(true)
    await everyMode(failing, true)
  })

  test('serves from another provider when a JSON response is truncated', async () => {
    const { opening, content } = getFrames(failing, ['half an ', 'answer'])
    rig.play(failing, () => ({ headers: eventStream, framing: 'close', pieces: [...opening, ...content] }))
    expectServedElsewhere(await rig.send('json', { model: models[failing] }), failing)
  })
})

const concurrent = isLongVariant() ? 20 : 6

test('fallback: serves concurrent requests however one of three providers fails', async () => {
  const names = Object.keys(faults).filter(name => !name.includes('bomb'))
  let served = 0
  for (const [index, name] of names.entries()) {
    const failing = formats[index % formats.length] ?? 'openai'
    rig.heal()
    rig.waitBriefly(name.includes('silence'))
    rig.play(failing, faults[name]?.(failing) ?? null)
    const replies = await Promise.all(
      Array.from({ length: concurrent }, (_, at) =>
        rig.send(modes[at % modes.length] ?? 'json', { model: at % 2 === 0 ? models[failing] : null }),
      ),
    )
    for (const reply of replies) {
      expect([name, reply.httpStatus, reply.endings, reply.errors]).toEqual([name, 200, 1, []])
      const server = formats.find(format => reply.text === servedBy(format))
      expect(reply.model).toStartWith(`${server}/`)
      served += 1
    }
    rig.play(failing, null)
  }
  process.stdout.write(
    `${concurrent} at a time through ${names.length} ways to fail: ${served} of ${names.length * concurrent} served\n`,
  )
}, 240_000)

test('redirect: never reaches another host with the request or key', () => {
  expect(elsewhere.connections()).toBe(0)
})

test('upstream errors: never reach a log, and no reservation stays open', () => {
  expect(rig.gateway.logLines.filter(line => line.includes(canary))).toEqual([])
  expect(rig.gateway.logLines.some(line => line.includes('attempt_failed'))).toBe(true)
  expect(reservationsTaken(rig)).toBe(0)
})
