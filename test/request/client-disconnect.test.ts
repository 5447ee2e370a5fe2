/**
 * Clients that disconnect or do not read: the upstream call is aborted, the reservation released, and received output
 * billed.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { maximumEventCharacters } from '../../src/providers/sse.ts'
import { gzipPieces, type Piece, piece } from '../../src/simulator/reply.ts'
import {
  bodyFor,
  errorFrame,
  eventStream,
  type Format,
  formats,
  getFrames,
  isStreamed,
  type Mode,
  models,
  modes,
  type Rig,
  reservationsTaken,
  startRig,
} from '../faults/support.ts'
import { countedNetwork } from '../harness/counted-network.ts'
import { eventually } from '../harness/eventually.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { type LedgerEntry, silence, type UpstreamAnswer } from '../harness/upstream.ts'

setDefaultTimeout(240_000)

const { network, arrived } = countedNetwork()
let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    network,
    environment: {
      FIRST_BYTE_TIMEOUT_MS: '20000',
      FIRST_CONTENT_TIMEOUT_MS: '20000',
      SILENCE_TIMEOUT_MS: '20000',
      CONNECT_TIMEOUT_MS: '20000',
    },
  })
}, 240_000)
afterAll(() => rig.stop())
beforeEach(() => {
  for (const format of formats) rig.play(format, null)
})

const newest = (format: Format): LedgerEntry | undefined => rig.upstreams[format].ledger().at(-1)

function getStart(format: Format, pieces: readonly string[]): Buffer {
  const { opening, content } = getFrames(format, pieces)
  return Buffer.from([...opening, ...content].join(''))
}

const words = 'Twelve words that were sent before the caller went out of here. '

/** Returns some content, then nothing forever. */
function hangsAfter(format: Format, pieces: readonly string[]): UpstreamAnswer {
  const bytes = getStart(format, pieces)
  return {
    headers: eventStream,
    framing: 'chunked',
    pieces: [piece(bytes), piece('')],
    cutAt: bytes.length,
    end: 'hang',
  }
}

type Left = { readonly tag: string; readonly abortedAfterMs: number }

/**
 * Sends a request, disconnects when `hasArrived` returns true, and returns how long the upstream call lasted
 * afterwards.
 */
async function leave(format: Format, mode: Mode, when: 'before_content' | 'after_content'): Promise<Left> {
  const before = newest(format)?.index ?? -1
  const arrivedBefore = arrived.bytes
  const tag = Bun.randomUUIDv7()
  const controller = new AbortController()
  const { path, body } = bodyFor(mode, { model: models[format], fallback: false, tag })
  const pending = rig.gateway.post(path, body, {}, controller.signal)
  const scan = pending.then(response => response.body?.getReader().read()).catch(() => undefined)
  await eventually(() => (newest(format)?.index ?? -1) > before)
  const response = when === 'after_content' && isStreamed(mode) ? await pending : null
  if (response !== null) await scan
  else if (when === 'after_content') {
    await eventually(() => arrived.bytes - arrivedBefore >= getStart(format, [words, words]).length)
    await oneTurn()
  }
  const index = before + 1
  const leftAt = performance.now()
  controller.abort()
  const entry = () => rig.upstreams[format].ledger().find(upstream => upstream.index === index)
  await eventually(() => entry()?.outcome === 'aborted')
  await scan
  await eventually(() => reservationsTaken(rig) === 0)
  return { tag, abortedAfterMs: (entry()?.abortedAt ?? Number.POSITIVE_INFINITY) - leftAt }
}

