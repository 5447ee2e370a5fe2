/** Timing of a stream on a test clock: status, pings, cancellation. */
import { describe, expect, test } from 'bun:test'
import type { ChatEvent, ChatEvents } from '../../src/core/chat/chat-events.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { toGatewayError } from '../../src/http/error-response.ts'
import { streamHeaders, streamResponse } from '../../src/http/sse-response.ts'
import { movedClock, oneTurn } from '../harness/moved-clock.ts'
import { startWith } from '../harness/reply.ts'

const opening = startWith({ overheadMs: 0 })
const opened: ChatEvent = { type: 'opened', opening }
const text = (content: string): ChatEvent => ({ type: 'text', choice: 0, text: content })

/** Events that the test emits batch by batch. */
function handEvents() {
  const waiting: PromiseWithResolvers<IteratorResult<readonly ChatEvent[], void>>[] = []
  const queued: ((consumer: PromiseWithResolvers<IteratorResult<readonly ChatEvent[], void>>) => void)[] = []
  const log: string[] = []
  const deliver = (give: (typeof queued)[number]) => {
    const consumer = waiting.shift()
    if (consumer === undefined) queued.push(give)
    else give(consumer)
  }
  const events: ChatEvents = {
    next() {
      log.push('next')
      const consumer = Promise.withResolvers<IteratorResult<readonly ChatEvent[], void>>()
      const give = queued.shift()
      if (give === undefined) waiting.push(consumer)
      else give(consumer)
      return consumer.promise
    },
    async return() {
      log.push('return')
      for (const consumer of waiting.splice(0)) consumer.resolve({ value: undefined, done: true })
      return { value: undefined, done: true }
    },
    throw: cause => Promise.reject(cause),
    [Symbol.asyncIterator]() {
      return this
    },
    async [Symbol.asyncDispose]() {},
  }
  return {
    events,
    log,
    send: (...batch: ChatEvent[]) => deliver(consumer => consumer.resolve({ value: batch, done: false })),
    fail: (cause: unknown) => deliver(consumer => consumer.reject(cause)),
    end: () => deliver(consumer => consumer.resolve({ value: undefined, done: true })),
  }
}

function start() {
  const { clock, move, running } = movedClock()
  const hand = handEvents()
  const failures: unknown[] = []
  const response = streamResponse({
    events: hand.events,
    streamFormat: {
      frame: batch => batch.map(event => (event.type === 'text' ? `data: ${event.text}\n\n` : '')).join(''),
      failure: error => `data: failed ${error.code}\n\n`,
    },
    abort: () => void hand.log.push('abort'),
    clock,
    headers: known => new Headers([...streamHeaders, ['x-opened', String(known !== null)]]),
    toError: thrown => {
      failures.push(thrown)
      return toGatewayError(thrown)
    },
  })
  response.catch(() => undefined)
  const isSettled = async () =>
    (await Promise.race([
      response.then(
        () => true,
        () => true,
      ),
      oneTurn(),
    ])) === true
  return { ...hand, move, running, response, failures, isSettled }
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
    send(text('b'))
    end()
    expect(await answer.text()).toBe('data: a\n\ndata: b\n\n')
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

  test('reads the source only when the client reads: one batch per read', async () => {
    const { response, send, log } = start()
    send(opened, text('a'))
    const { read } = await analyze(response)
    for (const content of ['b', 'c', 'd']) send(text(content))
    await oneTurn()
    expect(log).toEqual(['next'])
    await read()
    await read()
    expect(log).toEqual(['next', 'next'])
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
  test('ends a silent source immediately, leaves no timer, and causes no failure', async () => {
    const { response, send, log, running, failures } = start()
    send(opened, text('a'))
    const { read, cancel } = await analyze(response)
    await read()
    const waiting = read().catch(() => null)
    await oneTurn()
    await cancel()
    await waiting
    await oneTurn()
    expect(log.slice(-2)).toEqual(['abort', 'return'])
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
    expect(log.slice(-2)).toEqual(['abort', 'return'])
    expect(await read().catch(() => 'broken off')).toBe('broken off')
    expect([running(), failures]).toEqual([0, []])
  })

  test('ends the source before the first read too', async () => {
    const { response, send, log } = start()
    send(opened, text('a'))
    await (await response).body?.cancel()
    expect(log).toEqual(['next', 'abort', 'return'])
  })
})
