/** Errors of providers: the blame decides about the client's error, the fallback and the model's health. */
import { describe, expect, test } from 'bun:test'
import { silence, startUpstream, type UpstreamAnswer } from '../harness/upstream.ts'
import { rig } from './shared-rig.ts'
import {
  canary,
  eventStream,
  type Format,
  formats,
  getFrames,
  models,
  modes,
  type Row,
  requestsTo,
  writeWholeAnswer,
} from './support.ts'

const json = { 'content-type': 'application/json' } as const

/** Returns an error in the provider's format. `wording` distinguishes some kinds. */
function refusal(format: Format, status: number, wording: string, code: string | null = null): UpstreamAnswer {
  const message = `${wording} ${canary}`
  const body = {
    openai: { error: { message, type: 'invalid_request_error', param: null, code } },
    anthropic: { type: 'error', error: { type: 'invalid_request_error', message } },
    google: { error: { code: status, message, status: 'INVALID_ARGUMENT' } },
  }[format]
  return { status, headers: json, pieces: [JSON.stringify(body)] }
}

function getText({ pieces = [] }: UpstreamAnswer): string {
  return Symbol.iterator in pieces ? [...pieces].join('') : ''
}

/** Expected ledger rows by request ID. */
const booked: [requestId: string, row: Partial<Row>][] = []

const asked = () => formats.map(format => requestsTo(rig, format))

async function getState(model: string): Promise<string | undefined> {
  const response = await fetch(`${rig.gateway.url}/api/v1/models/health`)
  const { data } = (await response.json()) as { data: { model: string; state: string }[] }
  return data.find(entry => entry.model === model)?.state
}

describe.each([...formats])('request rejected by %s', failing => {
  const cases: readonly (readonly [string, UpstreamAnswer, number, string])[] = [
    ['400', refusal(failing, 400, 'temperature is wrong'), 400, 'invalid_request'],
    ['422', refusal(failing, 422, 'not processable'), 400, 'invalid_request'],
    ['413', refusal(failing, 413, 'too large'), 413, 'body_too_large'],
  ]
  test.each(cases)(
    '%s reaches the client without a fallback, and the model stays healthy',
    async (_, answer, status, code) => {
      rig.play(failing, () => answer)
      for (const mode of modes) {
        const before = asked()
        const reply = await rig.send(mode, { model: models[failing] })
        // Anthropic's own words about the request go to clients of its API form as they are: they match on them.
        if (failing === 'anthropic' && mode.startsWith('messages')) {
          expect([reply.httpStatus, reply.endings]).toEqual([answer.status ?? 200, 0])
          expect(reply.raw).toBe(getText(answer))
        } else {
          expect([reply.httpStatus, reply.errors[0]?.code, reply.endings]).toEqual([status, code, 0])
          expect(reply.raw).not.toContain(canary)
        }
        expect(asked().reduce((sum, count, at) => sum + count - (before[at] ?? 0), 0)).toBe(1)
        expect(await getState(models[failing])).toBe('healthy')
        booked.push([
          reply.requestId,
          {
            status: 'failed',
            error_code: code,
            billed_microcents: 0,
          },
        ])
      }
    },
  )

  test('falls back only to a larger context window after a context overflow', async () => {
    const wording = failing === 'google' ? 'The input token count exceeds the maximum' : 'prompt is too long'
    rig.play(failing, () => refusal(failing, 400, wording, failing === 'openai' ? 'context_length_exceeded' : null))
    const window = rig.gateway.deps.catalog.resolve(models[failing])?.contextWindow ?? 0
    const reply = await rig.send('native', { model: models[failing] })
    if (reply.httpStatus === 200) {
      const served = rig.gateway.deps.catalog.resolve(reply.model ?? '')
      expect(served?.contextWindow).toBeGreaterThan(window)
      expect(reply.attempts?.[0]).toBe(`${models[failing]} context_overflow`)
    } else expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([400, 'context_length_exceeded'])
    expect(await getState(models[failing])).toBe('healthy')
  })

  test('becomes 400 content_blocked as status and content_filter as finish reason', async () => {
    if (failing !== 'google') {
      const wording = 'Output blocked by content filtering policy'
      rig.play(failing, () => refusal(failing, 400, wording, failing === 'openai' ? 'content_policy_violation' : null))
      const reply = await rig.send('native', { model: models[failing] })
      expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([400, 'content_blocked'])
      expect(await getState(models[failing])).toBe('healthy')
    }
    rig.play(failing, () => {
      const { opening, content, closing } = getFrames(failing, ['half '], undefined, 'content_filter')
      return { headers: eventStream, framing: 'chunked', pieces: [...opening, ...content, ...closing] }
    })
    const reply = await rig.send('native', { model: models[failing] })
    expect([reply.httpStatus, reply.text, reply.finishReason]).toEqual([200, 'half ', 'content_filter'])
  })
})

