/**
 * Internal chat types: the normalized request (`ChatRequest`) and the events of a response (`ChatEvent`). Providers and
 * dialects convert wire formats to and from them.
 */

import type { FallbackPolicy } from '../validation/fallback-policy.ts'
import type { OutputCap } from './output-cap.ts'
import type { OmittedSource, WebSource } from './web-sources.ts'

/**
 * The client's mark: the provider may cache the prompt up to here for this time. Anthropic requires marks; other providers
 * cache without.
 */
export type CacheMark = '5m' | '1h'

type TextPart = { readonly type: 'text'; readonly text: string; readonly cache?: CacheMark }
/** `url` is an http(s) or a `data:` URL. */
export type ImagePart = {
  readonly type: 'image'
  readonly url: string
  readonly detail: 'auto' | 'low' | 'high' | null
  readonly cache?: CacheMark
}
/** A PDF document. `url` is a `data:` URL with base64 content. */
export type FilePart = {
  readonly type: 'file'
  readonly url: string
  readonly name: string | null
  readonly cache?: CacheMark
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
  | { readonly role: 'system'; readonly text: string; readonly cache?: CacheMark }
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
      readonly cache?: CacheMark
    }
  /** `isError`: the tool failed, and `text` describes the failure. */
  | {
      readonly role: 'tool'
      readonly callId: string
      readonly text: string
      readonly isError?: boolean
      readonly cache?: CacheMark
    }

