/** Timing of a stream on a test clock: status, pings, cancellation. */
import { describe, expect, test } from 'bun:test'
import type { StreamMode } from '../../src/core/chat/chat.ts'
import { createTicker } from '../../src/core/chat/stream-pacing.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { toGatewayError } from '../../src/http/error-response.ts'
import { StreamDelivery, streamHeaders } from '../../src/http/sse-response.ts'
import { type ChatEvent, tell } from '../harness/events.ts'
import { movedClock, oneTurn } from '../harness/moved-clock.ts'
import { startWith, summaryWith } from '../harness/reply.ts'

const opening = startWith({ overheadMs: 0 })
const opened: ChatEvent = { type: 'opened', opening }
const text = (content: string): ChatEvent => ({ type: 'text', choice: 0, text: content })

function start(mode: StreamMode = 'realtime') {
  const { clock, move, running } = movedClock()
  const log: string[] = []
  let frames = ''
  const failures: unknown[] = []
  const delivery = new StreamDelivery({
    streamFormat: {
      text: (_channel, said) => {
        frames += `data: ${said}\n\n`
      },
      add() {},
      take() {
        const taken = frames
        frames = ''
        return taken
      },
      failure: error => `data: failed ${error.code}\n\n`,
    },
    mode,
    abort: () => void log.push('abort'),
    clock,
    ticker: createTicker(clock, thrown => failures.push(thrown)),
    headers: known => new Headers([...streamHeaders, ['x-opened', String(known !== null)]]),
    toError: thrown => {
      failures.push(thrown)
      return toGatewayError(thrown)
    },
  })
  const response = delivery.response()
  response.catch(() => undefined)
  const isSettled = async () =>
    (await Promise.race([
      response.then(
        () => true,
        () => true,
      ),
      oneTurn(),
    ])) === true
  return {
    log,
    /** Returns what the source waits for. */
    write: (...batch: ChatEvent[]) => tell(delivery, batch).flush(),
    send: (...batch: ChatEvent[]) => void tell(delivery, batch).flush(),
    fail: (thrown: unknown) => delivery.end({ thrown }),
    end: () => delivery.end(),
    move,
    running,
    response,
    failures,
    isSettled,
  }
}

/** Reads one frame after another as text. */
async function analyze(response: Response | Promise<Response>) {
  const reader = (await response).body?.getReader()
  if (reader === undefined) throw new Error('a stream has a body')
  const decoder = new TextDecoder()
  const read = async () => {
    const { done, value } = await reader.read()
    return done ? null : decoder.decode(value)
  }
  return { read, cancel: () => reader.cancel() }
}

describe('SSE status', () => {
  test('waits for the first content, which its headers describe', async () => {
    const { response, isSettled, move, running, send, end } = start()
    await move(14_999)
    expect(await isSettled()).toBe(false)
    send(opened, text('a'))
    const answer = await response
    expect([answer.status, answer.headers.get('x-opened')]).toEqual([200, 'true'])
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const { read } = await analyze(answer)
    expect(await read()).toBe('data: a\n\n')
    send(text('b'))
    end()
    expect([await read(), await read()]).toEqual(['data: b\n\n', null])
    expect(running()).toBe(0)
  })

  test('leaves after 15 s without content, with an immediate ping; a failure is then the last event', async () => {
    const { response, move, fail, failures } = start()
    await move(15_000)
    const answer = await response
    expect([answer.status, answer.headers.get('x-opened')]).toEqual([200, 'false'])
    const { read } = await analyze(answer)
    expect(await read()).toBe(': ping\n\n')
    const ping = read()
    await move(10_000)
    expect(await ping).toBe(': ping\n\n')
    const last = read()
    fail(new GatewayError('upstream_timeout', 'Too late.'))
    expect(await last).toBe('data: failed upstream_timeout\n\n')
    expect(await read()).toBeNull()
    expect(failures).toHaveLength(1)
  })

  test('comes from a failure before the first content', async () => {
    const { response, fail, running } = start()
    fail(new GatewayError('no_model_available', 'None.'))
    expect(await response.catch(error => error.status)).toBe(503)
    expect(running()).toBe(0)
  })

  test('reports a response without any event as a failure', async () => {
    const { response, end } = start()
    end()
    expect(await response.catch(error => error.code)).toBe('upstream_failed')
  })
})

