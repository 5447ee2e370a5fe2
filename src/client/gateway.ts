/**
 * The client library of gateway-ai. No dependencies: it only uses `fetch`, streams and `AbortController`, and runs in
 * Node, Bun, Deno and browsers.
 */
import { ChatStream } from './stream.ts'
import {
  type CallOptions,
  type Credential,
  createTransport,
  type Transport,
  type TransportOptions,
} from './transport.ts'
import type {
  ChatReply,
  ChatRequest,
  DryRun,
  Enhancement,
  Estimate,
  EstimateRequest,
  FeedbackRequest,
  Learning,
  Model,
  ModelInsight,
  ModelList,
  Rated,
  Recommendation,
} from './wire.ts'

export * from './errors.ts'
export { ChatStream } from './stream.ts'
export type { CallOptions } from './transport.ts'
export type * from './wire.ts'

export type GatewayOptions = TransportOptions

/** One message of a conversation. */
export type Message = NonNullable<ChatRequest['messages']>[number]
/** A prompt, or the conversation so far. */
export type Prompt = string | readonly Message[]

/** Fields of a chat request by their wire names, and the options of any call. */
export type ChatOptions = Omit<ChatRequest, 'messages' | 'prompt' | 'stream' | 'stream_mode'> & CallOptions
export type StreamOptions = ChatOptions & Pick<ChatRequest, 'stream_mode'>
export type EstimateOptions = Omit<EstimateRequest, 'messages' | 'prompt'> & CallOptions

/**
 * Client of one gateway. Chat uses the API key; feedback and deleting learning data the session token; insights either;
 * models, estimates and enhancement need neither. All methods throw the errors of `errors.ts`.
 */
export class Gateway {
  readonly #transport: Transport
  readonly insights: Insights

  constructor(options: GatewayOptions = {}) {
    this.#transport = createTransport(options)
    this.insights = new Insights(this.#transport)
  }

  /** Returns the complete response. */
  async chat(prompt: Prompt, options: ChatOptions = {}): Promise<ChatReply> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/chat', 'key', { ...asked(prompt), ...fields }, call)
  }

  /** Returns the response as a stream. Sends the request when it is first read. */
  stream(prompt: Prompt, options: StreamOptions = {}): ChatStream {
    const { call, fields } = apart(options)
    const body = { ...asked(prompt), ...fields, stream: true }
    const outgoing = { method: 'POST', path: '/api/v1/chat', credential: 'key', body } as const
    return new ChatStream(signal => this.#transport.open(outgoing, { ...call, signal }), call.signal)
  }

  /** Returns the enhanced prompt, free of charge. */
  async enhance(prompt: string, options: CallOptions = {}): Promise<Enhancement> {
    return post(this.#transport, '/api/v1/chat/enhance', 'nobody', { prompt }, options)
  }

  /** Returns the cost of a request on the requested model and on all others, free of charge. */
  async estimate(prompt: Prompt, options: EstimateOptions = {}): Promise<Estimate> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/chat/estimate', 'nobody', { ...asked(prompt), ...fields }, call)
  }

  /** Returns every model with prices, capabilities and dates. */
  async models(options: CallOptions = {}): Promise<readonly Model[]> {
    return (await get<ModelList>(this.#transport, '/api/v1/models', 'nobody', options)).data
  }

  /** Returns the candidates of a request in order with reasons (dry run). Calls no model and costs nothing. */
  async route(prompt: Prompt, options: ChatOptions = {}): Promise<DryRun> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/route', 'key', { ...asked(prompt), ...fields }, call)
  }

  /** Rates a response by its request ID, 1 to 5. A second rating replaces the first. */
  async feedback(rating: FeedbackRequest, options: CallOptions = {}): Promise<Rated> {
    return post(this.#transport, '/api/v1/insights/feedback', 'session', rating, options)
  }
}

/** Learning data of the account. */
class Insights {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Returns all learning data. */
  learning(options: CallOptions = {}): Promise<Learning> {
    return get(this.#transport, '/api/v1/insights/learning', 'either', options)
  }

  /** Returns the results of each model by query type. */
  async models(options: CallOptions = {}): Promise<readonly ModelInsight[]> {
    return (await get<{ data: ModelInsight[] }>(this.#transport, '/api/v1/insights/models', 'either', options)).data
  }

  /** Returns recommended models with their expected effect. */
  async recommendations(options: CallOptions = {}): Promise<readonly Recommendation[]> {
    const path = '/api/v1/insights/recommendations'
    return (await get<{ data: Recommendation[] }>(this.#transport, path, 'either', options)).data
  }

  /** Deletes all learning data. Owners and admins only. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ method: 'DELETE', path: '/api/v1/insights/data', credential: 'session' }, options)
  }
}

// Responses have the types of the gateway's schemas (`wire.ts`) and are not validated again.
async function get<T>(transport: Transport, path: string, credential: Credential, call: CallOptions): Promise<T> {
  return (await transport.json({ method: 'GET', path, credential }, call)) as T
}

async function post<T>(
  transport: Transport,
  path: string,
  credential: Credential,
  body: object,
  call: CallOptions,
): Promise<T> {
  return (await transport.json({ method: 'POST', path, credential, body }, call)) as T
}

function asked(prompt: Prompt): Pick<ChatRequest, 'messages' | 'prompt'> {
  return typeof prompt === 'string' ? { prompt } : { messages: prompt }
}

/** Separates the options of a call from the fields of its body. */
function apart<T extends CallOptions>({ signal, timeoutMs, maxRetries, idempotencyKey, ...fields }: T) {
  return { call: { signal, timeoutMs, maxRetries, idempotencyKey }, fields }
}
