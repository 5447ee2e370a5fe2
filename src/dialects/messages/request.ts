/**
 * A Messages body, read into a chat request. Open where that form is: unknown fields, blocks and beta headers pass to Anthropic as
 * they came, and elsewhere are dropped together.
 */
import { type Static, Type } from '@sinclair/typebox'
import type { ChatRequest, ReasoningEffort, ResponseFormat, SourceBody } from '../../core/chat/chat.ts'
import {
  bodyText,
  chatRequestFields,
  maximumMessages,
  maximumTools,
  parseChatRequestFields,
} from '../../core/request/chat-request.ts'
import { checker, nullable, oneOf } from '../../core/validation/validate.ts'
import type { RequestSource } from '../../http/chat-handler.ts'
import type { ReasoningSeal } from '../reasoning-seal.ts'
import { isJson } from './blocks.ts'
import { readConversation } from './conversation.ts'
import { readTools } from './tools.ts'

const open = { additionalProperties: true }
const anyObject = Type.Object({}, open)
const block = Type.Object({ type: Type.String({ minLength: 1, maxLength: 128 }) }, open)
const content = Type.Union([bodyText, Type.Array(block)])
const tokens = Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 })

const shared = chatRequestFields(true)

/** Fields of the gateway itself, which never reach a provider. */
const gatewayFields = {
  mode: shared.mode,
  strategy: shared.strategy,
  stream_mode: shared.stream_mode,
  enhance_prompt: shared.enhance_prompt,
  test_mode: shared.test_mode,
  fallback: shared.fallback,
  fallback_max_cost_factor: shared.fallback_max_cost_factor,
  web: shared.web,
}

/** What the conversation is made of: all that `count_tokens` takes. */
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
    top_p: shared.top_p,
    top_k: nullable(Type.Integer({ minimum: 0 })),
    output_format: nullable(anyObject),
    metadata: nullable(Type.Object({ user_id: nullable(Type.String({ maxLength: 4096 })) }, open)),
    ...gatewayFields,
  },
  { ...open, title: 'MessagesRequest' },
)

/** The body of `POST /v1/messages/count_tokens`. */
export const countSchema = Type.Object(promptFields, { ...open, title: 'CountTokensRequest' })

type Body = Static<typeof messagesSchema>

const check = checker(messagesSchema)
const checkCount = checker(countSchema)
const checkTags = checker(Type.Object({ metadata: shared.metadata }, open))

/** Read into fields of the request; every other field is Anthropic's alone. */
const readHere = new Set(
  `model messages system tools tool_choice thinking output_config output_format max_tokens stream stop_sequences temperature top_p
  metadata ${Object.keys(gatewayFields).join(' ')}`.split(/\s+/),
)

/** A request, and what the reply must know beside it. */
type MessagesAsk = {
  readonly ask: ChatRequest
  readonly spelling: Readonly<Record<string, string>>
  /** The client asked for thinking, so it expects such blocks whoever serves. */
  readonly wantsThinking: boolean
}

/** Reads a parsed body and its headers. Throws `invalid_request` with the field at fault. */
export function readMessages(value: unknown, source: RequestSource, seal: ReasoningSeal): MessagesAsk {
  const body = check(value)
  const { headers } = source
  const fields = parseChatRequestFields(pickShared(body), headers)
  const prompt = readPrompt(body, source, seal)
  const { isAgent, ...read } = prompt
  // What the gateway adds on its own account would change the bytes that a cache or a signature was made of.
  const isOwnText = isAgent || read.source.needs.length > 0 || source.text.includes('"cache_control"')
  const asksForWeb = body.web != null || headers.has('x-gateway-web')
  const isStreamed = body.stream != null || body.stream_mode != null
  const ask: ChatRequest = {
    ...fields,
    ...read,
    dialect: 'messages',
    stream: isStreamed ? fields.stream : null,
    maxOutputTokens: body.max_tokens,
    stop: (body.stop_sequences ?? []).filter(text => text !== ''),
    presencePenalty: null,
    frequencyPenalty: null,
    logitBias: null,
    logprobs: false,
    topLogprobs: null,
    choices: 1,
    endUser: endUserOf(body),
    web: isOwnText && !asksForWeb ? 'off' : fields.web,
    enhance: read.source.needs.length === 0 && fields.enhance,
    bodyCharacters: source.text.length,
  }
  return { ask, spelling, wantsThinking: wantsThinking(body) }
}

