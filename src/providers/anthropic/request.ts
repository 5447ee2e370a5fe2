import type { Message, SourceBody, Tool, ToolChoice } from '../../core/chat/chat.ts'
import { isSendableField } from '../../core/chat/provider-features.ts'
import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { Model } from '../../core/models/models.ts'
import { remembered } from '../../core/text/recent-map.ts'
import { calledNames, isVisible } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { encoded, type Json } from '../json.ts'
import { withPromptMarks } from '../marked-prompt.ts'
import { callInstruction, droppedNames, mayForce, nonEmpty, parametersFor, rulesOfOthers } from '../parameters.ts'
import type { Access, AdapterRequest, ProviderRequest } from '../provider.ts'
import { anthropicTurnsFor, textBlock, withMark } from './conversation.ts'
import { type Reasoning, reasoningFor } from './reasoning.ts'
import {
  closed,
  isClosable,
  type JsonAnswer,
  jsonAnswerFor,
  jsonAnswerTool,
  jsonLines,
  objectSchema,
} from './schema.ts'
import { countBody, modelFields, ownBody, ownSource, withMembers } from './source-body.ts'

type WireChoice = {
  readonly type: string
  readonly name?: string | undefined
  readonly disable_parallel_tool_use?: true | undefined
}

/**
 * Returns the tools and the tool choice. A history with calls requires tools even if the client offers none now: they
 * are derived from it and cannot be called.
 */
function toolsFor(
  { request, model }: AdapterRequest,
  json: JsonAnswer,
): { readonly tools: readonly Json[]; readonly choice: WireChoice | null } {
  const strictTools = model.parameters.responseFormat === 'json_schema'
  const offered = request.tools.map(tool => withMark(toolFor(tool, strictTools), tool.cache))
  const tools = offered.length > 0 ? offered : rememberedTools(request.messages)
  const disable_parallel_tool_use = request.parallelToolCalls === false || undefined
  if (json.kind === 'tool') {
    const { schema: parameters, description } = json
    const answer = toolFor({ name: jsonAnswerTool, description, parameters, strict: false }, false)
    const orOffered = offered.length > 0 && request.toolChoice !== 'none'
    const choice: WireChoice = orOffered
      ? { type: 'any', disable_parallel_tool_use }
      : { type: 'tool', name: jsonAnswerTool, disable_parallel_tool_use: true }
    return { tools: [...tools, answer], choice }
  }
  if (tools.length === 0) return { tools, choice: null }
  if (offered.length === 0 || request.toolChoice === 'none') return { tools, choice: { type: 'none' } }
  if (request.toolChoice === null && disable_parallel_tool_use === undefined) return { tools, choice: null }
  return { tools, choice: { ...choiceFor(request.toolChoice ?? 'auto'), disable_parallel_tool_use } }
}

function choiceFor(choice: Exclude<ToolChoice, 'none'>): WireChoice {
  switch (choice) {
    case 'auto':
      return { type: choice }
    case 'required':
      return { type: 'any' }
    default:
      return { type: 'tool', name: choice.name }
  }
}

/** Returns true if the choice leaves the model no text output. */
function isForced(choice: WireChoice | null): choice is WireChoice {
  return choice?.type === 'any' || choice?.type === 'tool'
}

function rememberedTools(messages: readonly Message[]): readonly Json[] {
  return calledNames(messages).map(name => ({ name, input_schema: objectSchema({}) }))
}

function toolFor(tool: Tool, strictTools: boolean): Json {
  const parameters = tool.parameters ?? {}
  const strict = strictTools && tool.strict === true && isClosable(objectSchema(parameters))
  const { anyOf, oneOf, allOf, ...plain } = parameters
  // The API rejects these at the root of a tool's schema. The model still follows them in the description.
  const alternatives = JSON.stringify({ anyOf, oneOf, allOf })
  const note = alternatives === '{}' ? '' : `Arguments must also satisfy: ${alternatives}`
  const schema = objectSchema(plain)
  return {
    name: tool.name,
    description: [tool.description ?? '', note].filter(isVisible).join('\n') || undefined,
    input_schema: strict ? closed(schema) : schema,
    strict: strict || undefined,
  }
}

