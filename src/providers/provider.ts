/**
 * The port of provider adapters: pure conversion between internal chat types and one upstream wire format. No fetch,
 * clock, logger or retry; `request/answer.ts` does all of that.
 */

import type { AttemptFailure } from '../core/chat/attempts.ts'
import type { ChatRequest, EmbeddingInput, SourceBody, Vector } from '../core/chat/chat.ts'
import type { FinishReason, ProviderFields, ReportedUsage, TypedPart } from '../core/chat/chat-events.ts'
import type { AutomaticCacheMarks } from '../core/chat/provider-features.ts'
import type { Model } from '../core/models/models.ts'
import type { EventReader, EventSplitter } from './sse.ts'

/** URL and credentials of a provider. Only from configuration: clients cannot set any of it. */
export type Access = {
  /** Without a trailing slash, as the official SDKs expect it. */
  readonly baseUrl: string
  readonly apiKey: string | null
  /** Additional fields of compatible requests that the operator allows. Absent = none. */
  readonly extraFields?: readonly string[]
  /** Name of the wire-format deviations of a compatible server; absent = found by its host name. */
  readonly dialect?: string
  /** Signs requests or adds a token that expires. Absent = the adapter writes the key itself. */
  readonly authorizer?: Authorizer
}

/** What an authorizer reads and changes of a request. */
export type SignableRequest = Pick<ProviderRequest, 'url' | 'headers' | 'body'>

/** Adds credentials that expire, after the adapter and before the request is sent. Shared by all requests of a provider. */
export type Authorizer = {
  /** Returns the headers of the request with its credentials; a `failure` if there are none. Never throws or rejects. */
  authorize(request: SignableRequest): Authorization | Promise<Authorization>
  /**
   * Reads an upstream's refusal of the credentials that were `sent`. Returns true if a second try with renewed ones may
   * succeed.
   */
  isRenewable(refusal: Pick<Response, 'status' | 'headers'>, sent: Readonly<Record<string, string>>): boolean
}

export type Authorization =
  | { readonly headers: Readonly<Record<string, string>> }
  | { readonly failure: ProviderFailure }

/** Input of one attempt: the chat request, the model, and the reserved output cap. */
export type AdapterRequest = {
  readonly request: ChatRequest
  readonly model: Model
  readonly outputCap: number
  readonly stream: boolean
  /** Cache marks that the gateway sets, for a provider that caches only marked input. Absent = none. */
  readonly cacheMarks?: AutomaticCacheMarks
  /** What this call embeds, token IDs only if the model accepts them; absent = the call is a chat. */
  readonly inputs?: readonly EmbeddingInput[]
}

export type ProviderRequest = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The client's parameters (wire names) that this model does not support: dropped and reported. */
  readonly droppedParameters: readonly string[]
  /** The response of a provider in this process, which is not called over the network. */
  readonly answered?: object
}

/** Who caused a failure. Decides about fallback and about the model's health. */
export type Blame = 'upstream' | 'caller' | 'us'

/** Field and code in an upstream's refusal of a request. */
export type RefusalReason = {
  /** A field of chat requests, by the gateway's name; null = none is named. */
  readonly field: string | null
  /** An unknown name. It may be shown only if the client has sent a field of this name. */
  readonly otherField: string | null
  /** The upstream's code; null = none. */
  readonly code: string | null
}

export type ProviderFailure = {
  readonly kind: AttemptFailure
  /** `us` = the gateway's credential or billing at the provider. `caller` = the request itself; never falls back. */
  readonly blame: Blame
  /** True if another candidate may succeed with the same request. */
  readonly retryable: boolean
  /** Milliseconds that the provider requests to wait; null = not stated. */
  readonly retryAfterMs: number | null
  /**
   * For the operator: status and provider error type or code. Never the upstream's free text, which may contain key
   * fragments.
   */
  readonly detail: string
  /**
   * The provider's own error body about the request, for clients of the same API form that recognize errors by their
   * text.
   */
  readonly ownBody?: string
  /** Why the provider refuses the request; absent = it does not say. */
  readonly reason?: RefusalReason
  /** True if the provider does not stream to the operator's account: without a stream, the same model may answer. */
  readonly rejectsStream?: boolean
  /** True if the provider rejects reasoning of an earlier turn: without it, the same model may answer. */
  readonly rejectsReasoning?: boolean
}

/**
 * Receives an upstream response, streamed or complete, in order: one call per part, in the terms of `ResponseSink`. It keeps what
 * readers promise (see `UpstreamResponse`), so a reader says what it reads.
 */
