/**
 * The part of a chat request with the same meaning on all endpoints: its fields as schemas, and their conversion to a
 * `ChatRequest`. Compatible endpoints allow unknown fields in objects and the native one does not, hence the factories.
 */
import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import {
  type CacheMark,
  type ChatRequest,
  type ContentPart,
  type Message,
  type ResponseFormat,
  reasoningEfforts,
  strategies,
  streamModes,
  type Tool,
  type ToolCall,
  type ToolChoice,
} from '../chat/chat.ts'
import { autoModel } from '../models/models.ts'
import { fallbackPolicies, toPolicy } from '../validation/fallback-policy.ts'
import { forwardableAddress } from '../validation/public-address.ts'
import { headerChoice, headerFlag, headerNumber, invalidField, nullable, oneOf } from '../validation/validate.ts'
import { cacheMarkOf, cacheMarkSchema, type WireCacheMark } from './cache-mark.ts'
import { sessionNameOf } from './session-name.ts'

/** Enough for the conversations of coding agents; the body limit bounds the size. */
export const maximumMessages = 10_000
export const maximumTools = 1024

/** Default cost limit of fallbacks, as a multiple of the requested model's expected cost. */
const usualFallbackCostFactor = 3
export const fallbackCostFactors = { minimum: 1, maximum: 1000 } as const

/** Returns a chat request with defaults for all fields but `fields`: no fallback, no web access. */
export function chatRequestWithDefaults(messages: readonly Message[], fields: Partial<ChatRequest> = {}): ChatRequest {
  return {
    dialect: 'native',
    source: null,
    messages,
    model: null,
    strategy: null,
    stream: null,
    maxOutputTokens: null,
    temperature: null,
    topP: null,
    presencePenalty: null,
    frequencyPenalty: null,
    seed: null,
    logitBias: null,
    logprobs: false,
    topLogprobs: null,
    stop: [],
    choices: 1,
    tools: [],
    toolChoice: null,
    parallelToolCalls: null,
    responseFormat: { type: 'text' },
    reasoningEffort: null,
    endUser: null,
    extras: {},
    fallback: 'same_model',
    fallbackMaxCostFactor: usualFallbackCostFactor,
    web: 'off',
    enhance: false,
    testMode: false,
    metadata: null,
    session: null,
    bodyCharacters: 0,
    ...fields,
  }
}

/** Chat text. Bounded only by the body limit (8 MB, 32 MB with images). */
export const bodyText = Type.String({ boundedBy: 'body' })

/** URL of an image. A `data:` URL contains the image, so only the body limit bounds it. */
export const imageAddress = Type.String({
  boundedBy: 'body',
  pattern: '^(?:[hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)',
  description: 'an http, https or data: address',
})

function closedOrOpen(additionalProperties: boolean): <P extends TProperties>(properties: P) => TObject<P> {
  return properties => Type.Object(properties, { additionalProperties })
}

/** Returns the schema of a document. There is no file storage for clients, so `file_id` is not supported. */
export function filePartSchema(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  return object({
    type: Type.Literal('file'),
    file: object({
      file_id: Type.Optional(
        Type.Null({ unmatched: 'unsupported_parameter', description: 'omitted: send the document in `file_data`' }),
      ),
      file_data: nullable(
        Type.String({
          boundedBy: 'body',
          pattern: '^[dD][aA][tT][aA]:[aA][pP][pP][lL][iI][cC][aA][tT][iI][oO][nN]/[pP][dD][fF];[bB][aA][sS][eE]64,',
          description: 'a PDF document as a `data:application/pdf;base64,` address',
          unmatched: 'unsupported_parameter',
        }),
      ),
      filename: nullable(Type.String({ maxLength: 256 })),
    }),
    cache_control: cacheMarkSchema(additionalProperties),
  })
}

export const functionName = Type.String({
  maxLength: 64,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'a name of 1 to 64 letters, digits, `_` or `-`',
})

export const callId = Type.String({ minLength: 1, maxLength: 512 })

/** Returns the schema of a tool call in the conversation history, with Google's signature if present. */
export function toolCallSchema(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  const google = object({ thought_signature: nullable(bodyText) })
  return object({
    id: callId,
    // Some clients omit it in the history: there is only one type of call.
    type: nullable(oneOf(['function'], 'unsupported_parameter')),
    function: object({ name: functionName, arguments: bodyText }),
    extra_content: nullable(object({ google: nullable(google) })),
  })
}

