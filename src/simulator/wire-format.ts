/**
 * One simulated wire format: parses a request to a `SimulatedRequest` and writes a `SimulatedResponse` as JSON or
 * stream frames.
 */

import type { FinishReason } from '../core/chat/chat-events.ts'
import { estimateTokens } from '../text/tokens/tokens.ts'
import type { Directives } from './directives.ts'
import type { RawRequest } from './server.ts'

export type WireObject = Readonly<Record<string, unknown>>

/** A chat request independent of the wire format. */
export type SimulatedRequest = {
  readonly model: string
  readonly stream: boolean
  readonly userTexts: readonly string[]
  /** Text of the message before the last one. */
  readonly textBefore: string
  /** Input tokens that the provider would count: instructions, history, tools, schema; by o200k_base. */
  readonly inputTokens: number
  readonly images: number
  readonly files: number
  /** Tool results at the end of the conversation, which the model must answer now. */
  readonly toolResults: readonly string[]
  readonly tools: readonly { readonly name: string; readonly schema: unknown }[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly parallelCalls: boolean
  /** JSON output is requested; `schema` null = any object. */
  readonly json: { readonly schema: unknown } | null
  /** Reasoning tokens; 0 = no reasoning. */
  readonly reasoningTokens: number
  /** True if the client requested the reasoning text. */
  readonly reasoningShown: boolean
  readonly choices: number
  readonly outputCap: number | null
  readonly stops: readonly string[]
  /** Alternatives per token; null = no log probabilities. */
  readonly logprobs: number | null
  /** OpenAI: a usage chunk is requested. */
  readonly includeUsage: boolean
  /** Google: events instead of one growing JSON array. */
  readonly events: boolean
  /** Responses: how tools were declared, by the names under which they are called here. */
  readonly declared?: ReadonlyMap<string, { readonly type: string; readonly name: string; readonly namespace?: string }>
  /** Responses: reasoning goes to the client encrypted. */
  readonly encrypts?: boolean
}

/** Output of one choice. */
export type Output = {
  readonly reasoning: string
  readonly text: string
  readonly refusal: string | null
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[]
  readonly finish: FinishReason
  readonly stopSequence: string | null
}

/** As in `TokenUsage`: `input` includes cached and cache-written tokens, `output` includes reasoning. */
export type SimulatedUsage = {
  readonly input: number
  readonly cached: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
}

/** Creates a new ID: the prefix and `length` letters and digits. */
export type Mint = (prefix: string, length: number) => string

/** Everything that a wire format needs to write a response. */
export type SimulatedResponse = {
  readonly question: SimulatedRequest
  readonly directives: Directives
  /** One per choice. */
  readonly outputs: readonly Output[]
  /** null = the provider reports none. */
  readonly usage: SimulatedUsage | null
  /** The model reported as serving. */
  readonly served: string
  /** Unix seconds. */
  readonly createdAt: number
  readonly mint: Mint
  /** Characters per stream delta. */
  readonly chunkCharacters: number
}

/** One stream event. `part` tells whether content has begun and ended, since faults occur between deltas. */
export type Frame = {
  readonly part: 'opening' | 'content' | 'closing'
  readonly name: string | null
  readonly data: string
}

export type FailureKind =
  | 'by_status'
  | 'bad_request'
  | 'key_missing'
  | 'quota'
  | 'context_overflow'
  | 'content_block'
  | 'model_missing'

export type Failure = {
  readonly kind: FailureKind
  readonly status: number
  readonly message: string
  readonly param: string | null
  readonly retryAfterSeconds: number | null
}

/** An error response in the provider's format. */
export type SimulatedError = {
  readonly kind: 'refusal'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

export type SimulatedFormat = {
  readonly provider: 'openai' | 'anthropic' | 'google'
  readonly streamType: string
  readonly jsonType: string
  /** The usual delta size of the real provider. */
  readonly chunkCharacters: number
  read(
    request: RawRequest,
    body: WireObject,
    mint: Mint,
  ): { readonly kind: 'question'; readonly question: SimulatedRequest } | SimulatedError
  headers(turn: Pick<SimulatedResponse, 'mint' | 'createdAt'>): Readonly<Record<string, string>>
  completion(turn: SimulatedResponse): unknown
  frames(turn: SimulatedResponse): Iterable<Frame>
  failure(failure: Failure, mint: Mint): SimulatedError
  errorFrame(mint: Mint): Frame
  encode(frame: Frame): Uint8Array
}

/** Creates a writer of Server-Sent Events. */
export function eventWriter(lineEnd: string): SimulatedFormat['encode'] {
  return ({ name, data }) =>
    Buffer.from(`${name === null ? '' : `event: ${name}${lineEnd}`}data: ${data}${lineEnd}${lineEnd}`)
}

/** Creates a `Failure` for a client error. */
export function mistake(
  message: string,
  param: string | null = null,
  status = 400,
  kind: FailureKind = 'bad_request',
): Failure {
  return { kind, status, message, param, retryAfterSeconds: null }
}

/** The fields of a request that most wire formats lack. */
const absent = {
  textBefore: '',
  images: 0,
  files: 0,
  toolResults: [],
  tools: [],
  toolChoice: 'auto',
  parallelCalls: true,
  json: null,
  reasoningTokens: 0,
  reasoningShown: false,
  choices: 1,
  outputCap: null,
  stops: [],
  logprobs: null,
  includeUsage: true,
  events: true,
} as const satisfies Partial<SimulatedRequest>

/** Returns a request with these fields, and without what they do not mention. */
export function readAs(
  fields: Omit<SimulatedRequest, keyof typeof absent> & Partial<SimulatedRequest>,
): ReturnType<SimulatedFormat['read']> {
  return { kind: 'question', question: { ...absent, ...fields } }
}

/** Returns the stop sequences of a request: one, several or none. */
export function readStops(value: unknown): readonly string[] {
  return [value].flat().filter(stop => typeof stop === 'string')
}

/** Returns the API key of a request; empty = it has none. */
export function readKey({ headers }: RawRequest): string {
  return headers.authorization?.replace(/^Bearer +/i, '') ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? ''
}

/** Returns the tokens of serialized JSON objects. */
export function jsonTokens(values: readonly WireObject[]): number {
  return values.length === 0 ? 0 : estimateTokens(JSON.stringify(values))
}

/** Returns the tokens of an output at 4 characters per token, so that streams and JSON responses agree. */
export function countOutputTokens(text: string | number): number {
  return Math.ceil((typeof text === 'string' ? text.length : text) / 4)
}

/** Yields slices of `characters`, without splitting surrogate pairs. */
export function* slices(text: string, characters: number): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + Math.max(1, characters))
    const last = text.charCodeAt(end - 1)
    if (last >= 0xd800 && last < 0xdc00) end++
    yield text.slice(at, end)
    at = end
  }
}

export function isWireObject(value: unknown): value is WireObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects of a list; empty for other values. */
export function objectsIn(value: unknown): readonly WireObject[] {
  return Array.isArray(value) ? value.filter(isWireObject) : []
}

export function textOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === 'string' ? value : other
}

export function numberOr<Other>(value: unknown, other: Other): number | Other {
  return typeof value === 'number' ? value : other
}

/** Returns the text of content parts. */
export function joinText(parts: readonly WireObject[] = []): string {
  return parts.map(part => textOr(part.text, '')).join('')
}

/** Returns the first field that is not in the list; null counts as absent. */
export function unknownField(body: WireObject, known: ReadonlySet<string>): string | undefined {
  return Object.keys(body).find(name => !known.has(name) && body[name] !== null)
}
