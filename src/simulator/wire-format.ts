/** What one simulated wire format is: it reads a request into a `Question` and writes a `Turn` as JSON or as stream frames. */

import type { FinishReason } from '../core/chat/chat.ts'
import { estimateTokens } from '../core/tokens/tokens.ts'
import type { Directives } from './directives.ts'
import type { RawRequest } from './request.ts'

export type Json = Readonly<Record<string, unknown>>

/** A chat request in no one's format. */
export type SimulatedRequest = {
  readonly model: string
  readonly stream: boolean
  readonly userTexts: readonly string[]
  /** What the model was told before any user spoke. */
  readonly instructions: string
  /** Of all texts that the provider would count: instructions, history, tools, schema; by o200k_base. */
  readonly inputTokens: number
  readonly images: number
  readonly files: number
  /** Tool results that the conversation ends with: it is the model's turn to speak about them. */
  readonly toolResults: readonly string[]
  readonly tools: readonly { readonly name: string; readonly schema: unknown }[]
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string }
  readonly parallelCalls: boolean
  /** Asked for JSON; `schema` null = any object. */
  readonly json: { readonly schema: unknown } | null
  /** How much the model thinks first; 0 = not at all. */
  readonly reasoningTokens: number
  /** The caller asked to read the thoughts. */
  readonly reasoningShown: boolean
  readonly choices: number
  readonly outputCap: number | null
  readonly stops: readonly string[]
  /** Alternatives to give for each token; null = no log probabilities. */
  readonly logprobs: number | null
  /** OpenAI: a usage chunk was asked for. */
  readonly includeUsage: boolean
  /** OpenAI: chunks carry padding. */
  readonly obfuscation: boolean
  /** Google: events, not one growing JSON array. */
  readonly events: boolean
  /** Responses: how tools were declared, by the names under which they are called here. */
  readonly declared?: ReadonlyMap<string, { readonly type: string; readonly name: string; readonly namespace?: string }>
  /** Responses: reasoning goes to the client encrypted. */
  readonly encrypts?: boolean
}

/** What one choice says. */
export type Answer = {
  readonly reasoning: string
  readonly text: string
  readonly refusal: string | null
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[]
  readonly finish: FinishReason
  readonly stopSequence: string | null
}

/** Not always a number: directives make providers lie. */
export type Count = number | string

/** `input` includes cached and cache-written tokens, `output` includes reasoning, as in `TokenUsage`. */
export type Usage = {
  readonly input: Count
  readonly cached: Count
  readonly cacheWrite: Count
  readonly output: Count
  readonly reasoning: Count
}

/** One request answered: all that a face needs to write it. */
export type SimulatedResponse = {
  readonly question: SimulatedRequest
  readonly directives: Directives
  /** One for each choice. */
  readonly answers: readonly Answer[]
  /** null = the provider gives none. */
  readonly usage: Usage | null
  /** The model that says it served. */
  readonly served: string
  /** Unix seconds. */
  readonly createdAt: number
  /** A fresh id: the prefix and so many letters and digits. */
  readonly mint: (prefix: string, length: number) => string
  /** Characters per streamed piece. */
  readonly chunkCharacters: number
}

/** One event of a stream. `part` says whether content has begun and ended: faults strike between pieces of content. */
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

/** An answer that is no completion, in the provider's words. */
export type Refusal = {
  readonly kind: 'refusal'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

export type SimulatedFormat = {
  readonly provider: 'openai' | 'anthropic' | 'google'
  readonly lineEnd: string
  readonly streamType: string
  readonly jsonType: string
  /** As large as the real provider's pieces usually are. */
  readonly chunkCharacters: number
  /** Sent while nothing is to be said; null = a comment. */
  readonly ping: Frame | null
  /** What a newer version of the API might send. */
  readonly unknownFrame: Frame
  read(
    request: RawRequest,
    body: Json,
    mint: SimulatedResponse['mint'],
  ): { readonly kind: 'question'; readonly question: SimulatedRequest } | Refusal
  headers(turn: Pick<SimulatedResponse, 'mint' | 'createdAt'>): Readonly<Record<string, string>>
  completion(turn: SimulatedResponse): unknown
  frames(turn: SimulatedResponse): Iterable<Frame>
  failure(failure: Failure, mint: SimulatedResponse['mint']): Refusal
  errorFrame(mint: SimulatedResponse['mint']): Frame
}

/** A caller's mistake, as a `Failure`. */
export function mistake(message: string, param: string | null = null, status = 400): Failure {
  return { kind: 'bad_request', status, message, param, retryAfterSeconds: null }
}

/** Tokens of JSON objects, written out. */
export function jsonTokens(values: readonly Json[]): number {
  return values.length === 0 ? 0 : estimateTokens(JSON.stringify(values))
}

/** Of an answer, about 4 characters a token, so that streams and JSON answers agree. */
export function tokensOf(text: string | number): number {
  return Math.ceil((typeof text === 'string' ? text.length : text) / 4)
}

/** Adds counts up; a count that is not a number spoils the sum, as it would at a real provider. */
export function total(...counts: readonly Count[]): Count {
  const numbers = counts.filter(count => typeof count === 'number')
  return numbers.length === counts.length ? numbers.reduce((sum, count) => sum + count, 0) : 'NaN'
}

/** Slices of so many characters, never through a surrogate pair. */
export function* slices(text: string, characters: number): Generator<string> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + Math.max(1, characters))
    const last = text.charCodeAt(end - 1)
    if (last >= 0xd800 && last < 0xdc00) end++
    yield text.slice(at, end)
    at = end
  }
}

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects among the elements; none where it is not a list. */
export function objectsIn(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isJson) : []
}

export function textOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === 'string' ? value : other
}

export function numberOr<Other>(value: unknown, other: Other): number | Other {
  return typeof value === 'number' ? value : other
}

/** The first of the fields that are not in the list; null is as good as absent. */
export function unknownField(body: Json, known: ReadonlySet<string>): string | undefined {
  return Object.keys(body).find(name => !known.has(name) && body[name] !== null)
}
