/**
 * Parses chat-completions bodies into chat requests. As in OpenAI's API, unknown fields pass, null means absent, and deprecated
 * functions become tools. Known fields are checked strictly.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type ChatRequest, imageDetails } from '../../core/chat/chat.ts'
import {
  chatRequestFields,
  maximumMessages,
  maximumTools,
  parseChatRequestFields,
} from '../../core/request/chat-request.ts'
import { parseMessages, type ReasoningReader } from '../../core/request/parse-messages.ts'
import {
  bodyText,
  cacheMarkSchema,
  calledName,
  callId,
  filePartSchema,
  functionName,
  imageAddress,
  toolCallSchema,
} from '../../core/request/part-schemas.ts'
import { promptCacheKey } from '../../core/request/tags.ts'
import { invalidField, nullable, oneOf, validate } from '../../core/validation/validate.ts'
import { withoutCustomTools } from '../custom-tools.ts'
import { anyObject, open, readPreferences, rejectStoredState, withPreferences } from '../foreign-objects.ts'

const participant = nullable(Type.String({ maxLength: 256 }))
const penalty = nullable(Type.Number({ minimum: -2, maximum: 2 }))
const tokens = nullable(Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 }))

const cache_control = cacheMarkSchema(true)

const textPart = Type.Object(
  { type: oneOf(['text', 'input_text'], 'unsupported_parameter'), text: bodyText, cache_control },
  open,
)
const imagePart = Type.Object(
  {
    type: Type.Literal('image_url'),
    image_url: Type.Object({ url: imageAddress, detail: nullable(oneOf(imageDetails)) }, open),
    cache_control,
  },
  open,
)
const filePart = filePartSchema(true)
const refusalPart = Type.Object({ type: Type.Literal('refusal'), refusal: bodyText }, open)
const textContent = Type.Union([bodyText, Type.Array(textPart, { minItems: 1 })])
const legacyCall = Type.Object({ name: calledName, arguments: bodyText }, open)
const absent = Type.Optional(
  Type.Null({ unmatched: 'unsupported_parameter', description: 'omitted: audio is not supported' }),
)

const message = Type.Union([
  Type.Object({ role: oneOf(['system', 'developer']), content: textContent, name: participant, cache_control }, open),
  Type.Object(
    {
      role: Type.Literal('user'),
      content: Type.Union([bodyText, Type.Array(Type.Union([textPart, imagePart, filePart]), { minItems: 1 })]),
      name: participant,
      cache_control,
    },
    open,
  ),
  Type.Object(
    {
      role: Type.Literal('assistant'),
      content: nullable(Type.Union([bodyText, Type.Array(Type.Union([textPart, refusalPart]))])),
      refusal: nullable(bodyText),
      reasoning_content: nullable(bodyText),
      reasoning: nullable(bodyText),
      reasoning_details: nullable(Type.Array(anyObject, { maxItems: 1024 })),
      tool_calls: nullable(Type.Array(toolCallSchema(true), { maxItems: maximumTools })),
      function_call: nullable(legacyCall),
      audio: absent,
      name: participant,
      cache_control,
    },
    open,
  ),
  Type.Object({ role: Type.Literal('tool'), content: textContent, tool_call_id: callId, cache_control }, open),
  Type.Object({ role: Type.Literal('function'), content: Type.Union([bodyText, Type.Null()]), name: calledName }, open),
])

/** Fields that become fields of the chat request. Other fields go into `extras`. */
const requestSchema = Type.Object({
  ...chatRequestFields(true),
  messages: nullable(
    Type.Union([
      Type.String({ minLength: 1, boundedBy: 'body' }),
      Type.Array(message, { minItems: 1, maxItems: maximumMessages }),
    ]),
  ),
  prompt: nullable(Type.String({ minLength: 1, boundedBy: 'body' })),
  stream_options: nullable(
    Type.Object({ include_usage: nullable(Type.Boolean()), include_obfuscation: nullable(Type.Boolean()) }, open),
  ),
  max_completion_tokens: tokens,
  max_tokens: tokens,
  n: nullable(Type.Integer({ minimum: 1, maximum: 128 })),
  presence_penalty: penalty,
  frequency_penalty: penalty,
  logit_bias: nullable(
    Type.Record(Type.String({ pattern: '^[\\s\\S]*$' }), Type.Number({ minimum: -100, maximum: 100 }), {
      maxProperties: 1024,
    }),
  ),
  logprobs: nullable(Type.Boolean()),
  top_logprobs: nullable(Type.Integer({ minimum: 0, maximum: 20 })),
  parallel_tool_calls: nullable(Type.Boolean()),
  functions: nullable(
    Type.Array(
      Type.Object({ name: functionName, description: nullable(bodyText), parameters: nullable(anyObject) }, open),
      { maxItems: maximumTools },
    ),
  ),
  function_call: nullable(Type.Union([oneOf(['none', 'auto']), Type.Object({ name: functionName }, open)])),
  user: nullable(Type.String({ maxLength: 512 })),
  safety_identifier: nullable(Type.String({ maxLength: 128 })),
})

