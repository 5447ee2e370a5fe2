import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import type { Caller } from '../../src/core/limits/plans.ts'
import { buildCatalog, fullName, type Model } from '../../src/core/models/models.ts'
import { getHighestCost } from '../../src/core/usage/money.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog as published } from '../../src/models/catalog.ts'
import type { ConfiguredProvider } from '../../src/providers/configured-provider.ts'
import { KeyPool } from '../../src/providers/keys/key-pool.ts'
import { answer } from '../../src/request/answer.ts'
import { estimateInputTokens } from '../../src/text/tokens/tokens.ts'
import { errorFrame, type Format, formats, getFrames, models as named, writeWholeAnswer } from '../faults/support.ts'
import { type ChatEvent, EventLog } from '../harness/events.ts'
import { eventually } from '../harness/eventually.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { caller, createWorld, plenty, startedAt } from './world.ts'

/** Outcome of one upstream call. */
const outcomes = [
  'answers',
  'empty',
  'status_500',
  'status_503',
  'status_429',
  'status_401',
  'status_400',
  'overflow',
  'refuses_connection',
  'hangs',
  'cut_before_content',
  'cut_after_content',
  'error_after_content',
  'breaks_at_once',
  'hangs_after_content',
] as const

type Outcome = (typeof outcomes)[number]

type World = ReturnType<typeof createWorld> & { readonly calls: string[] }

/** The network plays `script`, one outcome per call. */
function world(script: readonly Outcome[], limits = plenty, models: readonly Model[] = published): World {
  const calls: string[] = []
  const answerNext = (format: Format, init: RequestInit) => {
    calls.push(format)
    return play(script[calls.length - 1] ?? 'answers', format, init)
  }
  return { ...createWorld(answerNext, models, limits), calls }
}

