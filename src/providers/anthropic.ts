/**
 * Anthropic's Messages API.
 *
 * It is stricter about a conversation than the house's language: turns alternate and begin with the user's, no text is
 * empty, every tool call meets its result in the very next turn. So the conversation is rebuilt as turns of two lanes
 * (what must come first in a turn, and what follows), which makes an invalid one impossible rather than repaired.
 *
 * Given up: thinking of earlier turns (a chat-completions caller holds no signatures for it), names of participants,
 * image detail, and results of tools that run on Anthropic's side.
 */
import {
  type AttemptFailure,
  type ContentPart,
  type FinishReason,
  type Message,
  type ReasoningEffort,
  reasoningEfforts,
  type TokenUsage,
  type Tool,
  type ToolChoice,
} from '../core/chat.ts'
import type { ParameterRules } from '../core/models.ts'
import { failureOf, identifierOf, isContextOverflow, isQuotaExhausted, kindOfStatus, retryAfterOf } from './failure.ts'
import type {
  Access,
  AnswerPart,
  Provider,
  ProviderAsk,
  ProviderFailure,
  ProviderRequest,
  StreamReader,
} from './provider.ts'
import type { ServerSentEvent } from './sse.ts'

export const anthropic: Provider = { toRequest, readResponse, streamReader, readFailure }

/**
 * Where a model cannot be held to a JSON schema, it is made to call this tool, and the reader hands the call's input out
 * as text. A reader knows nothing of its request, hence a name that no caller's tool will bear.
 */
export const jsonAnswerTool = 'gateway_respond_in_json'

// ─── The request ────────────────────────────────────────────────────────────────────────────────────────────────────

type Json = Readonly<Record<string, unknown>>
type Turn = { readonly role: 'user' | 'assistant'; readonly first: Json[]; readonly rest: Json[] }

function toRequest(question: ProviderAsk, access: Access): ProviderRequest {
  const { ask, model, outputCap, stream } = question
  const rules = model.parameters
  const turns = turnsOf(ask.messages)
  const json = jsonAnswerOf(question)
  const { tools, choice: wantedChoice } = toolsOf(question, turns, json)
  const reasoning = reasoningOf(question, turns, isForced(wantedChoice))
  const thinks = reasoning.thinking !== null && reasoning.thinking.type !== 'disabled'
  const unforced = isForced(wantedChoice) && !mayForce(rules, thinks)
  const choice = unforced ? { ...wantedChoice, type: 'auto', name: undefined } : wantedChoice
  const sampled = rules.sampling === 'accepted' || (rules.sampling !== 'rejected' && !thinks)
  const temperature = sampled ? ask.temperature : null
  const topP = sampled && (temperature === null || rules.temperatureWithTopP) ? ask.topP : null
  const stops = ask.stop.filter(isVisible).slice(0, rules.maximumStops)
  const prefill = rules.prefill && !thinks && !isForced(choice) && json.kind !== 'native'

  const body = {
    model: model.id,
    max_tokens: outputCap,
    stream,
    system: orAbsent(
      [...systemTexts(ask.messages), ...jsonLines(json), ...(unforced ? [forcedLine(wantedChoice)] : [])].map(
        textBlock,
      ),
    ),
    messages: conversationOf(turns, prefill),
    tools: orAbsent(tools),
    tool_choice: choice ?? undefined,
    temperature: temperature === null ? undefined : Math.min(temperature, rules.maximumTemperature),
    top_p: topP ?? undefined,
    stop_sequences: orAbsent(stops),
    thinking: reasoning.thinking ?? undefined,
    output_config: outputConfigOf(reasoning.effort, json),
    metadata: isOpaqueUser(ask.endUser) ? { user_id: ask.endUser } : undefined,
  }

  const lost = {
    n: ask.choices > 1,
    seed: ask.seed !== null,
    logprobs: ask.logprobs,
    top_logprobs: ask.topLogprobs !== null,
    logit_bias: ask.logitBias !== null,
    presence_penalty: ask.presencePenalty !== null,
    frequency_penalty: ask.frequencyPenalty !== null,
    temperature: ask.temperature !== null && temperature === null,
    top_p: ask.topP !== null && topP === null,
    stop: stops.length < ask.stop.filter(text => text !== '').length,
    tool_choice: (unforced && json.kind !== 'tool') || (ask.tools.length === 0 && isDemanding(ask.toolChoice)),
    response_format: (unforced && json.kind === 'tool') || (json.kind === 'line' && json.schema !== null),
    reasoning_effort: reasoning.dropped,
  }

  return {
    url: `${access.baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')}/v1/messages`,
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...(access.apiKey === null ? {} : { 'x-api-key': access.apiKey }),
    },
    body: encoded(body),
    droppedParameters: Object.entries(lost).flatMap(([name, isLost]) => (isLost ? [name] : [])),
  }
}