/** Builds the request: the client's own body if it has this form, otherwise a translation. */
export function toAnthropicRequest(question: AdapterRequest, access: Access): ProviderRequest {
  const source = ownSource(question)
  let translation: Translation | null = null
  const translated = () => (translation ??= translatedBody(question))
  const own = source === null ? null : ownBody(question, source, () => modelFields(translated().body))
  return {
    url: `${getOrigin(access)}/v1/messages`,
    headers: headersFor(access, own === null ? null : source),
    body: own?.text ?? encoded(translated().body),
    droppedParameters: own === null ? translated().dropped : droppedNames(noneDropped, own.dropped),
  }
}

/** The request for a count of a client's own body. */
export function countRequest(source: SourceBody, model: Model, access: Access) {
  return {
    url: `${getOrigin(access)}/v1/messages/count_tokens`,
    headers: headersFor(access, source),
    body: countBody(source, model),
  }
}

/** The request for the list of models. */
export function toAnthropicList(access: Access) {
  return { url: `${getOrigin(access)}/v1/models`, headers: headersFor(access, null) }
}

/** Remembered, since a server's URL does not change while the gateway runs. */
const getOrigin = remembered(({ baseUrl }: Access): string => baseUrl.replace(/\/+$/, '').replace(/\/v1$/, ''))

/** A beta's header goes with its fields: one without the other is refused. */
function headersFor({ apiKey }: Access, source: SourceBody | null): ProviderRequest['headers'] {
  return {
    'content-type': 'application/json',
    'anthropic-version': '2023-06-01',
    ...source?.headers,
    ...(apiKey !== null && { 'x-api-key': apiKey }),
  }
}

const noneDropped: ReadonlySet<never> = new Set()

type Translation = { readonly body: Json; readonly dropped: readonly string[] }

/** Fields of the Messages form that apply wherever the rest of the body came from. */
const passedFields = ['top_k', 'service_tier']

function translatedBody(asked: AdapterRequest): Translation {
  const { model, outputCap, stream } = asked
  const { messages, tools: markedTools, droppedMarks } = withPromptMarks(asked.request, asked.cacheMarks ?? null)
  const isMarked = messages !== asked.request.messages
  const request = isMarked ? { ...asked.request, messages, tools: markedTools } : asked.request
  const question = isMarked ? { ...asked, request } : asked
  const rules = model.parameters
  const json = jsonAnswerFor(question)
  const { tools, choice: wantedChoice } = toolsFor(question, json)
  const reasoning = reasoningFor(question, isForced(wantedChoice))
  const thinks = reasoning.thinking !== null && reasoning.thinking.type !== 'disabled'
  const unforced = isForced(wantedChoice) && !mayForce(rules, thinks)
  const choice = unforced ? { ...wantedChoice, type: 'auto', name: undefined } : wantedChoice
  const parameters = parametersFor(request, rulesOfOthers(rules), thinks)
  const stops = parameters.stops?.filter(isVisible) ?? []
  const lines = [...jsonLines(json), ...(unforced ? [callInstruction(wantedChoice.name)] : [])]
  const samples = rules.sampling === 'accepted' || (!thinks && rules.sampling === 'accepted_when_thinking_disabled')
  const extras = sortExtras('anthropic', request.extras, {
    listed: request.dialect === 'messages' ? passedFields : [],
    takes: (name, value) => (name !== 'top_k' || samples) && isSendableField('messages', name, value),
  })
  const system = [...systemBlocks(request.messages), ...lines.map(textBlock)]
  const prefill = rules.prefill && !thinks && !isForced(choice) && json.kind !== 'native'
  const turns = anthropicTurnsFor(request.messages, prefill)

  const body = {
    model: model.id,
    max_tokens: outputCap,
    stream,
    system: nonEmpty(system),
    messages: turns.map(({ role, parts }) => ({ role, content: parts })),
    tools: nonEmpty(tools),
    tool_choice: choice ?? undefined,
    temperature: parameters.temperature,
    top_p: parameters.topP,
    stop_sequences: nonEmpty(stops),
    thinking: reasoning.thinking ?? undefined,
    output_config: outputConfigFor(reasoning, json),
    metadata: isOpaqueUser(request.endUser) ? { user_id: request.endUser } : undefined,
    ...extras.sent,
  }

  const { dropped } = parameters
  if (stops.length < (parameters.stops?.length ?? 0)) dropped.add('stop')
  if (unforced) dropped.add(json.kind === 'tool' ? 'response_format' : 'tool_choice')
  if (request.tools.length === 0 && isDemanding(request.toolChoice)) dropped.add('tool_choice')
  if (json.kind === 'line' && json.schema !== null) dropped.add('response_format')
  if (reasoning.dropped) dropped.add('reasoning_effort')

  return {
    body,
    dropped: droppedNames(
      dropped,
      [...extras.dropped, ...droppedMarks],
      request.source?.dialect === 'responses' ? request.source : null,
    ),
  }
}