/** Returns the schemas of the shared fields. `additionalProperties` applies to every nested object. */
export function chatRequestFields(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  const jsonSchema = Type.Object({}, { additionalProperties: true })
  const named = object({ type: oneOf(['function'], 'unsupported_parameter'), function: object({ name: functionName }) })
  return {
    model: nullable(Type.String({ minLength: 1, maxLength: 256 })),
    mode: nullable(oneOf([autoModel])),
    strategy: nullable(oneOf(strategies)),
    stream: nullable(Type.Boolean()),
    stream_mode: nullable(oneOf(streamModes)),
    enhance_prompt: nullable(Type.Boolean()),
    test_mode: nullable(Type.Boolean()),
    fallback: nullable(
      Type.Union([Type.Boolean(), oneOf(fallbackPolicies)], {
        description:
          '`any` or true: other models may answer if the first one fails. `same_model` or false: only other hosts and keys of the same model. `none`: one call. The strictest of request, key and account applies.',
      }),
    ),
    fallback_max_cost_factor: nullable(
      Type.Number({
        ...fallbackCostFactors,
        description: `how many times the expected cost of the named model its fallbacks may cost, ${usualFallbackCostFactor} by default`,
      }),
    ),
    web: nullable(oneOf(['auto', 'off'])),
    metadata: nullable(
      Type.Record(Type.String({ pattern: '^[\\s\\S]{1,64}$' }), Type.String({ maxLength: 512 }), {
        additionalProperties: false,
        maxProperties: 16,
        description: 'an object of at most 16 strings, names up to 64 and values up to 512 characters',
      }),
    ),
    max_output_tokens: nullable(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })),
    temperature: nullable(Type.Number({ minimum: 0, maximum: 2 })),
    top_p: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    seed: nullable(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 })),
    stop: nullable(
      Type.Union([Type.String({ maxLength: 1024 }), Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 4 })]),
    ),
    reasoning_effort: nullable(oneOf(reasoningEfforts)),
    tools: nullable(
      Type.Array(
        object({
          type: oneOf(['function'], 'unsupported_parameter'),
          function: object({
            name: functionName,
            description: nullable(bodyText),
            parameters: nullable(jsonSchema),
            strict: nullable(Type.Boolean()),
          }),
          cache_control: cacheMarkSchema(additionalProperties),
        }),
        { maxItems: maximumTools },
      ),
    ),
    tool_choice: nullable(
      Type.Union([
        oneOf(['auto', 'none', 'required']),
        named,
        object({
          type: Type.Literal('allowed_tools'),
          allowed_tools: object({
            mode: oneOf(['auto', 'required']),
            tools: Type.Array(named, { minItems: 1, maxItems: maximumTools }),
          }),
        }),
      ]),
    ),
    response_format: nullable(
      Type.Union([
        object({ type: oneOf(['text', 'json_object'], 'unsupported_parameter') }),
        object({
          type: Type.Literal('json_schema'),
          json_schema: object({
            name: functionName,
            description: nullable(bodyText),
            schema: nullable(jsonSchema),
            strict: nullable(Type.Boolean()),
          }),
        }),
      ]),
    ),
  }
}

type AskFields = Static<TObject<ReturnType<typeof chatRequestFields>>>

