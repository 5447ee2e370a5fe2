/**
 * Parses Messages bodies into chat requests. Unknown fields, blocks and beta headers go to Anthropic unchanged; for other providers
 * they are dropped together.
 */
import { type Static, Type } from '@sinclair/typebox'
import type { ChatRequest, ReasoningEffort, ResponseFormat, SourceBody } from '../../core/chat/chat.ts'
import { isSendableField, sendableFields, sortBetas } from '../../core/chat/provider-features.ts'
import { ReadValues } from '../../core/chat/request-texts.ts'
import { unreadParts } from '../../core/chat/tool-definitions.ts'
import {
  chatRequestFields,
  maximumMessages,
  maximumTools,
  parseChatRequestFields,
} from '../../core/request/chat-request.ts'
import { gatewayFields, pickGatewayFields } from '../../core/request/gateway-fields.ts'
import { bodyText } from '../../core/request/part-schemas.ts'
import { promptCacheKey } from '../../core/request/tags.ts'
import { invalidField, nullable, oneOf, validate } from '../../core/validation/validate.ts'
import type { RequestSource } from '../../http/chat-handler.ts'
import {
  anyObject,
  open,
  readPreferences,
  refuseForeignObjects,
  rejectStoredState,
  withPreferences,
} from '../foreign-objects.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { isBlockFields, publicUrl } from './blocks.ts'
import { readConversation } from './conversation.ts'
import { readMessagesTools } from './tools.ts'

const block = Type.Object({ type: Type.String({ minLength: 1, maxLength: 128 }) }, open)
const content = Type.Union([bodyText, Type.Array(block)])
/** 0 writes the prompt into Anthropic's cache without an output. */
const tokens = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 })
/** Older releases of LangChain send -1 for sampling fields that are not set. */
const unset = Type.Literal(-1)

const shared = chatRequestFields(true)

/** Fields of the conversation, all of which `count_tokens` accepts. */
const promptFields = {
  model: shared.model,
  messages: Type.Array(Type.Object({ role: oneOf(['user', 'assistant', 'system']), content }, open), {
    minItems: 1,
    maxItems: maximumMessages,
  }),
  system: nullable(content),
  tools: nullable(
    Type.Array(
      Type.Object({ name: Type.Optional(Type.String()), type: nullable(Type.String({ maxLength: 128 })) }, open),
      { maxItems: maximumTools },
    ),
  ),
  tool_choice: nullable(
    Type.Object(
      { type: oneOf(['auto', 'any', 'tool', 'none']), disable_parallel_tool_use: nullable(Type.Boolean()) },
      open,
    ),
  ),
  thinking: nullable(
    Type.Object({ type: Type.String({ maxLength: 64 }), budget_tokens: nullable(Type.Integer({ minimum: 0 })) }, open),
  ),
  output_config: nullable(
    Type.Object({ effort: nullable(Type.String({ maxLength: 64 })), format: nullable(anyObject) }, open),
  ),
}

/** The body of `POST /v1/messages`. */
export const messagesSchema = Type.Object(
  {
    ...promptFields,
    max_tokens: tokens,
    stream: shared.stream,
    stop_sequences: nullable(Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 8191 })),
    temperature: nullable(Type.Number({ minimum: 0, maximum: 1 })),
    top_p: nullable(Type.Union([Type.Number({ minimum: 0, maximum: 1 }), unset])),
    top_k: nullable(Type.Union([Type.Integer({ minimum: 0 }), unset])),
    output_format: nullable(anyObject),
    metadata: nullable(Type.Object({ user_id: nullable(Type.String({ maxLength: 4096 })) }, open)),
    // Not Anthropic's: fallbacks of other API forms take it.
    prompt_cache_key: promptCacheKey,
    ...gatewayFields,
  },
  { ...open, title: 'MessagesRequest' },
)

/** The body of `POST /v1/messages/count_tokens`. */
export const countSchema = Type.Object(promptFields, { ...open, title: 'CountTokensRequest' })

type Body = Static<typeof messagesSchema>

const tagsSchema = Type.Object({ metadata: shared.metadata }, open)

/** Fields that become fields of the chat request. Other fields are only for Anthropic. */
const readHere = new Set(
  `model messages system tools tool_choice thinking output_config output_format max_tokens stream stop_sequences temperature top_p
  metadata ${Object.keys(gatewayFields).join(' ')}`.split(/\s+/),
)

