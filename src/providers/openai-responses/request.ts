import type {
  ChatRequest,
  ContentPart,
  Message,
  ReasoningEffort,
  ReasoningItem,
  SourceBody,
  Tool,
  TurnChange,
} from '../../core/chat/chat.ts'
import { isSendableField, ownFields } from '../../core/chat/provider-features.ts'
import { isDemanding, isTokenPricedTool } from '../../core/chat/tool-definitions.ts'
import type { Model, ParameterRules } from '../../core/models/models.ts'
import { type ConversationStep, getSteps, placeholderTexts } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { encoded, getText, isRecord, isText, type Json, record, records } from '../json.ts'
import { getDialect, namesJson, toolIdsFor } from '../openai/conversation.ts'
import { endpointAt, formatFor, looseTools, officialValues } from '../openai/request.ts'
import { droppedNames, nearestEffort, parametersFor } from '../parameters.ts'
import type { Access, AdapterRequest, ProviderRequest } from '../provider.ts'
import { isStrict } from '../schemas.ts'

/** Returns the client's input with the gateway's changes to its last turn; null = that turn is no text of the user. */
function getInput({ fields: { input }, turn }: SourceBody): unknown {
  if (turn === undefined) return input
  if (typeof input === 'string') return [{ role: 'user', content: contentWith(input, turn) }]
  if (!Array.isArray(input)) return null
  const item = record(input.at(-1))
  const content = contentWith(item.content, turn)
  return item.role !== 'user' || content === null ? null : input.with(-1, { ...item, content })
}

function contentWith(content: unknown, { before, text }: TurnChange): readonly Json[] | null {
  const parts: readonly unknown[] = isText(content) ? [{ type: 'input_text', text: content }] : []
  const all = Array.isArray(content) ? content : parts
  const at = all.findIndex(part => isTextType(record(part).type))
  if (at === -1) return null
  const own = record(all[at])
  const added = before === undefined ? [] : [{ type: 'input_text', text: before }]
  return [...all.slice(0, at), ...added, { ...own, text: text ?? own.text }, ...all.slice(at + 1)].map(record)
}

function isTextType(type: unknown): boolean {
  return getText(type) === 'input_text' || getText(type) === 'text'
}

/** The conversation as items. */
export function inputFor(messages: readonly Message[], rules: ParameterRules): readonly Json[] {
  const callId = toolIdsFor(getDialect('', true))
  return getSteps(messages).flatMap(step => stepItems(step, rules, callId))
}

function stepItems(step: ConversationStep, rules: ParameterRules, callId: (id: string) => string): readonly Json[] {
  switch (step.role) {
    case 'system':
      return [{ role: rules.systemRole, content: step.text }]
    case 'user':
      return [{ role: 'user', content: step.content.map(partFor) }]
    case 'assistant': {
      const { text, reasoningItems = [], exchanges } = step
      const calls = exchanges.map(({ call }) => ({
        type: 'function_call',
        call_id: callId(call.id),
        name: call.name,
        arguments: call.arguments || '{}',
      }))
      const results = exchanges.map(({ call, result }) => ({
        type: 'function_call_output',
        call_id: callId(call.id),
        output: result ?? placeholderTexts.missingResult,
      }))
      const said = text !== null && text !== '' ? [{ role: 'assistant', content: text }] : []
      return [...reasoningItems.flatMap(carriedReasoning), ...said, ...calls, ...results]
    }
  }
}

/** Reasoning of another family means nothing here. */
function carriedReasoning({ family, text, data, id }: ReasoningItem): readonly Json[] {
  if (family !== 'openai' || data === '') return []
  const summary = text === '' ? [] : [{ type: 'summary_text', text }]
  return [{ type: 'reasoning', id: id ?? undefined, summary, encrypted_content: data }]
}

function partFor(part: ContentPart): Json {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'file':
      return { type: 'input_file', filename: part.name || 'document.pdf', file_data: part.url }
  }
}

/** What this form has no word for. */
const wordless = {
  penalties: false,
  seed: false,
  logitBias: false,
  maximumStops: 0,
  maximumChoices: 1,
} satisfies Partial<ParameterRules>