describe('client disconnect', () => {
  const delays: number[] = []

  test.each([...formats])('%s: bills nothing before the first content and the received part after it', async format => {
    for (const mode of modes) {
      rig.play(format, () => silence)
      const early = await leave(format, mode, 'before_content')
      delays.push(early.abortedAfterMs)
      expect(await rig.row(early.tag)).toMatchObject({
        status: 'client_closed',
        error_code: null,
        billed_microcents: 0,
      })
      if (mode === 'whole') continue
      rig.play(format, () => hangsAfter(format, [words, words]))
      const late = await leave(format, mode, 'after_content')
      delays.push(late.abortedAfterMs)
      const row = await rig.row(late.tag)
      expect(row).toMatchObject({ status: 'client_closed', error_code: null, finish_reason: null, estimated: true })
      expect(row.output_tokens).toBeGreaterThan(15)
      expect(row.output_tokens).toBeLessThan(50)
      expect(row.billed_microcents).toBeGreaterThan(0)
      expect(row.billed_microcents).toBeLessThanOrEqual(row.reserved_microcents)
    }
    expect(rig.gateway.deps.health.getStanding(models[format]).state).toBe('healthy')
  })

  // That it is prompt is printed and not asserted: the upstream would otherwise send for two more seconds and not be aborted.
  test('aborts the upstream at any moment between tokens, before its output has ended', async () => {
    const slow = (format: Format): UpstreamAnswer => {
      const { opening, content } = getFrames(
        format,
        Array.from({ length: 400 }, () => 'word '),
      )
      return { headers: eventStream, framing: 'chunked', pieces: [...opening, ...content].map(text => piece(text, 5)) }
    }
    for (let round = 0; round < 24; round += 1) {
      const format = formats[round % 3] ?? 'openai'
      rig.play(format, () => slow(format))
      delays.push((await leave(format, round % 2 === 0 ? 'native' : 'compatible', 'after_content')).abortedAfterMs)
    }
    const sorted = delays.toSorted((left, right) => left - right)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
    process.stdout.write(
      `${delays.length} callers left: upstream aborted after ${at(0.5).toFixed(1)} ms (p50), ${at(0.99).toFixed(1)} ms (p99)\n`,
    )
    expect(delays.every(Number.isFinite)).toBe(true)
    for (const format of formats) expect(rig.gateway.deps.health.getStanding(models[format]).state).toBe('healthy')
  })
})

describe('provider connections', () => {
  test.each([...formats])('%s: are reused after a complete response of either kind', async format => {
    await rig.send('native', { model: models[format] })
    const before = rig.upstreams[format].connections()
    for (let round = 0; round < 3; round += 1) {
      for (const mode of modes) expect((await rig.send(mode, { model: models[format] })).text).not.toBe('')
    }
    expect(rig.upstreams[format].connections()).toBe(before)
  })

  test.each([...formats])('%s: are never reused after an abort or a failed response', async format => {
    await rig.send('native', { model: models[format] })
    rig.play(format, () => hangsAfter(format, ['words']))
    await leave(format, 'native', 'after_content')
    const before = rig.upstreams[format].connections()
    rig.play(format, () => {
      const { opening, content } = getFrames(format, ['words'])
      const bytes = Buffer.from([...opening, ...content, errorFrame(format)].join(''))
      // A complete body may end before the abort, and its connection is then free for the next request.
      const pieces = [piece(bytes), piece('')]
      return { headers: eventStream, framing: 'chunked', pieces, cutAt: bytes.length, end: 'hang' }
    })
    await rig.send('native', { model: models[format], fallback: false })
    expect(rig.upstreams[format].connections()).toBe(before + 1)
    rig.play(format, null)
    await rig.send('native', { model: models[format] })
    expect(rig.upstreams[format].connections()).toBe(before + 2)
    rig.heal()
  })
})

/** Frames with 16 KB of text each, sent as fast as possible. */
function* endless(format: Format): Generator<Piece> {
  const { opening, content } = getFrames(format, ['words and '.repeat(1_600)])
  for (const text of opening) yield piece(text)
  for (;;) yield piece(content.join(''))
}