/** A chat request with the settings that the response depends on. */
type MessagesRequest = {
  readonly request: ChatRequest
  readonly spelling: Readonly<Record<string, string>>
  /** The client requested thinking and expects such blocks from every provider. */
  readonly wantsThinking: boolean
}

/** Parses a body and its headers. Throws `invalid_request` with the field at fault. */
export function readMessages(value: unknown, source: RequestSource, seal: ReasoningSeal): MessagesRequest {
  const body = validate(messagesSchema, value)
  const preferences = readPreferences(body)
  const { headers } = source
  const fields = parseChatRequestFields(pickShared(body), headers)
  const prompt = readPrompt(body, source, seal)
  const { isAgent, ...read } = prompt
  // An addition is inserted before a text of the last turn. Without one, the request goes as it is.
  const takesAdditions = endsWithText(body)
  // An addition by the gateway would change bytes that a prompt cache or a signature covers.
  const isOwnText = isAgent || read.source.needs.length > 0 || source.text.includes('"cache_control"')
  const asksForWeb = body.web != null || headers.has('x-gateway-web')
  const isStreamed = body.stream != null || body.stream_mode != null
  const request: ChatRequest = {
    ...withPreferences(fields, preferences),
    ...read,
    dialect: 'messages',
    stream: isStreamed ? fields.stream : null,
    maxOutputTokens: body.max_tokens,
    stop: (body.stop_sequences ?? []).filter(text => text !== ''),
    endUser: findEndUser(body),
    web: (isOwnText && !asksForWeb) || !takesAdditions ? 'off' : fields.web,
    enhance: read.source.needs.length === 0 && takesAdditions && fields.enhance,
    bodyCharacters: source.text.length,
  }
  return { request, spelling, wantsThinking: wantsThinking(body) }
}

/** Parses a `count_tokens` body into the values to count. Throws `invalid_request` with the field at fault. */
export function readCount(value: unknown, source: RequestSource, seal: ReasoningSeal) {
  const body = validate(countSchema, value)
  return { model: body.model ?? null, ...readPrompt(body, source, seal) }
}

/** Names of shared fields in this API. */
const spelling = {
  max_output_tokens: 'max_tokens',
  stop: 'stop_sequences',
  response_format: 'output_config',
  reasoning_effort: 'thinking',
  user: 'metadata',
}

function pickShared(body: Body): Parameters<typeof parseChatRequestFields>[0] {
  return {
    model: body.model ?? null,
    ...pickGatewayFields(body),
    stream: body.stream ?? null,
    metadata: findTags(body),
    temperature: body.temperature ?? null,
    top_p: isUnset(body.top_p) ? null : body.top_p,
  }
}

type Prompt = Static<typeof countSchema>

/** Parses the conversation and the definitions of a request. */
function readPrompt(
  body: Prompt & { readonly max_tokens?: number },
  { headers, text, accountId }: RequestSource,
  seal: ReasoningSeal,
) {
  rejectStored(body)
  const { max_tokens: maximum } = body
  const values = new ReadValues()
  const { messages, needs, sealed } = readConversation(body, { seal, accountId }, values)
  const {
    serverTools,
    needs: neededTool,
    ...tools
  } = readMessagesTools(body.tools ?? [], body.tool_choice ?? null, values)
  const responseFormat = getResponseFormat(body)
  if (responseFormat.type === 'json_schema') values.add(responseFormat.schema)
  const { sent, dropped: betas } = sentHeaders(headers)
  const others = otherFields(body)
  const refused = [
    ...Object.keys(others).filter(name => !isSendableField('messages', name, others[name])),
    ...betas.map(name => `anthropic-beta.${name}`),
  ]
  const extras: Record<string, unknown> = { ...others, ...serverTools }
  for (const name of betas) extras[`anthropic-beta.${name}`] = true
  if (sent['anthropic-beta'] !== undefined) extras['anthropic-beta'] = sent['anthropic-beta']
  const { model, ...leaving } = sendableFields('messages', body)
  refuseForeignObjects(leaving)
  const source: SourceBody = {
    dialect: 'messages',
    text,
    fields: body,
    messages,
    headers: sent,
    needs: [...needs, ...(neededTool === null ? [] : [neededTool]), ...(maximum === 0 ? ['max_tokens'] : [])],
    // Such fields are extras. Each adapter reports the extras that it drops.
    sameFormOnly: [],
    refused,
    unread: unreadParts({ ...leaving, ...headersIn(sent) }, values),
    sealed,
  }
  return {
    messages,
    ...tools,
    extras,
    source,
    responseFormat,
    reasoningEffort: findEffort(body),
    isAgent: messages.at(-1)?.role === 'tool' || headers.has('x-claude-code-session-id') || endsWithResult(body),
  }
}