describe.each([...formats])('health of %s', failing => {
  test.each([401, 403])('%d disables the provider until its pause ends, invisibly to clients', async status => {
    rig.play(failing, () => refusal(failing, status, 'bad key'))
    const reply = await rig.send('json', { model: models[failing] })
    expect(reply.httpStatus).toBe(200)
    expect(reply.raw).not.toContain(canary)
    const before = requestsTo(rig, failing)
    for (let count = 0; count < 5; count += 1) expect((await rig.send('json', { model: null })).httpStatus).toBe(200)
    expect(requestsTo(rig, failing)).toBe(before)
    const others = rig.gateway.deps.catalog.list.filter(model => model.provider === failing)
    for (const { provider, id } of others.slice(0, 2)) expect(await getState(`${provider}/${id}`)).toBe('unhealthy')
    expect(rig.gateway.logLines.some(line => line.includes('provider_disabled'))).toBe(true)
  })

  test('becomes unhealthy after one 503, but still serves clients that request the model', async () => {
    rig.play(failing, () => ({ status: 503 }))
    expect((await rig.send('json', { model: models[failing] })).httpStatus).toBe(200)
    expect(await getState(models[failing])).toBe('unhealthy')
    rig.play(failing, null)
    const next = await rig.send('json', { model: models[failing] })
    expect([next.model, next.headers.get('x-gateway-attempts')]).toEqual([models[failing], '1'])
    expect(await getState(models[failing])).toBe('healthy')
  })

  test('opens the circuit after three 503, reports the skip to clients that request it, and recovers', async () => {
    rig.play(failing, () => ({ status: 503 }))
    for (let count = 0; count < 3; count += 1) {
      const before = requestsTo(rig, failing)
      expect((await rig.send('json', { model: models[failing] })).httpStatus).toBe(200)
      expect(requestsTo(rig, failing) - before).toBeGreaterThan(0)
    }
    rig.play(failing, null)
    const before = requestsTo(rig, failing)
    const skipped = await rig.send('native', { model: models[failing] })
    expect(skipped.attempts).toEqual([`${models[failing]} skipped_circuit_open`, `${skipped.model} served`])
    expect([skipped.headers.get('x-gateway-attempts'), requestsTo(rig, failing)]).toEqual(['2', before])
    rig.advance(2_100)
    const probed = await rig.send('json', { model: models[failing] })
    expect(probed.model).toBe(models[failing])
    expect(await getState(models[failing])).toBe('healthy')
  })

  test('pauses a model after a 429 as requested, at most 60 s', async () => {
    const answer = refusal(failing, 429, 'slow down')
    rig.play(failing, () => ({ ...answer, headers: { ...json, 'retry-after': '7' } }))
    expect((await rig.send('json', { model: models[failing] })).httpStatus).toBe(200)
    rig.play(failing, null)
    rig.advance(6_500)
    expect((await rig.send('json', { model: models[failing] })).model).not.toBe(models[failing])
    rig.advance(1_000)
    expect((await rig.send('json', { model: models[failing] })).model).toBe(models[failing])
  })

  test('attempts the last candidate whatever its health', async () => {
    rig.play(failing, () => ({ status: 503 }))
    const failed = await rig.send('json', { model: models[failing], fallback: false })
    expect([failed.httpStatus, failed.errors[0]?.code]).toEqual([502, 'upstream_failed'])
    rig.play(failing, null)
    expect((await rig.send('json', { model: models[failing], fallback: false })).httpStatus).toBe(200)
  })
})