async function play(outcome: Outcome, format: Format, init: RequestInit): Promise<Response> {
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(new DOMException('aborted', 'AbortError'))
    if (init.signal?.aborted) stop()
    init.signal?.addEventListener('abort', stop)
  })
  aborted.catch(() => {})
  const { opening, content, closing } = getFrames(format, ['Some ', 'words'])
  const stream = (frames: readonly string[], end: 'close' | 'error' | 'hang') =>
    new Response(
      new ReadableStream<Uint8Array>({
        async pull(controller) {
          for (const frame of frames) controller.enqueue(Buffer.from(frame))
          if (end === 'error') controller.error(new Error('connection reset'))
          if (end === 'close') controller.close()
          if (end === 'hang') await aborted.catch(cause => controller.error(cause))
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    )
  const refused = (status: number, body: object) => Response.json(body, { status })
  switch (outcome) {
    case 'answers':
      return stream([...opening, ...content, ...closing], 'close')
    case 'empty':
      return Response.json(writeWholeAnswer(format, ''))
    case 'status_500':
      return refused(500, {})
    case 'status_503':
      return refused(503, {})
    case 'status_429':
      return refused(429, {})
    case 'status_401':
      return refused(401, {})
    case 'status_400':
      return refused(400, { error: { type: 'invalid_request_error', message: 'wrong' } })
    case 'overflow':
      return refused(400, {
        error: { type: 'invalid_request_error', message: 'prompt is too long: input token count' },
      })
    case 'refuses_connection':
      throw new Error('ConnectionRefused')
    case 'hangs':
      return aborted
    case 'cut_before_content':
      return stream(opening, 'error')
    case 'cut_after_content':
      return stream([...opening, ...content.slice(0, 1)], 'close')
    case 'error_after_content':
      return stream([...opening, ...content.slice(0, 1), errorFrame(format)], 'close')
    case 'breaks_at_once':
      return stream([[...opening, ...content, errorFrame(format)].join('')], 'close')
    case 'hangs_after_content':
      return stream([...opening, ...content.slice(0, 1)], 'hang')
  }
}

function asking(given: Record<string, unknown>): ChatRequest {
  return readNative({ prompt: 'Say something.', ...given }, new Headers(), 100)
}

type Run = { readonly events: readonly ChatEvent[]; readonly thrown: unknown; readonly batches: number }

/** Reads the response, and disconnects after `leaveAfter` batches if set. */
function run(...given: Parameters<typeof read>): Promise<Run> {
  return given[0].time.run(read(...given))
}

type Leaving = { readonly after: number; readonly how: 'unread' | 'abort' | 'drain' }

async function read(
  { deps }: World,
  request: ChatRequest,
  leaving: Leaving | null = null,
  of: Caller = caller,
): Promise<Run> {
  const controller = new AbortController()
  let batches = 0
  const leave = () => {
    if (leaving === null || leaving.after !== batches) return null
    if (leaving.how === 'abort') controller.abort()
    if (leaving.how === 'drain') controller.abort(new GatewayError('service_unavailable', 'Draining.'))
    // The client stops reading and disconnects a turn later.
    return leaving.how === 'unread' ? oneTurn().then(() => controller.abort()) : null
  }
  const output = new EventLog(() => {
    batches += 1
    return leave()
  })
  const { events } = output
  try {
    await leave()
    const { signal } = controller
    await answer(deps, of, request, { id: `req_${Bun.randomUUIDv7()}`, signal, output })
    return { events, thrown: null, batches }
  } catch (thrown) {
    return { events, thrown, batches }
  }
}

const getCount = (events: readonly ChatEvent[], type: ChatEvent['type']) =>
  events.filter(event => event.type === type).length

test('call: keeps one response, one settlement, no open reservation and at most three attempts for any upstreams and clients', async () => {
  const seen = new Map<string, number>()
  const leavings = fc.option(
    fc.record({
      after: fc.integer({ min: 0, max: 3 }),
      how: fc.constantFrom('unread' as const, 'abort' as const, 'drain' as const),
    }),
    { nil: null, freq: 2 },
  )
  const asks = fc.record({
    stream: fc.boolean(),
    fallback: fc.boolean(),
    model: fc.constantFrom(null, named.openai, named.anthropic, named.google),
    small: fc.boolean(),
  })
  const answering = published.filter(model => Object.values(named).includes(fullName(model)))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...outcomes), { maxLength: 4 }),
      asks,
      leavings,
      async (script, given, leaving) => {
        const { stream, fallback, model, small } = given
        // Each provider answers as this model of its own, and is billed as it.
        const rig = world(script, plenty, answering)
        const request = asking({
          fallback,
          ...(stream ? { stream } : {}),
          ...(model === null ? {} : { model }),
          ...(small ? { max_output_tokens: 50 } : {}),
        })
        const { events, thrown } = await run(rig, request, leaving)

        // The model itself may continue a stream that was cut.
        expect(rig.calls.length).toBeLessThanOrEqual(fallback || stream ? 3 : 1)
        expect(getCount(events, 'opened')).toBeLessThanOrEqual(1)
        if (events.length > 0) expect(events[0]?.type).toBe('opened')
        const done = getCount(events, 'done')
        expect(done).toBeLessThanOrEqual(1)
        if (done === 1) expect([events.at(-1)?.type, thrown, getCount(events, 'finish')]).toEqual(['done', null, 1])
        if (thrown !== null) {
          expect(thrown).toBeInstanceOf(GatewayError)
          expect([done, getCount(events, 'finish')]).toEqual([0, 0])
        }
        if (thrown === null && leaving === null) expect(done).toBe(1)

        expect(rig.records.length).toBe(1)
        expect(rig.reservationsTaken()).toBe(0)
        const [record] = rig.records
        if (record !== undefined) {
          expect(record.billed_microcents).toBeLessThanOrEqual(record.reserved_microcents)
          if (done === 1) expect([record.status, record.error_code]).toEqual(['completed', null])
          if (record.status === 'failed')
            expect([record.error_code, record.finish_reason]).toEqual([expect.any(String), null])
          if (leaving === null) expect(record.status).toBe(thrown === null ? 'completed' : 'failed')
          if (record.status === 'client_closed') expect(leaving).not.toBeNull()
          seen.set(record.status, (seen.get(record.status) ?? 0) + 1)
        }
        // Every second attempt has released its ticket; otherwise the retry budget would run out.
        const retries = [1, 2, 3].map(() => rig.deps.health.beginRetry('any'))
        expect(retries).not.toContain(null)
      },
    ),
    { numRuns: 400 },
  )
  expect([...seen.keys()].toSorted()).toEqual(['client_closed', 'completed', 'failed'])
})