/** Parses the shared fields and the `X-Gateway-*` headers; a header overrides the body. Throws `invalid_request`. */
export function parseChatRequestFields(body: AskFields, headers: Headers) {
  const noFallback = headerFlag(headers, 'X-Gateway-No-Fallback')
  const streamMode = headerChoice(headers, 'X-Gateway-Stream-Mode', streamModes) ?? body.stream_mode ?? null
  if (body.mode === autoModel && !isAuto(body.model ?? autoModel)) {
    throw invalidField('mode', `must not be "${autoModel}" beside another \`model\`: send one of the two`)
  }
  const tools = readTools(body.tools ?? [])
  const choice = readToolChoice(body.tool_choice ?? null, tools)
  return {
    model: isAuto(body.model) ? null : (body.model ?? null),
    strategy: headerChoice(headers, 'X-Gateway-Strategy', strategies) ?? body.strategy ?? null,
    stream: (body.stream ?? streamMode !== null) ? (streamMode ?? 'buffered') : null,
    maxOutputTokens: body.max_output_tokens ?? null,
    temperature: body.temperature ?? null,
    topP: body.top_p ?? null,
    seed: body.seed ?? null,
    stop: readStop(body.stop ?? []),
    ...choice,
    responseFormat: readResponseFormat(body.response_format ?? null),
    reasoningEffort: body.reasoning_effort ?? null,
    fallback:
      headerChoice(headers, 'X-Gateway-Fallback', fallbackPolicies) ??
      toPolicy(noFallback === null ? (body.fallback ?? true) : !noFallback),
    fallbackMaxCostFactor:
      headerNumber(headers, 'X-Gateway-Fallback-Max-Cost-Factor', fallbackCostFactors) ??
      body.fallback_max_cost_factor ??
      usualFallbackCostFactor,
    web: headerChoice(headers, 'X-Gateway-Web', ['auto', 'off']) ?? body.web ?? 'auto',
    enhance: headerFlag(headers, 'X-Gateway-Enhance') ?? body.enhance_prompt ?? false,
    testMode: headerFlag(headers, 'X-Gateway-Test-Mode') ?? body.test_mode ?? false,
    metadata: body.metadata == null ? null : storable(body.metadata),
    session: sessionNameOf(headers),
  } satisfies Partial<ChatRequest>
}

/**
 * Removes U+0000 and unpaired surrogates, which Postgres cannot store: a rejected usage record would make its request
 * free.
 */
function storable(pairs: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const kept = (text: string) => text.toWellFormed().replaceAll('\0', '\ufffd')
  return Object.fromEntries(Object.entries(pairs).map(([name, value]) => [kept(name), kept(value)]))
}

/** Drops empty sequences. Where a provider accepts one, it would stop before the first word. */
function readStop(stop: string | readonly string[]): readonly string[] {
  const sequences = typeof stop === 'string' ? [stop] : stop
  return sequences.includes('') ? sequences.filter(sequence => sequence !== '') : sequences
}

/** Returns true for the automatic model name, which is case-insensitive like all model names. */
function isAuto(model: string | null | undefined): boolean {
  return model?.toLowerCase() === autoModel
}

function readTools(wireTools: NonNullable<AskFields['tools']>): readonly Tool[] {
  const names = new Set<string>()
  return wireTools.map((tool, index) => {
    const { name, description, parameters, strict } = tool.function
    if (names.has(name))
      throw invalidField(`tools.${index}.function.name`, 'is the name of an earlier tool too: give each its own')
    names.add(name)
    return {
      name,
      description: description ?? null,
      parameters: (parameters as Tool['parameters'] | undefined) ?? null,
      strict: strict ?? null,
      ...cacheMarkOf(tool),
    }
  })
}

type ToolChoiceField = Exclude<AskFields['tool_choice'], undefined>

/**
 * Parses `tool_choice`. `allowed_tools` combines a mode with a list of tools; the others are removed from the request.
 */
function readToolChoice(
  choice: ToolChoiceField,
  tools: readonly Tool[],
): { tools: readonly Tool[]; toolChoice: ToolChoice | null } {
  // Without tools only a forced call is an error.
  if (choice === null || choice === 'auto' || choice === 'none')
    return { tools, toolChoice: tools.length === 0 ? null : choice }
  if (tools.length === 0) throw invalidField('tool_choice', 'asks for a tool, but `tools` is empty: send the tools too')
  if (choice === 'required') return { tools, toolChoice: choice }
  if (choice.type === 'function') {
    const { name } = choice.function
    if (!tools.some(tool => tool.name === name)) throw unknownTool('tool_choice.function.name')
    return { tools, toolChoice: { name } }
  }
  const offered = new Set(tools.map(({ name }) => name))
  const allowed = new Set(
    choice.allowed_tools.tools.map(({ function: { name } }, index) => {
      if (!offered.has(name)) throw unknownTool(`tool_choice.allowed_tools.tools.${index}.function.name`)
      return name
    }),
  )
  return { tools: tools.filter(({ name }) => allowed.has(name)), toolChoice: choice.allowed_tools.mode }
}

function unknownTool(param: string) {
  return invalidField(param, 'must be the name of one of `tools`')
}

