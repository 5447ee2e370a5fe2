/**
 * The normalized chat request (`ChatRequest`) and its parts. Dialects parse it from their API forms and providers write
 * it in theirs. `chat-events.ts` has the events of a response.
 */

import type { Demand } from '../policy/constraints.ts'
import type { RuleEffects } from '../policy/rules.ts'

/**
 * The client's mark: the provider may cache the prompt up to here for this time. Anthropic requires marks; other providers
 * cache without.
 */
export type CacheMark = '5m' | '1h'

type TextPart = { readonly type: 'text'; readonly text: string; readonly cache?: CacheMark | undefined }
export const imageDetails = ['auto', 'low', 'high', 'original'] as const
export type ImageDetail = (typeof imageDetails)[number]
/** `url` is an http(s) or a `data:` URL. */
export type ImagePart = {
  readonly type: 'image'
  readonly url: string
  readonly detail: ImageDetail | null
  readonly cache?: CacheMark | undefined
}
/** A PDF document. `url` is a `data:` URL with base64 content. */
export type FilePart = {
  readonly type: 'file'
  readonly url: string
  readonly name: string | null
  readonly cache?: CacheMark | undefined
}
export type ContentPart = TextPart | ImagePart | FilePart

/**
 * A tool call in the conversation history. `arguments` is the JSON text that the model generated; it may be invalid.
 */
export type ToolCall = {
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** Google's thought signature, required to replay the call to Google; null for other providers. */
  readonly signature: string | null
}

/**
 * Model families that can read a reasoning item again. An item is only sent back to the family that created it and
 * dropped for other models.
 */
export const reasoningFamilies = ['anthropic', 'google', 'openai', 'compatible'] as const
export type ReasoningFamily = (typeof reasoningFamilies)[number]

/** One reasoning item of an earlier turn in the form that its provider returned and requires. */
export type ReasoningItem = {
  readonly family: ReasoningFamily
  /**
   * `signature`: `text` with a proof of its origin in `data`, empty if the provider sent none. `redacted`: only `data`,
   * instead of the text. `encrypted`: an item of OpenAI's Responses API, with its summary in `text`.
   */
  readonly kind: 'signature' | 'redacted' | 'encrypted'
  readonly text: string
  readonly data: string
  /** The provider's own ID of the item; null = none. */
  readonly id: string | null
}

export type Message =
  | { readonly role: 'system'; readonly text: string; readonly cache?: CacheMark | undefined }
  | { readonly role: 'user'; readonly content: readonly ContentPart[]; readonly name: string | null }
  | {
      readonly role: 'assistant'
      readonly text: string | null
      /** Reasoning text replayed by the client (DeepSeek's `reasoning_content`). Only that format accepts it. */
      readonly reasoning: string | null
      /** Reasoning that its provider can verify, in order: before the text and the calls of its turn. */
      readonly reasoningItems?: readonly ReasoningItem[]
      readonly toolCalls: readonly ToolCall[]
      readonly name: string | null
      readonly cache?: CacheMark | undefined
    }
  /** `isError`: the tool failed, and `text` describes the failure. */
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly text: string
      readonly isError?: boolean
      readonly cache?: CacheMark | undefined
    }

/** `parameters` is a JSON schema; null = the function takes no arguments. */
export type Tool = {
  readonly name: string
  readonly description: string | null
  readonly parameters: Readonly<Record<string, unknown>> | null
  readonly strict: boolean | null
  readonly cache?: CacheMark | undefined
}

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

export type ResponseFormat =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema'
      readonly name: string
      readonly description: string | null
      readonly schema: Readonly<Record<string, unknown>>
      readonly strict: boolean | null
    }

export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
/** Ordered from none to most. A model without a level gets the nearest level that it has. */
export type ReasoningEffort = (typeof reasoningEfforts)[number]

export const strategies = ['balanced', 'quality', 'cost', 'speed'] as const
export type Strategy = (typeof strategies)[number]

export const streamModes = ['buffered', 'realtime'] as const
export type StreamMode = (typeof streamModes)[number]

/** The API forms in which chat requests are served. */
export const chatDialects = ['chat_completions', 'native', 'responses', 'messages', 'gemini'] as const
type ChatDialect = (typeof chatDialects)[number]

