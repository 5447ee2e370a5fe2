import { describe, expect, test } from 'bun:test'
import Ajv from 'ajv'
import fc from 'fast-check'
import type { ChatRequest, Message, ReasoningEffort, ToolCall } from '../../src/core/chat/chat.ts'
import type { ParameterRules } from '../../src/core/models/models.ts'
import { google } from '../../src/providers/google.ts'
import type { ProviderFailure } from '../../src/providers/provider.ts'
import { type AnswerPart, partsIn, recorded } from '../harness/answer-parts.ts'
import { askWith, user } from '../harness/ask.ts'
import { modelWith } from '../harness/model.ts'
import { anyRequest, closed } from './any-request.ts'
import { cutOffsets, everyByte, mergeParts, type Recording, readRecording, recordings } from './recordings.ts'

const level: ParameterRules = {
  sampling: 'accepted',
  maximumTemperature: 2,
  temperatureWithTopP: true,
  penalties: true,
  seed: true,
  logitBias: false,
  logprobs: true,
  maximumTopLogprobs: 5,
  maximumStops: 5,
  maximumChoices: 8,
  outputCapField: 'max_tokens',
  systemRole: 'system',
  forcedToolChoice: 'accepted',
  toolsNeedEffortNone: false,
  prefill: true,
  efforts: ['low', 'medium', 'high'],
  reasoning: { kind: 'level' },
  streamOptions: false,
  parallelToolCalls: false,
  responseFormat: 'json_schema',
  passExtras: false,
}
const flash: ParameterRules = {
  ...level,
  penalties: false,
  efforts: [],
  reasoning: { kind: 'token_budget', minimum: 0, maximum: 24_576, canDisable: true },
}
const pro: ParameterRules = {
  ...flash,
  reasoning: { kind: 'token_budget', minimum: 128, maximum: 32_768, canDisable: false },
}
const plain: ParameterRules = {
  ...level,
  sampling: 'rejected',
  penalties: false,
  seed: false,
  logprobs: false,
  maximumStops: 0,
  maximumChoices: 1,
  forcedToolChoice: 'rejected',
  prefill: false,
  efforts: [],
  reasoning: { kind: 'none' },
  responseFormat: 'none',
}

const getModel = (parameters: ParameterRules) => modelWith({ id: 'gemini-x', provider: 'google', parameters })

const assistant = (text: string | null, toolCalls: readonly ToolCall[] = []): Message => ({
  role: 'assistant',
  text,
  reasoning: null,
  toolCalls,
  name: null,
})
const call = (id: string, name: string, args = '{}', signature: string | null = null): ToolCall => ({
  id,
  name,
  arguments: args,
  signature,
})
const result = (callId: string, text: string): Message => ({ role: 'tool', callId, text })

const access = { baseUrl: 'https://generativelanguage.googleapis.com', apiKey: 'test-key' }

function send(fields: Partial<ChatRequest> = {}, rules: ParameterRules = level, stream = false) {
  const request = google.toRequest({ request: askWith(fields), model: getModel(rules), outputCap: 100, stream }, access)
  return { ...request, json: JSON.parse(request.body) as Body }
}

type Foreign = { readonly [key: string]: Foreign } & readonly Foreign[]
type Body = {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Record<string, Foreign>[] }[]
  readonly generationConfig: Record<string, unknown>
  readonly systemInstruction?: unknown
  readonly tools?: readonly { readonly functionDeclarations: readonly Record<string, unknown>[] }[]
  readonly toolConfig?: unknown
}

const getFrames = (text: string): readonly unknown[] =>
  text.split(/\r?\n\r?\n/).flatMap(block => (block.trim() === '' ? [] : [JSON.parse(block.replace(/^data: ?/, ''))]))

/** Reads frames through the stream reader, one event each. */
function stream(...frames: readonly unknown[]): AnswerPart[] {
  const reader = recorded(google.streamReader())
  const parts = frames.flatMap(frame => reader.read({ name: '', data: JSON.stringify(frame) }))
  return mergeParts([...parts, ...reader.finish()])
}

const whole = (body: unknown): AnswerPart[] => mergeParts(partsIn(google, body))
const candidate = (parts: readonly unknown[], finishReason?: string, index?: number) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason, index }],
})
const types = (parts: readonly AnswerPart[]) => parts.map(part => part.type)
const failureIn = (parts: readonly AnswerPart[]): ProviderFailure | undefined =>
  parts.flatMap(part => (part.type === 'failure' ? [part.failure] : []))[0]

describe('Gemini recordings', () => {
  const recorded = recordings('gemini').filter(({ name }) => !name.startsWith('openai-compat'))
  const good = recorded.filter(({ status }) => status === 200)

  for (const recording of good) {
    const label = `${recording.name} (${recording.kind})`
    const frames = recording.kind === 'stream' ? getFrames(recording.text) : [JSON.parse(recording.text)]

    test(`${label}: reads like the independent reference`, () => {
      const parts = readWhole(recording)
      expect(summary(parts) as unknown).toEqual(oracle(frames))
      expect(parts.at(-1)).toEqual({ type: 'end' })
    })
  }

  for (const recording of good.filter(({ kind }) => kind === 'stream')) {
    const expected = readWhole(recording)

    test(`${recording.name}: reads the same for any split of its bytes`, () => {
      for (const cut of cutOffsets(recording.bytes, 600)) {
        expect(readRecording(google.streamReader(), recording.bytes, [cut])).toEqual(expected)
      }
      expect(readRecording(google.streamReader(), recording.bytes, everyByte(recording.bytes))).toEqual(expected)
    })

    test(`${recording.name}: never ends when truncated before its last byte of JSON`, () => {
      const complete = recording.bytes.lastIndexOf('}'.charCodeAt(0)) + 1
      for (const length of cutOffsets(recording.bytes.subarray(0, complete - 1), 600)) {
        const read = types(readRecording(google.streamReader(), recording.bytes.subarray(0, length)))
        expect(read).not.toContain('end')
        expect(read).not.toContain('finish')
      }
      const kept = readRecording(google.streamReader(), recording.bytes.subarray(0, complete))
      expect(kept).toEqual(expected)
    })
  }

  const failures: Readonly<Record<string, Partial<ProviderFailure>>> = {
    'ai-error-429-retry-info': { kind: 'rate_limited', blame: 'upstream', retryAfterMs: 34_400 },
    'error-429-quota': { kind: 'rate_limited', blame: 'upstream', retryAfterMs: 48_000 },
    'error-400-key': { kind: 'credential_refused', blame: 'us', retryable: true, retryAfterMs: null },
  }
  for (const { name, status, headers, text } of recorded.filter(({ status }) => status !== 200)) {
    test(`${name}: has the expected blame`, () => {
      expect(google.readFailure(status, headers, text)).toMatchObject(failures[name] ?? { kind: 'not in the table' })
    })
  }
})

function readWhole({ kind, bytes, text }: Recording): AnswerPart[] {
  return kind === 'stream' ? readRecording(google.streamReader(), bytes) : whole(JSON.parse(text))
}

