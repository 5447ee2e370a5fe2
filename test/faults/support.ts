/**
 * A gateway with three scripted providers, one per wire format, and the four ways to call it. Scripts are set per test.
 * A provider without one responds normally with a text that names it, so that a test can tell which one served.
 */

import { plans } from '../../src/core/limits/plans.ts'
import type { Clock, Network } from '../../src/core/ports.ts'
import type { Deadlines } from '../../src/core/request/deadlines.ts'
import { systemClock } from '../../src/database/clock.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { untilFound } from '../harness/eventually.ts'
import { answered, type Gateway, type GatewayLimits, startGateway } from '../harness/gateway.ts'
import { startUpstream, type Upstream, type UpstreamAnswer, type UpstreamRequest } from '../harness/upstream.ts'

export const formats = ['openai', 'anthropic', 'google'] as const
export type Format = (typeof formats)[number]

/** One model of each provider with streams, complete responses, and a small output cap. */
export const models: Readonly<Record<Format, string>> = {
  openai: 'openai/gpt-4.1',
  anthropic: 'anthropic/claude-haiku-4-5',
  google: 'google/gemini-3.5-flash-lite',
}

/** Modes in which the client gets a stream, by API form. */
export const streamedModes = ['native', 'compatible', 'responses', 'messages'] as const
/**
 * All modes. `whole`: a JSON client whose small cap lets the upstream be asked for one piece; `json`: the upstream is asked to stream.
 * `responsesJson` and `messagesJson` are JSON clients of those API forms.
 */
export const modes = ['whole', 'json', ...streamedModes, 'responsesJson', 'messagesJson'] as const
export type Mode = (typeof modes)[number]

export function isStreamed(mode: Mode): boolean {
  return streamedModes.some(streamedMode => streamedMode === mode)
}

/** The error code that a stream of this mode reports for one of the gateway's codes: Responses has codes of its own. */
export function streamedCode(mode: Mode, code: string): string {
  return mode === 'responses' && code.startsWith('upstream_') ? 'server_error' : code
}

export type Script = (request: UpstreamRequest) => UpstreamAnswer | Promise<UpstreamAnswer>

/** In every scripted body other than a response: neither a client nor a log may ever show it. */
export const canary = 'sk-canary-7f3d9b'

// ─── Responses of providers
// ───────────────────────────────────────────────────────────────────────────────────────────

export type Counts = { readonly input: unknown; readonly output: unknown; readonly cacheWrite?: number }

const usualCounts: Counts = { input: 20, output: 7 }

/**
 * A stream by its parts: `opening` without content; `closing` has the finish reason, the counts and the terminal event.
 */
export type Frames = { readonly opening: string[]; readonly content: string[]; readonly closing: string[] }