/** Returns whether a request is a chat: it is routed and learned from, and its output has a length worth estimating. */
export function isChat({ dialect }: Pick<ChatRequest, 'dialect'>): boolean {
  return dialect !== 'embeddings' && dialect !== 'decisions'
}

/** What the gateway adds to the last user turn; absent = nothing. */
export type TurnChange = {
  /** A text before the first text of the turn. */
  readonly before?: string
  /** Replaces the only text of the turn. */
  readonly text?: string
}

/** A part of a request beside its conversation: a definition, a setting, or what only the client's own body contains. */
export type PromptDefinition = {
  readonly role: 'definition'
  /** The request field that holds it. */
  readonly param: string
  /**
   * `definition`: written by a developer. `data`: part of the conversation that no message contains. `opaque`: reserved, but not
   * expected as input. `credentials`: read by a server only.
   */
  readonly kind: 'definition' | 'data' | 'opaque' | 'credentials'
  /** Its keys and strings. */
  readonly texts: readonly string[]
  /** Number of its JSON values. */
  readonly values: number
  readonly images: number
}

/**
 * The request as the client wrote it, for a provider with the same API form, which receives everything unchanged that
 * the gateway need not modify. Never stored or logged.
 */
export type SourceBody = {
  readonly dialect: 'responses' | 'messages' | 'gemini' | 'decisions'
  /** The JSON text as received. */
  readonly text: string
  /** The parsed body, with sealed reasoning opened. */
  readonly fields: Readonly<Record<string, unknown>>
  /**
   * The messages parsed from it, with `turn`. If a request's messages differ from these, the gateway has changed them in another way
   * (masked secrets), and the text is outdated.
   */
  readonly messages: readonly Message[]
  /** Changes to the last user turn, which a provider of this form inserts into the client's body; absent = none. */
  readonly turn?: TurnChange
  /** Request headers that belong to this API form (`anthropic-beta`, `anthropic-version`), in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Fields or item types that only a provider of the same form can serve; empty = any provider can. */
  readonly needs: readonly string[]
  /**
   * Fields that only a provider of the same form supports: dropped elsewhere, and reported in
   * `x-gateway-dropped-params`.
   */
  readonly sameFormOnly: readonly string[]
  /** Fields and beta headers that no provider receives, because they may cost more than is known: reported like dropped ones. */
  readonly refused: readonly string[]
  /** What the body contains beside the messages and tools: moderated and counted like them, and sent only to a provider of this form. */
  readonly unread: readonly PromptDefinition[]
  /** Parts that the gateway sealed, by message and part index: never sent to a provider. */
  readonly sealed?: readonly (readonly [message: number, part: number])[]
}

/** A text, or the IDs of its tokens. */
export type EmbeddingInput = string | readonly number[]

/** The inputs of a request for embeddings. */
export type EmbeddingInputs = {
  readonly inputs: readonly EmbeddingInput[]
  /** The text of each input, token IDs decoded; empty before the request is planned. */
  readonly texts: readonly string[]
  /** Probable tokens of each input; empty before the request is planned. */
  readonly tokens: readonly number[]
  /** True if the client sent one input instead of a list: errors then name `input`, otherwise `input.3`. */
  readonly isSingle: boolean
  /** null = the model's default. */
  readonly dimensions: number | null
}

export type Vector = readonly number[] | Float32Array

