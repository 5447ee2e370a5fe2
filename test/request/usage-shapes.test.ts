/**
 * The shapes in which upstreams report token counts, and the bill of each. The conformance set has most of them, each from a JSON
 * response, from a complete stream, and from a stream that the client left after the counts.
 */
import { describe, expect, test } from 'bun:test'
import {
  type Says,
  type UsageCase,
  usageGroups,
  usageProblems,
  waysToSay,
  wires,
} from '../../src/commands/usage-check.ts'
import { toModel } from '../../src/core/models/configured-models.ts'
import { buildCatalog, unknownPrices } from '../../src/core/models/models.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { Progress } from '../../src/request/progress.ts'
import { settledCost } from '../../src/request/settled-cost.ts'
import type { UpstreamResponse } from '../../src/request/upstream-response.ts'
import { getCandidate, openResponse } from './support.ts'

for (const group of usageGroups)
  test.each(group.cases.map(given => [given.name, given] as const))(
    `usage of ${group.name}: has the tokens and the cost worked out by hand when the shape is %s`,
    (_, given) => expect(usageProblems(group, given)).toEqual([]),
  )

test('usageProblems: names each way in which tokens or cost differ when the set is wrong', () => {
  const [group] = usageGroups
  const [plain] = group?.cases ?? []
  if (group === undefined || plain?.microcents === undefined) throw new Error('the set is empty')
  const problems = (wrong: Partial<UsageCase>) => usageProblems(group, { ...plain, ...wrong }).length
  expect(problems({ microcents: plain.microcents + 1 })).toBe(3)
  expect(problems({ tokens: { ...plain.tokens, cached: 1 } })).toBe(3)
  expect(problems({ tokens: null })).toBe(3)
})

/** 100 units of 1e-8 USD per new token, 1,000 per token of output. */
const model = toModel('relay', { id: 'm', pricing: { input_per_mtok: 1, output_per_mtok: 10 } })
const catalog = buildCatalog([model])
const question = readNative({ prompt: 'Hi' }, new Headers(), 2)

type Json = Readonly<Record<string, unknown>>
type Attempted = Partial<Pick<UpstreamResponse, 'candidate' | 'request' | 'startedAtMs' | 'droppedParameters'>>

function billed(say: Says, { request = question, droppedParameters = [], ...call }: Attempted = {}) {
  const response = openResponse(request, { candidate: getCandidate(model), ...call })
  response.droppedParameters = droppedParameters
  say(response)
  const reservation = {
    requestId: 'req_1',
    accountId: 'acc_1',
    outputCap: 1_000,
    reservedTokens: 10_000,
    reservedMicrocents: 1e9,
    day: 0,
  }
  const progress = new Progress(reservation, { route: 0, admit: 0 })
  progress.response = response
  const billing = { plan: { inputTokens: 40 }, request: { choices: 1 }, caller: { plan: 'evaluation' } } as const
  return settledCost(catalog, billing, progress)
}

const asCase = (usage: Json | null): UsageCase => ({ name: '', usage, tokens: null })

describe.each(Object.entries(wires).filter(([, { events }]) => events !== null))('usage of %s', (_, wire) => {
  test.each([null, {}, { nonsense: 5 }])('bills an estimate when the upstream reports %j', usage => {
    const { json, stream } = waysToSay(wire, asCase(usage))
    for (const say of [json, stream]) {
      const { usage: counted, estimated, billed: microcents } = billed(say ?? (() => {}))
      expect(estimated).toBe(true)
      expect(counted.outputTokens).toBeGreaterThan(0)
      expect(microcents).toBe(counted.inputTokens * 100 + counted.outputTokens * 1_000)
    }
  })
})

const choice = (delta: Json) => [{ index: 0, delta, finish_reason: null }]
const chunk = (fields: Json) => ({ id: 'c', object: 'chat.completion.chunk', model: 'm', ...fields })

/** Frames of a stream that the client left. */
function read(...events: Json[]): Says {
  const reader = wires.compatible.provider.streamReader()
  return sink => {
    for (const event of events) reader.read({ name: '', data: JSON.stringify(event) }, sink)
  }
}