function readResponseFormat(format: Exclude<AskFields['response_format'], undefined>): ResponseFormat {
  if (format === null) return { type: 'text' }
  if (format.type !== 'json_schema') return { type: format.type }
  const { name, description, schema, strict } = format.json_schema
  return {
    type: 'json_schema',
    name,
    description: description ?? null,
    schema: (schema as Record<string, unknown> | undefined) ?? {},
    strict: strict ?? null,
  }
}

type WirePart =
  | ({ readonly type: 'text' | 'input_text'; readonly text: string } & WireCacheMark)
  | ({
      readonly type: 'image_url'
      readonly image_url: { readonly url: string; readonly detail?: 'auto' | 'low' | 'high' | null }
    } & WireCacheMark)
  | { readonly type: 'image'; readonly url: string; readonly detail?: 'auto' | 'low' | 'high' | null }
  | ({
      readonly type: 'file'
      readonly file: { readonly file_data?: string | null; readonly filename?: string | null }
    } & WireCacheMark)
  | { readonly type: 'refusal'; readonly refusal: string }

type WireContent = string | readonly WirePart[] | null | undefined

/** A validated message of either endpoint. */
type WireMessage = WireCacheMark & WireMessageContent

type WireMessageContent =
  | { readonly role: 'system' | 'developer'; readonly content: WireContent }
  | { readonly role: 'user'; readonly content: WireContent; readonly name?: string | null }
  | {
      readonly role: 'assistant'
      readonly content?: WireContent
      readonly refusal?: string | null
      readonly reasoning_content?: string | null
      readonly reasoning?: string | null
      readonly tool_calls?: readonly Static<ReturnType<typeof toolCallSchema>>[] | null
      readonly function_call?: { readonly name: string; readonly arguments: string } | null
      readonly name?: string | null
    }
  | { readonly role: 'tool'; readonly content: WireContent; readonly tool_call_id: string }
  | { readonly role: 'function'; readonly content: WireContent; readonly name: string }

/**
 * Parses the conversation from either `messages` or `prompt`. A tool result must answer a call of the assistant message
 * directly before it, as every upstream requires. Throws `invalid_request`.
 */
export function parseMessages(
  messages: string | readonly WireMessage[] | null,
  prompt: string | null,
): readonly Message[] {
  if (messages !== null && prompt !== null)
    throw invalidField('prompt', 'cannot be sent beside `messages`: send one of the two')
  const asked = messages ?? prompt
  if (asked === null) throw invalidField('messages', 'is missing: send an array of messages, or `prompt` with a string')
  if (typeof asked === 'string') return [{ role: 'user', content: [{ type: 'text', text: asked }], name: null }]
  let open: OpenCalls = noCalls
  return asked.flatMap((message, index): Message | Message[] => {
    if (isSystem(message)) {
      open = noCalls
      return systemMessages(message)
    }
    const read = withCacheMark(readMessage(message, index, open), lastMarkOf(message))
    if (read.role === 'assistant') open = openCallsOf(read.toolCalls)
    else if (read.role !== 'tool') open = noCalls
    return read
  })
}

/** Calls of the assistant turn that a result may follow: their IDs, and the first ID by name. */
type OpenCalls = { readonly ids: ReadonlySet<string>; readonly idByName: ReadonlyMap<string, string> }

const noCalls: OpenCalls = { ids: new Set(), idByName: new Map() }

function openCallsOf(calls: readonly ToolCall[]): OpenCalls {
  if (calls.length === 0) return noCalls
  return {
    ids: new Set(calls.map(({ id }) => id)),
    idByName: new Map(calls.toReversed().map(({ name, id }) => [name, id])),
  }
}

type SystemMessage = Extract<WireMessage, { role: 'system' | 'developer' }>

function isSystem(message: WireMessage): message is SystemMessage {
  return message.role === 'system' || message.role === 'developer'
}

/** Returns one message, or one for each part that ends with a cache mark, so that the mark keeps its place. */
function systemMessages(message: SystemMessage): Message | Message[] {
  const { content } = message
  const own = cacheMarkOf(message)
  if (typeof content === 'string' || !content?.some(part => 'cache_control' in part && part.cache_control != null))
    return { role: 'system', text: textOf(content, '\n'), ...own }
  const messages: Message[] = []
  let from = 0
  for (const [at, part] of content.entries()) {
    const mark = 'cache_control' in part ? cacheMarkOf(part) : {}
    const isLast = at === content.length - 1
    if (mark.cache === undefined && !isLast) continue
    messages.push({ role: 'system', text: textOf(content.slice(from, at + 1), '\n'), ...(isLast ? own : {}), ...mark })
    from = at + 1
  }
  return messages
}