describe('all providers fail', () => {
  const all = (answer: UpstreamAnswer) => {
    for (const format of formats) rig.play(format, () => answer)
  }

  test.each([500, 502, 503])(
    'with %d: returns 502 upstream_failed after three attempts and advises against a retry',
    async status => {
      all({ status, pieces: [canary] })
      for (const mode of modes) {
        rig.heal()
        const before = asked().reduce((sum, count) => sum + count, 0)
        const reply = await rig.send(mode, { model: models.openai })
        expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([502, 'upstream_failed'])
        expect(reply.headers.get('x-should-retry')).toBe('false')
        expect(asked().reduce((sum, count) => sum + count, 0) - before).toBe(3)
        expect(reply.raw).not.toContain(canary)
        booked.push([
          reply.requestId,
          {
            status: 'failed',
            attempts: 3,
            billed_microcents: 0,
            provider: '',
          },
        ])
      }
    },
  )

  test.each([429, 529])('with %d: returns 503 no_model_available with the shortest wait, never 429', async status => {
    for (const [at, format] of formats.entries())
      rig.play(format, () => ({
        status,
        headers: { ...json, 'retry-after': String(9 - at) },
        pieces: [`{"error":{"message":"${canary}"}}`],
      }))
    const reply = await rig.send('compatible', { model: models.openai })
    expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([503, 'no_model_available'])
    expect(reply.headers.get('retry-after')).toBe('7')
    expect(reply.headers.get('x-should-retry')).toBe('false')
  })

  test('with timeouts: returns 504 upstream_timeout', async () => {
    all(silence)
    rig.waitBriefly(true)
    const reply = await rig.send('json', { model: models.openai })
    expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([504, 'upstream_timeout'])
    expect(reply.headers.get('x-should-retry')).toBe('false')
  })

  test('with refused connections: returns 502', async () => {
    const gone = startUpstream(() => silence)
    gone.stop()
    for (const format of formats) rig.divert(format, gone.url)
    const reply = await rig.send('native', { model: models.openai })
    expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([502, 'upstream_failed'])
  })

  test('with rejected keys: returns 502, never 401', async () => {
    for (const format of formats) rig.play(format, () => refusal(format, 401, 'bad key'))
    const reply = await rig.send('native', { model: models.openai })
    expect([reply.httpStatus, reply.errors[0]?.code]).toEqual([502, 'upstream_failed'])
    expect(reply.raw).not.toContain(canary)
  })

  test('without fallback: makes one attempt', async () => {
    all({ status: 500 })
    const before = asked().reduce((sum, count) => sum + count, 0)
    expect((await rig.send('json', { model: null, fallback: false })).httpStatus).toBe(502)
    expect(asked().reduce((sum, count) => sum + count, 0) - before).toBe(1)
  })
})

describe('response without content', () => {
  const empty = (format: Format, finish: 'stop' | 'length' = 'stop') =>
    rig.play(format, () => ({
      headers: json,
      pieces: [JSON.stringify(writeWholeAnswer(format, '', { input: 30, output: 0 }, finish))],
    }))

  test('serves the second of two with its usage', async () => {
    for (const format of formats) empty(format)
    const before = asked().reduce((sum, count) => sum + count, 0)
    const reply = await rig.send('whole', { model: models.openai })
    expect([reply.httpStatus, reply.text, reply.finishReason, reply.usage?.input]).toEqual([200, '', 'stop', 30])
    expect(asked().reduce((sum, count) => sum + count, 0) - before).toBe(2)
  })

  test('serves when all others fail', async () => {
    empty('openai')
    for (const format of ['anthropic', 'google'] as const) rig.play(format, () => ({ status: 500 }))
    for (const mode of ['whole', 'native'] as const) {
      rig.heal()
      const reply = await rig.send(mode, { model: models.openai })
      expect([reply.httpStatus, reply.model, reply.text, reply.endings]).toEqual([200, models.openai, '', 1])
      expect(reply.attempts?.filter(attempt => attempt.endsWith('served'))).toEqual([`${models.openai} served`])
      booked.push([
        reply.requestId,
        {
          status: 'completed',
          provider: 'openai',
          input_tokens: 30,
        },
      ])
    }
  })

  test('serves at once without fallback', async () => {
    for (const format of formats) empty(format)
    const before = asked().reduce((sum, count) => sum + count, 0)
    expect((await rig.send('whole', { model: null, fallback: false })).httpStatus).toBe(200)
    expect(asked().reduce((sum, count) => sum + count, 0) - before).toBe(1)
  })

  test('counts as valid when it ended at the output cap', async () => {
    empty('openai', 'length')
    const reply = await rig.send('whole', { model: models.openai })
    expect([reply.httpStatus, reply.model, reply.finishReason]).toEqual([200, models.openai, 'length'])
  })
})

test('usage ledger: records the status that each client received', async () => {
  for (const [requestId, row] of booked) expect(await rig.row(requestId)).toMatchObject(row)
  expect(booked.length).toBeGreaterThan(40)
})

test('logs: contain no upstream text', () => {
  expect(rig.gateway.logLines.filter(line => line.includes(canary))).toEqual([])
})