/** Fields that are checked and go unchanged to upstreams that support them. */
const extraSchema = Type.Object({
  verbosity: nullable(oneOf(['low', 'medium', 'high'])),
  modalities: nullable(Type.Array(oneOf(['text'], 'unsupported_parameter'), { minItems: 1, maxItems: 2 })),
  audio: absent,
  prediction: nullable(anyObject),
  web_search_options: nullable(anyObject),
  service_tier: nullable(oneOf(['auto', 'default', 'flex', 'scale', 'priority', 'fast'])),
  store: nullable(Type.Boolean()),
  prompt_cache_key: promptCacheKey,
  prompt_cache_retention: nullable(oneOf(['in_memory', '24h'])),
  prompt_cache_options: nullable(anyObject),
  moderation: nullable(anyObject),
})

/** The body of `POST /v1/chat/completions`. */
export const compatibleSchema = Type.Object(
  { ...requestSchema.properties, ...extraSchema.properties },
  { ...open, title: 'CompletionRequest' },
)

type Body = Static<typeof compatibleSchema>

/** Names of the output cap, in order of precedence. */
const capFields = ['max_completion_tokens', 'max_tokens', 'max_output_tokens'] as const
const readHere = new Set(Object.keys(requestSchema.properties))

/** A chat request with the settings that the response depends on. */
export type CompatibleRequest = {
  readonly request: ChatRequest
  /** `stream_options.include_usage`. */
  readonly includeUsage: boolean
  /** The client sent `functions`: the response uses `function_call`. */
  readonly legacyFunctions: boolean
  /** Names of the free-text tools. */
  readonly customTools: ReadonlySet<string>
  /** The names that this client used for shared fields with other names in this API. */
  readonly spelling: Readonly<Record<string, string>>
}

/**
 * Parses a body and the `X-Gateway-*` headers, which take precedence. `bodyCharacters` is the length of the body's text.
 * Throws `invalid_request` or `unsupported_parameter` with the field at fault.
 */
export function readCompatible(
  value: unknown,
  headers: Headers,
  bodyCharacters: number,
  openReasoning?: ReasoningReader,
): CompatibleRequest {
  const { body: translated, names: customTools } = withoutCustomTools(value)
  const body = validate(compatibleSchema, translated)
  rejectStoredState(body)
  checkTogether(body)
  const preferences = readPreferences(body)
  const legacyFunctions = (body.functions?.length ?? 0) > 0
  const cap = capFields.find(name => body[name] != null)
  const fields = parseChatRequestFields(legacyFunctions ? withTools(body) : body, headers)
  // Without `stream` in the body the response is JSON: some clients send the stream header with every request.
  const streams = body.stream != null || body.stream_mode != null
  const request: ChatRequest = {
    ...withPreferences(fields, preferences),
    dialect: 'chat_completions',
    stream: streams ? fields.stream : null,
    messages: parseMessages(body.messages ?? null, body.prompt ?? null, openReasoning),
    maxOutputTokens: cap === undefined ? null : (body[cap] ?? null),
    presencePenalty: body.presence_penalty ?? null,
    frequencyPenalty: body.frequency_penalty ?? null,
    logitBias: body.logit_bias ?? null,
    logprobs: body.logprobs ?? false,
    topLogprobs: body.top_logprobs ?? null,
    choices: body.n ?? 1,
    // `function_call` holds one call.
    parallelToolCalls: legacyFunctions ? false : (body.parallel_tool_calls ?? null),
    endUser: body.safety_identifier ?? body.user ?? null,
    extras: getExtras(body, preferences.isRead),
    session: body.prompt_cache_key || fields.session,
    bodyCharacters,
  }
  if (request.stream === null && body.stream_options != null)
    throw invalidField('stream_options', 'requires `stream: true`. Remove it')
  const spelling = {
    ...(cap === undefined ? {} : { max_output_tokens: cap }),
    ...(legacyFunctions ? { tools: 'functions', tool_choice: 'function_call' } : {}),
  }
  return { request, includeUsage: body.stream_options?.include_usage ?? false, legacyFunctions, customTools, spelling }
}

function getExtras(body: Body, hasReadPreferences: boolean): ChatRequest['extras'] {
  const isExtra = (name: string) => !readHere.has(name) && !(hasReadPreferences && name === 'provider')
  if (!Object.keys(body).some(isExtra)) return noExtras
  return Object.fromEntries(Object.entries(body).filter(([name, field]) => isExtra(name) && field !== null))
}

const noExtras = {}

function checkTogether(body: Body): void {
  if (body.top_logprobs != null && body.logprobs !== true)
    throw invalidField('top_logprobs', 'requires `logprobs: true`')
  if (body.functions != null && body.tools != null)
    throw invalidField('functions', 'cannot be combined with `tools`. Move the functions into `tools`')
  if (typeof body.function_call === 'object' && body.function_call !== null) {
    const { name } = body.function_call
    const known = body.functions?.some(item => item.name === name) ?? false
    if (!known) throw invalidField('function_call.name', 'must match the name of a function in `functions`')
  }
}

/** Returns the body with tools instead of the deprecated functions. */
function withTools(body: Body): Body {
  const choice = body.function_call ?? null
  return {
    ...body,
    tools: (body.functions ?? []).map(item => ({ type: 'function', function: item })),
    tool_choice: choice !== null && typeof choice === 'object' ? { type: 'function', function: choice } : choice,
  }
}