/** Returns the mark of a message, or of its last part that has one. User parts keep their own. */
function lastMarkOf(message: WireMessage): CacheMark | undefined {
  const own = cacheMarkOf(message).cache
  if (own !== undefined || message.role === 'user' || !Array.isArray(message.content)) return own
  const parts: readonly WirePart[] = message.content
  const marked = parts.findLast(part => 'cache_control' in part && part.cache_control != null)
  return marked !== undefined && 'cache_control' in marked ? cacheMarkOf(marked).cache : undefined
}

function withCacheMark(message: Message, cache: CacheMark | undefined): Message {
  if (cache === undefined) return message
  if (message.role !== 'user') return { ...message, cache }
  const last = message.content.length - 1
  return { ...message, content: message.content.map((part, at) => (at === last ? { ...part, cache } : part)) }
}

function readMessage(message: Exclude<WireMessage, SystemMessage>, index: number, open: OpenCalls): Message {
  switch (message.role) {
    case 'user':
      return {
        role: 'user',
        content: partsOf(message.content, `messages.${index}.content`),
        name: message.name ?? null,
      }
    case 'assistant':
      return {
        role: 'assistant',
        text: textOf(message.content, '') || message.refusal || (message.content == null ? null : ''),
        reasoning: message.reasoning_content || message.reasoning || null,
        toolCalls: readToolCalls(message, index),
        name: message.name ?? null,
      }
    case 'tool': {
      if (open.ids.has(message.tool_call_id))
        return { role: 'tool', callId: message.tool_call_id, text: textOf(message.content, '\n') }
      throw invalidField(
        `messages.${index}.tool_call_id`,
        'must be the id of a call in `tool_calls` of the assistant message before it',
      )
    }
    case 'function': {
      const callId = open.idByName.get(message.name)
      if (callId !== undefined) return { role: 'tool', callId, text: textOf(message.content, '\n') }
      throw invalidField(
        `messages.${index}.name`,
        'must be the name of the `function_call` in the assistant message before it',
      )
    }
  }
}

function readToolCalls(message: WireMessage & { role: 'assistant' }, index: number): readonly ToolCall[] {
  const calls = (message.tool_calls ?? []).map(call => ({
    id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
    signature: call.extra_content?.google?.thought_signature ?? null,
  }))
  if (message.function_call == null) return calls
  // A deprecated call has no ID of its own.
  return [...calls, { ...message.function_call, id: `call_${index}`, signature: null }]
}

function textOf(content: WireContent, between: string): string {
  if (typeof content === 'string') return content
  return (content ?? []).map(part => ('text' in part ? part.text : 'refusal' in part ? part.refusal : '')).join(between)
}

function partsOf(content: WireContent, param: string): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return (content ?? []).flatMap((part, index) => readPart(part, `${param}.${index}`))
}

function readPart(part: WirePart, param: string): ContentPart | [] {
  switch (part.type) {
    case 'text':
    case 'input_text':
      return { type: 'text', text: part.text, ...cacheMarkOf(part) }
    case 'image_url': {
      const { url, detail } = part.image_url
      return {
        type: 'image',
        url: fetchable(url, `${param}.image_url.url`),
        detail: detail ?? null,
        ...cacheMarkOf(part),
      }
    }
    case 'image':
      return { type: 'image', url: fetchable(part.url, `${param}.url`), detail: part.detail ?? null }
    case 'refusal':
      return []
    case 'file':
      return {
        type: 'file',
        url: documentOf(part.file.file_data, `${param}.file.file_data`),
        name: part.file.filename ?? null,
        ...cacheMarkOf(part),
      }
  }
}

/**
 * Returns the URL in the form passed to an upstream, which would fetch it from its own network. Throws
 * `invalid_request`.
 */
export function fetchable(url: string, param: string): string {
  const address = forwardableAddress(url)
  if (address !== null) return address
  throw invalidField(param, 'must be a public http or https URL on port 80 or 443 without credentials, or a data: URL')
}

function documentOf(data: string | null | undefined, param: string): string {
  if (data == null) throw invalidField(param, 'is required: send the document as a `data:application/pdf;base64,` URL')
  return data
}
