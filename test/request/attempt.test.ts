import { describe, expect, test } from 'bun:test'
import { fullName } from '../../src/core/models/models.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog } from '../../src/models/catalog.ts'
import { openai } from '../../src/providers/openai.ts'
import { UpstreamAttempt } from '../../src/request/attempt.ts'
import { piece } from '../../src/simulator/reply.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { getFrames, streamText } from '../faults/support.ts'
import { recordedAnswer } from '../harness/answer-parts.ts'
import { eventually } from '../harness/eventually.ts'
import { movedClock, oneTurn } from '../harness/moved-clock.ts'
import { startUpstream, type Upstream, type UpstreamAnswer } from '../harness/upstream.ts'
import { getCandidate, getProvider } from './support.ts'

const deadlines = {
  connectMs: 3_000,
  firstByteMs: 30_000,
  silenceMs: 60_000,
  firstContentMs: 120_000,
  firstContentReasoningMs: 300_000,
  totalMs: 600_000,
}

type Rig = ReturnType<typeof rig>

/** An attempt in OpenAI's format with a handwritten response; with `url`, over a real socket. */
function rig(
  given: {
    readonly url?: string
    readonly reaches?: boolean
    readonly effort?: string
    readonly answers?: boolean
    readonly stream?: boolean
  } = {},
) {
  const time = movedClock()
  const sent: RequestInit[] = []
  let body: ReadableStreamDefaultController<Uint8Array> | null = null
  let cancelled = false
  const model = catalog.find(item => fullName(item) === 'openai/gpt-6.1-sol')
  if (model === undefined) throw new Error('the catalogue has changed: choose another model')
  const request = readNative(
    { prompt: 'Hi', ...(given.effort === undefined ? {} : { reasoning_effort: given.effort }) },
    new Headers(),
    2,
  )
  const caller = new AbortController()
  const network = {
    reaches: async () => given.reaches ?? true,
    fetch: (_url: string, init: RequestInit) => {
      sent.push(init)
      return new Promise<Response>((resolve, reject) => {
        const stop = () => {
          reject(new DOMException('aborted', 'AbortError'))
          body?.error(new DOMException('aborted', 'AbortError'))
        }
        if (init.signal?.aborted) return stop()
        init.signal?.addEventListener('abort', stop)
        if (given.answers === false) return
        const stream = new ReadableStream<Uint8Array>({
          start(controller) {
            body = controller
          },
          cancel() {
            cancelled = true
          },
        })
        resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }))
      })
    },
  }
  const { answer: response, drain } = recordedAnswer(request)
  const attempt = new UpstreamAttempt(
    { clock: time.clock, network: given.url === undefined ? network : systemNetwork },
    {
      candidate: {
        ...getCandidate(model),
        endpoint: {
          ...getProvider('openai'),
          provider: openai({ official: true }),
          access: { baseUrl: given.url ?? 'http://127.0.0.1:1', apiKey: 'key' },
        },
      },
      request: { request, model, outputCap: 1_000, stream: given.stream ?? true },
      deadlines,
      deadlineAt: deadlines.totalMs,
      signal: caller.signal,
      response,
    },
  )
  return {
    ...time,
    attempt,
    response,
    drain,
    caller,
    sent,
    write: (text: string) => body?.enqueue(Buffer.from(text)),
    end: () => body?.close(),
    isAborted: () => sent[0]?.signal?.aborted ?? false,
    isCancelled: () => cancelled,
  }
}

/** Returns the failure of the next read after the clock has moved; null while it still waits. */
async function failureAfter({ attempt, response, move }: Rig, milliseconds: number) {
  const scan = attempt.next()
  await oneTurn()
  await move(milliseconds)
  const failure: { kind: string; detail: string } | null = response.failure
  return { failure: failure && { kind: failure.kind, detail: failure.detail }, scan }
}

const timedOut = (phase: string) => ({ kind: 'timeout', detail: `${phase} deadline passed` })

