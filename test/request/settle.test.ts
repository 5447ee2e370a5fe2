import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { readConfig } from '../../src/config/config.ts'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import type { ReportedUsage, TokenUsage } from '../../src/core/chat/chat-events.ts'
import type { Caller } from '../../src/core/limits/plans.ts'
import { buildCatalog, type Model } from '../../src/core/models/models.ts'
import { priceVariant } from '../../src/core/models/pricing.ts'
import { createKeyedDigests } from '../../src/core/text/keyed-digests.ts'
import { getCost, getHighestCost } from '../../src/core/usage/money.ts'
import { modelMicrocents, type UsageRecord } from '../../src/core/usage/usage-record.ts'
import { systemClock } from '../../src/database/clock.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { createCacheAffinity } from '../../src/learning/cache-affinity.ts'
import { createEstimateCalibration } from '../../src/learning/estimate-calibration.ts'
import { createAnalysisCache } from '../../src/learning/recent-prompts.ts'
import { createMemoryMeter } from '../../src/limits/memory.ts'
import type { InterimUsage, Reservation } from '../../src/limits/meter.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { admit } from '../../src/request/admit.ts'
import { Progress } from '../../src/request/progress.ts'
import type { Route } from '../../src/request/routing/route.ts'
import { checkpoint, settle } from '../../src/request/settle.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { noWeb } from '../../src/web/web-plan.ts'
import { getCandidate, openResponse } from './support.ts'

const readers = openPromptAnalyzer()
const { read } = readers

const limits = {
  requestsPerMinute: 1_000_000,
  concurrentRequests: 10,
  dailyTokens: 1_000_000_000_000,
  dailyCostMicrocents: Number.MAX_SAFE_INTEGER,
}
const ties = createCacheAffinity(systemClock, 'secret')
const evaluation: Caller = { accountId: 'acc_1', keyId: 'key_1', plan: 'evaluation', limits }

type Given = {
  readonly model: Model
  readonly inputTokens: number
  readonly cap: number
  readonly choices: number
  readonly usage: ReportedUsage | null
  readonly text: string
  readonly reasoning?: string
  readonly ended: boolean
  /** Absent = evaluation. */
  readonly caller?: Caller
  /** Reserved and used web cost, of it for pages; absent = no web access. */
  readonly web?: { readonly microcents: number; readonly fetchMicrocents: number }
}

type Planned = {
  readonly request: ChatRequest
  readonly inputTokens: number
  readonly choices?: number
  readonly web?: number
}

function planFor(model: Model, { request, inputTokens, choices = 1, web = 0 }: Planned): Route {
  const candidate = getCandidate(model)
  const wanted: Route = {
    mode: 'manual',
    strategy: null,
    analysis: read(request.messages),
    level: 'light',
    inputTokens,
    choices,
    terms: { at: 0, tier: null },
    first: candidate,
    ranked: [],
    candidates: [candidate],
    learning: { epoch: null, influenced: false, probability: 1 },
    turn: null,
    isKept: false,
    dropped: [],
    web: { ...noWeb, microcents: web },
    withoutWeb: () => wanted,
  }
  return wanted
}

