/**
 * OpenAI Chat Completions, spoken to OpenAI itself and to every server that calls itself compatible with it.
 *
 * Writing is strict: a model is sent only what its `ParameterRules` say it takes. Reading is forgiving: whatever order,
 * repetition or omission a server commits, the parts that come out keep the promises of `ContentEvent`. To that end the
 * reader gives up a little immediacy: a tool call is opened once its name is certain (its first argument piece), and
 * finish reasons are told at the end, when it is known whether there were tool calls.
 */
import {
  type AttemptFailure,
  type FinishReason,
  type Message,
  type ReasoningEffort,
  type ResponseFormat,
  reasoningEfforts,
  type TokenLogprob,
  type TokenUsage,
  type ToolChoice,
} from '../core/chat.ts'
import type { Model, ParameterRules } from '../core/models.ts'
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

type Json = Readonly<Record<string, unknown>>

/** The adapter. `official`: api.openai.com and its own extra fields; otherwise any compatible server of the configuration. */
export function openai({ official }: { readonly official: boolean }): Provider {
  return {
    toRequest: (ask, access) => toRequest(ask, access, official),
    readResponse: body => createReader(official).whole(body),
    streamReader: () => createReader(official),
    readFailure,
  }
}

// ---------------------------------------------------------------------------------------------------- the request

/** What a well-known host wants otherwise than the rest. */
type Dialect = {
  readonly host: RegExp
  /** Tool call ids it takes; others are renamed within the request. */
  readonly toolId: RegExp
  readonly seedField: 'seed' | 'random_seed'
  readonly keyHeader: 'authorization' | 'api-key'
  /** Wants the thought signature of each of its calls back. */
  readonly signatures: boolean
}

const anyId = /^/
const plainDialect: Dialect = {
  host: anyId,
  toolId: anyId,
  seedField: 'seed',
  keyHeader: 'authorization',
  signatures: false,
}
const officialDialect: Dialect = { ...plainDialect, toolId: /^.{1,40}$/s }
const dialects: readonly Dialect[] = [
  { ...plainDialect, host: /(?:^|\.)mistral\.ai$/, toolId: /^[A-Za-z0-9]{9}$/, seedField: 'random_seed' },
  { ...plainDialect, host: /\.azure\.com$/, keyHeader: 'api-key' },
  { ...plainDialect, host: /\.googleapis\.com$/, signatures: true },
]

function toRequest({ ask, model, outputCap, stream }: ProviderAsk, access: Access, official: boolean): ProviderRequest {
  const rules = model.parameters
  const url = new URL(access.baseUrl)
  const dialect = official ? officialDialect : (dialects.find(({ host }) => host.test(url.hostname)) ?? plainDialect)
  const dropped = new Set<string>()

  /** The value where the model takes it, else nothing, and that is said. Null was never asked for. */
  function ifTaken<T>(name: string, value: T | null, taken: boolean): T | undefined {
    if (value === null || taken) return value ?? undefined
    dropped.add(name)
    return undefined
  }

  const withTools = ask.tools.length > 0
  const effort = effortFor(ask.reasoningEffort, rules, withTools)
  const effortForced = withTools && rules.toolsNeedEffortNone && ask.reasoningEffort !== 'none'
  if (ask.reasoningEffort !== null && (effort === null || effortForced)) dropped.add('reasoning_effort')
  const sampling = takesSampling(rules, effort)
  const logprobs = sampling && rules.logprobs
  const wantedTop = ask.logprobs ? ask.topLogprobs : null
  const temperature = ifTaken('temperature', ask.temperature, sampling)
  const topPTaken = sampling && (rules.temperatureWithTopP || temperature === undefined)
  const stops = ask.stop.filter(text => text !== '')
  if (stops.length > rules.maximumStops) dropped.add('stop')
  if (ask.choices > rules.maximumChoices) dropped.add('n')
  const toolChoice = toolChoiceFor(ask.toolChoice, model, effort)
  if (withTools && toolChoice !== ask.toolChoice) dropped.add('tool_choice')
  const format = formatFor(ask.responseFormat, rules.responseFormat)
  if (format.lesser) dropped.add('response_format')

  const body: Record<string, unknown> = {
    ...extrasFor(ask.extras, model, official, dropped),
    model: model.id,
    messages: messagesFor(ask.messages, { rules, official, dialect, instruction: format.instruction }),
    stream: stream || undefined,
    stream_options: stream && rules.streamOptions ? { include_usage: true } : undefined,
    [rules.outputCapField]: outputCap,
    temperature: temperature === undefined ? undefined : Math.min(rules.maximumTemperature, Math.max(0, temperature)),
    top_p: ifTaken('top_p', ask.topP, topPTaken),
    presence_penalty: ifTaken('presence_penalty', ask.presencePenalty, rules.penalties),
    frequency_penalty: ifTaken('frequency_penalty', ask.frequencyPenalty, rules.penalties),
    [dialect.seedField]: ifTaken('seed', ask.seed, rules.seed),
    logit_bias: ifTaken('logit_bias', ask.logitBias, rules.logitBias),
    logprobs: ifTaken('logprobs', ask.logprobs || null, logprobs),
    top_logprobs: topLogprobs(ifTaken('top_logprobs', wantedTop, logprobs && rules.maximumTopLogprobs > 0), rules),
    stop: stops.length > 0 && rules.maximumStops > 0 ? stops.slice(0, rules.maximumStops) : undefined,
    n: ask.choices > 1 && rules.maximumChoices > 1 ? Math.min(ask.choices, rules.maximumChoices) : undefined,
    tools: withTools ? ask.tools.map(toolFor) : undefined,
    // Without tools OpenAI answers 400 to either of the two.
    tool_choice: withTools && toolChoice !== null ? toolChoiceOnWire(toolChoice) : undefined,
    parallel_tool_calls: withTools
      ? ifTaken('parallel_tool_calls', ask.parallelToolCalls, rules.parallelToolCalls)
      : undefined,
    response_format: format.field,
    reasoning_effort: effort ?? undefined,
    ...(ask.endUser === null ? {} : endUserFor(ask.endUser, rules, official)),
  }
  return {
    url: chatCompletionsUrl(url),
    headers: headersFor(access.apiKey, dialect, stream),
    body: withoutLoneSurrogates(JSON.stringify(body)),
    droppedParameters: [...dropped],
  }
}