describe('attempt deadline', () => {
  test('ends a missing connection, which a second connection attempt detects', async () => {
    const here = rig({ answers: false, reaches: false })
    expect((await failureAfter(here, 3_000)).failure).toMatchObject({ kind: 'connection_failed' })
    expect(here.isAborted()).toBe(true)
  })

  test('ends a silent connection after 30 s without a first byte', async () => {
    const early = rig({ answers: false })
    expect((await failureAfter(early, 29_999)).failure).toBeNull()
    const here = rig({ answers: false })
    expect((await failureAfter(here, 30_000)).failure).toEqual(timedOut('first_byte'))
    expect(here.isAborted()).toBe(true)
  })

  test('ends a silent response after its headers at 60 s', async () => {
    const early = rig()
    expect((await failureAfter(early, 59_999)).failure).toBeNull()
    expect((await failureAfter(rig(), 60_000)).failure).toEqual(timedOut('silence'))
  })

  test.each([
    ['120 s as a rule', undefined, 120_000],
    ['300 s with high reasoning effort', 'high', 300_000],
  ] as const)('ends a response with pings only: %s', async (_, effort, limit) => {
    const here = rig(effort === undefined ? {} : { effort })
    const phases: string[] = []
    for (let elapsed = 0; elapsed <= limit && phases.length === 0; elapsed += 10_000) {
      const { failure } = await failureAfter(here, 0)
      if (failure !== null) phases.push(`${failure.detail} at ${elapsed}`)
      else here.write(': ping\n\n')
      await here.move(10_000)
    }
    expect(phases).toEqual([`first_content deadline passed at ${limit}`])
  })

  test('restarts with any byte; after the first content only silence and the total time count', async () => {
    const here = rig()
    const { opening, content } = getFrames('openai', ['word'])
    await failureAfter(here, 0)
    here.write([...opening, ...content].join(''))
    await oneTurn()
    here.attempt.contentArrived()
    let elapsed = 0
    for (let failed = false; !failed; elapsed += 50_000) {
      const { failure, scan } = await failureAfter(here, 50_000)
      failed = failure !== null
      if (failed) expect(failure).toEqual(timedOut('deadline'))
      else here.write(': ping\n\n')
      await scan
    }
    expect(elapsed).toBe(600_000)
  })

  test('ignores time in which the client does not read', async () => {
    const here = rig()
    await failureAfter(here, 0)
    here.write(getFrames('openai', ['word']).content.join(''))
    await oneTurn()
    here.attempt.contentArrived()
    await here.move(300_000)
    expect(here.isAborted()).toBe(false)
    expect((await failureAfter(here, 59_999)).failure).toBeNull()
    await here.move(1)
    expect(here.isAborted()).toBe(true)
  })

  test('fires in time when it is earlier than the one before', async () => {
    const here = rig()
    const { scan } = await failureAfter(here, 10)
    await here.move(60_000)
    await scan
    expect(here.isAborted()).toBe(true)
  })
})