function summary(parts: readonly AnswerPart[]) {
  const texts = (type: 'text' | 'reasoning') => parts.flatMap(part => (part.type === type ? [part.text] : [])).join('')
  return {
    text: texts('text'),
    reasoning: texts('reasoning'),
    calls: parts.flatMap(part => {
      if (part.type !== 'tool_call') return []
      const pieces = parts.flatMap(answerPart =>
        answerPart.type === 'tool_arguments' && answerPart.index === part.index ? [answerPart.text] : [],
      )
      return [{ name: part.name, signature: part.signature, args: JSON.parse(pieces.join('')) as unknown }]
    }),
    finish: parts.flatMap(part => (part.type === 'finish' ? [part.reason] : [])),
    usage: parts.flatMap(part => (part.type === 'usage' ? [part.usage] : [])),
    served: parts.flatMap(part => (part.type === 'served' ? [part.model] : [])),
  }
}

/** Reference reader for the recordings only: one choice, flat partial arguments, three finish reasons. */
function oracle(frames: readonly unknown[]) {
  const answers = frames as readonly Record<string, Foreign | undefined>[]
  const parts = answers.flatMap(answer => [...(answer.candidates?.[0]?.content?.parts ?? [])])
  const text = (thought: boolean) =>
    parts
      .filter(part => Boolean(part.thought) === thought)
      .map(part => part.text ?? '')
      .join('')
  const calls: { name: unknown; signature: unknown; args: Record<string, unknown> }[] = []
  for (const { functionCall, thoughtSignature } of parts) {
    if (functionCall?.name) {
      const { name, args } = functionCall
      calls.push({ name, signature: thoughtSignature ?? null, args: { ...args } })
    }
    for (const piece of functionCall?.partialArgs ?? []) {
      const args = calls.at(-1)?.args ?? {}
      const key = String(piece.jsonPath).slice(2)
      args[key] = String(args[key] ?? '') + String(piece.stringValue)
    }
  }
  const reason = String(answers.map(answer => answer.candidates?.[0]?.finishReason).filter(Boolean)[0])
  const stopped = calls.length > 0 ? 'tool_calls' : 'stop'
  const counts = answers.at(-1)?.usageMetadata as unknown as Record<string, number>
  return {
    text: text(false),
    reasoning: text(true),
    calls,
    finish: [({ STOP: stopped, MAX_TOKENS: 'length', SAFETY: 'content_filter' } as Record<string, string>)[reason]],
    usage: [
      {
        inputTokens: (counts.promptTokenCount ?? 0) + (counts.toolUsePromptTokenCount ?? 0),
        cachedInputTokens: counts.cachedContentTokenCount ?? 0,
        cacheWriteTokens: 0,
        outputTokens: (counts.candidatesTokenCount ?? 0) + (counts.thoughtsTokenCount ?? 0),
        reasoningTokens: counts.thoughtsTokenCount ?? 0,
      },
    ],
    served: [answers.at(-1)?.modelVersion],
  }
}