describe('excessive data', () => {
  test('pauses the upstream when the client stops reading, without memory growth', async () => {
    rig.play('openai', () => ({ headers: eventStream, framing: 'chunked', pieces: endless('openai') }))
    const body = JSON.stringify({
      model: 'openai/gpt-6.1-terra',
      messages: [{ role: 'user', content: 'Go on for ever.' }],
      stream: true,
      n: 100,
      max_tokens: 128_000,
      fallback: false,
    })
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${rig.gateway.key}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`
    const memory = process.memoryUsage().rss
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: rig.gateway.port,
      socket: {
        open(opened) {
          opened.write(head + body)
        },
        data(reader) {
          reader.pause()
        },
      },
    })
    const sent = () => newest('openai')?.bytesSent ?? 0
    await eventually(() => sent() > 1_000_000)
    // Only time shows that nothing more is read: the bytes stop where the buffers of all sockets are full.
    let before = -1
    while (sent() !== before) {
      before = sent()
      await Bun.sleep(250)
    }
    const grown = process.memoryUsage().rss - memory
    process.stdout.write(
      `a reader who stopped: the upstream stopped after ${(before / 1_048_576).toFixed(1)} MB, RSS + ${(grown / 1_048_576).toFixed(0)} MB\n`,
    )
    expect(before).toBeLessThan(32 * 1_048_576)
    socket.terminate()
    await eventually(() => newest('openai')?.outcome === 'aborted')
    await eventually(() => reservationsTaken(rig) === 0)
    expect(rig.gateway.deps.health.getStanding('openai/gpt-6.1-terra').state).toBe('healthy')
  })

  test.each([...formats])(
    '%s: truncates an output beyond its cap and gives a JSON client another response',
    async format => {
      const { opening, content } = getFrames(format, ['First. '])
      const start = Buffer.from([...opening, ...content].join(''))
      const after = function* (): Generator<Piece> {
        yield piece(start)
        yield piece('', 20)
        yield* endless(format)
      }
      rig.play(format, () => ({ headers: eventStream, framing: 'chunked', pieces: after() }))
      const cut = await rig.send('native', { model: models[format], maxTokens: 600 })
      expect([cut.httpStatus, cut.errors.map(({ code }) => code), cut.endings]).toEqual([200, ['upstream_failed'], 0])
      expect(cut.text.length).toBeLessThan(300_000)
      await eventually(() => newest(format)?.outcome === 'aborted')
      const row = await rig.row(cut.requestId)
      expect(row.output_tokens).toBeLessThanOrEqual(600)
      expect(row.billed_microcents).toBeLessThanOrEqual(row.reserved_microcents)
      const whole = await rig.send('json', { model: models[format], maxTokens: 600 })
      expect([whole.httpStatus, whole.model?.startsWith(format)]).toEqual([200, false])
      rig.heal()
    },
  )

  test('stops reading a line of 100 MB and a body that expands to 500 MB', async () => {
    const line = function* (): Generator<Piece> {
      yield piece('data: {"choices":[{"delta":{"content":"')
      for (let sent = 0; sent < 100; sent += 1) yield piece('x'.repeat(1_048_576))
    }
    const zeros = Buffer.alloc(1_048_576)
    const compressed = await Array.fromAsync(gzipPieces(Array.from({ length: 500 }, () => piece(zeros))))
    const bomb: UpstreamAnswer = {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      pieces: [Buffer.concat(compressed.map(({ bytes }) => bytes))],
    }
    Bun.gc(true)
    const memory = process.memoryUsage().rss
    rig.play('openai', () => ({ headers: eventStream, framing: 'chunked', pieces: line() }))
    expect((await rig.send('json', { model: models.openai })).model).not.toBe(models.openai)
    await eventually(() => newest('openai')?.outcome === 'aborted')
    // Beyond the limit: what the sockets of both sides hold.
    expect(newest('openai')?.bytesSent).toBeLessThan(maximumEventCharacters + 23 * 1_048_576)
    rig.heal()
    rig.play('openai', () => bomb)
    expect((await rig.send('whole', { model: models.openai })).model).not.toBe(models.openai)
    const grown = process.memoryUsage().rss - memory
    process.stdout.write(`a line of 100 MB and a gzip bomb of 500 MB: RSS + ${(grown / 1_048_576).toFixed(0)} MB\n`)
    rig.heal()
  })
})
