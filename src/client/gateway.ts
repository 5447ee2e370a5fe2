/**
 * The client library of gateway-ai. No dependency: `fetch`, streams and `AbortController` are all it needs, so it runs in Node,
 * Bun, Deno and browsers alike.
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

/** One turn of a conversation. */
export type Message = NonNullable<ChatRequest['messages']>[number]
/** A prompt, or the conversation so far. */
export type Prompt = string | readonly Message[]

/** A chat's own fields, as the wire names them, and those of any call. */
export type ChatOptions = Omit<ChatRequest, 'messages' | 'prompt' | 'stream' | 'stream_mode'> & CallOptions
export type StreamOptions = ChatOptions & Pick<ChatRequest, 'stream_mode'>
export type EstimateOptions = Omit<EstimateRequest, 'messages' | 'prompt'> & CallOptions

/**
 * A gateway, as its callers see it. Chat takes the API key, feedback and forgetting a session token, insights either; models,
 * estimates and enhancement need neither. All methods throw the errors of `errors.ts`.
 */
export class Gateway {
  readonly #transport: Transport
  readonly insights: Insights

  constructor(options: GatewayOptions = {}) {
    this.#transport = createTransport(options)
    this.insights = new Insights(this.#transport)
  }

  /** The whole answer. */
  async chat(prompt: Prompt, options: ChatOptions = {}): Promise<ChatReply> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/chat', 'key', { ...asked(prompt), ...fields }, call)
  }

  /** The answer as it comes. Nothing is asked before it is read. */
  stream(prompt: Prompt, options: StreamOptions = {}): ChatStream {
    const { call, fields } = apart(options)
    const body = { ...asked(prompt), ...fields, stream: true }
    const outgoing = { method: 'POST', path: '/api/v1/chat', credential: 'key', body } as const
    return new ChatStream(signal => this.#transport.open(outgoing, { ...call, signal }), call.signal)
  }

  /** The prompt as it could be, free of charge. */
  async enhance(prompt: string, options: CallOptions = {}): Promise<Enhancement> {
    return post(this.#transport, '/api/v1/chat/enhance', 'nobody', { prompt }, options)
  }

  /** What a request would cost, on the model it names and on every other, free of charge. */
  async estimate(prompt: Prompt, options: EstimateOptions = {}): Promise<Estimate> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/chat/estimate', 'nobody', { ...asked(prompt), ...fields }, call)
  }

  /** Every model with its prices, capabilities and dates. */
  async models(options: CallOptions = {}): Promise<readonly Model[]> {
    return (await get<ModelList>(this.#transport, '/api/v1/models', 'nobody', options)).data
  }

  /** Which models would be asked, in order and why; nothing is asked or billed. */
  async route(prompt: Prompt, options: ChatOptions = {}): Promise<DryRun> {
    const { call, fields } = apart(options)
    return post(this.#transport, '/api/v1/route', 'key', { ...asked(prompt), ...fields }, call)
  }

  /** Rates an answer, 1 to 5, by the id of its request. A second rating replaces the first. */
  async feedback(rating: FeedbackRequest, options: CallOptions = {}): Promise<Rated> {
    return post(this.#transport, '/api/v1/insights/feedback', 'session', rating, options)
  }
}

/** What was learnt of the account's requests. */
class Insights {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** All of it at once. */
  learning(options: CallOptions = {}): Promise<Learning> {
    return get(this.#transport, '/api/v1/insights/learning', 'either', options)
  }

  /** How each model did, by query type. */
  async models(options: CallOptions = {}): Promise<readonly ModelInsight[]> {
    return (await get<{ data: ModelInsight[] }>(this.#transport, '/api/v1/insights/models', 'either', options)).data
  }

  /** Models to try instead, and what to expect of that. */
  async recommendations(options: CallOptions = {}): Promise<readonly Recommendation[]> {
    const path = '/api/v1/insights/recommendations'
    return (await get<{ data: Recommendation[] }>(this.#transport, path, 'either', options)).data
  }

  /** Forgets everything learnt. Owners and admins only. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ method: 'DELETE', path: '/api/v1/insights/data', credential: 'session' }, options)
  }
}

// What the gateway answers is typed by the schemas that type it there (`wire.ts`); it is not checked once more here.
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

/** The options of any call, and the fields of the body beside them. */
function apart<T extends CallOptions>({ signal, timeoutMs, maxRetries, idempotencyKey, ...fields }: T) {
  return { call: { signal, timeoutMs, maxRetries, idempotencyKey }, fields }
}