const counted = (usageMetadata: unknown) => ({ ...candidate([{ text: 'x' }], 'STOP'), usageMetadata })
const full = {
  promptTokenCount: 10,
  toolUsePromptTokenCount: 5,
  cachedContentTokenCount: 4,
  candidatesTokenCount: 7,
  thoughtsTokenCount: 3,
}
const told = { cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const usageIn = (parts: readonly AnswerPart[]) => parts.findLast(part => part.type === 'usage')?.usage

describe('Gemini response', () => {
  test('emits thoughts as reasoning and keeps the order of text around calls', () => {
    const parts = stream(
      candidate([{ text: 'Hm.', thought: true }, { text: 'Look' }]),
      candidate([{ text: 'ing.' }, { functionCall: { name: 'find', args: { q: 1 } } }, { text: 'Done.' }], 'STOP'),
    )
    expect(parts).toEqual([
      { type: 'reasoning', choice: 0, text: 'Hm.' },
      { type: 'text', choice: 0, text: 'Looking.' },
      { type: 'tool_call', choice: 0, index: 0, id: 'call_0', name: 'find', signature: null },
      { type: 'tool_arguments', choice: 0, index: 0, text: '{"q":1}' },
      { type: 'text', choice: 0, text: 'Done.' },
      { type: 'finish', choice: 0, reason: 'tool_calls' },
      { type: 'end' },
    ])
  })

  test('counts calls across frames and gives them unique IDs, its own ones first', () => {
    const parts = stream(
      { ...candidate([{ functionCall: { name: 'a', id: 'given' } }]), responseId: 'R-1_x' },
      {
        ...candidate([{ functionCall: { name: 'b', id: 'given' } }, { functionCall: { name: 'c' } }]),
        responseId: 'R-1_x',
      },
      { ...candidate([], 'STOP'), responseId: 'R-1_x' },
    )
    const calls = parts.flatMap(part => (part.type === 'tool_call' ? [[part.index, part.id, part.name]] : []))
    expect(calls).toEqual([
      [0, 'given', 'a'],
      [1, 'call_1_R1x', 'b'],
      [2, 'call_2_R1x', 'c'],
    ])
    expect(parts.flatMap(part => (part.type === 'tool_arguments' ? [part.text] : []))).toEqual(['{}', '{}', '{}'])
  })

  test('keeps calls and finish reasons of choices apart; a missing index is the position', () => {
    const parts = whole({
      candidates: [
        { content: { parts: [{ functionCall: { name: 'a' } }] }, finishReason: 'STOP' },
        { content: { parts: [{ functionCall: { name: 'b' } }] }, finishReason: 'MAX_TOKENS', index: 1 },
        { content: { parts: [{ text: 'third' }] }, finishReason: 'STOP' },
      ],
    })
    expect(parts.flatMap(part => (part.type === 'tool_call' ? [[part.choice, part.index]] : []))).toEqual([
      [0, 0],
      [1, 0],
    ])
    expect(parts.flatMap(part => (part.type === 'finish' ? [part.reason] : []))).toEqual([
      'tool_calls',
      'length',
      'stop',
    ])
  })

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['CONTINUATION', 'length'],
    ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'MODEL_ARMOR'].map(reason => [
      reason,
      'content_filter',
    ]),
    ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'].map(reason => [reason, 'content_filter']),
    ...['OTHER', 'FINISH_REASON_UNSPECIFIED', 'NO_IMAGE', 'IMAGE_OTHER', 'SOMETHING_NEW', 'constructor'].map(reason => [
      reason,
      'stop',
    ]),
  ])('maps finish reason %s to %s', (reason, expected) => {
    expect(stream(candidate([{ text: 'x' }], reason)).slice(-2)).toEqual([
      { type: 'finish', choice: 0, reason: expected } as AnswerPart,
      { type: 'end' },
    ])
  })

  test.each([
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MALFORMED_RESPONSE',
    'MISSING_THOUGHT_SIGNATURE',
  ])('treats %s as a failure before any output, else as stop', reason => {
    const failed = { kind: 'generation_failed', blame: 'upstream', retryable: true, retryAfterMs: null, detail: reason }
    const usage = { usageMetadata: { promptTokenCount: 3 } }
    for (const parts of [
      stream({ ...candidate([{ text: 'half' }], reason), ...usage }),
      whole({ ...candidate([], reason), ...usage }),
    ]) {
      expect(types(parts)).toEqual(['usage', 'failure'])
      expect(failureIn(parts)).toEqual(failed as ProviderFailure)
    }
    expect(stream(candidate([{ text: 'x' }]), candidate([], reason)).slice(-2)).toEqual([
      { type: 'finish', choice: 0, reason: 'stop' },
      { type: 'end' },
    ])
  })

  test('treats a blocked prompt as a response with content_filter', () => {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 8 } }
    for (const parts of [stream(blocked), whole({ ...blocked, candidates: [] })]) {
      expect(types(parts)).toEqual(['usage', 'finish', 'end'])
      expect(parts[1]).toEqual({ type: 'finish', choice: 0, reason: 'content_filter' })
    }
    const late = stream(candidate([{ text: 'Some' }]), blocked)
    expect(late.at(-2)).toEqual({ type: 'finish', choice: 0, reason: 'content_filter' })
  })

  test.each([{ content: {} }, { content: { role: 'model' } }, { content: { parts: [{ text: '' }] } }, {}])(
    'without content is complete: %j',
    empty => {
      const body = { candidates: [{ ...empty, finishReason: 'MAX_TOKENS' }] }
      for (const parts of [stream(body), whole(body)]) expect(types(parts)).toEqual(['finish', 'end'])
    },
  )

  test('keeps the first finish reason and ends when every started or requested choice has one', () => {
    expect(stream(candidate([], 'MAX_TOKENS'), candidate([], 'STOP'))[0]).toMatchObject({ reason: 'length' })
    expect(types(stream(candidate([{ text: 'a' }], 'STOP', 0), candidate([{ text: 'b' }], undefined, 1)))).toEqual([
      'text',
      'text',
    ])
    const ofTwo = (...frames: readonly object[]) => {
      const text = frames.map(frame => `data: ${JSON.stringify(frame)}\r\n\r\n`).join('')
      return types(readRecording(google.streamReader(2), new TextEncoder().encode(text)))
    }
    expect(ofTwo(candidate([{ text: 'a' }], 'STOP', 0))).toEqual(['text'])
    expect(ofTwo(candidate([], 'STOP', 0), candidate([], 'STOP', 1))).toEqual(['finish', 'finish', 'end'])
    expect(ofTwo({ promptFeedback: { blockReason: 'SAFETY' } })).toEqual(['finish', 'end'])
    expect(stream()).toEqual([])
    expect(types(stream({ usageMetadata: { promptTokenCount: 1 } }))).toEqual(['usage'])
  })

  test('uses the last usage, with thoughts as output and the cache as input', () => {
    expect(
      usageIn(stream(counted({ promptTokenCount: 1 }), counted(full), { usageMetadata: { trafficType: 'x' } })),
    ).toEqual({ ...told, inputTokens: 15, cachedInputTokens: 4, outputTokens: 10, reasoningTokens: 3 })
  })

  test('reads a missing count as 0 without output and as unknown otherwise', () => {
    const thoughtAlone = candidate([{ text: 'hm', thought: true }], 'MAX_TOKENS')
    const usageMetadata = { promptTokenCount: 2, thoughtsTokenCount: 5 }
    expect(usageIn(whole({ ...thoughtAlone, usageMetadata }))).toEqual({
      ...told,
      inputTokens: 2,
      outputTokens: 5,
      reasoningTokens: 5,
    })
    const untold = { ...told, inputTokens: 2, outputTokens: null, leastOutputTokens: 5, reasoningTokens: 5 }
    expect(usageIn(whole(counted(usageMetadata)))).toEqual(untold)
    expect(usageIn(stream(counted({}), { ...candidate([], 'STOP'), usageMetadata }))).toEqual(untold)
    expect(usageIn(whole(counted({ ...usageMetadata, candidatesTokenCount: 0 })))?.outputTokens).toBe(5)
    const call = candidate([{ functionCall: { name: 'f' } }], 'STOP')
    expect(usageIn(whole({ ...call, usageMetadata }))?.outputTokens).toBeNull()
    // The total reports it too, unless it only equals the sum of the other parts.
    const { candidatesTokenCount: _, ...parts } = full
    expect(usageIn(whole(counted({ ...parts, totalTokenCount: 25 })))?.outputTokens).toBe(10)
    for (const totalTokenCount of [18, 3, -1, '25x', null])
      expect(usageIn(whole(counted({ ...parts, totalTokenCount })))?.outputTokens).toBeNull()
    expect(usageIn(whole(counted({ candidatesTokenCount: 3 })))).toEqual({
      ...told,
      inputTokens: null,
      outputTokens: 3,
    })
  })

  test('treats a count that later output exceeds as a lower bound', () => {
    expect(usageIn(stream(counted(full), counted(undefined)))).toMatchObject({
      inputTokens: 15,
      outputTokens: null,
      leastOutputTokens: 10,
    })
    // Omitted in a later frame, it is still a lower bound.
    expect(usageIn(stream(counted(full), counted({ promptTokenCount: 15 })))).toMatchObject({
      outputTokens: null,
      leastOutputTokens: 10,
    })
    expect(
      usageIn(stream(counted(full), counted(undefined), counted({ ...full, candidatesTokenCount: 9 }))),
    ).toMatchObject({ outputTokens: 12 })
  })

  test('ignores invalid counts instead of reading them as 0', () => {
    for (const nonsense of [-1, 2e9, '7x', null, {}, Number.NaN]) {
      const usage = usageIn(whole(counted({ ...full, candidatesTokenCount: nonsense, cachedContentTokenCount: 99 })))
      expect(usage).toMatchObject({ inputTokens: 15, cachedInputTokens: 15, outputTokens: null, leastOutputTokens: 3 })
      expect(usageIn(whole(counted({ ...full, promptTokenCount: nonsense })))?.inputTokens).toBeNull()
    }
  })

  test('maps log probabilities with their alternatives', () => {
    const logprobsResult = {
      chosenCandidates: [{ token: 'Hi', tokenId: 1, logProbability: -0.5 }],
      topCandidates: [
        {
          candidates: [
            { token: 'Hi', logProbability: -0.5 },
            { token: 'Yo', logProbability: -2 },
          ],
        },
      ],
    }
    const parts = whole({
      candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP', logprobsResult }],
    })
    expect(parts[1]).toEqual({
      type: 'logprobs',
      choice: 0,
      tokens: [
        {
          token: 'Hi',
          logprob: -0.5,
          bytes: null,
          top_logprobs: [
            { token: 'Hi', logprob: -0.5, bytes: null },
            { token: 'Yo', logprob: -2, bytes: null },
          ],
        },
      ],
    })
  })

  test('reports a changed serving model, and skips code and images, and tells signatures apart', () => {
    const tools = [
      { executableCode: { code: '1+1' } },
      { codeExecutionResult: { output: '2' } },
      { inlineData: { data: 'AA' } },
    ]
    const parts = stream(
      { ...candidate(tools), modelVersion: 'models/gemini-y', responseId: 'r' },
      { ...candidate([{ text: '', thoughtSignature: 'c2ln' }], 'STOP'), modelVersion: 'gemini-y', responseId: 'r' },
    )
    expect(parts[0]).toEqual({ type: 'served', id: 'r', model: 'gemini-y' })
    expect(types(parts)).toEqual(['served', 'reasoning_end', 'finish', 'end'])
    expect(parts[1]).toEqual({
      type: 'reasoning_end',
      choice: 0,
      family: 'google',
      kind: 'signature',
      data: 'c2ln',
      id: null,
    })
  })

  test('joins argument parts at their paths', () => {
    const pieces = (partialArgs: readonly unknown[], willContinue = true) =>
      candidate([{ functionCall: { partialArgs, willContinue } }])
    const parts = stream(
      candidate([{ functionCall: { name: 'book', args: { when: 'now' }, willContinue: true } }]),
      pieces([{ jsonPath: '$.stops[0].name', stringValue: 'Par', willContinue: true }]),
      pieces([
        { jsonPath: '$.stops[0].name', stringValue: 'is' },
        { jsonPath: "$.stops[1]['no of']", numberValue: 2 },
      ]),
      pieces([
        { jsonPath: '$.ok', boolValue: false },
        { jsonPath: '$.none', nullValue: 'NULL_VALUE' },
      ]),
      pieces([
        { jsonPath: '$.constructor.prototype.seen', stringValue: 'x' },
        { jsonPath: '$.many[999999999]', numberValue: 1 },
        // None of these is a complete path.
        { jsonPath: "$.ok['", boolValue: true },
        { jsonPath: '$', stringValue: 'x' },
        { jsonPath: `$${"['".repeat(300_000)}`, stringValue: 'x' },
      ]),
      candidate([{ functionCall: {} }, { functionCall: { name: 'next' } }], 'STOP'),
    )
    expect(summary(parts).calls.map(({ args }) => args)).toEqual([
      {
        when: 'now',
        stops: [{ name: 'Paris' }, { 'no of': 2 }],
        ok: false,
        none: null,
        constructor: { prototype: { seen: 'x' } },
        many: [1],
      } as unknown,
      {},
    ])
    expect('seen' in {}).toBe(false)
  })

  test.each([
    [{ error: { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' } }, 'overloaded'],
    [[{ error: { message: 'Too many', status: 'RESOURCE_EXHAUSTED' } }], 'rate_limited'],
    [{ error: { status: 'DEADLINE_EXCEEDED' } }, 'timeout'],
    [{ error: { status: 'constructor' } }, 'unavailable'],
    [{ error: 'boom' }, 'unavailable'],
  ] as const)('reports an error in place of a response as the last part: %j', (frame, kind) => {
    const parts = stream(candidate([{ text: 'Hal' }]), frame, candidate([{ text: 'f' }], 'STOP'))
    expect(types(parts)).toEqual(['text', 'failure'])
    expect(failureIn(parts)?.kind).toBe(kind)
    expect(failureIn(whole(frame))?.kind).toBe(kind)
  })

  test.each([[null], [5], ['text'], [[]], [{}], [{ candidates: [] }], [{ choices: [] }], [[null]]])(
    '%j with status 200 is one failure',
    body => {
      const parts = whole(body)
      expect(types(parts)).toEqual(['failure'])
      expect(failureIn(parts)).toMatchObject({ kind: 'bad_answer', retryable: true })
    },
  )

  test('fails on unreadable frames and error events and ignores empty frames and [DONE]', () => {
    const read = (name: string, data: string) => {
      const reader = recorded(google.streamReader())
      return types([...reader.read({ name, data }), ...reader.read({ name: '', data: '{}' }), ...reader.finish()])
    }
    expect(read('', '{"candidates":')).toEqual(['failure'])
    expect(read('error', '{}')).toEqual(['failure'])
    expect(read('', '5')).toEqual(['failure'])
    expect(read('', '')).toEqual([])
    expect(read('', '[DONE]')).toEqual([])
  })

  test('fails on arguments nested deeper than the stack', () => {
    const deep = `${'['.repeat(60_000)}${']'.repeat(60_000)}`
    for (const open of ['', ',"willContinue":true']) {
      const reader = recorded(google.streamReader())
      const call = `{"functionCall":{"name":"a","args":{"x":${deep}}${open}}}`
      const data = `{"candidates":[{"content":{"parts":[${call}]},"finishReason":"STOP"}]}`
      const parts = [...reader.read({ name: '', data }), ...reader.finish()]
      expect(failureIn(parts)?.kind).toBe('bad_answer')
      expect(types(parts)).not.toContain('end')
    }
  })

  test('never throws and keeps the order of parts for any events', () => {
    const maybe = <T>(value: fc.Arbitrary<T>) =>
      fc.oneof({ weight: 4, arbitrary: value }, fc.jsonValue({ maxDepth: 2 }))
    const path = fc.constantFrom('$.a', '$.a.b', '$.a[0]', '$[0]', '$.__proto__.x', '$.a.length', '$', 'x')
    const piece = fc.record({ jsonPath: maybe(path), stringValue: maybe(fc.string()) }, { requiredKeys: [] })
    const functionCall = fc.record(
      {
        name: maybe(fc.constantFrom('a', 'b')),
        id: maybe(fc.constantFrom('1', '2', 'call_0', 'call_1_r')),
        args: maybe(fc.object({ maxDepth: 1 })),
        partialArgs: maybe(fc.array(piece, { maxLength: 3 })),
        willContinue: maybe(fc.boolean()),
      },
      { requiredKeys: [] },
    )
    const part = fc.record(
      { text: maybe(fc.string()), thought: maybe(fc.boolean()), functionCall: maybe(functionCall) },
      { requiredKeys: [] },
    )
    const oneCandidate = fc.record(
      {
        content: maybe(fc.record({ parts: maybe(fc.array(maybe(part), { maxLength: 3 })) })),
        finishReason: maybe(fc.constantFrom('STOP', 'MAX_TOKENS', 'MALFORMED_FUNCTION_CALL', 'toString')),
        index: maybe(fc.nat(2)),
        logprobsResult: fc.jsonValue({ maxDepth: 3 }),
      },
      { requiredKeys: [] },
    )
    const frame = fc.record(
      {
        candidates: maybe(fc.array(maybe(oneCandidate), { maxLength: 3 })),
        usageMetadata: maybe(fc.record({ promptTokenCount: maybe(fc.nat()), candidatesTokenCount: maybe(fc.nat()) })),
        promptFeedback: maybe(fc.record({ blockReason: maybe(fc.constant('SAFETY')) })),
        responseId: maybe(fc.constant('r')),
        error: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, fc.jsonValue({ maxDepth: 3 })),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(maybe(frame), { maxLength: 5 }), frames => {
        inOrder(stream(...frames))
        inOrder(whole(frames[0]))
        for (const item of frames) google.readFailure(400, new Headers(), JSON.stringify(item))
      }),
      { numRuns: 400 },
    )
    fc.assert(
      fc.property(fc.string(), fc.string(), (name, data) => void recorded(google.streamReader()).read({ name, data })),
    )
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 599 }),
        fc.string(),
        (status, body) => void google.readFailure(status, new Headers(), body),
      ),
    )
  })
})

