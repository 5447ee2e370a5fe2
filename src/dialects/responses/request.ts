/**
 * Parses Responses bodies into chat requests. The gateway stores no responses, so references to stored objects are rejected: ignored
 * ones would lose the conversation. Unknown fields pass; the response reports parameters that a provider does not support.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type ChatRequest, type ResponseFormat, reasoningEfforts, type SourceBody } from '../../core/chat/chat.ts'
import { sendableFields } from '../../core/chat/provider-features.ts'
import { ReadValues } from '../../core/chat/request-texts.ts'
import { isTokenPricedTool, unreadParts } from '../../core/chat/tool-definitions.ts'
import { chatRequestFields, parseChatRequestFields } from '../../core/request/chat-request.ts'
import { bodyText, formatName } from '../../core/request/part-schemas.ts'
import { promptCacheKey } from '../../core/request/tags.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import { invalidField, nullable, oneOf, validate } from '../../core/validation/validate.ts'
import {
  anyObject,
  type Fields,
  isFields,
  open,
  readPreferences,
  refuseForeignObjects,
  rejectStoredState,
  withPreferences,
} from '../foreign-objects.ts'
import type { ReasoningOpener } from '../reasoning-seal.ts'
import { refersToItems } from './carried-items.ts'
import { maximumItems, type ReadInput, readInputItems } from './items.ts'
import { textIn } from './parts.ts'
import { chooseTools, type DeclaredTools, maximumDeclaredTools, readTools, type ToolOrigin } from './tools.ts'

const shared = chatRequestFields(true)

const format = Type.Union([
  Type.Object({ type: oneOf(['text', 'json_object'], 'unsupported_parameter') }, open),
  Type.Object(
    {
      type: Type.Literal('json_schema'),
      name: formatName,
      description: nullable(bodyText),
      schema: nullable(anyObject),
      strict: nullable(Type.Boolean()),
    },
    open,
  ),
])

/** Fields that become fields of the chat request. */
const readFields = Type.Object({
  model: shared.model,
  mode: shared.mode,
  strategy: shared.strategy,
  stream: shared.stream,
  stream_mode: shared.stream_mode,
  enhance_prompt: shared.enhance_prompt,
  test_mode: shared.test_mode,
  fallback: shared.fallback,
  continue: shared.continue,
  constraints: shared.constraints,
  fallback_max_cost_factor: shared.fallback_max_cost_factor,
  web: shared.web,
  metadata: shared.metadata,
  max_output_tokens: shared.max_output_tokens,
  temperature: shared.temperature,
  top_p: shared.top_p,
  input: nullable(
    Type.Union([
      Type.String({ minLength: 1, boundedBy: 'body' }),
      Type.Array(anyObject, { minItems: 1, maxItems: maximumItems }),
    ]),
  ),
  instructions: nullable(Type.Union([bodyText, Type.Array(anyObject, { maxItems: maximumItems })])),
  tools: nullable(Type.Array(Type.Object({ type: Type.String() }, open), { maxItems: maximumDeclaredTools })),
  tool_choice: nullable(Type.Union([oneOf(['none', 'auto', 'required']), anyObject])),
  parallel_tool_calls: nullable(Type.Boolean()),
  reasoning: nullable(
    Type.Object({ effort: nullable(oneOf(reasoningEfforts)), summary: nullable(Type.String()) }, open),
  ),
  text: nullable(
    Type.Object({ format: nullable(format), verbosity: nullable(oneOf(['low', 'medium', 'high'])) }, open),
  ),
  include: nullable(Type.Array(Type.String(), { maxItems: 64 })),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  user: nullable(Type.String({ maxLength: 512 })),
  safety_identifier: nullable(Type.String({ maxLength: 128 })),
  stream_options: nullable(anyObject),
  store: nullable(Type.Boolean()),
  background: nullable(Type.Boolean()),
  previous_response_id: nullable(Type.String()),
  conversation: nullable(Type.Union([Type.String(), anyObject])),
  prompt: nullable(anyObject),
  truncation: nullable(oneOf(['auto', 'disabled'])),
})

/** Fields with the same meaning in Chat Completions. */
const extraFields = Type.Object({
  service_tier: nullable(Type.String({ maxLength: 64 })),
  prompt_cache_key: promptCacheKey,
  prompt_cache_retention: nullable(oneOf(['in_memory', '24h'])),
  prompt_cache_options: nullable(anyObject),
  moderation: nullable(anyObject),
})

/** The body of `POST /v1/responses`. */
export const responsesSchema = Type.Object(
  { ...readFields.properties, ...extraFields.properties },
  { ...open, title: 'ResponseRequest' },
)

type Body = Static<typeof responsesSchema>
const readHere = new Set(Object.keys(readFields.properties))

/** A chat request with the settings that the response depends on. */
export type ResponsesRequest = {
  readonly request: ChatRequest
  readonly origins: ReadonlyMap<string, ToolOrigin>
  /** The client requests reasoning that it can send in later turns, also if it is plain text. */
  readonly includesReasoning: boolean
  /** The client refers to items of earlier turns by their ID. */
  readonly refersToItems: boolean
  /** The parsed body, whose settings the response repeats. */
  readonly body: Body
}

/** Names of shared fields in this API. */
export const spelling: Readonly<Record<string, string>> = {
  messages: 'input',
  response_format: 'text.format',
  reasoning_effort: 'reasoning.effort',
  logprobs: 'include',
}

