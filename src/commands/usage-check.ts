/** `usage check`: reads documented usage reports of every provider, and compares their tokens and cost with those worked out by hand. */
import { type Static, Type } from '@sinclair/typebox'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import { configuredModelSchema, toModel } from '../core/models/configured-models.ts'
import { checkedData, oneOf, strictObject } from '../core/validation/validate.ts'
import { readNative } from '../dialects/native/request.ts'
import { anthropic } from '../providers/anthropic.ts'
import { azure } from '../providers/azure.ts'
import { bedrock } from '../providers/bedrock.ts'
import { google } from '../providers/google.ts'
import { openai } from '../providers/openai.ts'
import { openaiResponses } from '../providers/openai-responses.ts'
import type { AnswerSink, Provider } from '../providers/provider.ts'
import { ReceivedAnswer } from '../providers/received-answer.ts'
import { vertex } from '../providers/vertex.ts'
import { vectorUsage } from '../request/embeddings-attempt.ts'
import { responseCost } from '../request/settled-cost.ts'
import file from './usage-cases.json'

type Json = Readonly<Record<string, unknown>>

const wireNames = [
  ...(['chat', 'compatible', 'azure', 'responses', 'messages', 'gemini', 'vertex', 'converse'] as const),
  ...(['embeddings', 'gemini embeddings'] as const),
] as const
const count = Type.Optional(Type.Integer({ minimum: 0 }))

const caseSchema = strictObject({
  name: Type.String(),
  /** Key in `sources` if the rule has another one than its group. */
  source: Type.Optional(Type.String()),
  pricing: Type.Optional(configuredModelSchema.properties.pricing),
  /** As the provider sends it; null = none. */
  usage: Type.Unsafe<Json | null>(Type.Unknown()),
  /** Fields of the response beside the usage. */
  reply: Type.Optional(Type.Unsafe<Json>(Type.Unknown())),
  /** Anthropic's first report of a stream. */
  first: Type.Optional(Type.Unsafe<Json>(Type.Unknown())),
  /** The tier that the client asks for. */
  asks: Type.Optional(Type.String()),
  /** When the attempt began. */
  at: Type.Optional(Type.String()),
  /**
   * Uncached and cached input, writes for 5 minutes and for an hour, output with reasoning, and searches; absent = 0. Null = a count
   * is missing, so that the gateway estimates it.
   */
  tokens: Type.Union([
    Type.Null(),
    strictObject({
      fresh: count,
      cached: count,
      written: count,
      hour: count,
      output: count,
      reasoning: count,
      searches: count,
    }),
  ]),
  /** Units of 1e-8 USD. */
  microcents: count,
})

const fileSchema = strictObject({
  sources: Type.Record(Type.String(), strictObject({ page: Type.String(), date: Type.String() })),
  groups: Type.Array(
    strictObject({
      name: Type.String(),
      wire: oneOf(wireNames),
      source: Type.String(),
      pricing: configuredModelSchema.properties.pricing,
      cases: Type.Array(caseSchema),
    }),
  ),
})

type UsageGroup = Static<typeof fileSchema>['groups'][number]
export type UsageCase = UsageGroup['cases'][number]

/** The conformance set. */
const { sources, groups } = checkedData('usage-cases.json', fileSchema, file)

export { groups as usageGroups, sources as usageSources }

/** How a report is wrapped into a response: a whole one, and the events of a stream up to the report and after it. */
type UsageWire = {
  readonly provider: Provider
  readonly whole: (given: UsageCase) => Json
  /** Null = it embeds, which is never streamed. */
  readonly events: ((given: UsageCase) => readonly [readonly Json[], readonly (Json | '[DONE]')[]]) | null
}

const text = 'Four words of text'
const frame = (fields: Json) => ({ id: 'c', object: 'chat.completion.chunk', model: 'm', ...fields })
const choices = (delta: Json, finish_reason: string | null = null) => [{ index: 0, delta, finish_reason }]
const messageItem = { type: 'message', id: 'i', role: 'assistant', content: [{ type: 'output_text', text }] }
const candidate = (finishReason: string | undefined, said = text) => ({
  candidates: [{ index: 0, content: { role: 'model', parts: [{ text: said }] }, finishReason }],
})
const vector = [0.6, 0.8]
const orNothing = (name: string, usage: Json | null) => (usage === null ? {} : { [name]: usage })

const chat = (provider: Provider): UsageWire => ({
  provider,
  whole: ({ usage, reply }) => ({
    id: 'c',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage,
    ...reply,
  }),
  events: ({ usage, reply }) => [
    [
      frame({ choices: choices({ content: text }) }),
      frame({ choices: choices({}, 'stop') }),
      frame({ choices: [], usage, ...reply }),
    ],
    ['[DONE]'],
  ],
})

const gemini = (provider: Provider): UsageWire => ({
  provider,
  whole: ({ usage }) => ({ ...candidate('STOP'), ...orNothing('usageMetadata', usage) }),
  events: ({ usage }) => [
    [candidate(undefined), { ...candidate('STOP', ''), ...orNothing('usageMetadata', usage) }],
    [],
  ],
})