/**
 * Expects nothing after a failure or the end, and contiguous, uniquely named calls with JSON arguments once the
 * response ended.
 */
function inOrder(parts: readonly AnswerPart[]): void {
  const final = parts.findIndex(({ type }) => type === 'failure' || type === 'end')
  expect(final === -1 || final === parts.length - 1).toBe(true)
  const calls = parts.flatMap(part => (part.type === 'tool_call' ? [part] : []))
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
  for (const item of calls) {
    const earlier = calls.slice(0, calls.indexOf(item)).filter(({ choice }) => choice === item.choice)
    expect(item.index).toBe(earlier.length)
    if (parts.at(-1)?.type !== 'end') continue
    const pieces = parts.flatMap(part =>
      part.type === 'tool_arguments' && part.choice === item.choice && part.index === item.index ? [part.text] : [],
    )
    expect(typeof JSON.parse(pieces.join(''))).toBe('object')
  }
}

describe('Gemini failure', () => {
  const fail = (status: number, error: unknown, headers: Record<string, string> = {}) =>
    google.readFailure(status, new Headers(headers), JSON.stringify(error))
  const quota = (quotaId: string) => ({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'You exceeded your current quota, please check your plan and billing details.',
      details: [{ violations: [{ quotaId }] }, { retryDelay: '1.5s' }],
    },
  })

  test.each([
    [400, 'INVALID_ARGUMENT', 'Bad value', 'request_refused', 'caller', false],
    [
      400,
      'INVALID_ARGUMENT',
      'The input token count (9) exceeds the maximum number of tokens allowed (8).',
      'context_overflow',
      'caller',
      true,
    ],
    [400, 'FAILED_PRECONDITION', 'User location is not supported', 'credential_refused', 'us', true],
    [401, 'UNAUTHENTICATED', '', 'credential_refused', 'us', true],
    [403, 'PERMISSION_DENIED', '', 'credential_refused', 'us', true],
    [404, 'NOT_FOUND', 'models/x is not found', 'model_missing', 'upstream', true],
    [413, '', '', 'request_too_large', 'caller', false],
    [429, 'RESOURCE_EXHAUSTED', '', 'rate_limited', 'upstream', true],
    [429, 'RESOURCE_EXHAUSTED', 'Your prepayment credits are depleted.', 'quota_exhausted', 'us', true],
    [499, 'CANCELLED', '', 'unavailable', 'upstream', true],
    [500, 'INTERNAL', '', 'unavailable', 'upstream', true],
    [501, 'UNIMPLEMENTED', '', 'unavailable', 'upstream', true],
    [503, 'UNAVAILABLE', 'This model is experiencing high demand.', 'overloaded', 'upstream', true],
    [503, 'UNAVAILABLE', '', 'overloaded', 'upstream', true],
    [504, 'DEADLINE_EXCEEDED', '', 'timeout', 'upstream', true],
  ] as const)('%i %s "%s" is %s', (code, status, message, kind, blame, retryable) => {
    const detail = status === '' ? `${code}` : `${code} ${status}`
    const expected = { kind, blame, retryable, retryAfterMs: null, detail }
    expect(fail(code, { error: { code, status, message } })).toEqual(expected)
    expect(fail(code, [{ error: { code, status, message } }])).toEqual(expected)
  })

  test('has blame us for a bad key although the status is 400', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }]
    const error = { code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid: AIzaSecret', details }
    expect(fail(400, { error })).toEqual({
      kind: 'credential_refused',
      blame: 'us',
      retryable: true,
      retryAfterMs: null,
      detail: '400 INVALID_ARGUMENT API_KEY_INVALID',
    })
  })

  test('has a wait time for a per-minute quota, but not for a daily one', () => {
    expect(fail(429, quota('GenerateRequestsPerMinutePerProject'))).toMatchObject({
      kind: 'rate_limited',
      retryAfterMs: 1_500,
    })
    expect(fail(429, quota('GenerateRequestsPerDayPerProject-FreeTier'))).toMatchObject({
      kind: 'quota_exhausted',
      retryAfterMs: null,
    })
    expect(fail(503, {}, { 'retry-after': '2' })).toMatchObject({ retryAfterMs: 2_000 })
  })

  test.each([
    '',
    '<html>AIzaSecret</html>',
    'null',
    '[]',
    '{"error":"AIzaSecret9"}',
    '{"error":{"status":"AIzaSecret9 leaked"}}',
  ])('never quotes a body in its detail: %s', body => {
    expect(google.readFailure(502, new Headers(), body)).toMatchObject({ kind: 'unavailable', detail: '502' })
  })
})