// ─── Turns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The API wants a visible text in each of these places, whatever the caller left out. */
const fillers = {
  opening: 'Begin.',
  emptyTurn: '(The message was empty.)',
  continuation: 'Continue.',
  missingResult: 'The tool gave no result.',
} as const

/**
 * User and assistant turns in strict alternation. A turn's `first` lane holds what the API wants ahead of the rest: an
 * assistant's text before its calls, the results of those calls before what the user adds.
 */
function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = []
  const toWireId = wireIds()
  /** Calls of the last assistant turn still without a result; several may share one id of the caller's. */
  const waiting = new Map<string, string[]>()

  const turnOf = (role: Turn['role']): Turn => {
    const last = turns.at(-1)
    if (last?.role === role) return last
    const opened: Turn = { role, first: [], rest: [] }
    turns.push(opened)
    return opened
  }
  const settleCalls = (): void => {
    for (const id of [...waiting.values()].flat()) {
      turnOf('user').first.push({
        type: 'tool_result',
        tool_use_id: id,
        content: fillers.missingResult,
        is_error: true,
      })
    }
    waiting.clear()
  }

  for (const message of messages) {
    switch (message.role) {
      case 'system':
        break
      case 'user': {
        const turn = turnOf('user')
        for (const part of message.content) if (isSendable(part)) turn.rest.push(partBlock(part))
        break
      }
      case 'assistant': {
        const hasText = message.text !== null && isVisible(message.text)
        if (!hasText && message.toolCalls.length === 0) break
        // Calls of assistant messages in a row wait together: some clients write parallel calls as one message each.
        if (turns.at(-1)?.role === 'user') settleCalls()
        const turn = turnOf('assistant')
        if (hasText) turn.first.push(textBlock(message.text))
        for (const call of message.toolCalls) {
          const id = toWireId(call.id)
          turn.rest.push({ type: 'tool_use', id, name: wireName(call.name), input: argumentsOf(call.arguments) })
          const queue = waiting.get(call.id)
          if (queue === undefined) waiting.set(call.id, [id])
          else queue.push(id)
        }
        break
      }
      case 'tool': {
        const id = waiting.get(message.callId)?.shift()
        const turn = turnOf('user')
        const hasText = isVisible(message.text)
        if (id !== undefined) {
          turn.first.push({ type: 'tool_result', tool_use_id: id, ...(hasText ? { content: message.text } : {}) })
        } else if (hasText) {
          turn.rest.push(textBlock(`Result of an earlier tool call:\n${message.text}`))
        }
        break
      }
      default:
        return message satisfies never
    }
  }
  settleCalls()
  return turns
}

/** The turns as the wire has them: the first and the last one the user's, none empty. */
function conversationOf(turns: readonly Turn[], prefill: boolean): Json[] {
  const messages = turns.map(({ role, first, rest }) => ({ role, content: [...first, ...rest] }))
  for (const message of messages) if (message.content.length === 0) message.content.push(textBlock(fillers.emptyTurn))
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: [textBlock(fillers.opening)] })
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return messages
  // A last turn of the assistant's never holds calls: their results, missing ones too, made a user turn after it.
  if (!prefill) return [...messages, { role: 'user', content: [textBlock(fillers.continuation)] }]
  const text = last.content.pop()?.text
  last.content.push(textBlock(String(text).trimEnd()))
  return messages
}

function systemTexts(messages: readonly Message[]): string[] {
  return messages.flatMap(message => (message.role === 'system' && isVisible(message.text) ? [message.text] : []))
}

function isSendable(part: ContentPart): boolean {
  return part.type === 'image' || isVisible(part.text)
}

function partBlock(part: ContentPart): Json {
  return part.type === 'text' ? textBlock(part.text) : { type: 'image', source: imageSource(part.url) }
}

const imageTypes = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

/**
 * Data of a kind that the API does not show (svg, not base64) stays an address, which the API refuses as the caller's
 * mistake: an answer that pretends to have seen the image would be worse.
 */
function imageSource(url: string): Json {
  const comma = url.slice(0, 256).indexOf(',')
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== 'data:') return { type: 'url', url }
  const [mediaType = '', ...attributes] = url
    .slice(5, comma)
    .toLowerCase()
    .split(';')
    .map(field => field.trim())
  const known = imageTypes.get(mediaType)
  if (known === undefined || attributes.at(-1) !== 'base64') return { type: 'url', url }
  return { type: 'base64', media_type: known, data: url.slice(comma + 1) }
}

/** Ids as the API takes them, each once in a request: other providers' hold `:` or `|`, are longer, or repeat. */
function wireIds(): (id: string) => string {
  const taken = new Set<string>()
  return id => {
    const clean = wireName(id)
    let unique = clean
    for (let count = taken.size; taken.has(unique); count++) {
      const suffix = `_${count}`
      unique = clean.slice(0, 64 - suffix.length) + suffix
    }
    taken.add(unique)
    return unique
  }
}

