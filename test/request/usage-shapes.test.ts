/**
 * The shapes in which upstreams report token counts, and the bill of each. Every row is billed three times: from a JSON
 * response, from a complete stream, and from a stream that the client left after the counts.
 */
import { describe, expect, test } from 'bun:test'
import { toModel } from '../../src/core/models/configured-models.ts'
import { buildCatalog } from '../../src/core/models/models.ts'
import { readNative } from '../../src/dialects/native/request.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { AnswerSink, Provider } from '../../src/providers/provider.ts'
import { createProgress } from '../../src/request/progress.ts'
import { settledCost } from '../../src/request/settled-cost.ts'
import type { UpstreamResponse } from '../../src/request/upstream-response.ts'
import { getCandidate, openResponse } from './support.ts'

/** 100 units of 1e-8 USD per new token, 10 per cached one, 125 per written one (200 for an hour), 1,000 per token of output. */
const model = toModel('relay', {
  id: 'm',
  pricing: { input_per_mtok: 1, cached_input_per_mtok: 0.1, cache_write_per_mtok: 1.25, output_per_mtok: 10 },
})
const catalog = buildCatalog([model])
const question = readNative({ prompt: 'Hi' }, new Headers(), 2)

type Json = Readonly<Record<string, unknown>>
/** Tokens of the bill. Absent = 0. */
type Bill = { new?: number; cached?: number; written?: number; hour?: number; output?: number; reasoning?: number }
type Row = readonly [shape: string, usage: Json | null, bill: Bill]

type Wire = {
  readonly provider: Provider
  readonly whole: (usage: Json | null) => Json
  /** Events up to the counts, and the end. */
  readonly events: (usage: Json | null) => readonly [readonly Json[], readonly (Json | '[DONE]')[]]
  readonly rows: readonly Row[]
}

const text = 'Four words of text'
const chunk = (fields: Json) => ({ id: 'c', object: 'chat.completion.chunk', model: 'm', ...fields })
const choice = (delta: Json, finish_reason: string | null = null) => [{ index: 0, delta, finish_reason }]