describe('SSE stream', () => {
  test('sends a ping after 10 s of silence, measured from the last frame', async () => {
    const { response, move, send } = start()
    send(opened, text('a'))
    const { read } = await analyze(response)
    expect(await read()).toBe('data: a\n\n')
    for (let count = 0; count < 2; count++) {
      const next = read()
      await move(9_999)
      expect(await Promise.race([next, oneTurn()])).toBeUndefined()
      await move(1)
      expect(await next).toBe(': ping\n\n')
    }
    const next = read()
    await move(9_999)
    send(text('b'))
    expect(await next).toBe('data: b\n\n')
  })

  test('makes the source wait while the client does not read 64 KB, and joins what arrived meanwhile', async () => {
    const { response, write, send, move } = start()
    send(opened, text('a'))
    const { read } = await analyze(response)
    expect(await read()).toBe('data: a\n\n')
    await move(10)
    for (const content of ['b', 'c', 'd']) expect(write(text(content))).toBeNull()
    const waiting = write(text('x'.repeat(70_000)))
    expect(waiting).toBeInstanceOf(Promise)
    expect((await read())?.length).toBe(70_003 + 'data: \n\n'.length)
    await waiting
    expect(write(text('e'))).toBeNull()
  })

  test('sends the beginning of a sentence before the failure that follows it', async () => {
    const { response, send, fail } = start('buffered')
    send(opened, text('One. '))
    send(text('Tw'))
    fail(new GatewayError('upstream_failed', 'Cut.'))
    expect(await (await response).text()).toBe('data: One. Tw\n\ndata: failed upstream_failed\n\n')
  })

  test('adds no failure to a response that has its receipt', async () => {
    const { response, send, fail, failures } = start()
    send(opened, text('a'))
    send({ type: 'done', receipt: summaryWith({}) })
    fail(new Error('later'))
    expect(await (await response).text()).toBe('data: a\n\n')
    expect(failures).toEqual([])
  })

  test('skips a batch without frames', async () => {
    const { response, send } = start()
    send(opened)
    send({ type: 'finish', choice: 0, reason: 'stop' })
    send(text('a'))
    const { read } = await analyze(response)
    expect(await read()).toBe('data: a\n\n')
  })

  test('hides the text of an unknown thrown value', async () => {
    const { response, send, fail } = start()
    send(opened, text('a'))
    fail(new TypeError('canary'))
    expect(await (await response).text()).toBe('data: a\n\ndata: failed service_unavailable\n\n')
  })
})

describe('SSE client disconnect', () => {
  test('aborts a silent source immediately, leaves no timer, and causes no failure', async () => {
    const { response, write, send, log, running, failures } = start()
    send(opened, text('a'))
    const { read, cancel } = await analyze(response)
    await read()
    const waiting = read().catch(() => null)
    await oneTurn()
    await cancel()
    await waiting
    await oneTurn()
    expect(log).toEqual(['abort'])
    expect(write(text('b'))).toBeNull()
    expect([running(), failures]).toEqual([0, []])
  })

  test('includes a client that reads nothing for 60 s, and not one that reads every minute', async () => {
    const { response, send, log, move, running, failures } = start()
    send(opened, text('a'))
    const { read } = await analyze(response)
    await read()
    await move(59_999)
    send(text('b'))
    expect(await read()).toBe('data: b\n\n')
    await move(59_999)
    expect(log).not.toContain('abort')
    await move(1)
    expect(log).toEqual(['abort'])
    expect(await read().catch(() => 'broken off')).toBe('broken off')
    expect([running(), failures]).toEqual([0, []])
  })

  test('aborts the source before the first read too', async () => {
    const { response, send, log } = start()
    send(opened, text('a'))
    await (await response).body?.cancel()
    expect(log).toEqual(['abort'])
  })
})
