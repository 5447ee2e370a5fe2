/** Hedged attempts in the real pipeline: the network records its calls, and each test sends their frames. */
import { expect, test } from 'bun:test'
import type { Caller, Limits } from '../../src/core/limits/plans.ts'
import { fullName, type Model } from '../../src/core/models/models.ts'
import { getCost, getHighestCost } from '../../src/core/usage/money.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { catalog as published } from '../../src/models/catalog.ts'
import { KeyPool } from '../../src/providers/keys/key-pool.ts'
import { answer } from '../../src/request/answer.ts'
import { estimateInputTokens, estimateTokens, likelyInputTokens } from '../../src/text/tokens/tokens.ts'
import { type Format, getFrames, models as named } from '../faults/support.ts'
import { type ChatEvent, EventLog } from '../harness/events.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { caller, createWorld, plenty } from './world.ts'

const first = getModel('openai')
const second = getModel('anthropic')

function getModel(format: Format): Model {
  const model = published.find(item => fullName(item) === named[format])
  if (model === undefined) throw new Error('the catalog has changed: choose other models')
  return model
}

/** One upstream call. Its response begins at once and continues as the test sends frames. */
class UpstreamCall {
  readonly format: Format
  /** The headers, which contain the key. */
  readonly headers: string
  readonly response: Promise<Response>
  isCanceled = false
  private controller: ReadableStreamDefaultController<Uint8Array> | null = null

  constructor(format: Format, { signal, headers: sent }: RequestInit) {
    this.format = format
    this.headers = JSON.stringify([...new Headers(sent)])
    const body = new ReadableStream<Uint8Array>({
      start: controller => {
        this.controller = controller
      },
    })
    const headers = { 'content-type': 'text/event-stream' }
    this.response = Promise.resolve(new Response(body, { headers }))
    signal?.addEventListener('abort', () => {
      this.isCanceled = true
      this.break()
    })
  }

  send(...parts: ('opening' | 'content' | 'closing')[]): void {
    const frames = getFrames(this.format, [`from ${this.format}`], { input: 20, output: 7 })
    // One read, whatever it contains.
    this.controller?.enqueue(Buffer.from(parts.flatMap(part => frames[part]).join('')))
    if (parts.includes('closing')) this.controller?.close()
  }