export const wires: Readonly<Record<(typeof wireNames)[number], UsageWire>> = {
  chat: chat(openai({ official: true })),
  compatible: chat(openai({ official: false })),
  azure: chat(azure({ apiVersion: null })),
  responses: {
    provider: openaiResponses,
    whole: ({ usage, reply }) => ({
      id: 'r',
      model: 'm',
      status: 'completed',
      output: [messageItem],
      usage,
      ...reply,
    }),
    events: given => [
      [
        { type: 'response.output_text.delta', output_index: 0, delta: text },
        { type: 'response.completed', response: wires.responses.whole(given) },
      ],
      [],
    ],
  },
  messages: {
    provider: anthropic,
    whole: ({ usage, first }) => ({
      id: 'a',
      model: 'm',
      type: 'message',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      ...orNothing('usage', usage === null ? null : { ...first, ...usage }),
    }),
    events: ({ usage, first = { input_tokens: 3, output_tokens: 1 } }) => [
      [
        { type: 'message_start', message: { id: 'a', model: 'm', content: [], usage: first } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, ...orNothing('usage', usage) },
      ],
      [{ type: 'message_stop' }],
    ],
  },
  gemini: gemini(google),
  vertex: gemini(vertex),
  converse: {
    provider: bedrock,
    whole: ({ usage, reply }) => ({
      output: { message: { role: 'assistant', content: [{ text }] } },
      stopReason: 'end_turn',
      usage,
      ...reply,
    }),
    events: ({ usage, reply }) => [
      [
        { type: 'contentBlockDelta', contentBlockIndex: 0, delta: { text } },
        { type: 'messageStop', stopReason: 'end_turn' },
        { type: 'metadata', usage, ...reply },
      ],
      [],
    ],
  },
  embeddings: {
    provider: openai({ official: true }),
    whole: ({ usage }) => ({ object: 'list', model: 'm', data: [{ index: 0, embedding: vector }], usage }),
    events: null,
  },
  'gemini embeddings': {
    provider: google,
    whole: ({ usage }) => ({ embeddings: [{ values: vector }], ...orNothing('usageMetadata', usage) }),
    events: null,
  },
}

/** Says a response to a sink. */
export type Says = (sink: AnswerSink) => void

/** Returns the ways in which a report arrives: in JSON, in a stream, and in a stream that the client left after the report. */
export function waysToSay({ provider, whole, events }: UsageWire, given: UsageCase): Readonly<Record<string, Says>> {
  if (events === null) return { json: sink => sayVectors(provider, whole(given), sink) }
  const stream =
    (isLeft: boolean): Says =>
    sink => {
      const reader = provider.streamReader()
      const [before, end] = events(given)
      for (const event of [...before, ...(isLeft ? [] : end)])
        reader.read(
          event === '[DONE]'
            ? { name: '', data: event }
            : { name: typeof event.type === 'string' ? event.type : '', data: JSON.stringify(event) },
          sink,
        )
      if (!isLeft) reader.finish(sink)
    }
  return {
    json: sink => provider.readResponse(whole(given), sink),
    stream: stream(false),
    'stream left': stream(true),
  }
}

/** Reads the vectors of one input, as an attempt does. */
function sayVectors({ embeddings }: Provider, body: Json, sink: AnswerSink): void {
  const model = toModel('relay', { id: 'm', pricing: { input_per_mtok: 1, output_per_mtok: 0 } })
  const request = { request: readNative({ prompt: 'Hi' }, new Headers(), 2), model, outputCap: 0, stream: false }
  const read = embeddings?.readVectors(body, { ...request, inputs: ['Hi'] })
  if (read === undefined || !('vectors' in read)) throw new Error('the case has no vector')
  const { inputTokens } = read
  if (inputTokens !== null) sink.reportUsage(vectorUsage(inputTokens))
}

/** Returns what a case gets wrong, one line for each way that its report arrives. */
export function usageProblems(group: Pick<UsageGroup, 'wire' | 'pricing'>, given: UsageCase): readonly string[] {
  const question = readNative({ prompt: 'Hi' }, new Headers(), 2)
  const request = given.asks === undefined ? question : { ...question, extras: { service_tier: given.asks } }
  const model = toModel('relay', { id: 'm', pricing: given.pricing ?? group.pricing })
  const startedAtMs = Date.parse(given.at ?? '2026-11-25T12:00:00Z')
  return Object.entries(waysToSay(wires[group.wire], given)).flatMap(([way, say]) => {
    const answer = new ReceivedAnswer(request)
    say(answer)
    const usage = toWhole(answer.usage)
    const found = usage === null ? { tokens: null } : { tokens: splitUsage(usage), microcents: 0 }
    if (usage !== null) found.microcents = responseCost(model, { ...answer, startedAtMs, droppedParameters: [] }, usage)
    const wanted = { tokens: given.tokens && { ...noTokens, ...given.tokens }, microcents: given.microcents }
    return Bun.deepEquals(found, wanted) ? [] : [`${way}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`]
  })
}

function toWhole(usage: ReceivedAnswer['usage']): TokenUsage | null {
  if (usage === null || usage.inputTokens === null || usage.outputTokens === null) return null
  return { ...usage, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens }
}

const noTokens = { fresh: 0, cached: 0, written: 0, hour: 0, output: 0, reasoning: 0, searches: 0 }

function splitUsage(usage: TokenUsage): typeof noTokens {
  const { cachedInputTokens: cached, cacheWriteTokens, hourCacheWriteTokens: hour = 0, providerSearches = 0 } = usage
  return {
    fresh: usage.inputTokens - cached - cacheWriteTokens,
    cached,
    written: cacheWriteTokens - hour,
    hour,
    output: usage.outputTokens,
    reasoning: usage.reasoningTokens,
    searches: providerSearches,
  }
}