export function getFrames(
  format: Format,
  pieces: readonly string[],
  counts: Counts | null = usualCounts,
  finish: 'stop' | 'length' | 'content_filter' = 'stop',
  model = bareName(format),
): Frames {
  switch (format) {
    case 'openai': {
      const chunk = (choices: unknown[], usage?: unknown) =>
        `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, ...(usage === undefined ? {} : { usage }) })}\n\n`
      const delta = (content: object, reason: string | null = null) => [
        { index: 0, delta: content, finish_reason: reason },
      ]
      return {
        opening: [chunk(delta({ role: 'assistant', content: '' }))],
        content: pieces.map(content => chunk(delta({ content }))),
        closing: [
          chunk(delta({}, finish)),
          ...(counts === null ? [] : [chunk([], openaiUsage(counts))]),
          'data: [DONE]\n\n',
        ],
      }
    }
    case 'anthropic': {
      const event = (type: string, rest: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`
      const usage = counts === null ? {} : { usage: { ...anthropicInput(counts), output_tokens: 1 } }
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model, content: [], ...usage }
      return {
        opening: [
          event('message_start', { message }),
          event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
        ],
        content: pieces.map(text => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
        closing: [
          event('content_block_stop', { index: 0 }),
          event('message_delta', {
            delta: { stop_reason: anthropicReasons[finish] },
            ...(counts === null ? {} : { usage: { output_tokens: counts.output } }),
          }),
          event('message_stop', {}),
        ],
      }
    }
    case 'google': {
      const chunk = (candidate: object, usage?: unknown) =>
        `data: ${JSON.stringify({ candidates: [{ index: 0, ...candidate }], modelVersion: model, responseId: 'r1', ...(usage === undefined ? {} : { usageMetadata: usage }) })}\r\n\r\n`
      return {
        opening: [],
        content: pieces.map(text => chunk({ content: { role: 'model', parts: [{ text }] } })),
        closing: [
          chunk(
            { content: { role: 'model', parts: [{ text: '' }] }, finishReason: googleReasons[finish] },
            counts === null ? undefined : googleUsage(counts),
          ),
        ],
      }
    }
  }
}

const anthropicReasons = { stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' }
const googleReasons = { stop: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' }
const openaiUsage = ({ input, output, cacheWrite = 0 }: Counts) => ({
  prompt_tokens: input,
  completion_tokens: output,
  prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: cacheWrite },
})
const anthropicInput = ({ input, cacheWrite = 0 }: Counts) => ({
  input_tokens: typeof input === 'number' ? input - cacheWrite : input,
  cache_creation_input_tokens: cacheWrite,
})
const googleUsage = ({ input, output }: Counts) => ({ promptTokenCount: input, candidatesTokenCount: output })

export function streamText({ opening, content, closing }: Frames): string {
  return [...opening, ...content, ...closing].join('')
}

/** Returns a complete response in each format's JSON. */
export function writeWholeAnswer(
  format: Format,
  text: string,
  counts: Counts | null = usualCounts,
  finish: 'stop' | 'length' | 'content_filter' = 'stop',
  model = bareName(format),
): object {
  switch (format) {
    case 'openai':
      return {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: finish }],
        ...(counts === null ? {} : { usage: openaiUsage(counts) }),
      }
    case 'anthropic':
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model,
        content: text === '' ? [] : [{ type: 'text', text }],
        stop_reason: anthropicReasons[finish],
        ...(counts === null ? {} : { usage: { ...anthropicInput(counts), output_tokens: counts.output } }),
      }
    case 'google':
      return {
        candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason: googleReasons[finish] }],
        modelVersion: model,
        ...(counts === null ? {} : { usageMetadata: googleUsage(counts) }),
      }
  }
}

/** Returns an error frame inside a stream of status 200. */
export function errorFrame(format: Format): string {
  switch (format) {
    case 'openai':
      return `data: ${JSON.stringify({ error: { message: canary, type: 'server_error', code: null } })}\n\n`
    case 'anthropic':
      return `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message: canary } })}\n\n`
    case 'google':
      return `data: ${JSON.stringify({ error: { code: 500, message: canary, status: 'INTERNAL' } })}\r\n\r\n`
  }
}

export function asksForStream(format: Format, request: UpstreamRequest): boolean {
  if (format === 'google') return request.path.includes('streamGenerateContent')
  return (JSON.parse(request.body) as { stream?: boolean }).stream === true
}

const bareName = (format: Format) => models[format].split('/')[1] ?? ''

/** Returns the model that a request names. */
export function modelAsked(format: Format, request: UpstreamRequest): string {
  if (format === 'google') return /models\/([^:]+):/.exec(request.path)?.[1] ?? ''
  return (JSON.parse(request.body) as { model: string }).model
}

export const eventStream = { 'content-type': 'text/event-stream' } as const

/** Returns a valid response in the requested form. */
export function goodAnswer(
  format: Format,
  request: UpstreamRequest,
  text = servedBy(format),
  counts: Counts | null = usualCounts,
): UpstreamAnswer {
  const model = modelAsked(format, request)
  if (asksForStream(format, request)) {
    const pieces = [text.slice(0, 4), text.slice(4)]
    return {
      headers: eventStream,
      framing: 'chunked',
      pieces: [streamText(getFrames(format, pieces, counts, 'stop', model))],
    }
  }
  const whole = writeWholeAnswer(format, text, counts, 'stop', model)
  return { headers: { 'content-type': 'application/json' }, pieces: [JSON.stringify(whole)] }
}

/** Returns the total number of requests that the provider received. */
export function requestsTo(rig: Rig, format: Format): number {
  return (rig.upstreams[format].ledger().at(-1)?.index ?? -1) + 1
}

export const servedBy = (format: Format) => `This came from ${format}.`

// ─── The setup
// ────────────────────────────────────────────────────────────────────────────────────────────────────────

export type Rig = {
  readonly gateway: Gateway
  readonly upstreams: Readonly<Record<Format, Upstream>>
  /** Sets the provider's script; null = normal responses. */
  play(format: Format, script: Script | null): void
  /** Sends the provider's calls to this address (null = its own), or to a host that never connects. */
  divert(format: Format, to: string | 'hole' | null): void
  /** Wraps the answers to calls, by the body of the call. */
  watch(wrap: (body: string, response: Response) => Response): void
  /** Lets all health failures expire. */
  heal(): void
  /** Makes the deadlines for upstreams short, for tests whose subject is a wait, or long again. */
  waitBriefly(isBrief: boolean): void
  /** Advances the gateway's monotonic clock. */
  advance(milliseconds: number): void
  send(mode: Mode, options?: AskOptions): Promise<Reply>
  /** Waits for a request's ledger row by its ID or tag. */
  row(idOrTag: string): Promise<Row>
  stop(): Promise<void>
}

export type AskOptions = {
  /** null = automatic routing. */
  readonly model?: string | null
  readonly fallback?: boolean
  readonly maxTokens?: number | null
  readonly prompt?: string
  readonly signal?: AbortSignal
  /** Called when the first bytes of the body arrive. */
  readonly heard?: () => void
  /** Stored in the ledger, so that a request without a response can be found there. */
  readonly tag?: string
}

export type Row = {
  readonly status: string
  readonly error_code: string | null
  readonly finish_reason: string | null
  readonly provider: string
  readonly input_tokens: number
  readonly output_tokens: number
  readonly estimated: boolean
  readonly billed_microcents: number
  readonly reserved_microcents: number
  readonly attempts: number
}

export type RigOptions = {
  readonly environment?: Readonly<Record<string, string>>
  readonly limits?: GatewayLimits
  readonly configured?: readonly Format[]
  /** Default: the system's. */
  readonly network?: Network
  /** Settings of the configuration file. */
  readonly file?: object
}

/** Deadlines that no pause of a busy machine exceeds. `environment` overrides them. */
const longDeadlines = {
  CONNECT_TIMEOUT_MS: '20000',
  FIRST_BYTE_TIMEOUT_MS: '20000',
  FIRST_CONTENT_TIMEOUT_MS: '20000',
  SILENCE_TIMEOUT_MS: '20000',
}
/** Long enough for a healthy upstream beside the silent one. */
const briefDeadlines: Partial<Deadlines> = { connectMs: 600, firstByteMs: 900, firstContentMs: 1_100, silenceMs: 900 }

const keyNames = { openai: 'OPENAI', anthropic: 'ANTHROPIC', google: 'GEMINI' } as const
const paths = { openai: '/v1', anthropic: '', google: '' } as const

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const scripts = new Map<Format, Script>()
  const upstream = (format: Format) =>
    startUpstream(request => (scripts.get(format) ?? (asked => goodAnswer(format, asked)))(request))
  const upstreams = { openai: upstream('openai'), anthropic: upstream('anthropic'), google: upstream('google') }
  const diverted = new Map<string, string>()
  let aheadMs = 0
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const beneath = options.network ?? systemNetwork
  let wrap: Parameters<Rig['watch']>[0] = (_, response) => response
  const network: Network = {
    async fetch(url, init) {
      const { origin } = new URL(url)
      const to = diverted.get(origin) ?? origin
      if (to === 'hole') return neverConnected(init.signal)
      return wrap(String(init.body), await beneath.fetch(url.replace(origin, to), init))
    },
    reaches: async (url, timeoutMs) => diverted.get(new URL(url).origin) !== 'hole' && beneath.reaches(url, timeoutMs),
  }
  const configured = options.configured ?? formats
  const providers = configured.flatMap(format => [
    [`${keyNames[format]}_API_KEY`, `key-of-${format}`],
    [`${keyNames[format]}_BASE_URL`, upstreams[format].url + paths[format]],
  ])
  const gateway = await startGateway(
    // Absurd upstream counts are a subject here and must not pause an account.
    { ...Object.fromEntries(providers), ...longDeadlines, MAX_SHORTFALL_USD: '20000000', ...options.environment },
    { clock, network, ...(options.limits && { limits: options.limits }), ...(options.file && { file: options.file }) },
  )
  // Else the first request waits for the key and for the account's day, and is answered 503 on a busy machine.
  await answered(async () => gateway.deps.keys.find(gateway.key))
  await answered(() => gateway.deps.meter.loadStatus(gateway.accountId, plans.usage))
  const { deadlines } = gateway.deps.config
  const configuredDeadlines = { ...deadlines }

  return {
    gateway,
    upstreams,
    play(format, script) {
      if (script === null) scripts.delete(format)
      else scripts.set(format, script)
    },
    divert(format, to) {
      if (to === null) diverted.delete(upstreams[format].url)
      else diverted.set(upstreams[format].url, to)
    },
    watch(wraps) {
      wrap = wraps
    },
    heal() {
      aheadMs += 600_000
      for (const model of gateway.deps.catalog.list)
        gateway.deps.health.report(`${model.provider}/${model.id}`, { outcome: 'ok' })
    },
    waitBriefly(isBrief) {
      Object.assign(deadlines, isBrief ? briefDeadlines : configuredDeadlines)
    },
    advance(milliseconds) {
      aheadMs += milliseconds
    },
    send: (mode, asked = {}) => send(gateway, mode, asked),
    row: idOrTag => getRow(gateway, idOrTag),
    async stop() {
      await gateway.stop()
      for (const item of Object.values(upstreams)) item.stop()
    },
  }
}

function neverConnected(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_, reject) => {
    const refuse = () => reject(new DOMException('aborted', 'AbortError'))
    if (signal?.aborted) refuse()
    signal?.addEventListener('abort', refuse)
  })
}

/** A client's view of a response, independent of its form. */
export type Reply = {
  readonly httpStatus: number
  readonly headers: Headers
  /** Everything received, to search for forbidden text. */
  readonly raw: string
  readonly requestId: string
  readonly text: string
  /** null = no response began. */
  readonly model: string | null
  /** `model outcome`, if the format reports them. */
  readonly attempts: readonly string[] | null
  readonly finishReason: string | null
  readonly errors: readonly { readonly code: string; readonly type: string }[]
  /** `done`, `[DONE]`, or the complete body: number of reported ends. */
  readonly endings: number
  readonly usage: { readonly input: number; readonly output: number; readonly estimated: boolean | null } | null
}

export function bodyFor(mode: Mode, options: AskOptions): { path: string; body: object } {
  const prompt = options.prompt ?? 'Say who you are.'
  const cap = options.maxTokens ?? (mode === 'whole' ? 64 : null)
  const rest = {
    ...(options.fallback === undefined ? {} : { fallback: options.fallback }),
    ...(options.tag === undefined ? {} : { metadata: { tag: options.tag } }),
  }
  const model = options.model === null ? {} : { model: options.model }
  if (mode === 'responses' || mode === 'responsesJson') {
    const capped = cap === null ? {} : { max_output_tokens: cap }
    const stream = mode === 'responses' ? { stream: true, stream_mode: 'realtime' } : {}
    return {
      path: '/v1/responses',
      body: { model: options.model ?? 'gateway-ai', input: prompt, ...stream, ...capped, ...rest },
    }
  }
  if (mode === 'messages' || mode === 'messagesJson') {
    const stream = mode === 'messages' ? { stream: true, stream_mode: 'realtime' } : {}
    const messages = [{ role: 'user', content: prompt }]
    // This form requires a cap: one that the models of the rig all have.
    const body = { model: options.model ?? 'gateway-ai', max_tokens: cap ?? 8192, messages, ...stream, ...rest }
    return { path: '/v1/messages', body }
  }
  if (mode === 'compatible') {
    return {
      path: '/v1/chat/completions',
      body: {
        model: options.model ?? 'gateway-ai',
        messages: [{ role: 'user', content: prompt }],
        stream: true,
        stream_options: { include_usage: true },
        ...(cap === null ? {} : { max_tokens: cap }),
        ...rest,
        stream_mode: 'realtime',
      },
    }
  }
  const streamed = mode === 'native' ? { stream: true, stream_mode: 'realtime' } : {}
  const capped = cap === null ? {} : { max_output_tokens: cap }
  return { path: '/api/v1/chat', body: { prompt, ...model, ...streamed, ...capped, ...rest } }
}

async function send(gateway: Gateway, mode: Mode, options: AskOptions): Promise<Reply> {
  const { path, body } = bodyFor(mode, options)
  const response = await gateway.post(path, body, {}, options.signal)
  const text = await readText(response, options.heard)
  if (path === '/v1/responses') return readResponsesReply(response.status, response.headers, text)
  if (path === '/v1/messages') return readMessagesReply(response.status, response.headers, text)
  return readReply(response.status, response.headers, text)
}

async function readText(response: Response, heard: AskOptions['heard']): Promise<string> {
  if (heard === undefined || response.body === null) return response.text()
  const pieces: Uint8Array[] = []
  for await (const bytes of response.body) {
    heard()
    pieces.push(bytes)
  }
  return Buffer.concat(pieces).toString()
}

type Wire = {
  readonly type?: string
  readonly content?: string
  readonly output?: string
  readonly model?: string
  readonly model_used?: string
  readonly request_id?: string
  readonly finish_reason?: string | null
  readonly error?: { readonly code: string; readonly type: string }
  readonly routing?: { readonly attempts: readonly { readonly model: string; readonly outcome: string }[] }
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null }
    readonly finish_reason?: string | null
  }[]
  readonly usage?: Readonly<Record<string, unknown>> | null
}

/** Reads a response of either endpoint, as one body or as events. */
export function readReply(httpStatus: number, headers: Headers, raw: string): Reply {
  const isStream = (headers.get('content-type') ?? '').includes('event-stream')
  const payloads = isStream
    ? raw
        .split('\n\n')
        .filter(frame => frame.startsWith('data: '))
        .map(frame => frame.slice(6))
    : [raw]
  const wires = payloads.filter(payload => payload !== '[DONE]').map(payload => JSON.parse(payload) as Wire)
  const done = wires.find(wire => wire.type === 'done' || wire.output !== undefined)
  const usage = wires.findLast(wire => wire.usage)?.usage ?? null
  const count = (...names: string[]) => Number(names.map(name => usage?.[name]).find(value => value !== undefined))
  return {
    httpStatus,
    headers,
    raw,
    requestId: headers.get('x-request-id') ?? '',
    text: wires.map(wire => wire.output ?? wire.content ?? wire.choices?.[0]?.delta?.content ?? '').join(''),
    model: done?.model_used ?? wires.find(wire => wire.model !== undefined)?.model ?? headers.get('x-gateway-model'),
    attempts: done?.routing?.attempts.map(({ model, outcome }) => `${model} ${outcome}`) ?? null,
    finishReason:
      done?.finish_reason ?? wires.map(wire => wire.choices?.[0]?.finish_reason).find(reason => reason != null) ?? null,
    errors: wires.flatMap(wire => (wire.error === undefined ? [] : [wire.error])),
    endings: payloads.filter(payload => payload === '[DONE]').length + (done === undefined ? 0 : 1),
    usage:
      usage === null
        ? null
        : {
            input: count('input_tokens', 'prompt_tokens'),
            output: count('output_tokens', 'completion_tokens'),
            estimated: typeof usage.estimated === 'boolean' ? usage.estimated : null,
          },
  }
}

/** The JSON of each event of a stream, or of the one body. */
function getPayloads(headers: Headers, raw: string): readonly Record<string, unknown>[] {
  const isStream = (headers.get('content-type') ?? '').includes('event-stream')
  const texts = isStream ? [...raw.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data) : [raw]
  return texts.map(text => JSON.parse(text) as Record<string, unknown>)
}

type ResponsesWire = {
  readonly type?: string
  readonly delta?: string
  readonly error?: { readonly code: string; readonly type: string } | null
  readonly response?: ResponseObject
} & Partial<ResponseObject>

type ResponseObject = {
  readonly object: 'response'
  readonly status: string
  readonly model: string
  readonly error: { readonly code: string; readonly type: string } | null
  readonly incomplete_details: { readonly reason: string } | null
  readonly output: readonly { readonly content?: readonly { readonly text?: string }[] }[]
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number } | null
}

const responseEnds: Readonly<Record<string, string>> = { max_output_tokens: 'length', content_filter: 'content_filter' }

/** Reads what was sent in the form of Responses. */
export function readResponsesReply(httpStatus: number, headers: Headers, raw: string): Reply {
  const wires = getPayloads(headers, raw) as readonly ResponsesWire[]
  const [first] = wires
  const isBody = first?.object === 'response'
  const terminals = wires.filter(({ type }) => type === 'response.completed' || type === 'response.incomplete')
  const ended = isBody ? (first as ResponseObject) : (terminals[0]?.response ?? null)
  const failed = wires.find(({ type }) => type === 'response.failed')?.response?.error ?? null
  const refused = !isBody && first?.type === undefined ? (first?.error ?? null) : null
  const deltas = wires.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('')
  const whole = ended?.output.flatMap(({ content = [] }) => content.map(({ text = '' }) => text)).join('') ?? ''
  return {
    httpStatus,
    headers,
    raw,
    requestId: headers.get('x-request-id') ?? '',
    text: isBody ? whole : deltas,
    model: ended?.model ?? wires.find(({ response }) => response !== undefined)?.response?.model ?? null,
    attempts: null,
    finishReason: ended === null ? null : (responseEnds[ended.incomplete_details?.reason ?? ''] ?? 'stop'),
    errors: [failed, refused].filter(error => error !== null),
    endings: isBody ? 1 : terminals.length,
    usage:
      ended?.usage == null
        ? null
        : { input: ended.usage.input_tokens, output: ended.usage.output_tokens, estimated: null },
  }
}

type MessageUsage = {
  readonly input_tokens?: number
  readonly cache_creation_input_tokens?: number
  readonly cache_read_input_tokens?: number
  readonly output_tokens: number
}

type MessagesWire = {
  readonly type: string
  readonly error?: { readonly code: string; readonly type: string }
  readonly message?: { readonly model: string; readonly usage: MessageUsage }
  readonly delta?: { readonly text?: string; readonly stop_reason?: string | null }
  readonly model?: string
  readonly content?: readonly { readonly text?: string }[]
  readonly stop_reason?: string | null
  readonly usage?: MessageUsage
}

const messageEnds: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  max_tokens: 'length',
  refusal: 'content_filter',
  tool_use: 'tool_calls',
}

/** Reads what was sent in the form of Messages. */
export function readMessagesReply(httpStatus: number, headers: Headers, raw: string): Reply {
  const wires = getPayloads(headers, raw) as readonly MessagesWire[]
  const body = wires.find(({ type }) => type === 'message')
  const reason = body?.stop_reason ?? wires.find(({ delta }) => delta?.stop_reason)?.delta?.stop_reason ?? null
  const last = wires.findLast(({ type }) => type === 'message_delta')
  const start = wires.find(({ message }) => message !== undefined)?.message
  const usage = body?.usage ?? (last === undefined ? null : { ...start?.usage, ...last.usage })
  const { input_tokens = 0, cache_creation_input_tokens = 0, cache_read_input_tokens = 0 } = usage ?? {}
  return {
    httpStatus,
    headers,
    raw,
    requestId: headers.get('x-request-id') ?? '',
    text:
      body === undefined
        ? wires.map(({ delta }) => delta?.text ?? '').join('')
        : (body.content ?? []).map(({ text = '' }) => text).join(''),
    model: body?.model ?? start?.model ?? null,
    attempts: null,
    finishReason: reason === null ? null : (messageEnds[reason] ?? reason),
    errors: wires.flatMap(({ error }) => (error === undefined ? [] : [error])),
    endings: wires.filter(({ type }) => type === 'message_stop' || type === 'message').length,
    usage:
      usage === null
        ? null
        : {
            input: input_tokens + cache_creation_input_tokens + cache_read_input_tokens,
            output: usage.output_tokens ?? 0,
            estimated: null,
          },
  }
}

function getRow(gateway: Gateway, idOrTag: string): Promise<Row> {
  return untilFound(async () => {
    const rows = await gateway.deps.database.run(
      ({ sql }) => sql<Row[]>`
        select status, error_code, finish_reason, provider, input_tokens::float8, output_tokens::float8, estimated,
               billed_microcents::float8, reserved_microcents::float8, attempts
        from usage_records where request_id = ${idOrTag} or metadata->>'tag' = ${idOrTag}`,
    )
    if (rows.length > 1) throw new Error(`${rows.length} rows for ${idOrTag}`)
    return rows[0]
  })
}

/** Returns the open reservations of the setup's account. */
export function reservationsTaken({ gateway }: Rig): number {
  const limits = { requestsPerMinute: 0, concurrentRequests: 1_000_000, dailyTokens: 0, dailyCostMicrocents: 0 }
  const quotaStatus = gateway.deps.meter.quotaStatus(gateway.accountId, limits)
  return quotaStatus === null ? 0 : quotaStatus.reservations.limit - quotaStatus.reservations.remaining
}
