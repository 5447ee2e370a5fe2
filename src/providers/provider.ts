/**
 * What a provider adapter is: pure translation between the house's language and one upstream wire format. No fetch, clock,
 * logger or retry here; `pipeline/call.ts` owns all of it once.
 */
import type {
  AttemptFailure,
  ChatRequest,
  ContentEvent,
  FinishReason,
  ReportedUsage,
  SourceBody,
} from '../core/chat/chat.ts'
import type { Model } from '../core/models/models.ts'
import type { ServerSentEvent } from './sse.ts'

/** Where and as whom a provider is called. From configuration alone: a caller can never name any of it. */
export type Access = {
  /** Without a trailing slash, as the official SDKs take it. */
  readonly baseUrl: string
  readonly apiKey: string | null
  /** Fields of compatible requests that the operator lets through beside the usual ones. Absent = none. */
  readonly extraFields?: readonly string[]
}

/** One attempt's question: the caller's ask, the model that is to answer it, and the output cap that was reserved. */
export type ProviderAsk = {
  readonly ask: ChatRequest
  readonly model: Model
  readonly outputCap: number
  readonly stream: boolean
}

export type ProviderRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Caller's wire names of parameters this model does not take (`temperature`, `seed`, …): dropped, and said so. */
  readonly droppedParameters: readonly string[]
}

/** Whose fault a failure is decides both whether to fall back and whether the model is marked unhealthy. */
export type Blame = 'upstream' | 'caller' | 'us'

export type ProviderFailure = {
  readonly kind: AttemptFailure
  /** `us`: our credential or billing at the provider. `caller`: the request itself; never falls back. */
  readonly blame: Blame
  /** Another candidate may succeed with the same request. */
  readonly retryable: boolean
  /** How long the provider asks to be left alone; null = it did not say. */
  readonly retryAfterMs: number | null
  /** For the operator: status and provider error type or code. Never the upstream's free text: it may hold key fragments. */
  readonly detail: string
  /** The provider's own error body about the request, for clients of the same API form: they recognize errors by its words. */
  readonly ownBody?: string
}

/** What is read off an upstream answer, streamed or whole, in the order it came. */
export type AnswerPart =
  | ContentEvent
  /** The upstream's own id and the model it says served; may repeat with better knowledge. */
  | { readonly type: 'served'; readonly id: string | null; readonly model: string | null }
  | {
      readonly type: 'finish'
      readonly choice: number
      readonly reason: FinishReason
      /** The caller's stop text that ended it, where the provider says which. */
      readonly stopSequence?: string
      /** The provider's own word for the end, where clients of its API form act on it. */
      readonly upstreamReason?: string
    }
  /** Cumulative: the last one counts. */
  | { readonly type: 'usage'; readonly usage: ReportedUsage }
  /** The protocol's own end was seen. An answer without it is truncated. */
  | { readonly type: 'end' }
  /** An error frame, an unreadable frame, a failed generation. Nothing follows it. */
  | { readonly type: 'failure'; readonly failure: ProviderFailure }

/** Reads one stream. Synchronous and stateful: one reader per attempt. Never throws on any input. */
export type StreamReader = {
  read(event: ServerSentEvent): readonly AnswerPart[]
  /** The body ended. Yields what can only be known now, `end` included where the format allows it (or a `failure`). */
  finish(): readonly AnswerPart[]
}

export type Provider = {
  toRequest(ask: ProviderAsk, access: Access): ProviderRequest
  /** A whole JSON answer with status 200, parsed. Never throws: what is not an answer is one `failure` part. */
  readResponse(body: unknown): readonly AnswerPart[]
  /** `choices` were asked for, 1 unless told: where the end of the body is the end, all of them must have come. */
  streamReader(choices?: number): StreamReader
  /** Counts the input of a request in its own form, where the API has an endpoint for that; absent = it has none. */
  readonly count?: {
    toRequest(source: SourceBody, model: Model, access: Access): Omit<ProviderRequest, 'droppedParameters'>
    /** null = not a count. */
    read(body: unknown): number | null
  }
  /** Any other status. `body` is at most the first 64 KB, perhaps not JSON. */
  readFailure(status: number, headers: Headers, body: string): ProviderFailure
  /** API forms whose requests it takes as their clients wrote them; absent = none. */
  readonly takesSource?: readonly SourceBody['dialect'][]
}