/** Admits a request, applies the given usage, and settles it with the real meter. */
async function settled(given: Given, tracker: Pick<typeof ties, 'answered'> = ties) {
  const { model, inputTokens, cap, choices, usage, text, reasoning = '', ended, web, caller = evaluation } = given
  const records: UsageRecord[] = []
  const warnings: string[] = []
  const journal = {
    appendTogether: async (record: UsageRecord) => void records.push(record),
    isWritable: () => true,
    untilDurable: async () => {},
  }
  const meter = createMemoryMeter({ clock: systemClock, journal, seed: async () => ({ tokens: 0, microcents: 0 }) })
  const loadedCatalog = buildCatalog(catalog)
  const chatRequest = { ...readNative({ prompt: 'Hi', max_output_tokens: cap }, new Headers(), 2), choices }
  const candidate = getCandidate(model)
  const wanted = planFor(model, { request: chatRequest, inputTokens, choices, web: web?.microcents ?? 0 })
  const startedMonotonic = systemClock.monotonic()
  const { reservation, plan } = await admit(
    { meter, ties, clock: systemClock, config: readConfig({}) },
    { requestId: 'req_1', caller, request: chatRequest, plan: wanted },
  )
  const startedAt = systemClock.now()
  const request = {
    requestId: 'req_1',
    startedAt,
    startedMonotonic,
    trace: null,
    promptDigest: '',
    caller,
    request: chatRequest,
    plan,
  }
  const progress = new Progress(reservation, { route: startedMonotonic, admit: startedMonotonic })
  if (web !== undefined)
    progress.web = {
      searched: true,
      sources: [],
      leftOut: [],
      searchMicrocents: web.microcents - web.fetchMicrocents,
      fetchMicrocents: web.fetchMicrocents,
    }
  const response = openResponse(chatRequest, { candidate })
  progress.response = Object.assign(response, { usage, text, reasoning, hasContent: text !== '', ended })
  progress.outcome = ended ? 'completed' : 'client_closed'
  const noted: (() => InterimUsage)[] = []
  const noting = { checkpoint: (_: Reservation, used: () => InterimUsage) => void noted.push(used) }
  const comparing = {
    catalog: loadedCatalog,
    endpoints: new Map(),
    config: { routing: { baselineModel: null } },
    ties,
  }
  checkpoint({ ...comparing, meter: noting, clock: systemClock }, request, progress)
  const interim = noted[0]?.()
  const receipt = await settle(
    {
      ...comparing,
      meter,
      clock: systemClock,
      log: { warn: event => void warnings.push(event) },
      observe: { settled() {} },
      learning: { of: () => null },
      prompts: createAnalysisCache(readers, createKeyedDigests(new Uint8Array(32))),
      calibration: createEstimateCalibration({ clock: systemClock }),
      ties: { ...ties, answered: tracker.answered },
    },
    request,
    progress,
  )
  const [record] = records
  if (record === undefined || records.length > 1) throw new Error(`${records.length} records`)
  const left = meter.quotaStatus(caller.accountId, limits)
  return { reservation, receipt, record, interim, warnings, left }
}

const model = fc.constantFrom(...catalog)
const count = fc.oneof(fc.integer({ min: 0, max: 300_000 }), fc.constantFrom(0, 1, 1e9, 1e12, Number.MAX_SAFE_INTEGER))

test('bill: stays within the reservation for any upstream counts, and releases the concurrent request', async () => {
  const usage = fc.option(
    fc.record({
      inputTokens: fc.option(count),
      cachedInputTokens: count,
      cacheWriteTokens: count,
      outputTokens: fc.option(count),
      leastOutputTokens: count,
      reasoningTokens: count,
    }),
  )
  const given = fc.record({
    model,
    inputTokens: fc.integer({ min: 1, max: 400_000 }),
    cap: fc.integer({ min: 1, max: 200_000 }),
    choices: fc.integer({ min: 1, max: 8 }),
    usage,
    text: fc.string({ maxLength: 200 }),
    ended: fc.boolean(),
    web: fc
      .tuple(fc.integer({ min: 0, max: 1e9 }), fc.integer({ min: 0, max: 1e9 }))
      .map(([search, fetchMicrocents]) => ({ microcents: search + fetchMicrocents, fetchMicrocents })),
  })
  await fc.assert(
    fc.asyncProperty(given, async all => {
      const { reservation, receipt, record, interim, left } = await settled(all)
      expect(record.billed_microcents).toBeGreaterThanOrEqual(0)
      expect(record.billed_microcents).toBeLessThanOrEqual(record.reserved_microcents)
      expect([record.billed_microcents, record.reserved_microcents]).toEqual([
        receipt.record.billed_microcents,
        reservation.reservedMicrocents,
      ])
      expect(modelMicrocents(record)).toBeGreaterThanOrEqual(0)
      expect([record.input_tokens, record.output_tokens]).toEqual([
        receipt.usage.inputTokens,
        receipt.usage.outputTokens,
      ])
      expect(left?.tokens.remaining).toBe(limits.dailyTokens - record.input_tokens - record.output_tokens)
      // If the process dies, ledger and meter must agree on this checkpoint too.
      expect(interim).toMatchObject({
        record: {
          input_tokens: record.input_tokens,
          output_tokens: record.output_tokens,
          billed_microcents: record.billed_microcents,
        },
      })
      expect(left?.reservations.remaining).toBe(limits.concurrentRequests)
      expect(left?.costMicrocents.remaining).toBe(limits.dailyCostMicrocents - record.billed_microcents)
    }),
    { numRuns: 500 },
  )
})