function wireName(name: string): string {
  return name.slice(0, 64).replace(/[^a-zA-Z0-9_-]/g, '_') || 'unnamed'
}

function argumentsOf(text: string): Json {
  const value = parsed(text)
  return isRecord(value) ? value : {}
}

// ─── Tools ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type WireChoice = {
  readonly type: string
  readonly name?: string | undefined
  readonly disable_parallel_tool_use?: true | undefined
}

/**
 * What may be called, and what must be. A history with calls needs tools on the wire even where the caller offers none
 * any more: they are named from it, and not to be called.
 */
function toolsOf(
  { ask, model }: ProviderAsk,
  turns: readonly Turn[],
  json: JsonAnswer,
): { readonly tools: readonly Json[]; readonly choice: WireChoice | null } {
  const offered = ask.tools.map(tool => toolOf(tool, model.parameters.responseFormat === 'json_schema'))
  const remembered = offered.length > 0 ? [] : rememberedTools(turns)
  const tools = [...offered, ...remembered]
  const disable_parallel_tool_use = ask.parallelToolCalls === false ? true : undefined
  if (json.kind === 'tool') {
    const { schema: parameters, description } = json
    const answer = toolOf({ name: jsonAnswerTool, description, parameters, strict: false }, false)
    const orOffered = offered.length > 0 && ask.toolChoice !== 'none'
    const choice: WireChoice = orOffered
      ? { type: 'any', disable_parallel_tool_use }
      : { type: 'tool', name: jsonAnswerTool, disable_parallel_tool_use: true }
    return { tools: [...tools, answer], choice }
  }
  if (tools.length === 0) return { tools, choice: null }
  if (offered.length === 0 || ask.toolChoice === 'none') return { tools, choice: { type: 'none' } }
  if (ask.toolChoice === null && disable_parallel_tool_use === undefined) return { tools, choice: null }
  return { tools, choice: { ...wireChoice(ask.toolChoice ?? 'auto'), disable_parallel_tool_use } }
}

function wireChoice(choice: ToolChoice): WireChoice {
  switch (choice) {
    case 'auto':
    case 'none':
      return { type: choice }
    case 'required':
      return { type: 'any' }
    default:
      return { type: 'tool', name: choice.name }
  }
}

function isDemanding(choice: ToolChoice | null): boolean {
  return choice !== null && choice !== 'auto' && choice !== 'none'
}

function isForced(choice: WireChoice | null): choice is WireChoice {
  return choice?.type === 'any' || choice?.type === 'tool'
}

function mayForce(rules: ParameterRules, thinks: boolean): boolean {
  switch (rules.forcedToolChoice) {
    case 'accepted':
      return true
    case 'rejected':
      return false
    case 'rejected_when_thinking':
      return !thinks
    default:
      return rules.forcedToolChoice satisfies never
  }
}

/** Asks in words for what may not be forced. */
function forcedLine(choice: WireChoice): string {
  return choice.name === undefined
    ? 'Answer by calling one of the tools.'
    : `Answer by calling the tool \`${choice.name}\`.`
}

function rememberedTools(turns: readonly Turn[]): Json[] {
  const names = turns.flatMap(turn => (turn.role === 'assistant' ? turn.rest.map(({ name }) => name) : []))
  return [...new Set(names)].map(name => ({ name, input_schema: objectSchema({}) }))
}

function toolOf(tool: Tool, strictTools: boolean): Json {
  const parameters = tool.parameters ?? {}
  const strict = strictTools && tool.strict === true && isClosable(objectSchema(parameters))
  const { anyOf, oneOf, allOf, ...plain } = parameters
  // The API refuses these at the root of a tool's schema; said in words, the model still heeds them.
  const alternatives = Object.entries({ anyOf, oneOf, allOf }).filter(([, value]) => value !== undefined)
  const note =
    alternatives.length === 0
      ? null
      : `Arguments must also satisfy: ${JSON.stringify(Object.fromEntries(alternatives))}`
  const description = [tool.description, note].filter(text => text !== null && isVisible(text)).join('\n')
  const schema = objectSchema(plain)
  return {
    name: tool.name,
    description: description === '' ? undefined : description,
    input_schema: strict ? closed(schema) : schema,
    strict: strict ? true : undefined,
  }
}

function objectSchema(schema: Json): Json {
  return { ...schema, type: 'object', properties: isRecord(schema.properties) ? schema.properties : {} }
}

// ─── JSON answers ───────────────────────────────────────────────────────────────────────────────────────────────────

/** How the model is held to JSON: by the API, by a forced tool, or by a line of instruction where neither will do. */
type JsonAnswer =
  | { readonly kind: 'free' }
  | { readonly kind: 'native'; readonly schema: Json }
  | { readonly kind: 'tool'; readonly schema: Json; readonly description: string }
  | { readonly kind: 'line'; readonly schema: Json | null }