/** Rejects what belongs to the operator's account at Anthropic, what the gateway must not contact, and a place with another price. */
function rejectStored(body: Readonly<Record<string, unknown>>): void {
  rejectStoredState(body)
  if (body.container != null)
    throw invalidField('container', 'refers to a stored object. Objects are not stored here', 'unsupported_parameter')
  const { inference_geo: place, mcp_servers: servers } = body
  if (!isSendableField('messages', 'inference_geo', place ?? null))
    throw invalidField(
      'inference_geo',
      'must be "global": the price of other places is unknown',
      'unsupported_parameter',
    )
  if (servers == null) return
  if (!Array.isArray(servers)) throw invalidField('mcp_servers', 'must be an array')
  for (const [index, server] of servers.entries())
    publicUrl(isBlockFields(server) ? server : {}, `mcp_servers.${index}.url`)
}

/** A header is sent beside the body. */
function headersIn(sent: Readonly<Record<string, string>>) {
  return sent['anthropic-beta'] === undefined ? {} : { 'anthropic-beta': sent['anthropic-beta'] }
}

function endsWithResult({ messages }: Prompt): boolean {
  const last = messages.at(-1)?.content
  return Array.isArray(last) && last.some(({ type }) => type === 'tool_result')
}

function endsWithText({ messages }: Prompt): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'user') return false
  return typeof last.content === 'string' || last.content.some(({ type }) => type === 'text')
}

function isUnset(value: unknown): value is -1 | null | undefined {
  return value == null || value === unset.const
}

/** Returns the fields that the gateway does not read: fields of Anthropic, present or future ones. */
function otherFields(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(body).filter(
      ([name, field]) => !readHere.has(name) && field !== null && !(name === 'top_k' && isUnset(field)),
    ),
  )
}

function sentHeaders(headers: Headers) {
  const given = headers.get('anthropic-beta') ?? ''
  const { sent: names, dropped } = sortBetas(given)
  const version = headers.get('anthropic-version')
  const sent: Readonly<Record<string, string>> = {
    ...(version === null ? {} : { 'anthropic-version': version }),
    ...(names.length === 0 ? {} : { 'anthropic-beta': dropped.length === 0 ? given : names.join(',') }),
  }
  return { sent, dropped }
}

function getResponseFormat({
  output_config: config,
  ...body
}: Prompt & { readonly output_format?: unknown }): ResponseFormat {
  const format: unknown = config?.format ?? body.output_format
  if (!isBlockFields(format) || format.type !== 'json_schema' || !isBlockFields(format.schema)) return { type: 'text' }
  // The API always follows the schema. Adapters decide whether theirs can.
  return { type: 'json_schema', name: 'response', description: null, schema: format.schema, strict: true }
}

const efforts: ReadonlySet<string> = new Set(['low', 'medium', 'high', 'xhigh', 'max'] satisfies ReasoningEffort[])

function isEffort(value: unknown): value is ReasoningEffort {
  return typeof value === 'string' && efforts.has(value)
}

/** Returns the reasoning effort as in the other API forms; null = the model's default. */
function findEffort({ thinking, output_config: config }: Prompt): ReasoningEffort | null {
  if (thinking?.type === 'disabled') return 'none'
  if (isEffort(config?.effort)) return config.effort
  if (thinking?.type !== 'enabled') return null
  const budget = thinking.budget_tokens ?? 0
  if (budget < 4_096) return 'low'
  return budget < 16_384 ? 'medium' : 'high'
}

function wantsThinking({ thinking, output_config: config }: Prompt): boolean {
  return thinking == null ? isEffort(config?.effort) : thinking.type !== 'disabled'
}

/** Returns the members of `metadata` except `user_id`. The usage record stores them, as in the other API forms. */
function findTags({ metadata }: Body) {
  const { user_id: _, ...tags } = metadata ?? {}
  return Object.keys(tags).length === 0 ? null : (validate(tagsSchema, { metadata: tags }).metadata ?? null)
}

/** Returns the end user; null if the ID is longer than other API forms accept. Claude Code sends JSON there. */
function findEndUser({ metadata }: Body): string | null {
  const id = metadata?.user_id ?? null
  return id === null || id === '' || id.length > 512 ? null : id
}