/** Less is refused by the API with 400. */
const leastOutputCap = 16

/**
 * The request. Of a client that speaks this form all goes through as it came but for what the gateway answers for: the model, the
 * output cap, that nothing is stored, and what would be charged apart from tokens.
 */
export function toResponsesRequest(
  { request, model, outputCap, stream }: AdapterRequest,
  access: Access,
): ProviderRequest {
  const rules = model.parameters
  const own = request.source?.dialect === 'responses' ? request.source : null
  // If the gateway changed more of the conversation than its last turn, the client's own input is outdated.
  const ownInput = own !== null && own.messages === request.messages ? getInput(own) : null
  const source = ownInput === null ? null : own
  const effort =
    request.reasoningEffort === null ? null : nearestEffort(request.reasoningEffort, rules.efforts.toReversed())
  const parameters = parametersFor(request, { ...rules, ...wordless }, effort === null ? null : effort !== 'none')
  const { dropped } = parameters
  if (request.reasoningEffort !== null && effort === null) dropped.add('reasoning_effort')
  const extras = passedFields(own?.fields ?? null, request.extras, model)
  const tools = toolsFor(request, own?.fields ?? {}, source !== null)
  // Tools may be declared within the input.
  const withTools = tools.sent.length > 0 || request.tools.length > 0
  const { field: format, instruction, lesser } = formatFor(request.responseFormat, rules.responseFormat)
  if (lesser) dropped.add('response_format')
  const needsWord = instruction !== null && !(instruction.unlessJsonIsNamed && request.messages.some(namesJson))
  const input = ownInput ?? inputFor(request.messages, rules)
  const body: Json = {
    ...extras.sent,
    model: model.id,
    instructions: source?.fields.instructions ?? undefined,
    input: needsWord ? [...getItems(input), { role: rules.systemRole, content: instruction.text }] : input,
    stream: stream || undefined,
    store: false,
    include: includeFor(own?.fields ?? {}, model, parameters.logprobs === true),
    max_output_tokens: Math.max(leastOutputCap, outputCap),
    temperature: parameters.temperature,
    top_p: parameters.topP,
    top_logprobs: parameters.topLogprobs,
    tools: tools.sent.length > 0 ? tools.sent : undefined,
    tool_choice: withTools ? toolChoiceFor(request, source?.fields ?? null) : undefined,
    parallel_tool_calls: withTools ? (request.parallelToolCalls ?? undefined) : undefined,
    reasoning: reasoningFor(own?.fields ?? {}, effort, model),
    text: textFor(request, format, model),
    safety_identifier: request.endUser?.slice(0, 128),
  }
  return {
    ...endpointAt(access, true, { path: 'responses', stream }),
    body: encoded(body),
    droppedParameters: droppedNames(dropped, [...extras.dropped, ...tools.dropped]),
  }
}

function getItems(input: unknown): readonly unknown[] {
  return Array.isArray(input) ? input : [{ role: 'user', content: getText(input) }]
}

/** Fields that the adapter rewrites, that belong to the gateway, or that refer to stored objects. */
const handled: ReadonlySet<string> = new Set(
  `model input instructions tools tool_choice parallel_tool_calls include max_output_tokens temperature top_p top_logprobs text
  reasoning store stream background previous_response_id conversation prompt safety_identifier user mode strategy stream_mode
  enhance_prompt test_mode fallback continue fallback_max_cost_factor web`.split(/\s+/),
)
/** Fields of this form that another form of the gateway's has a meaning of its own for. */
const alsoHere: ReadonlySet<string> = new Set(['metadata', 'stream_options'])
/** Fields of Chat Completions that mean the same here. */
const sharedExtras: ReadonlySet<string> = new Set(
  'service_tier prompt_cache_key prompt_cache_retention prompt_cache_options moderation'.split(' '),
)

type Passed = { readonly sent: Json; readonly dropped: readonly string[] }