describe('fallback', () => {
  test('continues after a failure in the same read as the first content, which was not sent', async () => {
    const rig = world(['breaks_at_once'])
    const { events, thrown } = await run(rig, asking({ stream: true, model: named.openai }))
    expect(thrown).toBeNull()
    expect(events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('')).toBe('Some words')
  })

  test('reaches a healthy provider for any number of requests during failures of another', async () => {
    const rig = world(Array.from({ length: 10 }, (): Outcome => 'status_500'))
    await Promise.all(Array.from({ length: 3 }, () => run(rig, asking({ model: named.openai }))))
    const later = await Promise.all(Array.from({ length: 4 }, () => run(rig, asking({ model: named.openai }))))
    expect(later.map(({ thrown }) => thrown)).toEqual([null, null, null, null])
  })

  test('measures time to first token from the serving attempt', async () => {
    const rig = world(['hangs', 'answers'])
    await run(rig, asking({ stream: true, model: named.openai }))
    expect(rig.time.clock.monotonic()).toBeGreaterThan(startedAt)
    const times = rig.deps.health.list().flatMap(({ firstTokenMs }) => (firstTokenMs === null ? [] : [firstTokenMs]))
    expect(times).toEqual([0])
  })
})

describe('named model', () => {
  const triedBy = ({ events }: Run) =>
    events.flatMap(event =>
      event.type === 'opened' ? event.opening.attempts.map(({ model, outcome }) => `${model} ${outcome}`) : [],
    )
  const name = named.openai
  const failing = (count: number): readonly Outcome[] =>
    Array.from({ length: count }, (): readonly Outcome[] => ['status_503', 'answers']).flat()

  test('gets the next request after a 503, although its health is unhealthy', async () => {
    const rig = world(['status_503', 'answers', 'answers', 'answers'])
    await run(rig, asking({ model: name }))
    expect(rig.deps.health.getStanding(name).state).toBe('unhealthy')
    const next = await run(rig, asking({ model: name }))
    expect([triedBy(next), rig.calls.slice(2)]).toEqual([[`${name} served`], ['openai']])
  })

  test('loses its turn when several failures opened its circuit, with the skip as an attempt with its reason', async () => {
    const rig = world(failing(3))
    for (let request = 0; request < 3; request++) {
      const { thrown } = await run(rig, asking({ model: name }))
      expect([thrown, rig.calls[2 * request]]).toEqual([null, 'openai'])
    }
    const later = await run(rig, asking({ model: name }))
    const [skip, served] = triedBy(later)
    expect([skip, served?.endsWith(' served'), rig.calls.length]).toEqual([`${name} skipped_circuit_open`, true, 7])
    expect(rig.records.at(-1)).toMatchObject({ attempts: 2, status: 'completed' })
    expect(rig.records.at(-1)?.tried?.map(([model]) => model)).toEqual([served?.split(' ')[0] ?? ''])
    expect(
      later.events.flatMap(event => (event.type === 'done' ? [event.receipt.progress.attempts.length] : [])),
    ).toEqual([2])
  })

  test('serves even then without a skip when the client allows no fallback', async () => {
    const rig = world([...failing(3), 'answers'])
    for (let request = 0; request < 3; request++) await run(rig, asking({ model: name }))
    const alone = await run(rig, asking({ model: name, fallback: 'same_model' }))
    expect([triedBy(alone), rig.calls.at(-1)]).toEqual([[`${name} served`], 'openai'])
  })

  test('serves after a skip when all others fail, with both in the attempts', async () => {
    const rig = world([...failing(3), 'status_500', 'status_500', 'answers'])
    for (let request = 0; request < 3; request++) await run(rig, asking({ model: name }))
    const pair = published.filter(model => [name, named.anthropic].includes(fullName(model)))
    const two = { ...rig, deps: { ...rig.deps, catalog: buildCatalog(pair) } }
    const { thrown } = await run(two, asking({ model: name, fallback_max_cost_factor: 1_000 }))
    expect(thrown).toMatchObject({ code: 'upstream_failed' })
    expect(rig.calls.slice(6)).toEqual(['anthropic', 'openai'])
  })
})