/** Reads what `count_tokens` takes into what is counted. Throws `invalid_request` with the field at fault. */
export function readCount(value: unknown, source: RequestSource, seal: ReasoningSeal) {
  const body = checkCount(value)
  return { model: body.model ?? null, ...readPrompt(body, source, seal) }
}

/** Names that this form has for fields of the request. */
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
    mode: body.mode ?? null,
    strategy: body.strategy ?? null,
    stream: body.stream ?? null,
    stream_mode: body.stream_mode ?? null,
    enhance_prompt: body.enhance_prompt ?? null,
    test_mode: body.test_mode ?? null,
    fallback: body.fallback ?? null,
    fallback_max_cost_factor: body.fallback_max_cost_factor ?? null,
    web: body.web ?? null,
    metadata: tagsOf(body),
    temperature: body.temperature ?? null,
    top_p: body.top_p ?? null,
  }
}

type Prompt = Static<typeof countSchema>

/** The part of a request that is the conversation and what is defined beside it. */
function readPrompt(body: Prompt, { headers, text, accountId }: RequestSource, seal: ReasoningSeal) {
  const { messages, unread, needs, sealed } = readConversation(body.system, body.messages, seal, accountId)
  const {
    serverTools,
    needs: neededTool,
    unread: unreadTools,
    ...tools
  } = readTools(body.tools ?? [], body.tool_choice ?? null)
  const sent = sentHeaders(headers)
  const extras: Record<string, unknown> = { ...otherFields(body), ...serverTools }
  const defined = [...Object.values(extras).filter(isTextual), ...unreadTools]
  if (sent['anthropic-beta'] !== undefined) extras['anthropic-beta'] = sent['anthropic-beta']
  const source: SourceBody = {
    dialect: 'messages',
    text,
    fields: body,
    messages,
    headers: sent,
    needs: neededTool === null ? needs : [...needs, neededTool],
    // They travel as extras, which each adapter names that does not send them.
    sameFormOnly: [],
    unread: [...unread, ...defined.map(one => ({ role: 'tool' as const, callId: '', text: JSON.stringify(one) }))],
    sealed,
  }
  return {
    messages,
    ...tools,
    extras,
    source,
    responseFormat: responseFormatOf(body),
    reasoningEffort: effortOf(body),
    isAgent: messages.at(-1)?.role === 'tool' || headers.has('x-claude-code-session-id') || endsWithResult(body),
  }
}

/** Whether a value can hold words. */
function isTextual(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

function endsWithResult({ messages }: Prompt): boolean {
  const last = messages.at(-1)?.content
  return Array.isArray(last) && last.some(({ type }) => type === 'tool_result')
}

/** Fields that nothing is read from: Anthropic's own, of today or of a later release. */
function otherFields(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([name, field]) => !readHere.has(name) && field !== null))
}

function sentHeaders(headers: Headers): Readonly<Record<string, string>> {
  const names = ['anthropic-version', 'anthropic-beta']
  return Object.fromEntries(names.flatMap(name => (headers.has(name) ? [[name, headers.get(name) ?? '']] : [])))
}

function responseFormatOf({
  output_config: config,
  ...body
}: Prompt & { readonly output_format?: unknown }): ResponseFormat {
  const format: unknown = config?.format ?? body.output_format
  if (!isJson(format) || format.type !== 'json_schema' || !isJson(format.schema)) return { type: 'text' }
  // OpenAI takes only closed schemas in its strict mode, which Anthropic's clients send as a rule.
  const strict = format.schema.additionalProperties === false
  return { type: 'json_schema', name: 'response', description: null, schema: format.schema, strict }
}

const efforts: ReadonlySet<string> = new Set(['low', 'medium', 'high', 'xhigh', 'max'] satisfies ReasoningEffort[])

function isEffort(value: unknown): value is ReasoningEffort {
  return typeof value === 'string' && efforts.has(value)
}

/** How much a model is to think, in the words of the other API forms; null = as it does unasked. */
function effortOf({ thinking, output_config: config }: Prompt): ReasoningEffort | null {
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

/** The members of `metadata` beside Anthropic's own: they are kept with the usage record, as in the other API forms. */
function tagsOf({ metadata }: Body) {
  const { user_id: _, ...tags } = metadata ?? {}
  return Object.keys(tags).length === 0 ? null : (checkTags({ metadata: tags }).metadata ?? null)
}

/** Claude Code sends JSON of its own: longer ones than the other forms take are left out. */
function endUserOf({ metadata }: Body): string | null {
  const id = metadata?.user_id ?? null
  return id === null || id === '' || id.length > 512 ? null : id
}