function jsonAnswerOf({ ask, model }: ProviderAsk): JsonAnswer {
  const format = ask.responseFormat
  const rules = model.parameters
  switch (format.type) {
    case 'text':
      return { kind: 'free' }
    case 'json_object':
      return { kind: 'line', schema: null }
    case 'json_schema': {
      if (rules.responseFormat === 'json_schema' && isClosable(format.schema)) {
        return { kind: 'native', schema: closed(format.schema) }
      }
      // A caller who demands one of its own tools gets that call; a tool's input is always an object.
      const calls = ask.tools.length > 0 && isDemanding(ask.toolChoice)
      if (calls || rules.forcedToolChoice === 'rejected' || !isObjectSchema(format.schema)) {
        return { kind: 'line', schema: format.schema }
      }
      const about = format.description === null ? '' : `: ${format.description}`
      return { kind: 'tool', schema: format.schema, description: `Gives the final answer, \`${format.name}\`${about}` }
    }
    default:
      return format satisfies never
  }
}

function jsonLines(json: JsonAnswer): string[] {
  if (json.kind !== 'line') return []
  if (json.schema === null) return ['Answer with one JSON object and nothing else: no prose, no code fence.']
  const schema = JSON.stringify(json.schema)
  return [
    `Answer with one JSON value and nothing else: no prose, no code fence. It satisfies this JSON schema: ${schema}`,
  ]
}

function outputConfigOf(effort: ReasoningEffort | null, json: JsonAnswer): Json | undefined {
  if (effort === null && json.kind !== 'native') return undefined
  return {
    effort: effort ?? undefined,
    format: json.kind === 'native' ? { type: 'json_schema', schema: json.schema } : undefined,
  }
}

/** Keywords that constrained decoding takes with any value. */
const nativeKeywords = new Set(['type', 'title', 'description', 'enum', 'const', 'default', 'required'])
const nativeFormats = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

/**
 * The schema as constrained decoding takes it: objects closed, and what it cannot enforce told in the description, where
 * the model still reads it.
 */
function closed(schema: Json): Json {
  const kept: Record<string, unknown> = {}
  const told: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (nativeKeywords.has(keyword)) kept[keyword] = value
    else if (keyword === 'properties' || keyword === '$defs' || keyword === 'definitions')
      kept[keyword] = closedEach(value)
    else if (keyword === 'anyOf' || keyword === 'allOf') kept[keyword] = closedAll(value)
    else if (keyword === 'oneOf') kept.anyOf = closedAll(value)
    else if (keyword === 'items' && isRecord(value)) kept.items = closed(value)
    else if (keyword === 'format' && nativeFormats.has(String(value))) kept.format = value
    else if (keyword === 'minItems' && (value === 0 || value === 1)) kept.minItems = value
    else if (keyword === '$ref') kept.$ref = value
    else if (keyword !== 'additionalProperties' && !keyword.startsWith('$')) told[keyword] = value
  }
  if (isObjectSchema(schema)) Object.assign(kept, { properties: kept.properties ?? {}, additionalProperties: false })
  if (Object.keys(told).length > 0) {
    kept.description = [schema.description, JSON.stringify(told)].filter(text => typeof text === 'string').join('\n')
  }
  return kept
}

function closedEach(schemas: unknown): unknown {
  if (!isRecord(schemas)) return {}
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, closedOr(schema)]))
}

function closedAll(schemas: unknown): unknown {
  return Array.isArray(schemas) ? schemas.map(closedOr) : []
}

function closedOr(schema: unknown): unknown {
  return isRecord(schema) ? closed(schema) : schema
}

function isObjectSchema(schema: Json): boolean {
  const { type } = schema
  return (
    type === 'object' ||
    (Array.isArray(type) ? type.includes('object') : type === undefined && isRecord(schema.properties))
  )
}

/**
 * Whether closing the schema keeps its meaning: a map of any keys would become an empty object, and a schema that
 * refers to itself or out of itself is refused.
 */
function isClosable(root: Json): boolean {
  const done = new Set<Json>()
  const path = new Set<Json>()
  const visit = (schema: unknown): boolean => {
    if (schema === null) return false
    if (!isRecord(schema) || done.has(schema)) return true
    if (path.has(schema) || isOpenMap(schema)) return false
    path.add(schema)
    const sound = subschemas(schema).every(visit) && (schema.$ref === undefined || visit(referred(root, schema.$ref)))
    path.delete(schema)
    done.add(schema)
    return sound
  }
  return visit(root)
}

function isOpenMap(schema: Json): boolean {
  const { properties, additionalProperties, patternProperties } = schema
  if (!isObjectSchema(schema) || additionalProperties === false) return false
  if (patternProperties !== undefined || hasKeys(additionalProperties)) return true
  return !hasKeys(properties) && (additionalProperties !== undefined || properties === undefined)
}

function hasKeys(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length > 0
}