test('call: waits once for capacity and calls the provider whose key has it first', async () => {
  const rig = world([])
  const waits = { openai: 900, anthropic: 300, google: 600 }
  const endpoints = new Map(
    [...rig.deps.endpoints].map(([id, endpoint]): [string, ConfiguredProvider] => {
      const key = { name: id, access: endpoint.access, account: id, weight: 1, models: null }
      const keys = new KeyPool({ keys: [key], quotas: new Map() }, rig.time.clock)
      for (const model of published) {
        const claim = keys.claim({ model: fullName(model), tokens: 1, except: new Set() })
        const retryAfterMs = formats.reduce((ms, format) => (format === id ? waits[format] : ms), 0)
        if (claim.key !== null) claim.settle(0, { kind: 'rate_limited', retryAfterMs, status: 429 })
      }
      return [id, { ...endpoint, keys }]
    }),
  )
  const startedAt = rig.time.clock.monotonic()
  const { thrown } = await run(
    { ...rig, deps: { ...rig.deps, endpoints } },
    asking({ fallback_max_cost_factor: 1_000 }),
  )
  expect([thrown, rig.calls, rig.time.clock.monotonic() - startedAt]).toEqual([null, ['anthropic'], 300])
})

test('call: an abort by the gateway ends a request whose client does not read', async () => {
  const rig = world(['hangs_after_content'])
  const ending = new AbortController()
  const output = new EventLog(() => {
    setTimeout(() => ending.abort(new GatewayError('service_unavailable', 'Draining.')))
    // The client never reads.
    return new Promise(() => {})
  })
  const request = asking({ stream: true, model: named.openai, fallback: false })
  const answering = answer(rig.deps, caller, request, { id: 'req_unread', signal: ending.signal, output })
  expect(await answering.catch((error: GatewayError) => error.message)).toBe('Draining.')
  expect([rig.records.length, rig.reservationsTaken()]).toEqual([1, 0])
})

test('call: settles a complete output although the client has not read it', async () => {
  const rig = world(['answers'])
  let written = 0
  // Nothing is read after the first batch.
  const output = new EventLog(() => (written++ === 0 ? null : new Promise(() => {})))
  const request = asking({ stream: true, model: named.openai, fallback: false })
  const { signal } = new AbortController()
  await rig.time.run(answer(rig.deps, caller, request, { id: 'req_whole', signal, output }))
  expect([rig.records[0]?.status, rig.reservationsTaken()]).toEqual(['completed', 0])
})

