/**
 * What a response consists of, and who receives it (`ResponseSink`): texts and other parts, token counts, the start and
 * the summary of a response. Readers of providers call a sink, and writers of dialects are one.
 */

import type { ActedRule } from '../policy/rules.ts'
import type { Attempt, HedgeResult, OutputCap } from './attempts.ts'
import type {
  QueryType,
  ReasoningEffort,
  ReasoningFamily,
  ReasoningItem,
  SourceBody,
  Strategy,
  Vector,
} from './chat.ts'
import type { OmittedSource, WebSource } from './web-sources.ts'

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
  /** Of input and output, those of audio; absent = none. */
  readonly audioTokens?: number
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

/** A source that an output cites, and the part of the choice's text that it supports, in Unicode code points. */
export type CitedSource = {
  /** `http` or `https`; null = a document of the request, which only `own` describes. */
  readonly url: string | null
  readonly title: string | null
  readonly start: number
  /** Equal to `start` if no part of the text is known. */
  readonly end: number
  /** The passage of the source. */
  readonly quote?: string
}

/**
 * One text of an output, which arrives in deltas. Two deltas belong to the same text if their channel is the same object.
 * `choice` is the index among the `n` requested choices, from 0.
 */
export type TextChannel = {
  /** `tool_arguments`: JSON of a tool call, whose deltas joined are never empty: at least `{}`. */
  readonly type: 'text' | 'reasoning' | 'refusal' | 'tool_arguments'
  readonly choice: number
  /** Of the tool call; 0 = another text. */
  readonly index: number
  /** Whether OpenAI's Responses API calls it a commentary or the final answer; null = it does not say. */
  readonly phase: string | null
  /** Number of Anthropic's text block, whose citations belong to all of its text. */
  readonly block: number
}

/** The text of the first choice. Most responses have only this one. */
export const firstText: TextChannel = { type: 'text', choice: 0, index: 0, phase: null, block: 0 }

/** A part of an output beside its texts. */
type OutputPart =
  /** Starts a tool call. `index` is contiguous from 0 within its choice; `id` is unique within the response. */
  | {
      readonly type: 'tool_call'
      readonly choice: number
      readonly index: number
      readonly id: string
      readonly name: string
      readonly signature: string | null
      /** What called the tool, as Anthropic reports it: the model, or code that runs there. Absent = it does not say. */
      readonly caller?: JsonFields
    }
  | { readonly type: 'logprobs'; readonly choice: number; readonly tokens: readonly TokenLogprob[] }
  /**
   * Ends a reasoning item, whose text arrived as `reasoning` since the last such part. Contains what its
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
  /** A citation within the preceding text. `own`: the JSON of its provider, for clients of the same API form. */
  | {
      readonly type: 'citation'
      readonly choice: number
      readonly source: CitedSource
      readonly own?: { readonly dialect: SourceBody['dialect']; readonly json: string }
    }

export type InputUsage = Pick<
  TokenUsage,
  'inputTokens' | 'cachedInputTokens' | 'cacheWriteTokens' | 'hourCacheWriteTokens'
>

type JsonFields = Readonly<Record<string, unknown>>

/**
 * Fields of a response that mean nothing to the gateway, for clients of the API that its provider has. The reader accepts only known
 * fields without content. `usage` and `end` have Anthropic's names.
 */
export type ProviderFields =
  | {
      readonly form: 'openai'
      /** As reported: the bill reads it. Clients of OpenAI's forms see `shownTier` of it. */
      readonly serviceTier: string | null
      readonly systemFingerprint: string | null
      readonly acceptedPredictionTokens: number
      readonly rejectedPredictionTokens: number
    }
  | { readonly form: 'anthropic'; readonly usage: JsonFields; readonly end: JsonFields }

/** Known when the first content arrives. The response headers are built from it. */
export type ResponseStart = {
  readonly requestId: string
  /** Unix seconds. */
  readonly createdAt: number
  /** `provider/model` that serves the request. */
  readonly model: string
  readonly provider: string
  /** `provider/model` that the request named, or `gateway-ai`. */
  readonly requestedModel?: string
  /** Reasoning effort of the serving attempt; absent = the provider's default. */
  readonly effort?: ReasoningEffort
  /** Why the conversation may be a runaway; absent = it is within its bounds. */
  readonly runaway?: string
  /** How the client wrote the name of the serving model; absent = the request named no model, or another one. */
  readonly askedName?: string
  /** Rules that changed the requested model; absent = none. */
  readonly rules?: readonly ActedRule[]
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
  readonly inputUsage?: InputUsage
  /** The vectors of a request for embeddings; absent = a chat. */
  readonly vectors?: readonly Vector[]
  /** As far as known; absent = none. */
  readonly providerFields?: ProviderFields
  /** Absent = hedging was not requested. */
  readonly hedge?: HedgeResult
  /** Whether the prompt was enhanced; null = enhancement was not requested. */
  readonly enhanced: boolean | null
  /** Time spent in the gateway itself until the first content, without upstream waits. */
  readonly overheadMs: number
}