describe('prices by tier', () => {
  const tiered = toModel('relay', {
    id: 'm',
    pricing: {
      input_per_mtok: 1,
      output_per_mtok: 10,
      variants: [
        { service_tier: 'flex', input_per_mtok: 0.5, output_per_mtok: 5 },
        { service_tier: 'priority', input_per_mtok: 2, output_per_mtok: 20 },
      ],
    },
  })
  const usage = { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }
  /** Times the usual price. */
  const getFactor = (say: Says, attempted: Attempted = {}) =>
    billed(say, { candidate: getCandidate(tiered), ...attempted }).owed / (12 * 100 + 5 * 1_000)
  const asking = (service_tier: string): Attempted => ({ request: { ...question, extras: { service_tier } } })
  const chat = (service_tier?: string) => read(chunk({ choices: choice({ content: 'Hi' }), usage, service_tier }))

  test('bills the reported tier, whatever was asked, and the usual price of a tier without one', () => {
    expect(['flex', 'priority', 'default', 'other'].map(tier => getFactor(chat(tier), asking('priority')))).toEqual([
      0.5, 2, 1, 1,
    ])
  })

  test('marks usage without a known price: of a tier, of audio, and of the model before all', () => {
    const kind = (say: Says, attempted: Attempted = {}) =>
      billed(say, { candidate: getCandidate(tiered), ...attempted }).unpriced
    expect(['flex', 'default', 'standard', 'auto', 'other'].map(tier => kind(chat(tier)))).toEqual([
      ...[null, null, null, null],
      'tier',
    ])
    const said = (details: Json, fields: Json = {}) =>
      read(chunk({ choices: choice({ content: 'Hi' }), usage: { ...usage, ...details }, ...fields }))
    for (const details of ['prompt_tokens_details', 'completion_tokens_details']) {
      expect(kind(said({ [details]: { audio_tokens: 3 } }))).toBe('audio')
      expect(kind(said({ [details]: { audio_tokens: 3 } }, { service_tier: 'other' }))).toBe('tier')
      expect(kind(said({ [details]: { audio_tokens: 0 } }))).toBe(null)
    }
    const listed = { candidate: getCandidate({ ...tiered, pricingSource: unknownPrices }) }
    expect(kind(said({ prompt_tokens_details: { audio_tokens: 3 } }), listed)).toBe('model')
    // Nothing was used that could have a price.
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    expect(kind(said(none), listed)).toBe(null)
  })

  test('bills the requested tier when the provider reports none, and not one that was dropped', () => {
    expect(getFactor(chat(), asking('flex'))).toBe(0.5)
    expect(getFactor(chat('auto'), asking('flex'))).toBe(0.5)
    expect(getFactor(chat(), asking('auto'))).toBe(1)
    expect(getFactor(chat(), { ...asking('flex'), droppedParameters: ['service_tier'] })).toBe(1)
  })

  test('bills the last tier of a stream, also when the client left it', () => {
    const frames = [
      { service_tier: 'auto', choices: choice({ content: 'Hi' }) },
      { service_tier: 'flex', choices: [], usage },
    ]
    expect(getFactor(read(...frames.map(chunk)), asking('priority'))).toBe(0.5)
  })
})

describe('usage of a stream that the client left', () => {
  const said = (usage: Json | null) => chunk({ choices: choice({ content: 'Four words of text' }), usage })
  const tokens = (...events: Json[]) => {
    const { usage, estimated, billed: microcents } = billed(read(...events))
    return [usage.inputTokens, usage.outputTokens, microcents, estimated]
  }

  test('bills zero when the last frame reports zero', () => {
    expect(tokens(said({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }))).toEqual([0, 0, 0, false])
  })

  test('bills the running count when each frame reports one', () => {
    const counts = [1, 2, 3].map(completion_tokens => said({ prompt_tokens: 12, completion_tokens }))
    expect(tokens(...counts)).toEqual([12, 3, 4_200, false])
  })

  test('bills an estimate when output followed the count', () => {
    const { usage, estimated } = billed(read(said({ prompt_tokens: 12, completion_tokens: 0 }), said(null)))
    expect([usage.inputTokens, estimated]).toEqual([12, true])
    expect(usage.outputTokens).toBeGreaterThan(4)
  })
})