describe('Gemini request', () => {
  test('accepts a base URL with or without slash and version, and sends the key in its header', () => {
    const getUrl = (baseUrl: string, isStream: boolean) =>
      google.toRequest(
        { request: askWith(), model: getModel(level), outputCap: 1, stream: isStream },
        { baseUrl, apiKey: null },
      ).url
    for (const base of [
      'http://127.0.0.1:9',
      'http://127.0.0.1:9/',
      'http://127.0.0.1:9/v1beta',
      'http://127.0.0.1:9/v1beta/',
    ]) {
      expect(getUrl(base, false)).toBe('http://127.0.0.1:9/v1beta/models/gemini-x:generateContent')
      expect(getUrl(base, true)).toBe('http://127.0.0.1:9/v1beta/models/gemini-x:streamGenerateContent?alt=sse')
    }
    expect(send().headers).toEqual({ 'content-type': 'application/json', 'x-goog-api-key': 'test-key' })
    expect(send().url).not.toContain('test-key')
  })

  test('contains only model and prompt for a plain prompt', () => {
    expect<unknown>(send().json).toStrictEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: { maxOutputTokens: 100, thinkingConfig: { includeThoughts: true } },
    })
  })

  test('contains every supported parameter', () => {
    const { json, droppedParameters } = send({
      messages: [{ role: 'system', text: 'Be brief.' }, user('Hi'), { role: 'system', text: 'Be kind.' }],
      temperature: 0.5,
      topP: 0.9,
      presencePenalty: 0.1,
      frequencyPenalty: -0.1,
      seed: 2 ** 32 + 7,
      logprobs: true,
      topLogprobs: 20,
      stop: ['', 'END'],
      choices: 2,
      reasoningEffort: 'xhigh',
      responseFormat: {
        type: 'json_schema',
        name: 'n',
        description: null,
        schema: { type: 'object', properties: { a: { const: 'x' } } },
        strict: true,
      },
      tools: [
        {
          name: 'find',
          description: 'Finds',
          parameters: { type: 'object', properties: { q: { type: 'string', enum: ['', 'a'] } } },
          strict: true,
        },
        { name: 'now', description: null, parameters: { type: 'object', properties: {} }, strict: null },
      ],
      toolChoice: 'auto',
    })
    expect(droppedParameters).toEqual([])
    expect<unknown>(json).toStrictEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: {
        candidateCount: 2,
        frequencyPenalty: -0.1,
        logprobs: 5,
        maxOutputTokens: 100,
        presencePenalty: 0.1,
        responseJsonSchema: { type: 'object', properties: { a: { enum: ['x'] } } },
        responseLogprobs: true,
        responseMimeType: 'application/json',
        seed: 7,
        stopSequences: ['END'],
        temperature: 0.5,
        thinkingConfig: { includeThoughts: true, thinkingLevel: 'high' },
        topP: 0.9,
      },
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] },
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      tools: [
        {
          functionDeclarations: [
            {
              name: 'find',
              description: 'Finds',
              parametersJsonSchema: { type: 'object', properties: { q: { type: 'string', enum: ['a'] } } },
            },
            { name: 'now', description: '' },
          ],
        },
      ],
    })
  })

  test('drops and reports parameters that model or API do not support', () => {
    const everything: Partial<ChatRequest> = {
      temperature: 1,
      topP: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      seed: 0,
      logitBias: { '5': 1 },
      logprobs: true,
      topLogprobs: 0,
      stop: ['a'],
      choices: 3,
      parallelToolCalls: false,
      reasoningEffort: 'low',
      responseFormat: { type: 'json_object' },
      tools: [{ name: 'a', description: null, parameters: null, strict: null }],
      toolChoice: 'required',
    }
    expect(send(everything, plain).droppedParameters.toSorted()).toEqual([
      'frequency_penalty',
      'logit_bias',
      'logprobs',
      'n',
      'parallel_tool_calls',
      'presence_penalty',
      'reasoning_effort',
      'response_format',
      'seed',
      'stop',
      'temperature',
      'tool_choice',
      'top_logprobs',
      'top_p',
    ])
    expect<unknown>(send(everything, plain).json).toStrictEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: { maxOutputTokens: 100 },
      systemInstruction: { parts: [{ text: 'Answer by calling one of the tools.' }] },
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      tools: [{ functionDeclarations: [{ name: 'a', description: '' }] }],
    })
    expect(send({ stop: ['1', '2', '3', '4', '5', '6'] }).droppedParameters).toEqual(['stop'])
    expect(send({ parallelToolCalls: true, reasoningEffort: 'none', stop: [''] }).droppedParameters).toEqual([])
  })

  test('adapts sampling to reasoning and to the pair rule', () => {
    const picky = {
      ...flash,
      sampling: 'accepted_when_thinking_disabled',
      temperatureWithTopP: false,
      maximumTemperature: 1,
    } as const
    const asked = { temperature: 1.5, topP: 0.5 }
    expect(send(asked, picky).droppedParameters).toEqual(['temperature', 'top_p'])
    const off = send({ ...asked, reasoningEffort: 'none' }, picky)
    expect(off.json.generationConfig).toMatchObject({ temperature: 1 })
    expect(off.droppedParameters).toEqual(['top_p'])
  })

  test.each([
    [level, null, { includeThoughts: true }],
    [level, 'none', { includeThoughts: false, thinkingLevel: 'low' }],
    [level, 'minimal', { includeThoughts: true, thinkingLevel: 'low' }],
    [level, 'medium', { includeThoughts: true, thinkingLevel: 'medium' }],
    [level, 'max', { includeThoughts: true, thinkingLevel: 'high' }],
    [
      { ...level, efforts: ['minimal', 'low', 'medium', 'high'] },
      'none',
      { includeThoughts: false, thinkingLevel: 'minimal' },
    ],
    [flash, null, { includeThoughts: true }],
    [flash, 'none', { includeThoughts: false, thinkingBudget: 0 }],
    [flash, 'low', { includeThoughts: true, thinkingBudget: 1_024 }],
    [flash, 'medium', { includeThoughts: true, thinkingBudget: 8_192 }],
    [flash, 'max', { includeThoughts: true, thinkingBudget: 24_576 }],
    [pro, 'none', { includeThoughts: false, thinkingBudget: 128 }],
    [pro, 'max', { includeThoughts: true, thinkingBudget: 32_768 }],
    [plain, 'high', undefined],
  ] as [ParameterRules, ReasoningEffort | null, unknown][])(
    "case %#: maps effort to the model's setting",
    (rules, reasoningEffort, expected) => {
      expect(send({ reasoningEffort }, rules).json.generationConfig.thinkingConfig).toEqual(expected)
    },
  )

  test("merges turns and places each result under its function's name", () => {
    const { json } = send({
      messages: [
        assistant('On it.', [call('1', 'find', '{"q":1}', 'c2ln'), call('2', 'list', 'not json'), call('3', 'find')]),
        result('2', 'plain text'),
        result('1', '{"found":true}'),
        result('9', 'of an unknown call'),
        user('And?'),
        assistant(null, [call('1', 'big')]),
        result('1', '{"id":12345678901234567890}'),
        assistant('  '),
        user('Go'),
        user('on'),
      ],
    })
    expect<unknown>(json.contents).toStrictEqual([
      { role: 'user', parts: [{ text: 'Begin.' }] },
      {
        role: 'model',
        parts: [
          { text: 'On it.' },
          { functionCall: { id: '1', name: 'find', args: { q: 1 } }, thoughtSignature: 'c2ln' },
          { functionCall: { id: '2', name: 'list', args: {} } },
          { functionCall: { id: '3', name: 'find', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: '1', name: 'find', response: { found: true } } },
          { functionResponse: { id: '2', name: 'list', response: { result: 'plain text' } } },
          { functionResponse: { id: '3', name: 'find', response: { error: 'The tool gave no result.' } } },
          { text: 'Result of an earlier tool call:\nof an unknown call' },
          { text: 'And?' },
        ],
      },
      {
        role: 'model',
        parts: [
          { functionCall: { id: '1', name: 'big', args: {} }, thoughtSignature: 'skip_thought_signature_validator' },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: '1', name: 'big', response: { result: '{"id":12345678901234567890}' } } },
          { text: 'Go' },
          { text: 'on' },
        ],
      },
    ])
  })

  test('adds the placeholder signature to the first call of a step only for models with reasoning levels', () => {
    const messages = [user('x'), assistant(null, [call('1', 'a', '{}', 'not base64!'), call('2', 'b')])]
    const signatures = (rules: ParameterRules) =>
      send({ messages }, rules).json.contents[1]?.parts.map(part => part.thoughtSignature as unknown)
    expect(signatures(level)).toEqual(['skip_thought_signature_validator', undefined])
    expect(signatures(flash)).toEqual([undefined, undefined])
  })

  test.each([
    [[], ['Begin.']],
    [[{ role: 'system', text: 'Only this.' }], ['Begin.']],
    [[user('')], ['(The message was empty.)']],
    [[user(' \n')], ['(The message was empty.)']],
    [[{ role: 'user', content: [], name: null }], ['(The message was empty.)']],
    [[user('a'), assistant('')], ['a']],
    [[result('7', 'stray')], ['Result of an earlier tool call:\nstray']],
  ] as [Message[], string[]][])('case %#: always contains a visible turn', (messages, expected) => {
    expect(send({ messages }).json.contents.flatMap(({ parts }) => parts.map(part => part.text as unknown))).toEqual(
      expected,
    )
  })

  test('continues a final assistant message if supported, else adds a user turn', () => {
    const messages = [user('a'), assistant('b')]
    expect(send({ messages }).json.contents.map(({ role }) => role)).toEqual(['user', 'model'])
    expect(send({ messages }, plain).json.contents.map(({ role }) => role)).toEqual(['user', 'model', 'user'])
  })

  test.each([
    ['data:image/PNG;base64,iVBORw0=', { inlineData: { mimeType: 'image/png', data: 'iVBORw0=' } }],
    ['data:image/gif;x=y;base64,R0lG', { inlineData: { mimeType: 'image/gif', data: 'R0lG' } }],
    ['data:image/webp,%00%ffA', { inlineData: { mimeType: 'image/webp', data: 'AP9B' } }],
    [
      'https://example.com/a.PNG?x=1',
      { fileData: { mimeType: 'image/png', fileUri: 'https://example.com/a.PNG?x=1' } },
    ],
    ['https://example.com/a.webp#f', { fileData: { mimeType: 'image/webp', fileUri: 'https://example.com/a.webp#f' } }],
    [
      'https://example.com/a.constructor',
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://example.com/a.constructor' } },
    ],
    ['https://example.com/photo', { fileData: { mimeType: 'image/jpeg', fileUri: 'https://example.com/photo' } }],
  ] as [string, unknown][])('image %s', (url, expected) => {
    const messages: Message[] = [{ role: 'user', content: [{ type: 'image', url, detail: null }], name: null }]
    expect(send({ messages }).json.contents[0]?.parts).toEqual([expected] as never)
  })

  test('combines JSON output with tools only for models that support it', () => {
    const asked: Partial<ChatRequest> = {
      responseFormat: { type: 'json_object' },
      tools: [{ name: 'a', description: null, parameters: null, strict: null }],
    }
    expect(send(asked).json.generationConfig.responseMimeType).toBe('application/json')
    expect(send(asked, flash).json.generationConfig.responseMimeType).toBeUndefined()
    expect(send(asked, flash).droppedParameters).toEqual(['response_format'])
  })

  test('prefers a forced call to JSON output, since no model supports both', () => {
    for (const toolChoice of ['required', { name: 'a' }] as const) {
      const { json, droppedParameters } = send({
        responseFormat: { type: 'json_schema', name: 'x', description: null, schema: { type: 'object' }, strict: null },
        tools: [{ name: 'a', description: null, parameters: null, strict: null }],
        toolChoice,
      })
      expect(json.toolConfig).toMatchObject({ functionCallingConfig: { mode: 'ANY' } })
      expect(Object.keys(json.generationConfig)).not.toContain('responseMimeType')
      expect(droppedParameters).toEqual(['response_format'])
    }
  })

  test('uses only supported schema keywords and keeps references', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      definitions: {
        node: {
          type: 'object',
          properties: { next: { $ref: '#/definitions/node', description: 'x' } },
          minProperties: 1,
        },
      },
      properties: {
        pattern: { type: ['string', 'null'], pattern: '^a', minLength: 2, default: 'a' },
        kind: { enum: ['', 'a', null, 3] },
        only: { const: 'one' },
        nothing: { const: null },
        flag: { const: true },
        root: { allOf: [{ $ref: '#/definitions/node' }], title: 'Root' },
        any: {
          anyOf: [
            { type: 'string', format: 'date' },
            { type: 'array', items: true, uniqueItems: true },
          ],
        },
        free: true,
      },
      required: ['kind'],
      additionalProperties: false,
      not: {},
    }
    const responseFormat = { type: 'json_schema', name: 'n', description: null, schema, strict: true } as const
    expect(send({ responseFormat }).json.generationConfig.responseJsonSchema).toStrictEqual({
      type: 'object',
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
      additionalProperties: false,
      properties: {
        any: { anyOf: [{ type: 'string', format: 'date' }, { type: 'array' }] },
        flag: {},
        free: {},
        kind: { anyOf: [{ enum: ['a', 3] }, { type: 'null' }] },
        nothing: { type: 'null' },
        only: { enum: ['one'] },
        pattern: { type: ['string', 'null'] },
        root: { $ref: '#/$defs/node' },
      },
      required: ['kind'],
    })
  })

  test.each([
    [null, undefined],
    [{}, undefined],
    [{ type: 'object' }, undefined],
    [{ type: 'object', properties: {}, additionalProperties: false }, undefined],
    [{ properties: { a: {} } }, { type: 'object', properties: { a: {} } }],
    [
      { type: 'object', additionalProperties: { type: 'string' } },
      { type: 'object', additionalProperties: { type: 'string' } },
    ],
    [
      { $ref: '#/$defs/a', $defs: { a: {} } },
      { $ref: '#/$defs/a', $defs: { a: {} } },
    ],
  ] as [Record<string, unknown> | null, unknown][])(
    'case %#: omits schemas without properties',
    (parameters, expected) => {
      const { json } = send({ tools: [{ name: 'a', description: null, parameters, strict: null }] })
      expect(json.tools?.[0]?.functionDeclarations[0]?.parametersJsonSchema).toEqual(expected as never)
    },
  )

  test.each([
    [null, undefined],
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    ['required', { mode: 'ANY' }],
    [{ name: 'a' }, { mode: 'ANY', allowedFunctionNames: ['a'] }],
  ] as [ChatRequest['toolChoice'], unknown][])('tool choice %j', (toolChoice, expected) => {
    const tools = [{ name: 'a', description: null, parameters: null, strict: null }]
    expect(send({ tools, toolChoice }).json.toolConfig).toEqual(
      expected === undefined ? undefined : { functionCallingConfig: expected },
    )
    expect(send({ toolChoice }).json.toolConfig).toBeUndefined()
  })

  test('never contains unpaired surrogates', () => {
    const { body } = send({ messages: [user('a\ud83d'), assistant(null, [call('1', 'a', '{"x":"\\udc00"}')])] })
    expect(body).not.toMatch(/\\ud[89a-f]/i)
    expect(JSON.parse(body).contents[0].parts[0].text).toBe('a\ufffd')
    expect(send({ messages: [user('\\ud83d 😀')] }).json.contents[0]?.parts[0]?.text as unknown).toBe('\\ud83d 😀')
  })
})