/** Where a cut text was continued: after how many characters (Unicode code points), and the `provider/model` that did. */
export type Continuation = { readonly model: string; readonly at: number }

/** An object while it is built: a field that is rarely there is cheaper to add than to spread. */
export type Built<T> = { -readonly [Key in keyof T]: T[Key] }

/**
 * Known once the request is settled: its usage record, and what no record has. It refers to the state of the request and copies
 * nothing of it.
 */
export type ResponseSummary = {
  /** The usage record, as far as clients read it. Costs are integers of 1e-8 USD. */
  readonly record: {
    readonly request_id: string
    readonly provider: string
    readonly model: string
    readonly requested_model: string
    readonly routing_mode: 'auto' | 'manual'
    readonly billed_microcents: number
    readonly search_microcents?: number
    readonly fetch_microcents?: number
    readonly hedge_microcents?: number
    readonly cache_saved_microcents?: number
    readonly trace?: { readonly e?: ReasoningEffort }
  }
  /** Of all parts of the output. The record also counts attempts without a part in it. */
  readonly usage: TokenUsage
  /** True if the gateway counted the tokens of the output because the upstream reported none. */
  readonly estimated: boolean
  /** Absent = none. */
  readonly providerFields?: ProviderFields
  /** The gateway's own cap if it truncated the output; absent = not truncated, or by the client's own cap. */
  readonly outputCap?: OutputCap
  readonly plan: {
    readonly strategy: Strategy | null
    readonly analysis: { readonly queryType: QueryType; readonly complexity?: number }
    readonly learning: { readonly influenced: boolean }
  }
  readonly progress: {
    readonly attempts: readonly Attempt[]
    /** Empty = the text was not cut. */
    readonly continued: readonly Continuation[]
    readonly enhancement: {
      readonly changed: boolean
      readonly enhancedPrompt: string
      readonly queryType: QueryType
    } | null
    /** Null = no web access. */
    readonly web: {
      readonly searched: boolean
      readonly sources: readonly WebSource[]
      /** Requested web sources that are missing, with the reason. */
      readonly leftOut: readonly OmittedSource[]
    } | null
  }
}

/**
 * Order of a response: `opened`, content, `finish` per choice, `done`. A failure after the first content throws, so `done`
 * never follows a truncated output.
 */
export type ResponsePart =
  | { readonly type: 'opened'; readonly opening: ResponseStart }
  | OutputPart
  /** Moderation stopped the output here; a `finish` with `content_filter` follows. */
  | { readonly type: 'filtered'; readonly choice: number; readonly layer: string; readonly category: string }
  /**
   * `stopSequence`: the client's stop sequence that ended the output, if the provider names it. `upstreamReason`: the
   * provider's own finish reason, if clients of its API form act on it.
   */
  | {
      readonly type: 'finish'
      readonly choice: number
      readonly reason: FinishReason
      readonly stopSequence?: string
      readonly upstreamReason?: string
    }
  | { readonly type: 'done'; readonly receipt: ResponseSummary }

/** The parts of one type. */
export type TypedPart<Type extends ResponsePart['type']> = Extract<ResponsePart, { readonly type: Type }>

/** Receives one response in order. A delta of a text is a call without an object, because most calls are deltas. */
export type ResponseSink = {
  text(channel: TextChannel, text: string): void
  add(part: ResponsePart): void
}

export type ResponseOutput = ResponseSink & {
  /**
   * Ends a batch, possibly an empty one: the parts of one upstream read travel together. Returns a promise if the client
   * reads more slowly than the upstream writes: the next batch waits for it.
   */
  flush(): Promise<void> | null
}

const fewCharacters = 4_096

/**
 * Adds pieces to a text. A piece keeps the whole read alive that it was cut from, with all of its frames, so the pieces are copied
 * whenever they have reached some length.
 */
export class TextPieces {
  /** The text before the pieces that were not copied yet. */
  private copied = ''
  private pieces = ''

  add(text: string, piece: string): string {
    if (this.pieces === '') this.copied = text
    this.pieces += piece
    if (this.pieces.length < fewCharacters) return text + piece
    // The engine joins the pieces of a text in order to search it.
    this.pieces.search(/$/)
    const longer = this.copied + this.pieces
    this.pieces = ''
    return longer
  }
}