export type AnswerSink = {
  /** Number of parts of the output so far: a reader compares it to know whether a frame had any. */
  readonly received: number
  /** While true, parts of the output and failures are only counted: they belong to another response. */
  isMuted: boolean
  /** The upstream's own ID and the model that it reports; may repeat with better data. */
  identify(id: string | null, model: string | null): void
  /** `phase` and `block` as in `TextChannel`. */
  addText(choice: number, text: string, phase?: string | null, block?: number): void
  addReasoning(choice: number, text: string): void
  addRefusal(choice: number, text: string): void
  openCall(choice: number, index: number, call: OpenedCall): void
  addArguments(choice: number, index: number, text: string): void
  /** Parts that are rare or large, and never joined. */
  add(part: RarePart): void
  /**
   * `stopSequence`: the one that ended the output; null = one that the provider does not name; absent = none, or unknown.
   * `upstreamReason`: the provider's own finish reason, if clients of its API form act on it.
   */
  finish(choice: number, reason: FinishReason, stopSequence?: string | null, upstreamReason?: string): void
  /** Cumulative: the last one counts. `isEstimated`: the gateway counted a part of it. */
  reportUsage(usage: ReportedUsage, isEstimated?: boolean): void
  /** Cumulative: the last one counts. */
  reportFields(fields: ProviderFields): void
  giveVectors(vectors: Vectors): void
  /** The protocol's terminal event. A response without it is truncated. */
  end(): void
  /** An error frame, an unreadable frame, or a failed generation. Nothing follows it. */
  fail(failure: ProviderFailure): void
}

/** The vectors of a call in the order of its inputs; `inputTokens` null = not reported. */
export type Vectors = { readonly vectors: readonly Vector[]; readonly inputTokens: number | null }

/** A tool call without its place. */
export type OpenedCall = Omit<TypedPart<'tool_call'>, 'type' | 'choice' | 'index'>

export type RarePart = TypedPart<'logprobs' | 'reasoning_end' | 'provider_item' | 'citation'>

/** Limit of client libraries for choices and calls. */
export const maximumIndex = 127

/** Reads one stream. Synchronous and stateful: one reader per attempt. Never throws on any input. */
export type StreamReader = EventReader<AnswerSink> & {
  /** Ends the body: says what is only known now, including the end if the format allows it, or a failure. */
  finish(sink: AnswerSink): void
}

export type Provider = {
  toRequest(request: AdapterRequest, access: Access): ProviderRequest
  /** Reads a parsed JSON response with status 200. Never throws: an invalid response is a failure. */
  readResponse(body: unknown, sink: AnswerSink): void
  /**
   * Creates a stream reader. `choices` (default 1) were requested; if the end of the body is the only end, all of them
   * must have arrived.
   */
  streamReader(choices?: number): StreamReader
  /** Splits a stream's body into events; absent = Server-Sent Events. */
  readonly createSplitter?: () => EventSplitter
  /** Counts the input of a request in its own form, where the API has an endpoint for that; absent = it has none. */
  readonly count?: {
    /** null = this model has no such endpoint. */
    toRequest(source: SourceBody, model: Model, access: Access): SignableRequest | null
    /** null = not a count. */
    read(body: unknown): number | null
  }
  /** The request (GET) for the list of models, which costs nothing and needs the key; absent = the API has none. */
  readonly listModels?: (access: Access) => Pick<SignableRequest, 'url' | 'headers'>
  /** Embeds inputs; absent = no embeddings. */
  readonly embeddings?: {
    toRequest(request: AdapterRequest, access: Access): ProviderRequest
    readVectors(body: unknown, request: AdapterRequest): Vectors | ProviderFailure
  }
  /** Returns the form that answers a request for decisions; absent = no decisions. */
  readonly decisions?: (request: AdapterRequest) => Provider
  /** Reads any other status. `body` is at most the first 64 KB and may not be JSON. */
  readFailure(status: number, headers: Headers, body: string): ProviderFailure
  /** The API form that serves this request, where the provider has several; absent = it has this one. */
  formFor?(request: AdapterRequest): Provider
  /**
   * Names of tools that the upstream accepts, and their maximum length; absent = OpenAI's rule. The adapter receives only such
   * names.
   */
  readonly toolNames?: { readonly accepted: RegExp; readonly longest: number }
  /** Returns whether a service tier that a client names is sent to this model; absent = none is. */
  readonly sendsTier?: (tier: string, model: Model) => boolean
  /** Returns true for a model whose provider caches only marked input; absent = none. */
  readonly cachesMarkedInput?: (model: Pick<Model, 'id' | 'provider'>) => boolean
  /** Returns the API forms whose requests this model takes as their clients wrote them; absent = none. */
  readonly takesSource?: (model: Pick<Model, 'id' | 'provider'>) => readonly SourceBody['dialect'][]
}