  /** Sends a whole answer of Anthropic's that calls the tool `look`. */
  sendCall(): void {
    const block = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: second.id, content: [] }
    for (const event of [
      { type: 'message_start', message: { ...message, usage: { input_tokens: 20, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 7 } },
      { type: 'message_stop' },
    ])
      this.controller?.enqueue(Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`))
    this.controller?.close()
  }

  break(): void {
    try {
      this.controller?.error(new Error('connection reset'))
    } catch {
      // It has ended already.
    }
  }
}

type Options = {
  readonly models?: readonly Model[]
  readonly limits?: Limits
  readonly share?: number
  readonly lateAfterMs?: number
}

function world({ models = [first, second], limits = plenty, share = 1, lateAfterMs = 1 }: Options = {}) {
  const calls: UpstreamCall[] = []
  let whenCalled = () => {}
  const play = (format: Format, init: RequestInit) => {
    const upstreamCall = new UpstreamCall(format, init)
    calls.push(upstreamCall)
    whenCalled()
    return upstreamCall.response
  }
  const { deps: usual, records, reservationsTaken, time, own } = createWorld(play, models, limits, share)
  const tracker = usual.health
  const waits: string[] = []
  const health = {
    ...tracker,
    lateAfterMs: () => lateAfterMs,
    waited: (key: string) => void waits.push(key),
  }
  const deps = { ...usual, health }
  const called = async (count: number) => {
    while (calls.length < count) await new Promise<void>(resolve => (whenCalled = resolve))
    const call = calls[count - 1]
    if (call === undefined) throw new Error('no such call')
    return call
  }
  /** Resolves when the first content of all calls is late, and whatever begins then has begun. */
  const late = () => time.move(1)
  /** Returns the first call and its hedge, which begins when the content of the first is late. */
  const hedged = async () => {
    const first = await called(1)
    await late()
    return [first, await called(2)] as const
  }
  return { deps, records, calls, called, late, hedged, reservationsTaken, waits, tracker, limits, own }
}

type World = ReturnType<typeof world>

const askWith = (fields: Record<string, unknown> = {}, headers: Record<string, string> = { 'x-gateway-hedge': 'on' }) =>
  readNative(
    {
      prompt: 'Say something.',
      model: named.openai,
      max_output_tokens: 100,
      fallback_max_cost_factor: 1000,
      ...fields,
    },
    new Headers(headers),
    100,
  )

type Ended = { readonly events: readonly ChatEvent[]; readonly thrown: unknown }

function run({ deps, limits }: World, request = askWith(), options: { signal?: AbortSignal; hedges?: boolean } = {}) {
  const { signal = new AbortController().signal, hedges } = options
  const of: Caller = { ...caller, limits, ...(hedges ? { hedges } : {}) }
  const output = new EventLog()
  const { events } = output
  const read = async (): Promise<Ended> => {
    try {
      await answer(deps, of, request, { id: `req_${Bun.randomUUIDv7()}`, signal, output })
      return { events, thrown: null }
    } catch (thrown) {
      return { events, thrown }
    }
  }
  return read()
}

const getText = ({ events }: Ended) => events.flatMap(event => (event.type === 'text' ? [event.text] : [])).join('')
const findOpening = ({ events }: Ended) => events.flatMap(event => (event.type === 'opened' ? [event.opening] : []))[0]
const findReceipt = ({ events }: Ended) => events.flatMap(event => (event.type === 'done' ? [event.receipt] : []))[0]
const findOutcomes = ({ records }: World) => records[0]?.tried?.map(([model, outcome]) => `${model} ${outcome}`)

const usage = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const served = (model: Model) => getCost(model.pricing, { ...usage, inputTokens: 20, outputTokens: 7 })
/** Input tokens of a canceled attempt that reported none, and their cost. */
const getInput = (model: Model) => {
  const request = askWith()
  return Math.min(estimateInputTokens(request), likelyInputTokens(request, model.provider))
}
const canceled = (model: Model, inputTokens: number, outputTokens = 0) =>
  getCost(model.pricing, { ...usage, inputTokens, outputTokens })

for (const stream of [true, false])
  test(`hedge: ${stream ? 'a stream' : 'a JSON response'} comes from the runner-up, and both costs are billed`, async () => {
    const rig = world()
    const ending = run(rig, askWith(stream ? { stream } : {}))
    const [slow, fast] = await rig.hedged()
    slow.send('opening')
    fast.send('opening', 'content', 'closing')
    const ended = await ending
    expect([ended.thrown, getText(ended), slow.isCanceled, rig.calls.length]).toEqual([null, 'from anthropic', true, 2])
    expect(findOpening(ended)).toMatchObject({ hedge: 'won', model: named.anthropic })
    expect(findOutcomes(rig)).toEqual([`${named.openai} hedge_lost`, `${named.anthropic} served`])
    const lost = canceled(first, getInput(first))
    const total = served(second) + lost
    expect(rig.records[0]).toMatchObject({
      status: 'completed',
      billed_microcents: total,
      hedge_microcents: lost,
      input_tokens: 20 + getInput(first),
      output_tokens: 7,
      estimated: true,
    })
    expect(findReceipt(ended)).toMatchObject({
      record: { hedge_microcents: lost, billed_microcents: total },
      usage: { inputTokens: 20 },
    })
    expect(rig.reservationsTaken()).toBe(0)
    // The p95 of the first model must not sink by the canceled attempt, and its health says nothing.
    expect([rig.waits, rig.tracker.getStanding(named.openai).state]).toEqual([[named.openai], 'healthy'])
  })

test('hedge: the first attempt serves if its content arrives first, and the reported input of the hedge is billed', async () => {
  const rig = world()
  const ending = run(rig, askWith({ stream: true }))
  const [slow, hedge] = await rig.hedged()
  hedge.send('opening')
  await oneTurn()
  slow.send('opening', 'content', 'closing')
  const ended = await ending
  expect([ended.thrown, getText(ended), hedge.isCanceled]).toEqual([null, 'from openai', true])
  expect(findOpening(ended)).toMatchObject({ hedge: 'lost' })
  expect(findOutcomes(rig)).toEqual([`${named.anthropic} hedge_lost`, `${named.openai} served`])
  expect(rig.records[0]?.billed_microcents).toBe(served(first) + (rig.records[0]?.hedge_microcents ?? 0))
  // Anthropic reports the input, and one token of output, before the first content.
  expect(rig.records[0]?.hedge_microcents).toBe(canceled(second, 20, 1))
  expect(rig.waits).toEqual([])
})

test.each([
  ['ends its text', true],
  ['has no word of it', false],
])('hedge: bills a winner that is cut, the loser, and what goes on after it when that %s', async (_, isJoined) => {
  const rig = world()
  const ending = run(rig, askWith({ stream: true }))
  const [slow, fast] = await rig.hedged()
  fast.send('opening', 'content')
  await oneTurn()
  fast.break()
  const next = await rig.called(3)
  // What repeats the whole text is its end.
  next.send('opening', ...(isJoined ? (['content'] as const) : []), 'closing')
  const ended = await ending
  const lost = canceled(first, getInput(first))
  const cut = canceled(second, 20, estimateTokens('from anthropic', 'anthropic'))
  const total = lost + cut + (isJoined ? served(second) : 0)
  expect([slow.isCanceled, next.format, getText(ended)]).toEqual([true, 'anthropic', 'from anthropic'])
  expect([rig.records.length, rig.records[0]?.billed_microcents, rig.records[0]?.hedge_microcents]).toEqual([
    1,
    total,
    lost,
  ])
  expect([rig.records[0]?.status, rig.reservationsTaken()]).toEqual([isJoined ? 'completed' : 'failed', 0])
  expect(findReceipt(ended)?.record.billed_microcents).toBe(isJoined ? total : undefined)
  if (!isJoined) expect(ended.thrown).toMatchObject({ code: 'upstream_failed' })
})

test('hedge: a second own key runs beside the first one, and neither is billed', async () => {
  const rig = world({ models: [first] })
  for (const name of ['one', 'two']) rig.own('openai', true, name)
  const ending = run(rig, askWith({ stream: true }))
  const [slow, fast] = await rig.hedged()
  fast.send('opening', 'content', 'closing')
  expect((await ending).thrown).toBeNull()
  const keys = [slow, fast].map(({ headers }) => /own-key-pvk_(\w+)/.exec(headers)?.[1])
  expect([keys.toSorted(), slow.isCanceled, rig.reservationsTaken()]).toEqual([['one', 'two'], true, 0])
  const own = served(first) + canceled(first, getInput(first))
  expect(rig.records[0]).toMatchObject({ billed_microcents: 0, own_key_microcents: own })
  expect(rig.records[0]?.hedge_microcents).toBeUndefined()
})

test("hedge: the operator's key of the same provider never runs beside an own key", async () => {
  const rig = world({ models: [first] })
  rig.own('openai')
  const ending = run(rig, askWith({ stream: true }))
  const slow = await rig.called(1)
  await rig.late()
  slow.send('opening', 'content', 'closing')
  expect((await ending).thrown).toBeNull()
  expect([rig.calls.length, rig.records[0]?.billed_microcents]).toEqual([1, 0])
  expect(rig.records[0]?.own_key_microcents).toBe(served(first))
})

test("hedge: a model at the operator's key that wins over an own key is billed without it", async () => {
  const rig = world()
  rig.own('openai', false)
  const ending = run(rig, askWith({ stream: true }))
  const [slow, fast] = await rig.hedged()
  fast.send('opening', 'content', 'closing')
  expect((await ending).thrown).toBeNull()
  expect(slow.headers).toContain('own-key')
  const lost = canceled(first, getInput(first))
  expect(rig.records[0]).toMatchObject({ billed_microcents: served(second), own_key_microcents: lost })
})

test('hedge: does not begin without request, below the p95, without share, or for a model that only a fallback could replace', async () => {
  const cases: readonly [World, Parameters<typeof run>[1], 'unused' | undefined][] = [
    [world(), askWith({ stream: true }, {}), undefined],
    [world(), askWith({ stream: true }, { 'x-gateway-hedge': 'off' }), undefined],
    [world({ lateAfterMs: 60_000 }), askWith({ stream: true }), 'unused'],
    [world({ share: 0 }), askWith({ stream: true }), 'unused'],
    [world(), askWith({ stream: true, fallback: false }), 'unused'],
  ]
  for (const [rig, request, result] of cases) {
    const ending = run(rig, request)
    const call = await rig.called(1)
    await rig.late()
    call.send('opening', 'content', 'closing')
    const ended = await ending
    expect([findOpening(ended)?.hedge, rig.calls.length, rig.records[0]?.billed_microcents]).toEqual([
      result,
      1,
      served(first),
    ])
  }
})

test('hedge: begins for an account that has it on, unless the request turns it off', async () => {
  const rig = world()
  const ending = run(rig, askWith({ stream: true }, {}), { hedges: true })
  const [, hedge] = await rig.hedged()
  hedge.send('opening', 'content', 'closing')
  expect(findOpening(await ending)?.hedge).toBe('won')
  const off = run(rig, askWith({ stream: true }, { 'x-gateway-hedge': 'off' }), { hedges: true })
  const call = await rig.called(3)
  await rig.late()
  call.send('opening', 'content', 'closing')
  expect([findOpening(await off)?.hedge, rig.calls.length]).toEqual([undefined, 3])
})

test('hedge: begins only if the account can pay for both, to the micro-cent', async () => {
  const request = askWith({ stream: true })
  const worst = ({ pricing, provider }: Model) => {
    const most = { inputTokens: estimateInputTokens(request, provider), outputTokens: 100 }
    return getHighestCost(pricing, most, { at: 0, tier: null })
  }
  const both = worst(first) + worst(second)
  for (const [dailyCostMicrocents, count] of [
    [both, 2],
    [both - 1, 1],
  ] as const) {
    const rig = world({ limits: { ...plenty, dailyCostMicrocents } })
    const ending = run(rig, request)
    const call = await rig.called(1)
    await rig.late()
    if (count === 2) await rig.called(2)
    call.send('opening', 'content', 'closing')
    const { thrown } = await ending
    expect([thrown, rig.calls.length, rig.reservationsTaken()]).toEqual([null, count, 0])
    const [record] = rig.records
    expect(record?.reserved_microcents).toBe(count === 2 ? both : worst(first))
    expect(record?.billed_microcents).toBeLessThanOrEqual(record?.reserved_microcents ?? 0)
  }
})

test('hedge: serves after the first attempt failed, without any cost of the failed one', async () => {
  const rig = world()
  const ending = run(rig)
  const [slow, hedge] = await rig.hedged()
  slow.break()
  await oneTurn()
  hedge.send('opening', 'content', 'closing')
  const ended = await ending
  expect([getText(ended), findOpening(ended)?.hedge]).toEqual(['from anthropic', 'won'])
  expect(findOutcomes(rig)).toEqual([`${named.openai} truncated`, `${named.anthropic} served`])
  expect(rig.records[0]?.billed_microcents).toBe(served(second))
})

test('hedge: its failure leaves the first attempt to serve, at its own cost', async () => {
  const rig = world()
  const ending = run(rig)
  const [slow, hedge] = await rig.hedged()
  hedge.break()
  await oneTurn()
  slow.send('opening', 'content', 'closing')
  const ended = await ending
  expect([getText(ended), findOpening(ended)?.hedge]).toEqual(['from openai', 'lost'])
  expect(findOutcomes(rig)).toEqual([`${named.anthropic} truncated`, `${named.openai} served`])
  expect(rig.records[0]?.billed_microcents).toBe(served(first))
})

test('hedge: both attempts that fail end the request without cost', async () => {
  const rig = world()
  const ending = run(rig)
  const [slow, hedge] = await rig.hedged()
  hedge.break()
  slow.break()
  const { thrown } = await ending
  expect(thrown).toMatchObject({ code: 'upstream_failed' })
  expect(rig.records[0]).toMatchObject({ status: 'failed', billed_microcents: 0, input_tokens: 0 })
  expect([rig.calls.length, rig.reservationsTaken()]).toEqual([2, 0])
})

test('hedge: a client that leaves cancels both attempts, and pays for neither before an upstream counted', async () => {
  const rig = world()
  const leaving = new AbortController()
  const ending = run(rig, askWith({ stream: true }), { signal: leaving.signal })
  await rig.hedged()
  leaving.abort()
  await ending
  expect(rig.calls.map(({ isCanceled }) => isCanceled)).toEqual([true, true])
  expect(rig.records[0]).toMatchObject({ status: 'client_closed', billed_microcents: 0 })
  expect(rig.reservationsTaken()).toBe(0)
})

test('hedge: a truncated output of the winner never looks finished', async () => {
  const rig = world()
  const ending = run(rig, askWith({ stream: true, continue: 'off' }))
  const [, hedge] = await rig.hedged()
  hedge.send('opening', 'content')
  await oneTurn()
  hedge.break()
  const ended = await ending
  expect(ended.thrown).toMatchObject({ code: 'upstream_failed' })
  expect([getText(ended), findReceipt(ended)]).toEqual(['from anthropic', undefined])
  expect(rig.reservationsTaken()).toBe(0)
})

const requiredCall = {
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  tool_choice: 'required',
}
const unforced = { ...first, parameters: { ...first.parameters, forcedToolChoice: 'rejected' } } as const

test('hedge: text that waits for a required call wins no race', async () => {
  const rig = world({ models: [unforced, second] })
  const ending = run(rig, askWith({ stream: true, ...requiredCall }))
  const [slow, hedge] = await rig.hedged()
  slow.send('opening', 'content')
  await oneTurn()
  await oneTurn()
  expect([slow.isCanceled, hedge.isCanceled]).toEqual([false, false])
  hedge.sendCall()
  const ended = await ending
  expect([ended.thrown, getText(ended), slow.isCanceled, hedge.isCanceled]).toEqual([null, '', true, false])
  expect(findOutcomes(rig)).toEqual([`${named.openai} hedge_lost`, `${named.anthropic} served`])
})

test('hedge: does not begin while text waits for a required call', async () => {
  const rig = world({ models: [unforced, second] })
  const ending = run(rig, askWith({ stream: true, ...requiredCall }))
  const call = await rig.called(1)
  call.send('opening', 'content')
  await oneTurn()
  await rig.late()
  await oneTurn()
  expect(rig.calls.length).toBe(1)
  call.send('closing')
  const repeated = await rig.called(2)
  repeated.send('opening', 'content', 'closing')
  const fallback = await rig.called(3)
  fallback.sendCall()
  const ended = await ending
  expect([ended.thrown, findOpening(ended)?.hedge]).toEqual([null, 'unused'])
})

test('hedge: a whole answer without the required call wins no race', async () => {
  const rig = world()
  const leaving = new AbortController()
  const ending = run(rig, askWith(requiredCall), { signal: leaving.signal })
  const [slow, hedge] = await rig.hedged()
  hedge.send('opening', 'content', 'closing')
  await oneTurn()
  await oneTurn()
  expect([slow.isCanceled, rig.calls.length]).toEqual([false, 2])
  leaving.abort()
  await ending
  expect(rig.records[0]?.billed_microcents).toBe(0)
})

test('hedge: a canceled attempt beside an answer without the required call is not billed, and counts', async () => {
  const rig = world()
  const ending = run(rig, askWith(requiredCall))
  const [slow, hedge] = await rig.hedged()
  hedge.send('opening', 'content')
  await oneTurn()
  hedge.send('closing')
  const repeated = await rig.called(3)
  repeated.sendCall()
  expect((await ending).thrown).toBeNull()
  expect(slow.isCanceled).toBe(true)
  const [record] = rig.records
  expect(record).toMatchObject({ status: 'completed', billed_microcents: served(second) })
  expect(record?.hedge_microcents).toBeUndefined()
  // The repetition is billed, the other two are not.
  expect(record?.shortfall_microcents).toBeGreaterThan(served(second))
  expect(record?.output_tokens).toBe(14)
})

test('hedge: text that waits for a required call is not billed when the client disconnects, and counts', async () => {
  const rig = world({ models: [unforced, second] })
  const leaving = new AbortController()
  const ending = run(rig, askWith({ stream: true, ...requiredCall }), { signal: leaving.signal })
  const [slow] = await rig.hedged()
  slow.send('opening', 'content')
  await oneTurn()
  await oneTurn()
  leaving.abort()
  await ending
  const [record] = rig.records
  expect(record).toMatchObject({ status: 'client_closed', billed_microcents: 0 })
  expect(record?.output_tokens).toBeGreaterThan(0)
  expect(record?.shortfall_microcents).toBeGreaterThan(canceled(first, getInput(first)))
})

/** A rig whose provider of `format` has these keys, by name with the account and the weight. */
function withKeys(
  rig: World,
  format: Format,
  keyed: Readonly<Record<string, readonly [account: string, weight: number]>>,
) {
  const endpoint = rig.deps.endpoints.get(format)
  if (endpoint === undefined) throw new Error('no endpoint')
  const keys = new KeyPool(
    {
      keys: Object.entries(keyed).map(([name, [account, weight]]) => {
        return { name, access: { ...endpoint.access, apiKey: name }, account, weight, models: null }
      }),
      quotas: new Map(Object.values(keyed).map(([account]) => [account, { requests: 100, tokens: null }])),
    },
    rig.deps.clock,
  )
  const endpoints = new Map([...rig.deps.endpoints, [format, { ...endpoint, keys }]])
  return { keys, rig: { ...rig, deps: { ...rig.deps, endpoints } } }
}

test('hedge: settles the claim of its key when the meter fails', async () => {
  const usual = world()
  const { keys, rig } = withKeys(usual, 'anthropic', { k: ['a', 1] })
  const claims: unknown[] = []
  const claim = keys.claim.bind(keys)
  keys.claim = need => {
    const claimed = claim(need)
    if (claimed.key !== null) {
      const settle = claimed.settle.bind(claimed)
      claimed.settle = (...used) => {
        claims.push(used[0])
        settle(...used)
      }
    }
    return claimed
  }
  const raise = () => Promise.reject(new Error('no store'))
  const ending = run({ ...rig, deps: { ...rig.deps, meter: { ...rig.deps.meter, raise } } })
  await rig.called(1)
  await rig.late()
  expect((await ending).thrown).toMatchObject({ message: 'no store' })
  expect(claims).toEqual([0])
})

test('hedge: does not prefer the account that has the prompt in its cache', async () => {
  const usual = world({ models: [first] })
  const { rig } = withKeys(usual, 'openai', { k1: ['late', 1], k2: ['late', 1], k3: ['other', 10] })
  const tie = { model: named.openai, tokens: 1_000, place: { host: 'openai', account: 'late' } }
  const used: unknown[] = []
  const fetch = (url: string, init: RequestInit) => {
    used.push(new Headers(init.headers).get('authorization'))
    return rig.deps.network.fetch(url, init)
  }
  const deps = { ...rig.deps, ties: { ...rig.deps.ties, of: () => tie }, network: { ...rig.deps.network, fetch } }
  const ending = run({ ...rig, deps })
  const [, hedge] = await rig.hedged()
  hedge.send('opening', 'content', 'closing')
  expect((await ending).thrown).toBeNull()
  expect(used[1]).toBe('Bearer k3')
})