function subschemas(schema: Json): unknown[] {
  const { properties, $defs, definitions, items, anyOf, oneOf, allOf } = schema
  const maps = [properties, $defs, definitions].flatMap(map => (isRecord(map) ? Object.values(map) : []))
  const lists = [anyOf, oneOf, allOf].flatMap(list => (Array.isArray(list) ? list : []))
  return [...maps, ...lists, items]
}

/** The schema that a local reference names; null where it is none. */
function referred(root: Json, reference: unknown): Json | null {
  if (reference === '#') return root
  const [, keyword = '', name = ''] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(reference)) ?? []
  const schemas = root[keyword]
  const schema = isRecord(schemas) ? schemas[name] : null
  return isRecord(schema) ? schema : null
}

// ─── Reasoning ──────────────────────────────────────────────────────────────────────────────────────────────────────

type Thinking =
  /** Newer models leave the thinking's text empty unless it is asked for. */
  | { readonly type: 'adaptive'; readonly display: 'summarized' }
  | { readonly type: 'enabled'; readonly budget_tokens: number }
  | { readonly type: 'disabled' }
  | { readonly type: 'between_tools' }

type Reasoning = {
  readonly thinking: Thinking | null
  readonly effort: ReasoningEffort | null
  readonly dropped: boolean
}

const unasked: Reasoning = { thinking: null, effort: null, dropped: false }
const summarized: Thinking = { type: 'adaptive', display: 'summarized' }

/** Share of the output cap that may be spent on thinking, so that an answer always has room. */
const budgetShares: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.7,
  xhigh: 0.8,
  max: 0.9,
}

/**
 * What the caller's effort becomes. A tool that must be called outranks it where a model takes only one of the two: code
 * depends on the call, while less thought is merely less thought.
 */
function reasoningOf({ ask, model, outputCap }: ProviderAsk, turns: readonly Turn[], forced: boolean): Reasoning {
  const { reasoning, efforts, forcedToolChoice, sampling } = model.parameters
  const asked = ask.reasoningEffort
  const mustNotThink = forced && forcedToolChoice === 'rejected_when_thinking'
  switch (reasoning.kind) {
    case 'none':
    case 'effort':
    case 'level':
    case 'token_budget':
      return { ...unasked, dropped: asked !== null && asked !== 'none' }
    case 'adaptive': {
      if (asked === 'none' || (mustNotThink && reasoning.off === 'disabled')) {
        const dropped = asked !== null && asked !== 'none'
        return reasoning.off === 'lowest_effort'
          ? { thinking: summarized, effort: efforts[0] ?? null, dropped }
          : { thinking: { type: reasoning.off }, effort: null, dropped }
      }
      if (asked !== null) return { thinking: summarized, effort: nearest(asked, efforts), dropped: false }
      // These models think unasked: only the text of it has to be asked for.
      if (reasoning.off !== 'disabled') return { ...unasked, thinking: summarized }
      const samples = ask.temperature !== null || ask.topP !== null
      const fixed = samples && sampling === 'accepted_when_thinking_disabled'
      return fixed ? { ...unasked, thinking: { type: 'disabled' } } : unasked
    }
    case 'budget': {
      if (asked === null && reasoning.canDisable) return unasked
      const wanted = asked !== null && asked !== 'none'
      const room = Math.min(reasoning.maximum, outputCap - 1)
      // A turn with calls has to be replayed with its own thinking, which no caller of ours holds.
      const replaysCalls = (turns.findLast(turn => turn.role === 'assistant')?.rest.length ?? 0) > 0
      const possible = outputCap >= 2 * reasoning.minimum && !replaysCalls && !(mustNotThink && reasoning.canDisable)
      if (!possible || (!wanted && reasoning.canDisable)) return { ...unasked, dropped: wanted }
      const share = wanted ? Math.floor(outputCap * budgetShares[asked]) : reasoning.minimum
      const budget_tokens = Math.min(Math.max(share, reasoning.minimum), room)
      return { thinking: { type: 'enabled', budget_tokens }, effort: null, dropped: false }
    }
    default:
      return reasoning satisfies never
  }
}

/** The level nearest to the one asked for; of two as near, the lower. */
function nearest(asked: ReasoningEffort, efforts: readonly ReasoningEffort[]): ReasoningEffort | null {
  const rank = (effort: ReasoningEffort): number => reasoningEfforts.indexOf(effort)
  const distance = (effort: ReasoningEffort): number => Math.abs(rank(effort) - rank(asked))
  return (
    efforts.filter(effort => effort !== 'none').toSorted((a, b) => distance(a) - distance(b) || rank(a) - rank(b))[0] ??
    null
  )
}

// ─── The answer ─────────────────────────────────────────────────────────────────────────────────────────────────────