const wires: Readonly<Record<string, Wire>> = {
  'Chat Completions': {
    provider: openai({ official: false }),
    whole: usage => ({
      id: 'c',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage,
    }),
    events: usage => [
      [
        chunk({ choices: choice({ content: text }) }),
        chunk({ choices: choice({}, 'stop') }),
        chunk({ choices: [], usage }),
      ],
      ['[DONE]'],
    ],
    rows: [
      ['plain', { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }, { new: 12, output: 5 }],
      ['zero', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, {}],
      ['zero output', { prompt_tokens: 12, completion_tokens: 0, total_tokens: 12 }, { new: 12 }],
      ['strings', { prompt_tokens: '12', completion_tokens: '5', total_tokens: '17' }, { new: 12, output: 5 }],
      ['fractions', { prompt_tokens: 12.0, completion_tokens: '5.0' }, { new: 12, output: 5 }],
      [
        'OpenAI: cached, written and reasoning inside',
        {
          prompt_tokens: 1_000,
          completion_tokens: 50,
          total_tokens: 1_050,
          prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 300, audio_tokens: 40 },
          completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 5, rejected_prediction_tokens: 7 },
        },
        { new: 100, cached: 600, written: 300, output: 50, reasoning: 20 },
      ],
      [
        'OpenAI: all details zero or null',
        {
          prompt_tokens: 12,
          completion_tokens: 5,
          total_tokens: 17,
          prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
          completion_tokens_details: null,
        },
        { new: 12, output: 5 },
      ],
      [
        'DeepSeek: cached beside the details',
        {
          prompt_tokens: 10,
          completion_tokens: 1,
          total_tokens: 11,
          prompt_cache_hit_tokens: 4,
          prompt_cache_miss_tokens: 6,
        },
        { new: 6, cached: 4, output: 1 },
      ],
      [
        'Kimi',
        { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11, cached_tokens: 3 },
        { new: 7, cached: 3, output: 1 },
      ],
      ['Mistral', { prompt_tokens: 10, completion_tokens: 1, num_cached_tokens: 2 }, { new: 8, cached: 2, output: 1 }],
      [
        'xAI: reasoning beside the output',
        {
          prompt_tokens: 12,
          completion_tokens: 5,
          total_tokens: 100,
          completion_tokens_details: { reasoning_tokens: 83 },
        },
        { new: 12, output: 88, reasoning: 83 },
      ],
      [
        'xAI: reasoning beside the output, cached inside the input',
        {
          prompt_tokens: 1_200,
          completion_tokens: 5,
          total_tokens: 1_288,
          prompt_tokens_details: { cached_tokens: 1_000 },
          completion_tokens_details: { reasoning_tokens: 83 },
        },
        { new: 200, cached: 1_000, output: 88, reasoning: 83 },
      ],
      [
        'Perplexity: reasoning above the output without a total',
        { prompt_tokens: 12, completion_tokens: 5, reasoning_tokens: 83 },
        { new: 12, output: 88, reasoning: 83 },
      ],
      [
        'OpenRouter: reasoning above the output, which the total contradicts',
        {
          prompt_tokens: 43,
          completion_tokens: 10,
          total_tokens: 53,
          completion_tokens_details: { reasoning_tokens: 11 },
        },
        { new: 43, output: 10, reasoning: 10 },
      ],
      [
        'Gemini by its compatible endpoint: reasoning only in the total',
        { prompt_tokens: 35, completion_tokens: 12, total_tokens: 109 },
        { new: 35, output: 74, reasoning: 62 },
      ],
      [
        'relay: cached beside the input, within the total',
        {
          prompt_tokens: 12,
          completion_tokens: 5,
          total_tokens: 1_017,
          prompt_tokens_details: { cached_tokens: 1_000 },
        },
        { new: 12, cached: 1_000, output: 5 },
      ],
      [
        'relay: fewer cached tokens beside the input, within the total',
        {
          prompt_tokens: 1_200,
          completion_tokens: 5,
          total_tokens: 2_205,
          prompt_tokens_details: { cached_tokens: 1_000 },
        },
        { new: 1_200, cached: 1_000, output: 5 },
      ],
      [
        'relay: cached beside the input, outside of the total',
        { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17, prompt_tokens_details: { cached_tokens: 1_000 } },
        { new: 12, cached: 1_000, output: 5 },
      ],
      [
        'relay: cached beside the input, without a total',
        { prompt_tokens: 12, completion_tokens: 5, cached_tokens: 1_000 },
        { new: 12, cached: 1_000, output: 5 },
      ],
      [
        'relay: cached and written beside the input, by the names of Anthropic',
        {
          prompt_tokens: 700,
          completion_tokens: 5,
          total_tokens: 2_205,
          prompt_tokens_details: { cached_tokens: 0 },
          cache_read_input_tokens: 1_000,
          cache_creation_input_tokens: 500,
        },
        { new: 700, cached: 1_000, written: 500, output: 5 },
      ],
      [
        'relay: cached inside the input, written beside it',
        {
          prompt_tokens: 1_700,
          completion_tokens: 5,
          total_tokens: 2_205,
          prompt_tokens_details: { cached_tokens: 1_000, cached_creation_tokens: 500 },
        },
        { new: 700, cached: 1_000, written: 500, output: 5 },
      ],
      [
        'relay: cached beside the input and reasoning beside the output',
        {
          prompt_tokens: 12,
          completion_tokens: 5,
          total_tokens: 1_100,
          prompt_tokens_details: { cached_tokens: 1_000 },
          completion_tokens_details: { reasoning_tokens: 83 },
        },
        { new: 12, cached: 1_000, output: 88, reasoning: 83 },
      ],
      [
        'relay: few cached tokens beside the input and reasoning beside the output',
        {
          prompt_tokens: 1_200,
          completion_tokens: 5,
          total_tokens: 1_388,
          prompt_tokens_details: { cached_tokens: 100 },
          completion_tokens_details: { reasoning_tokens: 83 },
        },
        { new: 1_200, cached: 100, output: 88, reasoning: 83 },
      ],
      [
        'relay: everything cached and hidden reasoning',
        { prompt_tokens: 0, completion_tokens: 5, total_tokens: 1_045, cached_tokens: 1_000 },
        { cached: 1_000, output: 45, reasoning: 40 },
      ],
      [
        'LiteLLM: written for an hour, inside the input',
        {
          prompt_tokens: 1_000,
          completion_tokens: 5,
          total_tokens: 1_005,
          cache_creation_input_tokens: 900,
          prompt_tokens_details: {
            cached_tokens: 0,
            cache_creation_tokens: 900,
            cache_creation_token_details: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 700 },
          },
        },
        { new: 100, written: 200, hour: 700, output: 5 },
      ],
      [
        'browser-use: a total without the cached tokens that the input includes',
        { prompt_tokens: 1_012, completion_tokens: 5, total_tokens: 17, cache_read_input_tokens: 1_000 },
        { new: 12, cached: 1_000, output: 5 },
      ],
      [
        'new-api: both names, one of them zero',
        { prompt_tokens: 12, input_tokens: 0, completion_tokens: 5, output_tokens: 0, total_tokens: 17 },
        { new: 12, output: 5 },
      ],
      ['names of Anthropic', { input_tokens: 12, output_tokens: 5 }, { new: 12, output: 5 }],
      ['no output count', { prompt_tokens: 12, total_tokens: 17 }, { new: 12, output: 5 }],
      ['no input count', { completion_tokens: 5, total_tokens: 17 }, { new: 12, output: 5 }],
      [
        'no output count, cached beside the input',
        { prompt_tokens: 12, total_tokens: 1_017, cached_tokens: 1_000 },
        { new: 12, cached: 1_000, output: 5 },
      ],
    ],
  },
  Responses: {
    provider: openaiResponses,
    whole: usage => ({ id: 'r', model: 'm', status: 'completed', output: [messageItem], usage }),
    events: usage => [
      [
        { type: 'response.output_text.delta', output_index: 0, delta: text },
        {
          type: 'response.completed',
          response: { id: 'r', model: 'm', status: 'completed', output: [messageItem], usage },
        },
      ],
      [],
    ],
    rows: [
      ['plain', { input_tokens: 12, output_tokens: 5, total_tokens: 17 }, { new: 12, output: 5 }],
      ['zero', { input_tokens: 0, output_tokens: 0, total_tokens: 0 }, {}],
      ['strings', { input_tokens: '12', output_tokens: '5' }, { new: 12, output: 5 }],
      [
        'OpenAI: cached, written and reasoning inside',
        {
          input_tokens: 1_000,
          input_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
          output_tokens: 50,
          output_tokens_details: { reasoning_tokens: 20 },
          total_tokens: 1_050,
        },
        { new: 100, cached: 600, written: 300, output: 50, reasoning: 20 },
      ],
      [
        'relay: cached beside the input',
        { input_tokens: 12, input_tokens_details: { cached_tokens: 1_000 }, output_tokens: 5, total_tokens: 1_017 },
        { new: 12, cached: 1_000, output: 5 },
      ],
      [
        'xAI: reasoning beside the output',
        { input_tokens: 12, output_tokens: 5, output_tokens_details: { reasoning_tokens: 83 }, total_tokens: 100 },
        { new: 12, output: 88, reasoning: 83 },
      ],
      ['names of Chat Completions', { prompt_tokens: 12, completion_tokens: 5 }, { new: 12, output: 5 }],
    ],
  },
  Messages: {
    provider: anthropic,
    whole: usage => ({
      id: 'a',
      model: 'm',
      type: 'message',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      ...(usage !== null && { usage }),
    }),
    events: usage => [
      [
        {
          type: 'message_start',
          message: { id: 'a', model: 'm', content: [], usage: { input_tokens: 3, output_tokens: 1 } },
        },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, ...(usage !== null && { usage }) },
      ],
      [{ type: 'message_stop' }],
    ],
    rows: [
      ['plain', { input_tokens: 12, output_tokens: 5 }, { new: 12, output: 5 }],
      ['zero', { input_tokens: 0, output_tokens: 0 }, {}],
      [
        'strings',
        { input_tokens: '12', output_tokens: '5', cache_read_input_tokens: '30' },
        { new: 12, cached: 30, output: 5 },
      ],
      [
        'cached and written beside the input, reasoning inside',
        {
          input_tokens: 12,
          cache_read_input_tokens: 1_000,
          cache_creation_input_tokens: 500,
          output_tokens: 50,
          output_tokens_details: { thinking_tokens: 20 },
          service_tier: 'standard',
        },
        { new: 12, cached: 1_000, written: 500, output: 50, reasoning: 20 },
      ],
      [
        'written for five minutes and an hour',
        {
          input_tokens: 12,
          cache_creation_input_tokens: 900,
          cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 700 },
          output_tokens: 5,
        },
        { new: 12, written: 200, hour: 700, output: 5 },
      ],
      [
        'a pass of compaction beside the counts',
        {
          input_tokens: 230,
          output_tokens: 10,
          iterations: [
            { type: 'compaction', input_tokens: 1_800, cache_read_input_tokens: 60, output_tokens: 35 },
            { type: 'message', input_tokens: 230, output_tokens: 10 },
          ],
        },
        { new: 2_030, cached: 60, output: 45 },
      ],
    ],
  },
  Gemini: {
    provider: google,
    whole: usage => ({ ...candidate('STOP'), ...(usage !== null && { usageMetadata: usage }) }),
    events: usage => [
      [candidate(undefined), { ...candidate('STOP', ''), ...(usage !== null && { usageMetadata: usage }) }],
      [],
    ],
    rows: [
      ['plain', { promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 }, { new: 12, output: 5 }],
      ['zero', { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 }, {}],
      ['strings', { promptTokenCount: '12', candidatesTokenCount: '5' }, { new: 12, output: 5 }],
      [
        'cached inside, thoughts and tools beside',
        {
          promptTokenCount: 1_000,
          cachedContentTokenCount: 600,
          toolUsePromptTokenCount: 7,
          candidatesTokenCount: 30,
          thoughtsTokenCount: 20,
          totalTokenCount: 1_057,
          promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 40 }],
        },
        { new: 407, cached: 600, output: 50, reasoning: 20 },
      ],
      [
        'thoughts only in the total',
        { promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 100 },
        { new: 12, output: 88, reasoning: 83 },
      ],
      [
        'output only in the total',
        { promptTokenCount: 12, thoughtsTokenCount: 20, totalTokenCount: 37 },
        { new: 12, output: 25, reasoning: 20 },
      ],
    ],
  },
  'Bedrock Converse': {
    provider: bedrock,
    whole: usage => ({
      output: { message: { role: 'assistant', content: [{ text }] } },
      stopReason: 'end_turn',
      usage,
    }),
    events: usage => [
      [
        { type: 'contentBlockDelta', contentBlockIndex: 0, delta: { text } },
        { type: 'messageStop', stopReason: 'end_turn' },
        { type: 'metadata', usage },
      ],
      [],
    ],
    rows: [
      ['plain', { inputTokens: 12, outputTokens: 5, totalTokens: 17 }, { new: 12, output: 5 }],
      ['zero', { inputTokens: 0, outputTokens: 0, totalTokens: 0 }, {}],
      ['strings', { inputTokens: '12', outputTokens: '5' }, { new: 12, output: 5 }],
      [
        'cached and written beside the input',
        { inputTokens: 12, outputTokens: 5, cacheReadInputTokens: 1_000, cacheWriteInputTokens: 500 },
        { new: 12, cached: 1_000, written: 500, output: 5 },
      ],
    ],
  },
}

