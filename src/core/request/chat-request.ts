/**
 * The part of a chat request with the same meaning on all endpoints: its fields as schemas, and their conversion to a
 * `ChatRequest`. Compatible endpoints allow unknown fields in objects and the native one does not, hence the factories.
 */
import { type Static, type TObject, Type } from '@sinclair/typebox'
import {
  type ChatRequest,
  continuePolicies,
  fallbackPolicies,
  type Message,
  type ResponseFormat,
  reasoningEfforts,
  strategies,
  streamModes,
  type Tool,
  type ToolChoice,
  toContinuation,
  toPolicy,
} from '../chat/chat.ts'
import { autoModel } from '../models/models.ts'
import { constraintsSchema, readConstraintsHeader, requestDemands } from '../policy/constraints.ts'
import { headerChoice, headerFlag, headerNumber, invalidField, nullable, oneOf } from '../validation/validate.ts'
import { bodyText, cacheMarkSchema, closedOrOpen, formatName, functionName, getCacheMark } from './part-schemas.ts'
import { findAgentSession, tagsOfHeaders } from './tags.ts'

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
    ...ofOneForm,
    messages,
    model: null,
    strategy: null,
    stream: null,
    maxOutputTokens: null,
    temperature: null,
    topP: null,
    seed: null,
    stop: [],
    tools: [],
    toolChoice: null,
    responseFormat: { type: 'text' },
    reasoningEffort: null,
    fallback: 'same_model',
    continuation: 'none',
    fallbackMaxCostFactor: usualFallbackCostFactor,
    web: 'off',
    hedge: null,
    enhance: false,
    testMode: false,
    metadata: null,
    tags: null,
    session: null,
    bodyCharacters: 0,
    ...fields,
  }
}

/** Returns the schemas of the shared fields. `additionalProperties` applies to every nested object. */
export function chatRequestFields(additionalProperties: boolean) {
  const object = closedOrOpen(additionalProperties)
  const jsonSchema = Type.Object({}, { additionalProperties: true })
  const named = object({
    type: oneOf(['function'], 'unsupported_parameter'),
    function: object({ name: functionName }),
  })
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
    continue: nullable(
      Type.Union([oneOf(continuePolicies)], {
        description:
          'who may continue a streamed text that is cut after its beginning was sent. `same_model` (the default): the model, also at other hosts and with other keys. `any`: other models too. `off`: the stream ends with an error. The strictest of request, key and account applies; `fallback` limits it too.',
      }),
    ),
    fallback_max_cost_factor: nullable(
      Type.Number({
        ...fallbackCostFactors,
        description: `how many times the expected cost of the named model its fallbacks may cost, ${usualFallbackCostFactor} by default`,
      }),
    ),
    constraints: nullable(constraintsSchema),
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
            name: formatName,
            description: nullable(bodyText),
            schema: nullable(jsonSchema),
            strict: nullable(Type.Boolean()),
          }),
        }),
      ]),
    ),
  }
}

type RequestFields = Static<TObject<ReturnType<typeof chatRequestFields>>>

/** Fields that only some API forms have. */
const ofOneForm = {
  source: null,
  presencePenalty: null,
  frequencyPenalty: null,
  logitBias: null,
  logprobs: false,
  topLogprobs: null,
  choices: 1,
  parallelToolCalls: null,
  endUser: null,
  extras: {},
} satisfies Partial<ChatRequest>

/** Parses the shared fields and the `X-Gateway-*` headers; a header overrides the body. Throws `invalid_request`. */
export function parseChatRequestFields(body: RequestFields, headers: Headers) {
  const noFallback = headerFlag(headers, 'X-Gateway-No-Fallback')
  const streamMode = headerChoice(headers, 'X-Gateway-Stream-Mode', streamModes) ?? body.stream_mode ?? null
  if (body.mode === autoModel && !isAuto(body.model ?? autoModel)) {
    throw invalidField('mode', `must not be "${autoModel}" beside another \`model\`: send one of the two`)
  }
  const session = findAgentSession(headers)
  const tools = readTools(body.tools ?? [])
  const choice = readToolChoice(body.tool_choice ?? null, tools)
  return {
    ...ofOneForm,
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
    continuation: toContinuation(
      headerChoice(headers, 'X-Gateway-Continue', continuePolicies) ?? body.continue ?? null,
    ),
    fallbackMaxCostFactor:
      headerNumber(headers, 'X-Gateway-Fallback-Max-Cost-Factor', fallbackCostFactors) ??
      body.fallback_max_cost_factor ??
      usualFallbackCostFactor,
    web: headerChoice(headers, 'X-Gateway-Web', ['auto', 'off']) ?? body.web ?? 'auto',
    hedge: toSwitch(headerChoice(headers, 'X-Gateway-Hedge', ['on', 'off'])),
    enhance: headerFlag(headers, 'X-Gateway-Enhance') ?? body.enhance_prompt ?? false,
    testMode: headerFlag(headers, 'X-Gateway-Test-Mode') ?? body.test_mode ?? false,
    metadata: body.metadata == null ? null : storable(body.metadata),
    session,
    tags: tagsOfHeaders(headers, session),
    ...requestDemands(body.constraints, readConstraintsHeader(headers)),
  } satisfies Partial<ChatRequest>
}

function toSwitch(choice: 'on' | 'off' | null): boolean | null {
  return choice === null ? null : choice === 'on'
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

function readTools(wireTools: NonNullable<RequestFields['tools']>): readonly Tool[] {
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
      ...getCacheMark(tool),
    }
  })
}

type ToolChoiceField = Exclude<RequestFields['tool_choice'], undefined>

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

function readResponseFormat(format: Exclude<RequestFields['response_format'], undefined>): ResponseFormat {
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