type OpenBlock = {
  readonly kind: 'text' | 'reasoning' | 'call' | 'json' | 'ignored'
  /** Calls only, counted from 0: the wire's own index counts blocks of every kind. */
  readonly toolIndex: number
  /** What a call holds before any piece of it came. */
  readonly input: unknown
  /** Whether a piece of a call's input was handed out. */
  isWritten: boolean
}

const ignored: OpenBlock = { kind: 'ignored', toolIndex: 0, input: null, isWritten: true }
const nothing: readonly AnswerPart[] = []

/** One answer being read, whole or streamed: takes its pieces in the wire's order and says what they mean. */
type AnswerReader = {
  start(message: Json): readonly AnswerPart[]
  openBlock(index: unknown, block: unknown): readonly AnswerPart[]
  addToBlock(index: unknown, delta: unknown): readonly AnswerPart[]
  closeBlock(index: unknown): readonly AnswerPart[]
  update(stopReason: unknown, usage: unknown): readonly AnswerPart[]
  end(): readonly AnswerPart[]
}

function answerReader(): AnswerReader {
  const blocks = new Map<unknown, OpenBlock>()
  const callIds = new Set<string>()
  let id: string | null = null
  let model: string | null = null
  let isStarted = false
  let hasJsonAnswer = false
  let stopReason: string | null = null
  let counts: Counts | null = null

  const served = (now: unknown): readonly AnswerPart[] => {
    const name = textOf(now)
    if (name === null || name === model) return nothing
    model = name
    return [{ type: 'served', id, model }]
  }
  const measured = (usage: unknown): readonly AnswerPart[] => {
    const newer = countsOf(usage, counts)
    if (newer === null) return nothing
    counts = newer
    return [{ type: 'usage', usage: usageOf(newer) }]
  }
  const opened = (block: Json): OpenBlock => {
    const { type, input } = block
    if (type === 'text') return { ...ignored, kind: 'text' }
    if (type === 'thinking') return { ...ignored, kind: 'reasoning' }
    if (type !== 'tool_use') return ignored
    if (block.name !== jsonAnswerTool) return { kind: 'call', toolIndex: callIds.size, input, isWritten: false }
    // A model that answers twice at once would make two documents of one: the first counts.
    if (hasJsonAnswer) return ignored
    hasJsonAnswer = true
    return { kind: 'json', toolIndex: 0, input, isWritten: false }
  }
  const callId = (given: unknown): string => {
    const own = textOf(given) || 'call'
    let unique = own
    for (let count = callIds.size; callIds.has(unique); count++) unique = `${own}_${count}`
    callIds.add(unique)
    return unique
  }
  const closeBlock = (index: unknown): readonly AnswerPart[] => {
    const block = blocks.get(index)
    blocks.delete(index)
    return block === undefined || block.isWritten ? nothing : inputPiece(block, inputText(block.input))
  }

  return {
    start(message) {
      // Sent twice by some relays: the first one names the answer, and nothing restarts.
      if (isStarted) return nothing
      isStarted = true
      id = textOf(message.id)
      model = textOf(message.model)
      return [{ type: 'served', id, model }, ...measured(message.usage)]
    },
    openBlock(index, block) {
      const unclosed = closeBlock(index)
      if (!isRecord(block)) return unclosed
      const open = opened(block)
      blocks.set(index, open)
      switch (open.kind) {
        case 'text':
          return [...unclosed, ...piece('text', block.text)]
        case 'reasoning':
          return [...unclosed, ...piece('reasoning', block.thinking)]
        case 'call': {
          const call = {
            choice: 0,
            index: open.toolIndex,
            id: callId(block.id),
            name: textOf(block.name) ?? '',
            signature: null,
          }
          return [...unclosed, { type: 'tool_call', ...call }]
        }
        case 'json':
          return unclosed
        case 'ignored':
          return block.type === 'fallback' && isRecord(block.to) ? [...unclosed, ...served(block.to.model)] : unclosed
        default:
          return open.kind satisfies never
      }
    },
    addToBlock(index, delta) {
      if (!isRecord(delta)) return nothing
      const block = blocks.get(index)
      if (block?.kind === 'ignored') return nothing
      if (delta.type === 'text_delta') return piece('text', delta.text)
      if (delta.type === 'thinking_delta') return piece('reasoning', delta.thinking)
      if (delta.type !== 'input_json_delta' || block === undefined) return nothing
      const text = textOf(delta.partial_json)
      if (text === null || text === '') return nothing
      block.isWritten = true
      return inputPiece(block, text)
    },
    closeBlock,
    update(reason, usage) {
      stopReason ??= textOf(reason)
      return [...served(servingModel(usage)), ...measured(usage)]
    },
    end() {
      const unclosed = [...blocks.keys()].flatMap(closeBlock)
      return [
        ...unclosed,
        { type: 'finish', choice: 0, reason: finishReason(stopReason, callIds.size > 0) },
        { type: 'end' },
      ]
    },
  }
}