/** Returns the system texts as blocks. */
function systemBlocks(messages: readonly Message[]): readonly Json[] {
  return messages.flatMap(message =>
    message.role === 'system' && isVisible(message.text) ? [withMark(textBlock(message.text), message.cache)] : [],
  )
}

function outputConfigFor({ effort }: Reasoning, json: JsonAnswer): Json | undefined {
  if (effort === null && json.kind !== 'native') return undefined
  return {
    effort: effort ?? undefined,
    format: json.kind === 'native' ? { type: 'json_schema', schema: json.schema } : undefined,
  }
}

/**
 * Returns true for an allowed user ID. The provider's terms forbid email addresses, and IDs have at most 256
 * characters.
 */
function isOpaqueUser(user: string | null): user is string {
  return user !== null && isVisible(user) && user.length <= 256 && !user.includes('@')
}

/**
 * Claude on another company's cloud: the Messages body as Anthropic takes it, with the model in the URL and the version
 * in the body. The client's own text stays, so that prompt caches and signatures stay valid.
 */

type Host = {
  /** `anthropic_version` of the body. */
  readonly version: string
  /** Whether the body says that the response is streamed; otherwise the URL does. */
  readonly namesStream: boolean
  /** Betas that the host takes in the body; null = in the header, like Anthropic itself. */
  readonly bodyBetas: RegExp | null
}

/** The request without its URL. */
type HostedRequest = Omit<ProviderRequest, 'url'>

const unaddressed: Access = { baseUrl: '', apiKey: null }

/** Returns the request for a host. */
export function toHostedRequest(question: AdapterRequest, host: Host): HostedRequest {
  const { headers, body, droppedParameters } = toAnthropicRequest(question, unaddressed)
  const betas = headers['anthropic-beta'] ?? ''
  const inBody = host.bodyBetas === null ? [] : namesIn(betas).filter(name => host.bodyBetas?.test(name))
  return {
    headers: {
      'content-type': 'application/json',
      ...(host.bodyBetas === null && betas !== '' && { 'anthropic-beta': betas }),
    },
    body: withMembers(body, {
      model: undefined,
      anthropic_version: host.version,
      // A mark of the gateway for the whole body, which hosts do not take. Marks at blocks they take.
      ...(question.cacheMarks === undefined ? {} : { cache_control: undefined }),
      ...(host.namesStream ? {} : { stream: undefined }),
      ...(inBody.length > 0 && { anthropic_beta: inBody }),
    }),
    droppedParameters,
  }
}

function namesIn(header: string): readonly string[] {
  return header
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
}