/** Parses a body and the `X-Gateway-*` headers, which take precedence. Throws `invalid_request` with the field at fault. */
export function readResponses(
  value: unknown,
  source: { readonly headers: Headers; readonly text: string },
  opener: ReasoningOpener,
): ResponsesRequest {
  const body = validate(responsesSchema, value)
  rejectStored(body)
  const preferences = readPreferences(body)
  const values = new ReadValues()
  const input = readInputItems(body.input ?? missingInput(), getInstructions(body.instructions ?? null), opener, values)
  const lists = body.tools == null ? [] : [{ tools: body.tools, place: 'tools' }]
  const declared = readTools([...lists, ...input.declared], input.loaded)
  const { tools, choice, needsHosted } = chooseTools(body.tool_choice ?? null, declared)
  const needs = needsHosted ? [...input.needs, 'tool_choice'] : input.needs
  const fields = parseChatRequestFields(sharedFields(body), source.headers)
  const isPlain = needs.length === 0 && input.endsWithText
  const wantsLogprobs = body.include?.includes('message.output_text.logprobs') ?? false
  for (const tool of tools) values.add(...(declared.contents.get(tool) ?? []))
  const responseFormat = getFormat(body.text?.format ?? null)
  const request: ChatRequest = {
    ...withPreferences(fields, preferences),
    dialect: 'responses',
    source: getSource(body, source.text, { input, declared, needs, values }),
    messages: input.messages,
    stream: body.stream != null || body.stream_mode != null ? fields.stream : null,
    logprobs: wantsLogprobs,
    topLogprobs: wantsLogprobs ? (body.top_logprobs ?? null) : null,
    tools,
    toolChoice: choice,
    parallelToolCalls: body.parallel_tool_calls ?? null,
    responseFormat,
    endUser: body.safety_identifier ?? body.user ?? null,
    extras: getExtras(body),
    session: body.prompt_cache_key || fields.session,
    // The gateway inserts its additions before a text of the last turn. It cannot change items that only OpenAI can read.
    web: isPlain ? fields.web : 'off',
    enhance: isPlain && fields.enhance,
    bodyCharacters: source.text.length,
  }
  const byReference = refersToItems(body.store, source.headers)
  return {
    request,
    origins: declared.origins,
    includesReasoning: byReference || (body.include?.includes('reasoning.encrypted_content') ?? false),
    refersToItems: byReference,
    body,
  }
}

function missingInput(): never {
  throw invalidField('input', 'is required: a string or an array of items')
}

function rejectStored(body: Body): void {
  if (body.background === true)
    throw invalidField('background', 'must be false: responses are not stored here', 'unsupported_parameter')
  if (body.previous_response_id != null)
    throw new GatewayError(
      'previous_response_not_found',
      '`previous_response_id` refers to a stored response. Responses are not stored here. Set `store: false` and send the items of the conversation in `input`.',
      { param: 'previous_response_id', shouldRetry: false },
    )
  const advice =
    'refers to a stored object. Objects are not stored here. Set `store: false` and send the items in `input`'
  if (body.conversation != null) throw invalidField('conversation', advice, 'unsupported_parameter')
  if (body.prompt != null) throw invalidField('prompt', advice, 'unsupported_parameter')
  rejectStoredState(body)
}

/** Returns the instruction texts. OpenAI repeats a stored prompt as a list of items. */
function getInstructions(instructions: Body['instructions'] | null): readonly string[] {
  if (instructions == null) return []
  const texts = typeof instructions === 'string' ? [instructions] : instructions.map(item => textIn(getContent(item)))
  return texts.filter(text => text !== '')
}

function getContent(item: object): unknown {
  return 'content' in item ? item.content : null
}

function sharedFields(body: Body): Parameters<typeof parseChatRequestFields>[0] {
  return { ...body, tools: null, tool_choice: null, reasoning_effort: body.reasoning?.effort ?? null }
}

function getFormat(given: Static<typeof format> | null): ResponseFormat {
  if (given === null) return { type: 'text' }
  if (given.type !== 'json_schema') return { type: given.type }
  const { name, description, schema, strict } = given
  return { type: 'json_schema', name, description: description ?? null, schema: { ...schema }, strict: strict ?? null }
}

function getExtras(body: Body): ChatRequest['extras'] {
  const sent = Object.entries(body).filter(([name, field]) => !readHere.has(name) && field != null)
  const verbosity = body.text?.verbosity
  return Object.fromEntries(verbosity == null ? sent : [...sent, ['verbosity', verbosity]])
}

/** Returns what OpenAI receives of a body. The gateway writes the format from the fields that it has read. */
function sentFields(fields: Fields): Fields {
  const { model, stream, text, user, tools, ...sent } = sendableFields('responses', fields)
  const list: readonly unknown[] = Array.isArray(tools) ? tools : []
  return { ...sent, user, tools: list.filter(tool => isFields(tool) && isTokenPricedTool(tool)) }
}

function getSource(
  body: Body,
  text: string,
  {
    input,
    declared,
    needs,
    values,
  }: {
    readonly input: ReadInput
    readonly declared: DeclaredTools
    readonly needs: readonly string[]
    readonly values: ReadValues
  },
): SourceBody {
  const sameFormOnly = [
    ...(body.truncation === 'auto' ? ['truncation'] : []),
    ...declared.hosted.map(type => `tools.${type}`),
    ...declared.refused.map(type => `tools.${type}`),
  ]
  // OpenAI repeats a stored prompt as a list of items; the same texts are moderated and sent.
  const instructions = Array.isArray(body.instructions)
    ? getInstructions(body.instructions).join('\n\n')
    : body.instructions
  values.add(instructions)
  const fields = { ...body, instructions, input: input.native }
  const sent = sentFields(fields)
  refuseForeignObjects(sent)
  return {
    dialect: 'responses',
    text,
    fields,
    messages: input.messages,
    headers: {},
    needs,
    sameFormOnly,
    // The adapter reports the fields that it drops.
    refused: [],
    unread: unreadParts(sent, values),
  }
}