/** One validated chat request, from any endpoint. Absent fields and `null` are both stored as null. */
export type ChatRequest = {
  readonly dialect: ChatDialect | 'embeddings' | 'decisions'
  /** The inputs of a request for embeddings, which has no messages; absent = a chat. */
  readonly embedding?: EmbeddingInputs
  /** null = the endpoint's form is translated for every provider. */
  readonly source: SourceBody | null
  readonly messages: readonly Message[]
  /** As the client wrote it; null = automatic routing. */
  readonly model: string | null
  readonly strategy: Strategy | null
  /** null = one JSON response. */
  readonly stream: StreamMode | null
  readonly maxOutputTokens: number | null
  readonly temperature: number | null
  readonly topP: number | null
  readonly presencePenalty: number | null
  readonly frequencyPenalty: number | null
  readonly seed: number | null
  readonly logitBias: Readonly<Record<string, number>> | null
  readonly logprobs: boolean
  readonly topLogprobs: number | null
  readonly stop: readonly string[]
  /** `n`; 1 by default. */
  readonly choices: number
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | null
  readonly parallelToolCalls: boolean | null
  readonly responseFormat: ResponseFormat
  readonly reasoningEffort: ReasoningEffort | null
  /** The client's own end-user ID (`user`, `safety_identifier`). */
  readonly endUser: string | null
  /**
   * All other fields of a compatible request, by wire name. `providers/extras.ts` lists which of them each kind of
   * provider receives.
   */
  readonly extras: Readonly<Record<string, unknown>>
  readonly fallback: FallbackPolicy
  /** Which candidates may continue a text that was cut after the client received a part of it; `fallback` limits it too. Null = not set. */
  readonly continuation: FallbackPolicy | null
  /** Maximum expected cost of a fallback, as a multiple of the requested model's expected cost. */
  readonly fallbackMaxCostFactor: number
  readonly web: 'auto' | 'off'
  /** Whether a late first token may start a second model; null = the account's setting. */
  readonly hedge: boolean | null
  readonly enhance: boolean
  readonly testMode: boolean
  readonly metadata: Readonly<Record<string, string>> | null
  /** Tags of the headers (`core/request/tags.ts`); absent or null = none. */
  readonly tags?: Readonly<Record<string, string>> | null
  /**
   * The client's own name for the conversation: `prompt_cache_key`, or the session header of an agent. Its requests stay
   * with the model that has their beginning cached. null = none.
   */
  readonly session: string | null
  /** Length of the request body in characters: a first estimate of its tokens. */
  readonly bodyCharacters: number
  /** Constraints on who may receive it, of the request itself and, once it is governed, of its caller; absent = none. */
  readonly demands?: readonly Demand[]
  /** What rules did to it; absent = nothing. */
  readonly rules?: RuleEffects
}

export const queryTypes = [
  'code',
  'code_algorithm',
  'debugging',
  'analysis',
  'writing',
  'math',
  'creative',
  'planning',
  'comparison',
  'other',
] as const
export type QueryType = (typeof queryTypes)[number]

/**
 * Which candidates may answer when the first one fails. `any`: other models. `same_model`: only other hosts and keys of
 * the same model. `none`: nothing, so a request makes one call.
 */
export const fallbackPolicies = ['any', 'same_model', 'none'] as const
export type FallbackPolicy = (typeof fallbackPolicies)[number]

export const continuePolicies = ['any', 'same_model', 'off'] as const

export type ContinuePolicy = (typeof continuePolicies)[number]

/** Returns the policy of a `continue` field; null = not set. */
export function toContinuation(field: ContinuePolicy | null): FallbackPolicy | null {
  return field === 'off' ? 'none' : field
}

/** Returns the policy of a client's `fallback` field: `false` has always allowed other hosts and keys of the model. */
export function toPolicy(field: boolean | FallbackPolicy): FallbackPolicy {
  return field === true ? 'any' : field === false ? 'same_model' : field
}

/**
 * Returns the strictest of the policies of account, key and request, so that each can only narrow the others; null = not
 * set. Without any it is `any`.
 */
export function strictestPolicy(...policies: readonly (FallbackPolicy | null | undefined)[]): FallbackPolicy {
  let strictest = 0
  for (const policy of policies) if (policy != null) strictest = Math.max(strictest, fallbackPolicies.indexOf(policy))
  return fallbackPolicies[strictest] ?? 'any'
}

/** Changes of the gateway to the last user turn in a body that a provider otherwise receives as its client wrote it. */

/** Returns the request with `messages`, which differ from its own only by `change`. The client's body stays in use. */
export function withTurn(request: ChatRequest, messages: readonly Message[], change: TurnChange): ChatRequest {
  const { source } = request
  // After another change the body is outdated, and stays so.
  if (source === null || source.messages !== request.messages) return { ...request, messages }
  return { ...request, messages, source: { ...source, messages, turn: { ...source.turn, ...change } } }
}