function piece(type: 'text' | 'reasoning', text: unknown): readonly AnswerPart[] {
  return typeof text === 'string' && text !== '' ? [{ type, choice: 0, text }] : nothing
}

/** A piece of a call's input: arguments of a caller's tool, text of the JSON answer, nothing of any other block. */
function inputPiece(block: OpenBlock, text: string): readonly AnswerPart[] {
  if (block.kind === 'json') return [{ type: 'text', choice: 0, text }]
  return block.kind === 'call' ? [{ type: 'tool_arguments', choice: 0, index: block.toolIndex, text }] : nothing
}

function inputText(input: unknown): string {
  return isRecord(input) ? JSON.stringify(input) : '{}'
}

/** Whether calls were made is read off the answer itself: a forced JSON answer ends as `tool_use` without a caller's call. */
function finishReason(stopReason: string | null, hasCalls: boolean): FinishReason {
  switch (stopReason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
    case 'compaction':
      return 'length'
    case 'refusal':
      return 'content_filter'
    default:
      return hasCalls ? 'tool_calls' : 'stop'
  }
}

/** The model of the last pass over the answer; passes of an adviser are not the answer's. */
function servingModel(usage: unknown): unknown {
  const passes = isRecord(usage) && Array.isArray(usage.iterations) ? usage.iterations.filter(isRecord) : []
  return passes.findLast(({ type }) => type === 'message' || type === 'fallback_message')?.model
}

type Counts = {
  readonly input: number
  readonly cacheWrite: number
  readonly cacheRead: number
  readonly output: number
  readonly thinking: number
}

const noCounts: Counts = { input: 0, cacheWrite: 0, cacheRead: 0, output: 0, thinking: 0 }

/** The counts so far with the newer ones in their place; null where there is nothing to count. */
function countsOf(usage: unknown, known: Counts | null): Counts | null {
  if (!isRecord(usage)) return null
  const details = isRecord(usage.output_tokens_details) ? usage.output_tokens_details : {}
  const written = isRecord(usage.cache_creation) ? usage.cache_creation : {}
  const byLifetime = [countOf(written.ephemeral_5m_input_tokens), countOf(written.ephemeral_1h_input_tokens)].filter(
    count => count !== null,
  )
  const found = {
    input: countOf(usage.input_tokens),
    cacheWrite:
      countOf(usage.cache_creation_input_tokens) ?? (byLifetime.length > 0 ? byLifetime.reduce((a, b) => a + b) : null),
    cacheRead: countOf(usage.cache_read_input_tokens),
    output: countOf(usage.output_tokens),
    thinking: countOf(details.thinking_tokens),
  }
  if (found.input === null && found.output === null) return null
  const before = known ?? noCounts
  return {
    input: found.input ?? before.input,
    cacheWrite: found.cacheWrite ?? before.cacheWrite,
    cacheRead: found.cacheRead ?? before.cacheRead,
    output: found.output ?? before.output,
    thinking: found.thinking ?? before.thinking,
  }
}

/** No answer has more tokens; sums of such counts stay exact. */
const maximumTokens = 1e12

function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value)
    ? Math.min(Math.max(Math.trunc(value), 0), maximumTokens)
    : null
}

function usageOf({ input, cacheWrite, cacheRead, output, thinking }: Counts): TokenUsage {
  return {
    inputTokens: input + cacheWrite + cacheRead,
    cachedInputTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    outputTokens: output,
    reasoningTokens: Math.min(thinking, output),
  }
}

// ─── Whole and streamed ─────────────────────────────────────────────────────────────────────────────────────────────

function readResponse(body: unknown): readonly AnswerPart[] {
  return readMessage(answerReader(), body)
}

function readMessage(answer: AnswerReader, body: unknown): readonly AnswerPart[] {
  if (!isRecord(body) || !Array.isArray(body.content)) return [failed(body)]
  const { usage, ...message } = body
  return [
    ...answer.start(message),
    ...body.content.flatMap((block, index) => [...answer.openBlock(index, block), ...answer.closeBlock(index)]),
    ...answer.update(body.stop_reason, usage),
    ...answer.end(),
  ]
}

/** Events under other names than these are skipped unread: they need not hold JSON. */
const knownEvents = new Set([
  '',
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'message',
  'error',
])

function streamReader(): StreamReader {
  const answer = answerReader()
  let isOver = false
  return {
    read(event) {
      if (isOver || !knownEvents.has(event.name) || event.data === '[DONE]') return nothing
      const parts = readEvent(answer, event)
      const last = parts.at(-1)?.type
      isOver = last === 'end' || last === 'failure'
      return parts
    },
    finish: () => nothing,
  }
}