const messageItem = { type: 'message', id: 'i', role: 'assistant', content: [{ type: 'output_text', text }] }
const candidate = (finishReason: string | undefined, said = text) => ({
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: said }] }, finishReason }],
})

/** Says a response to a sink. */
type Says = (sink: AnswerSink) => void

function streamed({ provider, events }: Wire, usage: Json | null, isLeft: boolean): Says {
  const reader = provider.streamReader()
  const [before, end] = events(usage)
  return sink => {
    for (const event of [...before, ...(isLeft ? [] : end)]) {
      if (event === '[DONE]') reader.read({ name: '', data: event }, sink)
      else reader.read({ name: typeof event.type === 'string' ? event.type : '', data: JSON.stringify(event) }, sink)
    }
    if (!isLeft) reader.finish(sink)
  }
}

const whole =
  (provider: Provider, body: unknown): Says =>
  sink =>
    provider.readResponse(body, sink)

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
  const progress = createProgress(reservation, { route: 0, admit: 0 })
  progress.response = response
  const billing = { plan: { inputTokens: 40 }, request: { choices: 1 }, caller: { plan: 'evaluation' } } as const
  return settledCost(catalog, billing, progress)
}

function expectBill(say: Says, bill: Bill): void {
  const { new: fresh = 0, cached = 0, written = 0, hour = 0, output = 0, reasoning = 0 } = bill
  const { usage, estimated, billed: microcents, owed } = billed(say)
  expect({ usage, estimated, microcents, owed }).toMatchObject({
    usage: {
      inputTokens: fresh + cached + written + hour,
      cachedInputTokens: cached,
      cacheWriteTokens: written + hour,
      outputTokens: output,
      reasoningTokens: reasoning,
    },
    estimated: false,
    microcents: fresh * 100 + cached * 10 + written * 125 + hour * 200 + output * 1_000,
    owed: microcents,
  })
}