describe('probe of an open circuit', () => {
  /** A rig whose first model is half-open: the next attempt is its probe. */
  async function halfOpen(script: readonly Outcome[]) {
    const rig = world(script)
    rig.deps.health.report(named.openai, { outcome: 'unhealthy' })
    await rig.time.move(3_000)
    return rig
  }
  const request = asking({ stream: true, model: named.openai, fallback: false })

  test('ends with a client that leaves, before and after the first content', async () => {
    const rig = await halfOpen(['hangs', 'hangs_after_content', 'answers'])
    const leaving = new AbortController()
    const { signal } = leaving
    const output = new EventLog()
    const first = answer(rig.deps, caller, request, { id: 'req_before', signal, output }).catch(() => null)
    await eventually(() => rig.calls.length > 0)
    expect(rig.deps.health.getStanding(named.openai).mayTry).toBe(false)
    leaving.abort()
    await first
    expect(rig.deps.health.getStanding(named.openai).mayTry).toBe(true)
    await run(rig, request, { after: 1, how: 'unread' })
    expect([rig.deps.health.getStanding(named.openai).mayTry, rig.calls.length]).toEqual([true, 2])
    expect((await run(rig, request)).thrown).toBeNull()
    expect(rig.deps.health.getStanding(named.openai).state).toBe('healthy')
  })

  test('ends with a request that the upstream rejects, and with a failure of a key', async () => {
    const rejected = await halfOpen(['status_400'])
    expect((await run(rejected, request)).thrown).not.toBeNull()
    expect(rejected.deps.health.getStanding(named.openai).mayTry).toBe(true)

    const limited = await halfOpen(['status_429'])
    const endpoint = limited.deps.endpoints.get('openai')
    if (endpoint === undefined) throw new Error('the rig has an endpoint of OpenAI')
    const key = { name: 'a', access: endpoint.access, account: 'a', weight: 1, models: null }
    const quotas = new Map([['a', { requests: null, tokens: 1_000_000 }]])
    const keys = new KeyPool({ keys: [key], quotas }, limited.deps.clock)
    const endpoints = new Map([...limited.deps.endpoints, ['openai', { ...endpoint, keys }]])
    expect((await run({ ...limited, deps: { ...limited.deps, endpoints } }, request)).thrown).not.toBeNull()
    expect([limited.calls.length, limited.deps.health.getStanding(named.openai).mayTry]).toEqual([1, true])
    expect(keys.claim({ model: named.openai, tokens: 1, except: new Set() })).toMatchObject({ reason: 'at_limit' })
    // Tokens that are given back after the 429 would be capacity that the upstream has just denied.
    await limited.time.move(6_000)
    expect(keys.claim({ model: named.openai, tokens: 150_000, except: new Set() }).key).toBeNull()
  })
})

describe('reservation', () => {
  const cheap = published.find(model => fullName(model) === 'openai/gpt-6-luna')
  const dear = published.find(model => fullName(model) === 'anthropic/claude-fable-5-2')
  if (cheap === undefined || dear === undefined) throw new Error('the catalogue has changed: choose other models')
  const request = asking({ model: fullName(cheap), max_output_tokens: 100, fallback_max_cost_factor: 1_000 })
  const getCost = ({ pricing, provider }: Model) => {
    const most = { inputTokens: estimateInputTokens(request, provider), outputTokens: 100 }
    return getHighestCost(pricing, most, { at: 0, tier: null })
  }

  const withBudget = (dailyCostMicrocents: number): Caller => ({
    ...caller,
    limits: { ...plenty, dailyCostMicrocents },
  })

  test('grows for a more expensive fallback before its call', async () => {
    const rig = world(['status_500'], plenty, [cheap, dear])
    const { thrown } = await run(rig, request, null, withBudget(getCost(dear)))
    expect([thrown, rig.calls]).toEqual([null, ['openai', 'anthropic']])
    expect(rig.records[0]).toMatchObject({ provider: 'anthropic', reserved_microcents: getCost(dear) })
  })

  test('stays when the fallback costs one micro-cent too much, which is skipped', async () => {
    const rig = world(['status_500'], plenty, [cheap, dear])
    const { thrown } = await run(rig, request, null, withBudget(getCost(dear) - 1))
    expect(rig.calls).toEqual(['openai'])
    expect(thrown).toMatchObject({ code: 'upstream_failed' })
    expect(rig.records[0]).toMatchObject({ reserved_microcents: getCost(cheap), billed_microcents: 0 })
  })
})