describe('Gemini request for any input', () => {
  const text = { type: 'string', minLength: 1 }
  const base64 = { type: 'string', pattern: '^[A-Za-z0-9+/_-]*={0,2}$' }
  const part = {
    oneOf: [
      closed({ text }, ['text']),
      closed({ inlineData: closed({ mimeType: text, data: base64 }, ['mimeType', 'data']) }, ['inlineData']),
      closed({ fileData: closed({ mimeType: text, fileUri: text }, ['fileUri']) }, ['fileData']),
      closed(
        {
          functionCall: closed({ id: { type: 'string' }, name: text, args: { type: 'object' } }, ['name', 'args']),
          thoughtSignature: base64,
        },
        ['functionCall'],
      ),
      closed(
        {
          functionResponse: closed({ id: { type: 'string' }, name: text, response: { type: 'object' } }, [
            'name',
            'response',
          ]),
        },
        ['functionResponse'],
      ),
    ],
  }
  const parts = { type: 'array', minItems: 1, items: part }
  const schema = { $ref: '#/$defs/schema' }
  const schemas = { type: 'object', additionalProperties: schema }
  const taken = {
    ...closed({
      $id: text,
      $ref: text,
      $anchor: text,
      $defs: schemas,
      type: {},
      format: { type: 'string' },
      title: { type: 'string' },
      description: { type: 'string' },
      enum: { type: 'array', minItems: 1, items: { anyOf: [text, { type: 'number' }] } },
      required: { type: 'array' },
      minItems: {},
      maxItems: {},
      minimum: {},
      maximum: {},
      propertyOrdering: {},
      properties: schemas,
      additionalProperties: { anyOf: [{ type: 'boolean' }, schema] },
      items: schema,
      prefixItems: { type: 'array', items: schema },
      anyOf: { type: 'array', items: schema },
      oneOf: { type: 'array', items: schema },
    }),
    if: { required: ['$ref'] },
    // biome-ignore lint/suspicious/noThenProperty: a JSON schema keyword
    then: { propertyNames: { pattern: '^\\$' } },
  }
  const requestSchema = {
    ...closed(
      {
        systemInstruction: closed({ parts }, ['parts']),
        contents: {
          type: 'array',
          minItems: 1,
          items: closed({ role: { enum: ['user', 'model'] }, parts }, ['role', 'parts']),
        },
        tools: {
          type: 'array',
          minItems: 1,
          items: closed(
            {
              functionDeclarations: {
                type: 'array',
                minItems: 1,
                items: closed({ name: text, description: { type: 'string' }, parametersJsonSchema: schema }, [
                  'name',
                  'description',
                ]),
              },
            },
            ['functionDeclarations'],
          ),
        },
        toolConfig: closed({
          functionCallingConfig: {
            oneOf: [
              closed({ mode: { enum: ['AUTO', 'NONE', 'ANY'] } }, ['mode']),
              closed({ mode: { const: 'ANY' }, allowedFunctionNames: { type: 'array', minItems: 1, items: text } }, [
                'mode',
                'allowedFunctionNames',
              ]),
            ],
          },
        }),
        generationConfig: {
          ...closed(
            {
              maxOutputTokens: { type: 'integer', minimum: 1 },
              candidateCount: { type: 'integer', minimum: 1, maximum: 8 },
              temperature: { type: 'number', minimum: 0, maximum: 2 },
              topP: { type: 'number', minimum: 0, maximum: 1 },
              stopSequences: { type: 'array', minItems: 1, maxItems: 5, items: text },
              seed: { type: 'integer', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
              presencePenalty: { type: 'number' },
              frequencyPenalty: { type: 'number' },
              responseLogprobs: { const: true },
              logprobs: { type: 'integer', minimum: 1, maximum: 20 },
              responseMimeType: { const: 'application/json' },
              responseJsonSchema: schema,
              thinkingConfig: {
                ...closed({
                  includeThoughts: { type: 'boolean' },
                  thinkingLevel: { enum: ['minimal', 'low', 'medium', 'high'] },
                  thinkingBudget: { type: 'integer', minimum: 0, maximum: 32_768 },
                }),
                not: { required: ['thinkingLevel', 'thinkingBudget'] },
              },
            },
            ['maxOutputTokens'],
          ),
          dependentRequired: { logprobs: ['responseLogprobs'], responseJsonSchema: ['responseMimeType'] },
        },
      },
      ['contents', 'generationConfig'],
    ),
    $defs: { schema: taken },
  }

  const schemaOver = (child: fc.Arbitrary<Record<string, unknown>>): fc.Arbitrary<Record<string, unknown>> =>
    fc.record(
      {
        type: fc.constantFrom('object', 'string', ['string', 'null']),
        properties: fc.dictionary(fc.constantFrom('a', 'const', '$ref', '__proto__'), child, { maxKeys: 2 }),
        items: fc.oneof(fc.boolean(), child),
        enum: fc.array(fc.constantFrom('', 'a', 1, null, true), { maxLength: 3 }),
        const: fc.constantFrom('a', '', 1, null, { b: 1 }),
        anyOf: fc.array(child, { maxLength: 2 }),
        allOf: fc.array(child, { maxLength: 2 }),
        definitions: fc.dictionary(fc.constant('d'), child, { maxKeys: 1 }),
        $ref: fc.constantFrom('#/definitions/d', '#/$defs/d'),
        additionalProperties: fc.oneof(fc.boolean(), child),
        minLength: fc.nat(),
        default: fc.jsonValue({ maxDepth: 1 }),
      },
      { requiredKeys: [] },
    )
  const tree = schemaOver(schemaOver(fc.constant({ type: 'string', pattern: 'x' })))
  const request = anyRequest({ schema: tree, signature: fc.constantFrom(null, 'c2ln', 'not base64!', '') })

  test('matches the documented schema with consistent turns', () => {
    const validate = new Ajv({ strict: false, allErrors: true }).compile(requestSchema)
    fc.assert(
      fc.property(request, fc.constantFrom(level, flash, pro, plain), (fields, rules) => {
        const { json, body } = send(fields, rules)
        validate(json)
        expect(validate.errors ?? []).toEqual([])
        expect(body).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/)
        answering(json.contents)
      }),
      { numRuns: 200 },
    )
  })
})

/**
 * Expects alternating roles, no leading calls, and after each turn of calls as many results, first in their turn and in
 * order.
 */
function answering(contents: Body['contents']): void {
  const named = (turn: Body['contents'][number] | undefined, kind: 'functionCall' | 'functionResponse') =>
    (turn?.parts ?? []).flatMap(part => (part[kind] ? [`${part[kind].id} ${part[kind].name}`] : []))
  for (const [position, turn] of contents.entries()) {
    const next = contents[position + 1]
    expect(next?.role).not.toBe(turn.role)
    const calls = named(turn, 'functionCall')
    if (calls.length === 0) expect(named(next, 'functionResponse')).toEqual([])
    else expect(named(next, 'functionResponse')).toEqual(calls)
    expect(next?.parts.slice(0, calls.length).every(part => part.functionResponse) ?? calls.length === 0).toBe(true)
  }
  expect(named(contents[0], 'functionCall')).toEqual([])
}