for (const [name, wire] of Object.entries(wires))
  describe(`usage of ${name}`, () => {
    test.each([...wire.rows])('bills the reported tokens when the shape is %s', (_, usage, bill) => {
      expectBill(whole(wire.provider, wire.whole(usage)), bill)
      expectBill(streamed(wire, usage, false), bill)
      expectBill(streamed(wire, usage, true), bill)
    })

    test.each([null, {}, { nonsense: 5 }])('bills an estimate when the upstream reports %j', usage => {
      for (const say of [whole(wire.provider, wire.whole(usage)), streamed(wire, usage, false)]) {
        const { usage: counted, estimated, billed: microcents } = billed(say)
        expect(estimated).toBe(true)
        expect(counted.outputTokens).toBeGreaterThan(0)
        expect(microcents).toBe(counted.inputTokens * 100 + counted.outputTokens * 1_000)
      }
    })
  })

describe('prices by time and tier', () => {
  const usual = { input_per_mtok: 1, output_per_mtok: 10 }
  const tiered = toModel('relay', {
    id: 'm',
    pricing: {
      ...usual,
      variants: [
        { service_tier: 'flex', input_per_mtok: 0.5, output_per_mtok: 5 },
        { service_tier: 'priority', input_per_mtok: 2, output_per_mtok: 20 },
        { service_tier: 'performance', input_per_mtok: 4, output_per_mtok: 40 },
        { hours_utc: ['01:00-04:00'], days: ['mon'], input_per_mtok: 3, output_per_mtok: 30 },
      ],
    },
  })
  const tokens = { input: 12, output: 5 }
  const openaiUsage = { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: 17 }
  /** Times the usual price. */
  const getFactor = (say: Says, attempted: Attempted = {}) =>
    billed(say, { candidate: getCandidate(tiered), ...attempted }).owed / (tokens.input * 100 + tokens.output * 1_000)
  const asking = (service_tier: string): Attempted => ({ request: { ...question, extras: { service_tier } } })
  const chat = ({ service_tier }: { service_tier?: string } = {}) => {
    const wire = wires['Chat Completions'] ?? openaiWire()
    return whole(wire.provider, { ...wire.whole(openaiUsage), service_tier })
  }
  const messages = (service_tier: string) => {
    const usage = { input_tokens: tokens.input, output_tokens: tokens.output, service_tier }
    return whole(anthropic, {
      type: 'message',
      model: 'm',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      usage,
    })
  }

  test.each([
    ['flex', 0.5],
    ['priority', 2],
    ['default', 1],
    ['scale', 1],
    ['performance', 4],
    ['a tier without a price', 1],
  ])('bills the tier %s that the provider reports, whatever was asked', (tier, factor) => {
    expect(getFactor(chat({ service_tier: tier }), asking('priority'))).toBe(factor)
  })

  test('bills the requested tier when the provider reports none, and not one that was dropped', () => {
    expect(getFactor(chat(), asking('flex'))).toBe(0.5)
    expect(getFactor(chat({ service_tier: 'auto' }), asking('flex'))).toBe(0.5)
    expect(getFactor(chat(), asking('auto'))).toBe(1)
    expect(getFactor(chat(), { ...asking('flex'), droppedParameters: ['service_tier'] })).toBe(1)
  })

  test('bills the tier that Anthropic reports', () => {
    expect(getFactor(messages('priority'))).toBe(2)
    expect(getFactor(messages('standard'))).toBe(1)
  })

  test('bills the last tier of a stream, also when the client left it', () => {
    const frames = [
      { service_tier: 'auto', choices: choice({ content: text }) },
      { service_tier: 'flex', choices: [], usage: openaiUsage },
    ]
    expect(getFactor(read(...frames.map(chunk)), asking('priority'))).toBe(0.5)
  })

  test('bills the time at which the attempt began', () => {
    const at = (time: string) => getFactor(chat(), { startedAtMs: Date.parse(time) })
    expect(['2026-11-23T00:59:59Z', '2026-11-23T01:00:00Z', '2026-11-24T02:00:00Z'].map(at)).toEqual([1, 3, 1])
  })
})

describe('usage of a stream that the client left', () => {
  const said = (usage: Json | null) => chunk({ choices: choice({ content: text }), usage })

  test('bills zero when the last frame reports zero', () => {
    expectBill(read(said({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })), {})
  })

  test('bills the running count when each frame reports one', () => {
    const counts = [1, 2, 3].map(completion_tokens => said({ prompt_tokens: 12, completion_tokens }))
    expectBill(read(...counts), { new: 12, output: 3 })
  })

  test('bills an estimate when output followed the count', () => {
    const { usage, estimated } = billed(read(said({ prompt_tokens: 12, completion_tokens: 0 }), said(null)))
    expect([usage.inputTokens, estimated]).toEqual([12, true])
    expect(usage.outputTokens).toBeGreaterThan(4)
  })
})

function read(...events: Json[]): Says {
  const reader = openaiWire().provider.streamReader()
  return sink => {
    for (const event of events) reader.read({ name: '', data: JSON.stringify(event) }, sink)
  }
}

function openaiWire(): Wire {
  const wire = wires['Chat Completions']
  if (wire === undefined) throw new Error('the table has no Chat Completions')
  return wire
}