/** The client's own fields; of another form's only those that this one shares. */
function passedFields(fields: Json | null, extras: ChatRequest['extras'], model: Model): Passed {
  if (fields === null) {
    const { sent, dropped } = sortExtras('openai', extras, { takes: (name, value) => takes(name, value, model) })
    const shared = Object.entries(sent).filter(([name]) => sharedExtras.has(name))
    const lost = Object.keys(sent).filter(name => !sharedExtras.has(name) && name !== 'verbosity')
    return { sent: Object.fromEntries(shared), dropped: [...dropped, ...lost] }
  }
  const sent: [string, unknown][] = []
  const dropped: string[] = []
  for (const [name, value] of Object.entries(fields)) {
    if (value == null || handled.has(name) || (ownFields.has(name) && !alsoHere.has(name))) continue
    if (name === 'stream_options' && fields.stream !== true) continue
    if (isSendableField('responses', name, value) && takes(name, value, model)) sent.push([name, value])
    else dropped.push(name)
  }
  return { sent: Object.fromEntries(sent), dropped }
}

function takes(name: string, value: unknown, model: Model): boolean {
  return !Object.hasOwn(officialValues, name) || (officialValues[name]?.(value, model) ?? true)
}

/** Nothing is stored at OpenAI, so what a later turn needs of its reasoning comes back with the answer. */
function includeFor({ include }: Json, { capabilities }: Model, logprobs: boolean): readonly string[] | undefined {
  const wanted = new Set(Array.isArray(include) ? include.filter(name => typeof name === 'string') : [])
  if (capabilities.reasoning) wanted.add('reasoning.encrypted_content')
  else wanted.delete('reasoning.encrypted_content')
  if (!logprobs) wanted.delete('message.output_text.logprobs')
  return wanted.size === 0 ? undefined : [...wanted]
}

function reasoningFor({ reasoning }: Json, effort: ReasoningEffort | null, { capabilities }: Model): Json | undefined {
  if (!capabilities.reasoning) return undefined
  const given = record(reasoning)
  return effort === null && Object.keys(given).length === 0 ? undefined : { ...given, effort: effort ?? undefined }
}

/** The format is flat here. */
function textFor(request: ChatRequest, format: Json | undefined, model: Model): Json | undefined {
  const { verbosity } = request.extras
  const isTaken = verbosity != null && takes('verbosity', verbosity, model)
  if (format === undefined && !isTaken) return undefined
  const { json_schema: schema, ...rest } = format ?? {}
  return {
    format: format === undefined ? undefined : { ...rest, ...record(schema) },
    verbosity: isTaken ? verbosity : undefined,
  }
}

/** Verbatim where the tools are as the client declared them; else as functions, without OpenAI's own: they hold unmasked texts. */
function toolsFor(
  request: ChatRequest,
  fields: Json,
  isVerbatim: boolean,
): { readonly sent: readonly Json[]; readonly dropped: readonly string[] } {
  const given = records(fields.tools)
  const refused = given.filter(tool => !isTokenPricedTool(tool)).map(({ type }) => getText(type))
  const kept = given.filter(isTokenPricedTool)
  const dropped = refused.filter(type => !type.startsWith('web_search')).map(type => `tools.${type}`)
  if (isVerbatim) return { sent: kept, dropped }
  const hosted = kept.map(({ type }) => getText(type)).filter(type => !clientTools.has(type))
  return {
    sent: request.tools.map(functionFor),
    dropped: [...dropped, ...hosted.map(type => `tools.${type}`), ...looseTools(request.tools)],
  }
}

const clientTools: ReadonlySet<string> = new Set(['function', 'custom', 'namespace', 'tool_search'])

function functionFor({ name, description, parameters, strict }: Tool): Json {
  return {
    type: 'function',
    name,
    description: description ?? undefined,
    parameters: parameters ?? { type: 'object', properties: {} },
    // A missing value means true in this API and false in Chat Completions.
    strict: isStrict(strict, parameters ?? {}),
  }
}

function toolChoiceFor({ toolChoice }: ChatRequest, fields: Json | null): unknown {
  const given = fields?.tool_choice
  if (fields === null)
    return isDemanding(toolChoice) && toolChoice !== 'required'
      ? { type: 'function', name: toolChoice.name }
      : (toolChoice ?? undefined)
  // The gateway's own search has taken its place.
  return isRecord(given) && getText(given.type).startsWith('web_search') ? 'auto' : (given ?? undefined)
}