/**
 * `/chat/completions` under the base. A path without a version (`/v1`, `/v1beta/openai`, `/api/paas/v4`) gets `/v1`, as
 * servers' front pages name themselves without it; one that ends in `/chat/completions` or names an Azure deployment is
 * what it is. A query (`?api-version=`) stays.
 */
function chatCompletionsUrl(base: URL): string {
  const path = base.pathname.replace(/\/+$/, '')
  if (path.endsWith('/chat/completions')) return `${base.origin}${path}${base.search}`
  const versioned = /\/v\d[^/]*(?:\/|$)/.test(path) || path.includes('/openai/deployments/')
  return `${base.origin}${path}${versioned ? '' : '/v1'}/chat/completions${base.search}`
}

function headersFor(apiKey: string | null, { keyHeader }: Dialect, stream: boolean): Record<string, string> {
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(apiKey === null ? {} : { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${apiKey}` : apiKey }),
  }
}

/** The nearest level the model has, on a tie the higher; null = none is sent. */
function effortFor(wanted: ReasoningEffort | null, rules: ParameterRules, withTools: boolean): ReasoningEffort | null {
  if (withTools && rules.toolsNeedEffortNone) return 'none'
  if (wanted === null) return null
  const rank = reasoningEfforts.indexOf(wanted)
  const distance = (level: ReasoningEffort) => Math.abs(reasoningEfforts.indexOf(level) - rank)
  return rules.efforts.reduce<ReasoningEffort | null>(
    (nearest, level) => (nearest === null || distance(level) <= distance(nearest) ? level : nearest),
    null,
  )
}

function takesSampling({ sampling }: ParameterRules, effort: ReasoningEffort | null): boolean {
  switch (sampling) {
    case 'accepted':
      return true
    case 'rejected':
      return false
    case 'only_with_effort_none':
      return effort === 'none'
    case 'accepted_when_thinking_disabled':
      return effort === null || effort === 'none'
  }
}

function topLogprobs(wanted: number | undefined, { maximumTopLogprobs }: ParameterRules): number | undefined {
  return wanted === undefined ? undefined : Math.min(wanted, maximumTopLogprobs)
}

/** A choice that may not be forced becomes the model's own. */
function toolChoiceFor(wanted: ToolChoice | null, model: Model, effort: ReasoningEffort | null): ToolChoice | null {
  if (wanted === null || wanted === 'auto' || wanted === 'none') return wanted
  switch (model.parameters.forcedToolChoice) {
    case 'accepted':
      return wanted
    case 'rejected':
      return 'auto'
    case 'rejected_when_thinking':
      return model.capabilities.reasoning && effort !== 'none' ? 'auto' : wanted
  }
}

function toolChoiceOnWire(choice: ToolChoice): unknown {
  return typeof choice === 'string' ? choice : { type: 'function', function: { name: choice.name } }
}

function toolFor({ name, description, parameters, strict }: ProviderAsk['ask']['tools'][number]): Json {
  return {
    type: 'function',
    function: {
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict ?? undefined,
    },
  }
}

type Format = {
  readonly field: Json | undefined
  /** What the messages must say beside it; null = nothing. */
  readonly instruction: { readonly text: string; readonly unlessJsonIsNamed: boolean } | null
  /** The model takes less than was asked. */
  readonly lesser: boolean
}

/** OpenAI answers 400 to `json_object` where no message holds the word JSON. */
const jsonInstruction = { text: 'Answer with one JSON object.', unlessJsonIsNamed: true }

function formatFor(format: ResponseFormat, supported: ParameterRules['responseFormat']): Format {
  if (format.type === 'text') return { field: undefined, instruction: null, lesser: false }
  if (supported === 'none') return { field: undefined, instruction: null, lesser: true }
  if (format.type === 'json_object') {
    return { field: { type: 'json_object' }, instruction: jsonInstruction, lesser: false }
  }
  if (supported === 'json_object') {
    const text = `Answer with one JSON object that follows this JSON schema: ${JSON.stringify(format.schema)}`
    return { field: { type: 'json_object' }, instruction: { text, unlessJsonIsNamed: false }, lesser: true }
  }
  const { name, description, schema, strict } = format
  return {
    field: {
      type: 'json_schema',
      json_schema: { name, description: description ?? undefined, schema, strict: strict ?? undefined },
    },
    instruction: null,
    lesser: false,
  }
}

/** OpenAI bounds `safety_identifier` at 128 characters; compatible servers know only `user`, and few know that. */
function endUserFor(endUser: string, rules: ParameterRules, official: boolean): Json {
  if (official) return { safety_identifier: endUser.slice(0, 128) }
  return rules.passExtras ? { user: endUser } : {}
}

type Takes = (value: unknown, model: Model) => boolean

const always: Takes = () => true
const never: Takes = () => false

/** OpenAI's own fields, and which models take them. Any other unknown field is answered with 400. */
const officialExtras: ReadonlyMap<string, Takes> = new Map([
  ['verbosity', (_, { capabilities }) => capabilities.reasoning],
  ['service_tier', always],
  ['prediction', always],
  ['store', always],
  ['moderation', always],
  ['safety_identifier', always],
  ['prompt_cache_key', always],
  ['prompt_cache_options', always],
  // Replaced by `prompt_cache_options` in gpt-6.
  ['prompt_cache_retention', (_, { id }) => Number(/^gpt-(\d+)/.exec(id)?.[1] ?? 0) < 6],
  // Sound cannot be carried in an answer of ours.
  ['modalities', value => Array.isArray(value) && value.every(item => item === 'text')],
  ['audio', never],
  // Only the search-preview models took it, and they are gone.
  ['web_search_options', never],
])

/** Fields that are ours to set, or that no upstream may be given: the caller's extras never reach them. */
const ownFields: ReadonlySet<string> = new Set(
  `model messages stream stream_options n max_tokens max_completion_tokens temperature top_p presence_penalty
  frequency_penalty seed random_seed logit_bias logprobs top_logprobs stop tools tool_choice parallel_tool_calls
  functions function_call response_format reasoning_effort user metadata __proto__`.split(/\s+/),
)

function extrasFor(extras: Json, model: Model, official: boolean, dropped: Set<string>): Json {
  const taken = Object.entries(extras).filter(([name, value]) => {
    if (value === null || value === undefined || ownFields.has(name)) return false
    const takes = official ? (officialExtras.get(name) ?? never) : model.parameters.passExtras ? always : never
    if (takes(value, model)) return true
    // The names travel in a header: one that would break it is left out unsaid.
    if (/^[\w.-]{1,64}$/.test(name)) dropped.add(name)
    return false
  })
  return Object.fromEntries(taken)
}

type Writing = {
  readonly rules: ParameterRules
  readonly official: boolean
  readonly dialect: Dialect
  readonly instruction: Format['instruction']
}

function messagesFor(messages: readonly Message[], writing: Writing): Json[] {
  const toolId = toolIdsFor(writing.dialect)
  const wire: Json[] = []
  let unanswered: readonly string[] = []
  /** A call whose result the history lacks makes OpenAI answer 400. */
  const answerTheRest = () => {
    for (const id of unanswered) wire.push({ role: 'tool', tool_call_id: toolId(id), content: 'No result.' })
    unanswered = []
  }
  for (const message of messages) {
    if (message.role === 'tool') unanswered = unanswered.filter(id => id !== message.callId)
    else answerTheRest()
    wire.push(messageFor(message, writing, toolId))
    if (message.role === 'assistant') unanswered = message.toolCalls.map(({ id }) => id)
  }
  answerTheRest()
  return withInstruction(wire, messages, writing)
}

function messageFor(message: Message, writing: Writing, toolId: (id: string) => string): Json {
  switch (message.role) {
    case 'system':
      return { role: writing.rules.systemRole, content: message.text }
    case 'user':
      return {
        role: 'user',
        content: userContent(message.content, writing.official),
        ...nameFor(message.name, writing),
      }
    case 'tool':
      return { role: 'tool', tool_call_id: toolId(message.callId), content: message.text }
    case 'assistant': {
      const { text, reasoning, toolCalls, name } = message
      const replayed = reasoning !== null && !writing.official && writing.rules.passExtras
      return {
        role: 'assistant',
        content: toolCalls.length > 0 ? text || null : (text ?? ''),
        ...(replayed ? { reasoning_content: reasoning } : {}),
        ...(toolCalls.length === 0
          ? {}
          : { tool_calls: toolCalls.map(call => toolCallFor(call, writing.dialect, toolId)) }),
        ...nameFor(name, writing),
      }
    }
  }
}

type History = Extract<Message, { role: 'assistant' }>['toolCalls'][number]

function toolCallFor(call: History, { signatures }: Dialect, toolId: (id: string) => string): Json {
  // Some servers parse the history's arguments: no text at all is no JSON.
  const wire = {
    id: toolId(call.id),
    type: 'function',
    function: { name: call.name, arguments: call.arguments || '{}' },
  }
  const signed = signatures && call.signature !== null
  return signed ? { ...wire, extra_content: { google: { thought_signature: call.signature } } } : wire
}

/** Many compatible servers read plain text only, so text parts are joined for them. */
function userContent(content: Extract<Message, { role: 'user' }>['content'], official: boolean): unknown {
  const texts = content.flatMap(part => (part.type === 'text' ? [part.text] : []))
  if (texts.length === content.length && (!official || texts.length < 2)) return texts.join('\n')
  return content.map(part =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'image_url', image_url: { url: part.url, detail: part.detail ?? undefined } },
  )
}

/** A name that OpenAI's pattern refuses would refuse the whole request. */
function nameFor(name: string | null, { official, rules }: Writing): Json {
  const sent = name !== null && (official || rules.passExtras) && /^[^\s<|\\/>]{1,64}$/.test(name)
  return sent ? { name } : {}
}

/** Renames ids that the server would refuse; one id keeps one name within the request. */
function toolIdsFor({ toolId }: Dialect): (id: string) => string {
  const renamed = new Map<string, string>()
  return id => {
    if (toolId.test(id)) return id
    const known = renamed.get(id) ?? `call${String(renamed.size + 1).padStart(5, '0')}`
    renamed.set(id, known)
    return known
  }
}

/** Joins the first system text where there is one: some chat templates take a single one, at the start. */
function withInstruction(wire: Json[], messages: readonly Message[], { instruction, rules }: Writing): Json[] {
  if (instruction === null || (instruction.unlessJsonIsNamed && messages.some(namesJson))) return wire
  const [first, ...rest] = wire
  const role = rules.systemRole
  if (first === undefined || first.role !== role) return [{ role, content: instruction.text }, ...wire]
  return [{ ...first, content: `${first.content}\n\n${instruction.text}` }, ...rest]
}

function namesJson(message: Message): boolean {
  const texts =
    message.role === 'user'
      ? message.content.map(part => (part.type === 'text' ? part.text : ''))
      : [message.text ?? '']
  return texts.some(text => /json/i.test(text))
}

/**
 * `JSON.stringify` writes half a surrogate pair, and nothing else, as `\ud…`; strict parsers upstream refuse that. An
 * escaped backslash is matched first, so that text which merely spells such an escape stays.
 */
function withoutLoneSurrogates(json: string): string {
  return json.includes('\\ud')
    ? json.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, at => (at === '\\\\' ? at : '\ufffd'))
    : json
}

// ---------------------------------------------------------------------------------------------------- the answer

/** Holds half a surrogate pair that a piece ended with: its other half comes with the next piece. */
type Channel = { half: string }

/** A call being read. */
type Call = {
  readonly wireIndex: number | null
  wireId: string | null
  name: string
  signature: string | null
  /** All argument text so far. */
  text: string
  /** Its place among the choice's calls; null = not opened yet. */
  index: number | null
  readonly channel: Channel
}

type Choice = {
  readonly index: number
  readonly calls: Call[]
  opened: number
  reason: FinishReason | null
  /** Pieces came in `delta`: a whole `message` beside them repeats what was read. */
  streamed: boolean
  /** Where inline `<think>` is looked for: at the start, inside it, in the blank space after it, or no more. */
  thinking: 'maybe' | 'inside' | 'after' | 'over'
  /** Content held back: it may be the beginning of a tag. */
  held: string
  readonly text: Channel
  readonly reasoning: Channel
  readonly refusal: Channel
}

const thinkOpen = '<think>'
const thinkClose = '</think>'
/** Blank space before a `<think>` is waited through this far: endless blanks are an answer too. */
const longestHeld = 64
/** As the client libraries bound them. */
const maximumIndex = 127

type Reader = StreamReader & { whole(body: unknown): readonly AnswerPart[] }

/**
 * The stream has ended when `[DONE]` came, or when the body ended and every choice seen had its finish reason. `[DONE]`
 * without any finish reason is recorded from servers that send none: that is an end too, by `stop` or `tool_calls`.
 */
function createReader(official: boolean): Reader {
  const choices: Choice[] = []
  const ids = new Set<string>()
  let servedId: string | null = null
  let servedModel: string | null = null
  /** Nothing is read any more: the end or a failure was handed out. */
  let over = false

  function fail(parts: AnswerPart[], failure: ProviderFailure): void {
    if (over) return
    over = true
    parts.push({ type: 'failure', failure })
  }

  function readPayload(payload: unknown, parts: AnswerPart[]) {
    const body = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body)) return fail(parts, failureOf('bad_answer', '200 not_an_object'))
    readServed(body, parts)
    readUsage(body.usage, parts)
    if (isRecord(body.x_groq)) readUsage(body.x_groq.usage, parts)
    const error = errorOf(body)
    if (error !== null) return fail(parts, failureInAnswer(error))
    if (!Array.isArray(body.choices)) return
    for (let position = 0; position < body.choices.length && !over; position += 1) {
      const choice: unknown = body.choices[position]
      if (isRecord(choice)) readChoice(choice, position, parts)
    }
  }

  function readServed(body: Json, parts: AnswerPart[]): void {
    const id = servedId ?? named(body.id)
    const model = servedModel ?? named(body.model)
    if (id === servedId && model === servedModel) return
    servedId = id
    servedModel = model
    parts.push({ type: 'served', id, model })
  }

  function readUsage(wire: unknown, parts: AnswerPart[]): void {
    const usage = isRecord(wire) ? usageOf(wire) : null
    if (usage !== null) parts.push({ type: 'usage', usage })
  }

  function choiceAt(index: number): Choice {
    const known = choices[index]
    if (known !== undefined) return known
    const choice: Choice = {
      index,
      calls: [],
      opened: 0,
      reason: null,
      streamed: false,
      thinking: official ? 'over' : 'maybe',
      held: '',
      text: { half: '' },
      reasoning: { half: '' },
      refusal: { half: '' },
    }
    choices[index] = choice
    return choice
  }

  function readChoice(wire: Json, position: number, parts: AnswerPart[]) {
    const index = indexOf(wire.index) ?? position
    if (index > maximumIndex) return fail(parts, failureOf('bad_answer', '200 choice_index'))
    const choice = choiceAt(index)
    if (wire.usage !== undefined) readUsage(wire.usage, parts)
    const isDelta = isRecord(wire.delta)
    const message = isDelta ? wire.delta : wire.message
    if (isRecord(message) && (isDelta || !choice.streamed)) readMessage(choice, message, !isDelta, parts)
    choice.streamed ||= isDelta
    if (isRecord(wire.logprobs)) readLogprobs(choice, wire.logprobs.content, parts)
    const reason = wire.finish_reason
    if (typeof reason === 'string' && reason !== '') {
      const mapped = finishReasons.get(reason.toLowerCase()) ?? 'stop'
      if (mapped === 'failed')
        return fail(parts, failureOf('generation_failed', `200 ${identifierOf(reason) ?? 'error'}`))
      choice.reason ??= mapped
    } else if (!choice.streamed && isRecord(wire.message)) {
      choice.reason ??= 'stop'
    }
  }

  function readMessage(choice: Choice, message: Json, whole: boolean, parts: AnswerPart[]): void {
    const reasoning = reasoningOf(message)
    if (reasoning !== '') pushReasoning(choice, reasoning, parts)
    const { content, refusal, tool_calls: calls, function_call: legacyCall } = message
    if (typeof content === 'string') {
      if (content !== '') readText(choice, content, parts)
    } else if (Array.isArray(content)) {
      for (const part of content) if (isRecord(part)) readContentPart(choice, part, parts)
    }
    if (typeof refusal === 'string' && refusal !== '') {
      const text = mend(choice.refusal, refusal)
      if (text !== '') parts.push({ type: 'refusal', choice: choice.index, text })
    }
    if (Array.isArray(calls)) {
      for (const call of calls) if (isRecord(call)) readCall(choice, call, whole, parts)
    }
    if (isRecord(legacyCall)) readCall(choice, { function: legacyCall }, whole, parts)
  }

  function pushReasoning(choice: Choice, piece: string, parts: AnswerPart[]): void {
    const text = mend(choice.reasoning, piece)
    if (text !== '') parts.push({ type: 'reasoning', choice: choice.index, text })
  }

  function readContentPart(choice: Choice, part: Json, parts: AnswerPart[]): void {
    if (typeof part.text === 'string' && part.text !== '') readText(choice, part.text, parts)
    // Mistral's thinking is itself a list of text parts; others give plain text.
    const thoughts = Array.isArray(part.thinking) ? part.thinking : [{ text: part.thinking }]
    for (const thought of thoughts) {
      if (isRecord(thought) && typeof thought.text === 'string') pushReasoning(choice, thought.text, parts)
    }
  }

  function readText(choice: Choice, piece: string, parts: AnswerPart[]): void {
    const text = mend(choice.text, piece)
    if (text === '') return
    if (choice.thinking === 'over') pushText(choice, text, parts)
    else readThinking(choice, text, parts)
  }

  function pushText(choice: Choice, text: string, parts: AnswerPart[]): void {
    if (choice.opened < choice.calls.length) openNamed(choice, parts)
    parts.push({ type: 'text', choice: choice.index, text })
  }

  function readThinking(choice: Choice, piece: string, parts: AnswerPart[]) {
    let text = choice.held + piece
    choice.held = ''
    if (choice.thinking === 'maybe') {
      const start = text.trimStart()
      if (start.startsWith(thinkOpen)) {
        choice.thinking = 'inside'
        text = start.slice(thinkOpen.length)
      } else if (thinkOpen.startsWith(start) && text.length <= longestHeld) {
        choice.held = text
        return
      } else {
        choice.thinking = 'over'
        return pushText(choice, text, parts)
      }
    }
    if (choice.thinking === 'inside') {
      const close = text.indexOf(thinkClose)
      const end = close === -1 ? text.length - beginningLength(text, thinkClose) : close
      if (end > 0) parts.push({ type: 'reasoning', choice: choice.index, text: text.slice(0, end) })
      if (close === -1) {
        choice.held = text.slice(end)
        return
      }
      choice.thinking = 'after'
      text = text.slice(close + thinkClose.length)
    }
    const answer = text.trimStart()
    if (answer === '') return
    choice.thinking = 'over'
    pushText(choice, answer, parts)
  }

  /** What was held back was no tag after all. */
  function releaseText(choice: Choice, parts: AnswerPart[]): void {
    const { held } = choice
    choice.held = ''
    if (held === '') return
    if (choice.thinking === 'inside') parts.push({ type: 'reasoning', choice: choice.index, text: held })
    else pushText(choice, held, parts)
  }

  function readCall(choice: Choice, wire: Json, whole: boolean, parts: AnswerPart[]) {
    releaseText(choice, parts)
    const called = isRecord(wire.function) ? wire.function : {}
    const name = typeof called.name === 'string' ? called.name : ''
    const piece = argumentsOf(called.arguments)
    const wireId = named(wire.id)
    const wireIndex = indexOf(wire.index)
    const last = whole ? undefined : findCall(choice.calls, wireIndex, wireId, name)
    const repeated =
      last !== undefined && name !== '' && wireId !== null && wireId === last.wireId && piece === last.text
    if (repeated && piece.startsWith('{')) return
    const continues = last !== undefined && !startsAnother(last, wireId, name, piece)
    const call = continues
      ? last
      : { wireIndex, wireId, name: '', signature: null, text: '', index: null, channel: { half: '' } }
    if (!continues) {
      openNamed(choice, parts)
      if (choice.calls.length > maximumIndex) return fail(parts, failureOf('bad_answer', '200 too_many_tool_calls'))
      choice.calls.push(call)
    }
    if (call.index === null) {
      call.wireId ??= wireId
      call.name = joinName(call.name, name)
      call.signature ??= signatureOf(wire)
    }
    const text = piece === '' ? '' : mend(call.channel, piece)
    if (text === '') return
    call.text += text
    if (call.index !== null) parts.push({ type: 'tool_arguments', choice: choice.index, index: call.index, text })
    else if (call.name !== '') openCall(choice, call, parts)
  }

  /** Opens the calls whose name is known: nothing more will be added to it. */
  function openNamed(choice: Choice, parts: AnswerPart[]): void {
    for (const call of choice.calls) if (call.index === null && call.name !== '') openCall(choice, call, parts)
  }

  function openCall(choice: Choice, call: Call, parts: AnswerPart[]): void {
    call.index = choice.opened
    choice.opened += 1
    const { index, signature, text } = call
    const name = call.name.toWellFormed()
    parts.push({ type: 'tool_call', choice: choice.index, index, id: uniqueId(call.wireId), name, signature })
    if (text !== '') parts.push({ type: 'tool_arguments', choice: choice.index, index, text })
  }

  /** The server's own id where it is the first of its name. A made one holds the answer's id, to differ from turn to turn. */
  function uniqueId(wireId: string | null): string {
    const answer = (servedId ?? '').replaceAll(/[^A-Za-z0-9]/g, '').slice(-24)
    const base = wireId ?? `call_${answer}`
    let id = wireId === null ? `${base}_0` : base
    for (let count = 1; ids.has(id); count += 1) id = `${base}_${count}`
    ids.add(id)
    return id
  }

  function releaseHalves(choice: Choice, parts: AnswerPart[]): void {
    if (choice.reasoning.half !== '') parts.push({ type: 'reasoning', choice: choice.index, text: '\ufffd' })
    if (choice.text.half !== '') pushText(choice, '\ufffd', parts)
    if (choice.refusal.half !== '') parts.push({ type: 'refusal', choice: choice.index, text: '\ufffd' })
  }

  function endCalls(choice: Choice, parts: AnswerPart[]) {
    openNamed(choice, parts)
    for (const call of choice.calls) {
      // A call that never got a name cannot be run; one without arguments either is no call at all.
      if (call.index === null && call.text !== '') return fail(parts, failureOf('bad_answer', '200 nameless_tool_call'))
      if (call.index === null) continue
      const missing = call.channel.half !== '' ? '\ufffd' : call.text === '' ? '{}' : ''
      if (missing !== '') parts.push({ type: 'tool_arguments', choice: choice.index, index: call.index, text: missing })
    }
  }

  function end(parts: AnswerPart[]): void {
    if (choices.length === 0) choiceAt(0)
    const seen = choices.filter(choice => choice !== undefined)
    for (const choice of seen) {
      releaseText(choice, parts)
      releaseHalves(choice, parts)
      endCalls(choice, parts)
      if (over) return
    }
    for (const choice of seen) parts.push({ type: 'finish', choice: choice.index, reason: reasonOf(choice) })
    over = true
    parts.push({ type: 'end' })
  }

  return {
    read({ name, data }) {
      const parts: AnswerPart[] = []
      if (over) return parts
      if (data.charCodeAt(0) !== openBrace) {
        const text = data.trim()
        if (text === '') return parts
        if (text === '[DONE]') {
          end(parts)
          return parts
        }
      }
      const payload = parsed(data)
      if (name === 'error') fail(parts, failureInAnswer((isRecord(payload) && errorOf(payload)) || (payload ?? data)))
      // Pings and the like may hold anything; a named event is read only if it is a chunk.
      else if (name !== '' && name !== 'message' && !(isRecord(payload) && Array.isArray(payload.choices))) return parts
      else if (payload === undefined) fail(parts, failureOf('bad_answer', '200 not_json'))
      else readPayload(payload, parts)
      return parts
    },

    finish() {
      const parts: AnswerPart[] = []
      if (over) return parts
      const seen = choices.filter(choice => choice !== undefined)
      if (seen.length > 0 && seen.every(choice => choice.reason !== null)) end(parts)
      // Cut: what is known to be text is still handed out, an end is not.
      else for (const choice of seen) releaseText(choice, parts)
      return parts
    },

    whole(body) {
      const parts: AnswerPart[] = []
      readPayload(body, parts)
      if (over) return parts
      if (choices.length === 0) fail(parts, failureOf('bad_answer', '200 no_choices'))
      else end(parts)
      return parts
    },
  }
}

const openBrace = 123

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Undefined where it is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function named(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= 256 ? value.toWellFormed() : null
}

function indexOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : null
}

/** The piece without lone surrogates: half a pair at its end waits for the other half. */
function mend(channel: Channel, piece: string): string {
  let text = piece
  if (channel.half !== '') {
    text = channel.half + piece
    channel.half = ''
  }
  if ((text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800) {
    channel.half = text.slice(-1)
    text = text.slice(0, -1)
  }
  return text.isWellFormed() ? text : text.toWellFormed()
}

/** Length of the longest end of `text` with which `tag` begins. */
function beginningLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(-length))) return length
  }
  return 0
}

/** Several servers send the same text in two of the three: one is read. */
function reasoningOf({ reasoning_content: content, reasoning, reasoning_details: details }: Json): string {
  if (typeof content === 'string' && content !== '') return content
  if (typeof reasoning === 'string' && reasoning !== '') return reasoning
  if (!Array.isArray(details)) return ''
  return details.map(detail => (isRecord(detail) ? textOf(detail.text) || textOf(detail.summary) : '')).join('')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function argumentsOf(value: unknown): string {
  return isRecord(value) ? JSON.stringify(value) : textOf(value)
}

/** Gemini's compatible endpoint. */
function signatureOf({ extra_content: extra }: Json): string | null {
  const google = isRecord(extra) && isRecord(extra.google) ? extra.google : {}
  return textOf(google.thought_signature) || null
}

/** The call a piece may belong to: by index, else by id, else the last one. */
function findCall(calls: readonly Call[], index: number | null, id: string | null, name: string): Call | undefined {
  if (index !== null) return calls.findLast(call => call.wireIndex === index)
  const same = id === null ? undefined : calls.findLast(call => call.wireId === id)
  return same ?? (id === null || name === '' ? calls.at(-1) : undefined)
}

/**
 * True where a piece that would continue `call` opens another one: parallel calls all under one index, told apart by a
 * new id, by another name after the arguments began, or by a second object after a complete one, which no JSON text has.
 */
function startsAnother(call: Call, id: string | null, name: string, piece: string): boolean {
  if (name === '' || call.name === '') return false
  if (id !== null && call.wireId !== null && id !== call.wireId) return true
  if (call.text === '') return false
  return name !== call.name || (piece.startsWith('{') && call.text.endsWith('}') && parsed(call.text) !== undefined)
}

/** A name may come whole, again on every chunk, growing, or in pieces. */
function joinName(known: string, piece: string): string {
  return piece.startsWith(known) ? piece || known : known === piece ? known : known + piece
}

function readLogprobs(choice: Choice, content: unknown, parts: AnswerPart[]): void {
  const tokens = tokensOf(content)
  if (tokens.length > 0) parts.push({ type: 'logprobs', choice: choice.index, tokens })
}

function tokensOf(content: unknown): TokenLogprob[] {
  if (!Array.isArray(content)) return []
  return content.flatMap(wire => {
    const token = tokenOf(wire)
    const top = isRecord(wire) && Array.isArray(wire.top_logprobs) ? wire.top_logprobs : []
    return token === null ? [] : [{ ...token, top_logprobs: top.flatMap(other => tokenOf(other) ?? []) }]
  })
}

function tokenOf(wire: unknown): Omit<TokenLogprob, 'top_logprobs'> | null {
  if (!isRecord(wire) || typeof wire.token !== 'string' || typeof wire.logprob !== 'number') return null
  const bytes = Array.isArray(wire.bytes) ? wire.bytes.filter(byte => typeof byte === 'number') : null
  return { token: wire.token.toWellFormed(), logprob: wire.logprob, bytes }
}

/** Lower case. What is not here means `stop`: a reason that is unknown is still an end. */
const finishReasons: ReadonlyMap<string, FinishReason | 'failed'> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['safety', 'content_filter'],
  ['error', 'failed'],
  ['network_error', 'failed'],
  ['abort', 'failed'],
  ['insufficient_system_resource', 'failed'],
])

/** Servers say `stop` after tool calls, and `tool_calls` without any: what was sent decides. */
function reasonOf({ reason, opened }: Choice): FinishReason {
  if (reason === 'length' || reason === 'content_filter') return reason
  return opened > 0 ? 'tool_calls' : 'stop'
}

/** No context window comes near it: a count above is nonsense, and must not overflow a sum. */
const maximumTokens = 1e9

function countOf(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isFinite(value)) return null
  return Math.min(maximumTokens, Math.max(0, Math.trunc(value)))
}

/**
 * Token counts in the house's meaning; null where the object holds none. A `total_tokens` above the sum is thinking that
 * the server counts in neither (xAI beside `completion_tokens`, Gemini's compatible endpoint nowhere): it is output.
 */
function usageOf(wire: Json): TokenUsage | null {
  const prompt = countOf(wire.prompt_tokens)
  const completion = countOf(wire.completion_tokens)
  const total = countOf(wire.total_tokens)
  if (prompt === null && completion === null && total === null) return null
  const promptDetails = isRecord(wire.prompt_tokens_details) ? wire.prompt_tokens_details : {}
  const completionDetails = isRecord(wire.completion_tokens_details) ? wire.completion_tokens_details : {}
  const input = prompt ?? Math.max(0, (total ?? 0) - (completion ?? 0))
  const answered = completion ?? 0
  const output = prompt === null ? answered : Math.max(answered, (total ?? 0) - input)
  const cached =
    countOf(promptDetails.cached_tokens) ?? countOf(wire.prompt_cache_hit_tokens) ?? countOf(wire.cached_tokens) ?? 0
  const reasoning =
    (countOf(completionDetails.reasoning_tokens) ?? countOf(wire.reasoning_tokens)) ||
    (completion === null ? 0 : output - answered)
  const cachedInputTokens = Math.min(cached, input)
  return {
    inputTokens: input,
    cachedInputTokens,
    cacheWriteTokens: Math.min(countOf(promptDetails.cache_write_tokens) ?? 0, input - cachedInputTokens),
    outputTokens: output,
    reasoningTokens: Math.min(reasoning, output),
  }
}

// ---------------------------------------------------------------------------------------------------- failures

/** The error a payload carries, in any of the shapes servers give it; null where it is an answer. */
function errorOf(body: Json): unknown {
  if (body.error) return body.error
  if (Array.isArray(body.choices)) return null
  const flat = body.object === 'error' || body.detail || typeof body.message === 'string'
  return flat ? body : null
}

type Refusal = {
  readonly status: number | null
  readonly type: string | null
  readonly code: string | null
  /** All of the error, for wordings: never passed on. */
  readonly text: string
}

/** Lower case types and codes whose meaning outranks the status they come with. */
const kindsByName: ReadonlyMap<string, AttemptFailure> = new Map<string, AttemptFailure>([
  ['context_length_exceeded', 'context_overflow'],
  ['exceed_context_size_error', 'context_overflow'],
  ['insufficient_quota', 'quota_exhausted'],
  ['insufficient_balance', 'quota_exhausted'],
  ['billing_hard_limit_reached', 'quota_exhausted'],
  ['billing_not_active', 'quota_exhausted'],
  ['rate_limit_exceeded', 'rate_limited'],
  ['rate_limit_error', 'rate_limited'],
  ['overloaded_error', 'overloaded'],
  ['engine_overloaded_error', 'overloaded'],
  ['server_overloaded', 'overloaded'],
  ['invalid_api_key', 'credential_refused'],
  ['authentication_error', 'credential_refused'],
  ['account_deactivated', 'credential_refused'],
  ['unsupported_country_region_territory', 'credential_refused'],
  ['model_not_found', 'model_missing'],
  ['model_decommissioned', 'model_missing'],
  ['invalid_model', 'model_missing'],
  ['deploymentnotfound', 'model_missing'],
  ['content_policy_violation', 'content_filtered'],
  ['content_filter', 'content_filtered'],
  ['moderation_blocked', 'content_filtered'],
  ['invalid_prompt', 'content_filtered'],
  ['request_too_large', 'request_too_large'],
  // The model wrote a call that the server could not take: another model may do better.
  ['tool_use_failed', 'generation_failed'],
])

function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  const payload = parsed(body)
  const first = Array.isArray(payload) ? payload[0] : payload
  const refusal = refusalOf(isRecord(first) ? (errorOf(first) ?? first) : body, status)
  return failureOf(kindOf(refusal), detailOf(refusal), retryAfterOf(headers))
}

/** An error inside an answer of status 200: the request was taken, so what remains a plain refusal is the upstream's. */
function failureInAnswer(error: unknown): ProviderFailure {
  const refusal = refusalOf(error, null)
  const kind = kindOf(refusal)
  return failureOf(kind === 'request_refused' ? 'generation_failed' : kind, `200 ${detailOf(refusal)}`.trimEnd())
}

function refusalOf(error: unknown, status: number | null): Refusal {
  if (!isRecord(error)) return { status, type: null, code: null, text: String(error) }
  const claimed = [error.status_code, error.status, error.code].map(Number).find(code => code >= 400 && code <= 599)
  const text = JSON.stringify(error)
  return { status: status ?? claimed ?? null, type: identifier(error.type), code: identifier(error.code), text }
}

/** Azure writes its codes in capitals. */
function identifier(value: unknown): string | null {
  return identifierOf(typeof value === 'string' ? value.toLowerCase() : value)
}

function kindOf({ status, type, code, text }: Refusal): AttemptFailure {
  const byName = kindsByName.get(code ?? '') ?? kindsByName.get(type ?? '')
  const kind = byName ?? (status === null ? 'generation_failed' : kindOfStatus(status))
  if (kind === 'rate_limited') return isQuotaExhausted(text) ? 'quota_exhausted' : kind
  if (byName !== undefined) return byName
  // OpenRouter: 403, with what its moderation objected to.
  if (text.includes('"flagged_input"')) return 'content_filtered'
  const ofTheRequest = kind === 'request_refused' || kind === 'request_too_large'
  const mayBeTheWindow = ofTheRequest || kind === 'generation_failed' || status === 500
  return mayBeTheWindow && isContextOverflow(text) ? 'context_overflow' : kind
}

function detailOf({ status, type, code }: Refusal): string {
  return [...new Set([status, type, code].flatMap(part => (part === null ? [] : [String(part)])))].join(' ')
}