/** `parameters` is a JSON schema; null = the function takes no arguments. */
export type Tool = {
  readonly name: string
  readonly description: string | null
  readonly parameters: Readonly<Record<string, unknown>> | null
  readonly strict: boolean | null
  readonly cache?: CacheMark
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
export const chatDialects = ['chat_completions', 'native', 'responses', 'messages'] as const
type ChatDialect = (typeof chatDialects)[number]

/** What the gateway adds to the last user turn; absent = nothing. */
export type TurnChange = {
  /** A text before the first text of the turn. */
  readonly before?: string
  /** Replaces the only text of the turn. */
  readonly text?: string
}

/**
 * The request as the client wrote it, for a provider with the same API form, which receives everything unchanged that
 * the gateway need not modify. Never stored or logged.
 */
export type SourceBody = {
  readonly dialect: 'responses' | 'messages'
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
  /** Definitions that are not among the request's tools: moderated, counted unless deferred, and sent only in the client's body. */
  readonly definitions?: readonly Readonly<Record<string, unknown>>[]
  /** Parts without a place in messages, as messages: moderated and counted like the others, and sent only in `text`. */
  readonly unread?: readonly Message[]
  /** Parts that the gateway sealed, by message and part index: never sent to a provider. */
  readonly sealed?: readonly (readonly [message: number, part: number])[]
}

/** One validated chat request, from any endpoint. Absent fields and `null` are both stored as null. */
export type ChatRequest = {
  readonly dialect: ChatDialect
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
  /** Maximum expected cost of a fallback, as a multiple of the requested model's expected cost. */
  readonly fallbackMaxCostFactor: number
  readonly web: 'auto' | 'off'
  readonly enhance: boolean
  readonly testMode: boolean
  readonly metadata: Readonly<Record<string, string>> | null
  /**
   * The client's own name for the conversation: `prompt_cache_key`, or the session header of an agent. Its requests stay
   * with the model that has their beginning cached. null = none.
   */
  readonly session: string | null
  /** Length of the request body in characters: a first estimate of its tokens. */
  readonly bodyCharacters: number
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/**
 * Token counts with the same meaning for all providers: input includes cached and cache-written tokens, output includes
 * reasoning.
 */
export type TokenUsage = {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  /** Of those written to the cache, the ones to be kept for an hour; absent = none. */
  readonly hourCacheWriteTokens?: number
  /** Searches that the provider ran on its own side; absent = none. */
  readonly providerSearches?: number
}

/**
 * Token counts reported by an upstream. Null = not reported, which is not zero: the gateway's own count is then billed.
 */
export type ReportedUsage = Omit<TokenUsage, 'inputTokens' | 'outputTokens'> & {
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  /**
   * Lower bound of the output if the upstream does not report it: the sum of its parts, or an early count of the whole.
   */
  readonly leastOutputTokens?: number
}

export type TokenLogprob = {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[] | null
  readonly top_logprobs: readonly {
    readonly token: string
    readonly logprob: number
    readonly bytes: readonly number[] | null
  }[]
}

/** Part of a streamed output. `choice` is the index among the `n` requested choices, from 0. */
export type ContentEvent =
  /** `phase`: whether OpenAI's Responses API calls it a commentary or the final answer; absent = it does not say. */
  | { readonly type: 'text'; readonly choice: number; readonly text: string; readonly phase?: string }
  | { readonly type: 'reasoning'; readonly choice: number; readonly text: string }
  | { readonly type: 'refusal'; readonly choice: number; readonly text: string }
  /** Starts a tool call. `index` is contiguous from 0 within its choice; `id` is unique within the response. */
  | {
      readonly type: 'tool_call'
      readonly choice: number
      readonly index: number
      readonly id: string
      readonly name: string
      readonly signature: string | null
    }
  /** Part of the JSON arguments of the tool call `index`. The parts joined are never empty: at least `{}`. */
  | { readonly type: 'tool_arguments'; readonly choice: number; readonly index: number; readonly text: string }
  | { readonly type: 'logprobs'; readonly choice: number; readonly tokens: readonly TokenLogprob[] }
  /**
   * Ends a reasoning item, whose text arrived in the `reasoning` events since the last such event. Contains what its
   * provider requires when it is sent back. Dialects without a field for it ignore it.
   */
  | {
      readonly type: 'reasoning_end'
      readonly choice: number
      readonly family: ReasoningFamily
      readonly kind: ReasoningItem['kind']
      readonly data: string
      readonly id: string | null
    }
  /**
   * A complete output part that only clients of one API form can read, as JSON of that form: a content block of
   * Messages (such as a provider-side tool and its result), or an output item of Responses.
   */
  | {
      readonly type: 'provider_item'
      readonly choice: number
      readonly dialect: SourceBody['dialect']
      readonly json: string
    }
  /** A citation within the preceding text, as JSON of one API form. */
  | {
      readonly type: 'citation'
      readonly choice: number
      readonly dialect: SourceBody['dialect']
      readonly json: string
    }

/** The outcome of one attempted or skipped candidate. */
export type Attempt = {
  /** `provider/model`. */
  readonly model: string
  readonly outcome: AttemptOutcome
  /** Monotonic milliseconds at which the candidate was attempted or skipped. */
  readonly startedAt: number
  /** Milliseconds until the failure or the first content. */
  readonly durationMs: number
  /** HTTP status of the upstream's response; absent or null = there was none. */
  readonly status?: number | null
  /** Host and key as the operator named them, `host#key`, for logs; absent = the provider's only key. */
  readonly via?: string
}

export const attemptFailures = [
  'rate_limited',
  'quota_exhausted',
  'overloaded',
  'unavailable',
  'credential_refused',
  'model_missing',
  'context_overflow',
  'content_filtered',
  'request_refused',
  'request_too_large',
  'timeout',
  'connection_failed',
  'bad_answer',
  'truncated',
  'empty_answer',
  'generation_failed',
] as const
export type AttemptFailure = (typeof attemptFailures)[number]

/**
 * Why a candidate was skipped when its turn came: the account cannot pay for it, its circuit is open, its cooldown has
 * not ended, its provider rejects the credential, the retry budget is exhausted, or its keys have no capacity.
 */
const attemptSkips = [
  'skipped_over_budget',
  'skipped_circuit_open',
  'skipped_cooldown',
  'skipped_provider_disabled',
  'skipped_retry_budget',
  'skipped_rate_limit',
] as const
export type AttemptSkip = (typeof attemptSkips)[number]

export const candidateOutcomes = ['served', ...attemptFailures, ...attemptSkips] as const
export type AttemptOutcome = (typeof candidateOutcomes)[number]

/** Known when the first content arrives. The response headers are built from it. */
export type ResponseStart = {
  readonly requestId: string
  /** Unix seconds. */
  readonly createdAt: number
  /** `provider/model` that serves the request. */
  readonly model: string
  readonly provider: string
  /** `provider/model` that the request named, or `gateway-ai`; absent for embeddings. */
  readonly requestedModel?: string
  readonly attempts: readonly Attempt[]
  /** Client parameters that the serving model does not support. */
  readonly droppedParameters: readonly string[]
  /** Kinds of secrets detected in the prompt; absent = none. */
  readonly secrets?: readonly string[]
  /** The output cap that the gateway set; absent = the client's own cap applies. */
  readonly outputCap?: OutputCap
  /** Web access of the request, with costs as integers of 1e-8 USD; absent = none. */
  readonly web?: {
    readonly sources: readonly WebSource[]
    readonly searchMicrocents: number
    readonly fetchMicrocents: number
  }
  /**
   * Input tokens as counted by the provider so far, or the gateway's estimate. Only for API forms that report it first.
   */
  readonly inputUsage?: Pick<TokenUsage, 'inputTokens' | 'cachedInputTokens' | 'cacheWriteTokens'>
  /** Whether the prompt was enhanced; null = enhancement was not requested. */
  readonly enhanced: boolean | null
  /** Time spent in the gateway itself until the first content, without upstream waits. */
  readonly overheadMs: number
}

/** Known once the request is settled: usage, cost and routing. Costs are integers of 1e-8 USD. */
export type ResponseSummary = {
  readonly requestId: string
  readonly model: string
  readonly provider: string
  readonly usage: TokenUsage
  /** True if the gateway counted the tokens because the upstream reported none. */
  readonly estimated: boolean
  /** The gateway's own cap if it truncated the output; absent = not truncated, or by the client's own cap. */
  readonly outputCap?: OutputCap
  readonly cost: { readonly model: number; readonly search: number; readonly fetch: number; readonly total: number }
  /**
   * What the provider's prompt cache saved, negative if writing cost more than reading saved. Absent = nothing was read
   * or written.
   */
  readonly cacheSaved?: number
  readonly routing: {
    readonly mode: 'auto' | 'manual'
    /** `provider/model` that the request named, or `gateway-ai`; absent = unknown. */
    readonly requestedModel?: string
    readonly strategy: Strategy | null
    readonly queryType: QueryType | null
    readonly complexity: number | null
    readonly learned: boolean
    readonly attempts: readonly Attempt[]
  }
  readonly enhancement: {
    readonly changed: boolean
    readonly enhancedPrompt: string
    readonly queryType: QueryType
  } | null
  readonly web: {
    readonly searched: boolean
    readonly sources: readonly WebSource[]
    /** Requested web sources that are missing, with the reason. */
    readonly leftOut: readonly OmittedSource[]
  }
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
 * What `answer()` yields, in batches: events of one upstream read travel together, since each hop through an async
 * generator costs more than the work on the event. Order: `opened`, content, `finish` per choice, `done`. A failure
 * after the first content throws, so `done` never follows a truncated output.
 */
export type ChatEvent =
  | { readonly type: 'opened'; readonly opening: ResponseStart }
  | ContentEvent
  /** Moderation stopped the output here; a `finish` with `content_filter` follows. */
  | { readonly type: 'filtered'; readonly choice: number; readonly layer: string; readonly category: string }
  /**
   * `stopSequence`: the client's stop sequence that ended the output, if the provider names it. `upstreamReason`: the
   * provider's own finish reason, if clients of its API form act on it. `endFields`: further fields of the end of a message, as JSON, for
   * clients of Messages.
   */
  | {
      readonly type: 'finish'
      readonly choice: number
      readonly reason: FinishReason
      readonly stopSequence?: string
      readonly upstreamReason?: string
      readonly endFields?: string
    }
  | { readonly type: 'done'; readonly receipt: ResponseSummary }

export type ChatEvents = AsyncGenerator<readonly ChatEvent[], void, void>