describe('attempt', () => {
  test('sends nothing and starts no timer before its first read', () => {
    const here = rig()
    expect([here.sent.length, here.running()]).toEqual([0, 0])
    here.attempt.close(false)
    expect(here.sent.length).toBe(0)
  })

  test('aborts and leaves no timer when it is closed early', async () => {
    const here = rig()
    await failureAfter(here, 0)
    here.write(': ping\n\n')
    await oneTurn()
    here.attempt.close(false)
    expect([here.isAborted(), here.running()]).toEqual([true, 0])
  })

  test('reads a complete response to its end for connection reuse, for at most 500 ms', async () => {
    const complete = rig()
    await failureAfter(complete, 0)
    complete.write(streamText(getFrames('openai', ['word'])))
    await oneTurn()
    complete.attempt.close(true)
    complete.end()
    await complete.move(10_000)
    expect([complete.isAborted(), complete.running()]).toEqual([false, 0])

    const lingering = rig()
    await failureAfter(lingering, 0)
    lingering.write(streamText(getFrames('openai', ['word'])))
    await oneTurn()
    lingering.attempt.close(true)
    await lingering.move(499)
    expect(lingering.isAborted()).toBe(false)
    await lingering.move(1)
    expect(lingering.isAborted()).toBe(true)
  })

  test('aborts after a client disconnect, even before it began', async () => {
    const here = rig()
    await failureAfter(here, 0)
    here.caller.abort()
    expect(here.isAborted()).toBe(true)
    const late = rig()
    late.caller.abort()
    expect((await failureAfter(late, 0)).failure).toMatchObject({ kind: 'connection_failed' })
  })

  test('never follows a redirect', async () => {
    const here = rig()
    await failureAfter(here, 0)
    expect(here.sent[0]?.redirect).toBe('error')
  })

  test('requests an uncompressed stream, because a compressor would buffer small events', async () => {
    const [stream, whole] = [rig(), rig({ stream: false })]
    for (const here of [stream, whole]) await failureAfter(here, 0)
    const encodings = [stream, whole].map(({ sent }) => new Headers(sent[0]?.headers).get('accept-encoding'))
    expect(encodings).toEqual(['identity', null])
  })
})

describe('upstream error over a real socket', () => {
  const error = '{"error":{"code":"insufficient_quota","message":"'
  const refusal = (pieces: NonNullable<UpstreamAnswer['pieces']>): UpstreamAnswer => ({
    status: 429,
    headers: { 'content-type': 'application/json', 'retry-after': '7' },
    framing: 'chunked',
    pieces,
  })

  /** Returns the result after the status arrived and the clock moved by `milliseconds`. */
  async function readLate(answer: UpstreamAnswer, milliseconds: number) {
    const upstream = startUpstream(() => answer)
    try {
      const here = rig({ url: upstream.url })
      const scan = here.attempt.next().then(() => here.drain())
      await eventually(() => here.attempt.status !== null)
      await here.move(milliseconds)
      const sent = () => upstream.ledger().at(-1)?.bytesSent ?? 0
      const before = sent()
      if (milliseconds === 1_999) await eventually(() => sent() > before + 20)
      const none = milliseconds === 1_999 ? oneTurn().then(() => 'nothing yet' as const) : scan
      const parts = await Promise.race([scan, none])
      here.attempt.close(false)
      await left(upstream)
      return { parts, running: here.running() }
    } finally {
      upstream.stop()
    }
  }

  const left = (upstream: Upstream) => upstream.until(ledger => ledger.every(({ outcome }) => outcome !== 'open'))
  const failure = { type: 'failure', failure: { kind: 'rate_limited', detail: '429', retryAfterMs: 7_000 } }

  test('waits 2 s for an endless body, then uses the status and closes the connection', async () => {
    const dripping = function* () {
      for (yield piece('{"error":{"message":"'); ; ) yield piece('x', 5)
    }
    expect(await readLate(refusal(dripping()), 1_999)).toEqual({ parts: 'nothing yet', running: 0 })
    expect(await readLate(refusal(dripping()), 2_000)).toMatchObject({ parts: [failure], running: 0 })
  })

  test('reads at most 64 KB and uses the text', async () => {
    const endless = function* () {
      for (yield error; ; ) yield 'x'.repeat(16_384)
    }
    const spent = { kind: 'quota_exhausted', detail: '429' }
    expect(await readLate(refusal(endless()), 0)).toMatchObject({ parts: [{ failure: spent }], running: 0 })
  })

  test('uses the status when the connection breaks, and the text when it is complete', async () => {
    const cut = { ...refusal([`${error}"}}`]), end: 'rst' } as const
    expect(await readLate({ ...cut, cutAt: 20 }, 0)).toMatchObject({ parts: [failure] })
    const told = { kind: 'quota_exhausted', detail: '429 insufficient_quota' }
    expect(await readLate(refusal([`${error}"}}`]), 0)).toMatchObject({ parts: [{ failure: told }] })
  })
})