test('bill: matches the usage within the reservation exactly, with any share of cache reads and writes', async () => {
  const given = fc.record({
    model,
    inputTokens: fc.integer({ min: 1, max: 400_000 }),
    cap: fc.integer({ min: 1, max: 30_000 }),
    choices: fc.integer({ min: 1, max: 8 }),
    cached: fc.double({ min: 0, max: 1, noNaN: true }),
    written: fc.double({ min: 0, max: 1, noNaN: true }),
    output: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  await fc.assert(
    fc.asyncProperty(given, async ({ cached, written, output, ...rest }) => {
      const cachedInputTokens = Math.floor(rest.inputTokens * cached)
      const usage = {
        inputTokens: rest.inputTokens,
        cachedInputTokens,
        cacheWriteTokens: Math.floor((rest.inputTokens - cachedInputTokens) * written),
        outputTokens: Math.floor(Math.min(rest.cap, rest.model.maxOutputTokens) * rest.choices * output),
        reasoningTokens: 0,
      }
      const { record, receipt, warnings } = await settled({ ...rest, usage, text: 'x', ended: true })
      expect(record.billed_microcents).toBe(getCost(rest.model.pricing, usage))
      expect([receipt.estimated, warnings]).toEqual([false, []])
    }),
    { numRuns: 500 },
  )
})

const sample = catalog.find(item => item.id === 'claude-haiku-4-5')
if (sample === undefined) throw new Error('the catalogue has changed: choose another model')
const base = { model: sample, inputTokens: 100, cap: 50, choices: 1, usage: null, text: '', ended: true }
const counted: ReportedUsage & TokenUsage = {
  inputTokens: 90,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 9,
  reasoningTokens: 0,
}

test('bill: uses the count of a complete output after a client disconnect, not an estimate', async () => {
  const { record } = await settled({ ...base, usage: counted, text: 'Some words.' })
  expect(record).toMatchObject({ input_tokens: 90, output_tokens: 9, estimated: false })
})

test('bill: uses the early count of a truncated output as a lower bound and estimates the rest', async () => {
  const { record } = await settled({
    ...base,
    usage: { ...counted, outputTokens: null, leastOutputTokens: 1 },
    text: 'Ten words that came before it was all cut off. ',
    ended: false,
  })
  expect(record).toMatchObject({ input_tokens: 90, estimated: true })
  expect(record.output_tokens).toBeGreaterThan(8)
  expect(record.output_tokens).toBeLessThanOrEqual(50)
})

test('bill: includes one-hour cache writes and searches of a truncated output', async () => {
  const cut = { ...base, usage: { ...counted, outputTokens: null, cacheWriteTokens: 90 }, text: 'Hi', ended: false }
  const plain = await settled(cut)
  const charged = await settled({ ...cut, usage: { ...cut.usage, hourCacheWriteTokens: 90 } })
  expect(charged.record.billed_microcents).toBeGreaterThan(plain.record.billed_microcents)
})

test('bill: stays zero without output', async () => {
  expect((await settled({ ...base, ended: false })).record).toMatchObject({
    input_tokens: 0,
    billed_microcents: 0,
    estimated: false,
  })
  const zero = { ...counted, inputTokens: 0, outputTokens: 0 }
  expect((await settled({ ...base, usage: zero, text: 'words' })).record).toMatchObject({
    output_tokens: 0,
    billed_microcents: 0,
    estimated: false,
  })
})

test('bill: estimates counts that an upstream omits, marks them, and uses the reported ones', async () => {
  const text = 'Ten words that came, and that nobody else has counted. '
  const untold = { ...counted, outputTokens: null }
  const { record } = await settled({ ...base, usage: untold, text })
  expect(record).toMatchObject({ input_tokens: 90, estimated: true })
  expect(record.output_tokens).toBeGreaterThan(8)
  expect((await settled({ ...base, usage: { ...untold, leastOutputTokens: 40 }, text })).record.output_tokens).toBe(40)

  const withoutInput = await settled({
    ...base,
    usage: { ...counted, inputTokens: null, cachedInputTokens: 1e6 },
    text,
  })
  expect(withoutInput.record).toMatchObject({ output_tokens: 9, estimated: true })
  expect(withoutInput.record.input_tokens).toBeGreaterThan(0)
  expect(withoutInput.record.cached_input_tokens).toBe(withoutInput.record.input_tokens)
})

test('bill: includes reasoning as counted by the upstream, beside the estimate of the output', async () => {
  const usage = { ...counted, outputTokens: null, leastOutputTokens: 30, reasoningTokens: 30 }
  const { record } = await settled({ ...base, usage, reasoning: 'A summary.', text: 'Hello there, you.' })
  expect(record.output_tokens).toBeGreaterThan(32)
  expect(record.output_tokens).toBeLessThan(40)
  expect(record).toMatchObject({ reasoning_tokens: 30, estimated: true })
})

test('log: reports an upstream that counts more than was reserved', async () => {
  const { record, warnings } = await settled({ ...base, usage: { ...counted, outputTokens: 1e9 }, text: 'words' })
  expect([record.billed_microcents, warnings]).toEqual([record.reserved_microcents, ['bill_capped_at_reservation']])
})

test('settle: bills a request whose estimates fail', async () => {
  const answered = () => {
    throw new Error('a defect of the estimates')
  }
  const { record, warnings } = await settled({ ...base, usage: counted, text: 'words' }, { answered })
  expect(record.billed_microcents).toBeGreaterThan(0)
  expect(warnings).toEqual(['estimates_not_updated'])
})

test('settle: counts all tokens against the day and records the shortfall when more were used than reserved', async () => {
  const more = { ...counted, inputTokens: 50_000, cachedInputTokens: 7, outputTokens: 900 }
  const { reservation, record, receipt, left, interim } = await settled({ ...base, usage: more, text: 'words' })
  expect(reservation.reservedTokens).toBeLessThan(50_000)
  expect(receipt.usage).toEqual(more)
  expect([record.input_tokens, record.output_tokens]).toEqual([50_000, 900])
  expect(left?.tokens.remaining).toBe(limits.dailyTokens - 50_900)
  expect(record.billed_microcents).toBe(reservation.reservedMicrocents)
  expect(record.shortfall_microcents).toBe(getCost(sample.pricing, more) - reservation.reservedMicrocents)
  // The process may die before the request ends.
  expect(interim?.record.shortfall_microcents).toBe(record.shortfall_microcents)
})

test('settle: bills all that was used to an account on the usage plan, and the counters too', async () => {
  const more = { ...counted, inputTokens: 50_000, outputTokens: 900 }
  const caller: Caller = { ...evaluation, plan: 'usage' }
  const { reservation, record, interim, left, warnings } = await settled({
    ...base,
    usage: more,
    text: 'words',
    caller,
  })
  const owed = getCost(sample.pricing, more)
  expect(owed).toBeGreaterThan(reservation.reservedMicrocents)
  expect([record.billed_microcents, record.reserved_microcents]).toEqual([owed, reservation.reservedMicrocents])
  expect(record).not.toHaveProperty('shortfall_microcents')
  expect(interim).toMatchObject({ record: { billed_microcents: owed }, isOwedInFull: true })
  expect(left?.costMicrocents.remaining).toBe(limits.dailyCostMicrocents - owed)
  expect(warnings).toEqual([])
})

test('settle: records no shortfall when no more was used than reserved', async () => {
  const { record } = await settled({ ...base, usage: counted, text: 'words' })
  expect(record).not.toHaveProperty('shortfall_microcents')
})

test('settle: cuts counts to what the model can read and write when an upstream counts more', async () => {
  const absurd = {
    inputTokens: 1e9,
    cachedInputTokens: 1e9,
    cacheWriteTokens: 7,
    outputTokens: 1e9,
    reasoningTokens: 1e9,
  }
  const { record, receipt, left } = await settled({ ...base, usage: absurd, text: 'words' })
  const { contextWindow, maxOutputTokens } = sample
  expect(receipt.usage).toEqual({
    inputTokens: contextWindow,
    cachedInputTokens: contextWindow,
    cacheWriteTokens: 0,
    outputTokens: maxOutputTokens,
    reasoningTokens: maxOutputTokens,
  })
  expect([record.input_tokens, record.output_tokens]).toEqual([contextWindow, maxOutputTokens])
  expect(left?.tokens.remaining).toBe(limits.dailyTokens - contextWindow - maxOutputTokens)
})

test.each([
  ['the peak price just before the peak', '2026-11-23T00:30Z', 2],
  ['the usual price in the hours after it', '2026-11-23T04:00Z', 1],
])('admit: reserves %s', async (_name, time, factor) => {
  const journal = { appendTogether: async () => {}, isWritable: () => true, untilDurable: async () => {} }
  const meter = createMemoryMeter({ clock: systemClock, journal, seed: async () => ({ tokens: 0, microcents: 0 }) })
  const rates = { input: 10, output: 20, cachedInput: 1, cacheWrite: null, longContext: null }
  const peak = priceVariant({ hoursUtc: ['01:00-04:00'] }, { ...rates, input: 20, output: 40, cachedInput: 2 })
  const request = readNative({ prompt: 'Hi', max_output_tokens: 100 }, new Headers(), 2)
  const plan = {
    ...planFor({ ...sample, pricing: { ...rates, variants: [peak] } }, { request, inputTokens: 1_000 }),
    terms: { at: Date.parse(time), tier: null },
  }
  const deps = { meter, ties, clock: systemClock, config: readConfig({}) }
  const { reservation } = await admit(deps, { requestId: 'req_1', caller: evaluation, request, plan })
  expect(reservation.reservedMicrocents).toBe(factor * (1_000 * 1_000 + 100 * 2_000))
})

test('admit: reserves the price of each tier when the named one is not sent to the first candidate', async () => {
  const journal = { appendTogether: async () => {}, isWritable: () => true, untilDurable: async () => {} }
  const meter = createMemoryMeter({ clock: systemClock, journal, seed: async () => ({ tokens: 0, microcents: 0 }) })
  const rates = { input: 10, output: 20, cachedInput: null, cacheWrite: null, longContext: null }
  const priority = priceVariant({ serviceTier: 'priority' }, { ...rates, input: 20, output: 40 })
  const request = readNative({ prompt: 'Hi', max_output_tokens: 100 }, new Headers(), 2)
  const plan = {
    ...planFor({ ...sample, pricing: { ...rates, variants: [priority] } }, { request, inputTokens: 1_000 }),
    terms: { at: 0, tier: 'flex' },
  }
  const deps = { meter, ties, clock: systemClock, config: readConfig({}) }
  const { reservation } = await admit(deps, { requestId: 'req_1', caller: evaluation, request, plan })
  expect(reservation.reservedMicrocents).toBe(2 * (1_000 * 1_000 + 100 * 2_000))
})

test.each([
  ['the rest of the context window', Number.MAX_SAFE_INTEGER, 1e12],
  ['all that the account has left', 20_000_000, 1e12],
  ['all tokens that the account has left', Number.MAX_SAFE_INTEGER, 50_000],
])('admit: reserves %s when a document by URL may add pages', async (_name, dailyCostMicrocents, dailyTokens) => {
  const journal = { appendTogether: async () => {}, isWritable: () => true, untilDurable: async () => {} }
  const meter = createMemoryMeter({ clock: systemClock, journal, seed: async () => ({ tokens: 0, microcents: 0 }) })
  const content = [{ type: 'document', source: { type: 'url', url: 'https://a.test/a.pdf' } }]
  const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content }] }
  const source = { headers: new Headers(), text: JSON.stringify(body), accountId: 'a' }
  const { request } = readMessages(body, source, createReasoningSeal('a secret of the tests', null))
  const named = planFor(sample, { request, inputTokens: 100 })
  const plan = { ...named, first: { ...named.first, endpoint: { ...named.first.endpoint, provider: anthropic } } }
  const account: Caller = { ...evaluation, limits: { ...limits, dailyCostMicrocents, dailyTokens } }
  const deps = { meter, ties, clock: systemClock, config: readConfig({}) }
  const { reservation } = await admit(deps, { requestId: 'req_1', caller: account, request, plan })
  const most = getHighestCost(sample.pricing, { inputTokens: sample.contextWindow, outputTokens: 10 }, plan.terms)
  expect(reservation.reservedMicrocents).toBe(Math.min(most, dailyCostMicrocents))
  expect(reservation.reservedTokens).toBe(Math.min(sample.contextWindow + 10, dailyTokens))
})