function readEvent(answer: AnswerReader, event: ServerSentEvent): readonly AnswerPart[] {
  const data = parsed(event.data)
  if (!isRecord(data)) return [failed(data)]
  switch (textOf(data.type) ?? event.name) {
    case 'message_start':
      return isRecord(data.message) ? answer.start(data.message) : nothing
    case 'content_block_start':
      return answer.openBlock(data.index, data.content_block)
    case 'content_block_delta':
      return answer.addToBlock(data.index, data.delta)
    case 'content_block_stop':
      return answer.closeBlock(data.index)
    case 'message_delta':
      return answer.update(isRecord(data.delta) ? data.delta.stop_reason : null, data.usage)
    case 'message_stop':
      return answer.end()
    // A relay that does not stream sends the whole answer as one event.
    case 'message':
      return readMessage(answer, data)
    case 'error':
      return [failed(data)]
    default:
      return data.error === undefined || data.error === null ? nothing : [failed(data)]
  }
}

/** What stands in an answer's place after a 200: an error, or nothing that can be read. */
function failed(body: unknown): AnswerPart {
  const isError = isRecord(body) && (body.type === 'error' || (body.error !== undefined && body.error !== null))
  if (!isError) return { type: 'failure', failure: failureOf('bad_answer', '200 unreadable') }
  const error = errorOf(body)
  return { type: 'failure', failure: failureOf(kindOf(200, error), detailOf(200, error)) }
}

// ─── Failures ───────────────────────────────────────────────────────────────────────────────────────────────────────

const kindByType: ReadonlyMap<string, AttemptFailure> = new Map([
  ['invalid_request_error', 'request_refused'],
  ['authentication_error', 'credential_refused'],
  ['billing_error', 'quota_exhausted'],
  ['permission_error', 'credential_refused'],
  ['not_found_error', 'model_missing'],
  ['request_too_large', 'request_too_large'],
  ['rate_limit_error', 'rate_limited'],
  ['api_error', 'unavailable'],
  ['timeout_error', 'timeout'],
  ['overloaded_error', 'overloaded'],
])

function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const error = errorOf(parsed(body) ?? body)
  const kind = advised(kindOf(status, error), headers.get('x-should-retry'))
  return failureOf(kind, detailOf(status, error), retryAfterOf(headers))
}

/** What the API's own word on retrying adds to what the failure seems to be. */
function advised(kind: AttemptFailure, shouldRetry: string | null): AttemptFailure {
  // A limit that waiting does not lift is no rate: what our account may spend is spent.
  if (kind === 'rate_limited' && shouldRetry === 'false') return 'quota_exhausted'
  // If the same request may succeed, it was not the request.
  return kind === 'request_refused' && shouldRetry === 'true' ? 'unavailable' : kind
}

/** An error inside a 200 has only its type to go by; elsewhere the status is the surer of the two, save for 400. */
function kindOf(status: number, { type, message }: WireError): AttemptFailure {
  const typed = type === null ? undefined : kindByType.get(type)
  const kind =
    status === 200
      ? (typed ?? 'generation_failed')
      : status === 400
        ? (typed ?? 'request_refused')
        : kindOfStatus(status)
  if (kind === 'rate_limited') return isQuotaExhausted(message) ? 'quota_exhausted' : kind
  return kind === 'request_refused' ? kindOfRefusal(message) : kind
}

/** The API files several things under one error type; its words tell them apart. */
function kindOfRefusal(message: string): AttemptFailure {
  if (isContextOverflow(message)) return 'context_overflow'
  if (/credit balance|usage limits|organization has been disabled/i.test(message)) return 'quota_exhausted'
  return /content filtering policy/i.test(message) ? 'content_filtered' : 'request_refused'
}

type WireError = { readonly type: string | null; readonly message: string }

/** An error as the API, or a proxy before it, writes one: nested, flat, in a list, a bare text, or none at all. */
function errorOf(body: unknown): WireError {
  const outer = Array.isArray(body) ? body[0] : body
  const error = isRecord(outer) ? (outer.error ?? outer) : outer
  const type = isRecord(error) ? textOf(error.type) : null
  const message = isRecord(error) ? (textOf(error.message) ?? textOf(error.detail)) : textOf(error)
  return { type: identifierOf(type), message: message ?? '' }
}

function detailOf(status: number, { type }: WireError): string {
  return `${status} ${type ?? 'without error type'}`
}

// ─── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function isVisible(text: string): boolean {
  return text.trim() !== ''
}

/** E-mail addresses are against the provider's terms; it takes 256 characters. */
function isOpaqueUser(user: string | null): user is string {
  return user !== null && isVisible(user) && user.length <= 256 && !user.includes('@')
}

function textBlock(text: string): Json {
  return { type: 'text', text }
}

function orAbsent<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}

/** The value of a JSON text, `undefined` where it is none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** JSON text without lone halves of surrogate pairs, which other encoders refuse: `stringify` writes them as escapes. */
function encoded(body: unknown): string {
  const text = JSON.stringify(body)
  return text.includes('\\ud') ? JSON.stringify(body, (_, value) => wellFormed(value)) : text
}

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (!isRecord(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.toWellFormed(), inner]))
}
