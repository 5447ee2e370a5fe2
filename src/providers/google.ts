/**
 * Gemini's own wire, `generateContent` and `streamGenerateContent`: its compatible endpoint loses thought signatures,
 * the true finish reasons and the exact token counts.
 *
 * Two things shape this file. A conversation here is turns of parts, so messages are merged and every call is paired with
 * its result before the first byte leaves. And a stream has no terminal event: an answer is whole once the body ended and
 * every choice that appeared had a finish reason.
 */
import type {
  Ask,
  AttemptFailure,
  ContentPart,
  FinishReason,
  ReasoningEffort,
  TokenLogprob,
  TokenUsage,
  Tool,
  ToolCall,
  ToolChoice,
} from '../core/chat.ts'
import { reasoningEfforts } from '../core/chat.ts'
import type { ParameterRules } from '../core/models.ts'
import { failureOf, isContextOverflow, kindOfStatus, retryAfterOf } from './failure.ts'
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

/** Pure translation between the house's language and Gemini's `v1beta` API. */
export const google: Provider = { toRequest, readResponse, streamReader, readFailure }

type Json = Readonly<Record<string, unknown>>

type Part =
  | { readonly text: string }
  | { readonly inlineData: { readonly mimeType: string; readonly data: string } }
  | { readonly fileData: { readonly mimeType: string; readonly fileUri: string } }
  | {
      readonly functionCall: { readonly id: string; readonly name: string; readonly args: Json }
      readonly thoughtSignature: string | undefined
    }
  | { readonly functionResponse: { readonly id: string; readonly name: string; readonly response: Json } }

type Turn = { readonly role: 'user' | 'model'; readonly parts: Part[] }

// ─── The request ─────────────────────────────────────────────────────────────────────────────────────────────────────

function toRequest({ ask, model, outputCap, stream }: ProviderAsk, access: Access): ProviderRequest {
  const rules = model.parameters
  const thinking = thinkingOf(ask.reasoningEffort, rules)
  const thinks = thinking !== null && thinking.thinkingBudget !== 0
  const sampled = rules.sampling === 'accepted' || (rules.sampling !== 'rejected' && !thinks)
  const temperature = sampled ? ask.temperature : null
  const topP = sampled && (temperature === null || rules.temperatureWithTopP) ? ask.topP : null
  const wantedStops = ask.stop.filter(stop => stop !== '')
  const stops = wantedStops.slice(0, rules.maximumStops)
  const choices = Math.min(ask.choices, rules.maximumChoices)
  const format = formatOf(ask, rules)
  const calling = callingOf(ask, rules, thinks)

  const body = {
    systemInstruction: systemOf(ask),
    contents: contentsOf(ask, rules),
    tools: ask.tools.length === 0 ? undefined : [{ functionDeclarations: ask.tools.map(declarationOf) }],
    toolConfig: calling === null ? undefined : { functionCallingConfig: calling },
    generationConfig: {
      maxOutputTokens: outputCap,
      candidateCount: choices === 1 ? undefined : choices,
      temperature: temperature === null ? undefined : Math.min(temperature, rules.maximumTemperature),
      topP: topP ?? undefined,
      stopSequences: stops.length === 0 ? undefined : stops,
      // 32 bits here: folded, so that the same seed is still the same seed.
      seed: rules.seed && ask.seed !== null ? ask.seed | 0 : undefined,
      presencePenalty: rules.penalties ? (ask.presencePenalty ?? undefined) : undefined,
      frequencyPenalty: rules.penalties ? (ask.frequencyPenalty ?? undefined) : undefined,
      ...logprobsOf(ask, rules),
      ...format,
      thinkingConfig: thinking ?? undefined,
    },
  }

  const lost = {
    n: choices < ask.choices,
    seed: ask.seed !== null && !rules.seed,
    logprobs: ask.logprobs && !rules.logprobs,
    top_logprobs: ask.topLogprobs !== null && !rules.logprobs,
    logit_bias: ask.logitBias !== null,
    presence_penalty: ask.presencePenalty !== null && !rules.penalties,
    frequency_penalty: ask.frequencyPenalty !== null && !rules.penalties,
    temperature: ask.temperature !== null && temperature === null,
    top_p: ask.topP !== null && topP === null,
    stop: stops.length < wantedStops.length,
    tool_choice: isDemanding(ask.toolChoice) && calling?.mode !== 'ANY',
    parallel_tool_calls: ask.parallelToolCalls === false && ask.tools.length > 0,
    response_format:
      ask.responseFormat.type !== 'text' &&
      (ask.responseFormat.type === 'json_schema' ? format.responseJsonSchema : format.responseMimeType) === undefined,
    reasoning_effort: ask.reasoningEffort !== null && ask.reasoningEffort !== 'none' && thinking === null,
  }

  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  return {
    url: `${endpointOf(access.baseUrl)}/models/${encodeURIComponent(model.id)}:${method}`,
    headers: {
      'content-type': 'application/json',
      ...(access.apiKey === null ? {} : { 'x-goog-api-key': access.apiKey }),
    },
    body: encode(body),
    droppedParameters: Object.entries(lost).flatMap(([name, isLost]) => (isLost ? [name] : [])),
  }
}

function endpointOf(baseUrl: string): string {
  const base = baseUrl.replace(/\/+$/, '')
  return base.endsWith('/v1beta') ? base : `${base}/v1beta`
}

/** Half a surrogate pair is legal in a JavaScript string and a 400 upstream: looked for only where JSON text shows one. */
function encode(body: unknown): string {
  const text = JSON.stringify(body)
  if (!text.includes('\\ud')) return text
  return JSON.stringify(body, (_, value: unknown) => (typeof value === 'string' ? value.toWellFormed() : value))
}

type Thinking = {
  readonly includeThoughts: boolean
  readonly thinkingLevel?: string | undefined
  readonly thinkingBudget?: number
}

/** What Google's own compatible endpoint makes of an effort; the two above `high` are ours: all that the model has. */
const thinkingBudgets: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: Number.MAX_SAFE_INTEGER,
  max: Number.MAX_SAFE_INTEGER,
}

/** null = nothing to steer. Without an effort asked, the model decides how long it thinks, and its thoughts are shown. */
function thinkingOf(effort: ReasoningEffort | null, { reasoning, efforts }: ParameterRules): Thinking | null {
  switch (reasoning.kind) {
    case 'level':
      // It cannot be switched off: `none` becomes the lowest level, unseen.
      if (effort === null) return { includeThoughts: true }
      return { includeThoughts: effort !== 'none', thinkingLevel: nearestEffort(effort, efforts) }
    case 'token_budget': {
      const { minimum, maximum, canDisable } = reasoning
      if (effort === null) return { includeThoughts: true }
      if (effort === 'none') return { includeThoughts: false, thinkingBudget: canDisable ? 0 : minimum }
      return { includeThoughts: true, thinkingBudget: Math.min(Math.max(thinkingBudgets[effort], minimum), maximum) }
    }
    case 'none':
    case 'effort':
    case 'adaptive':
    case 'budget':
      return null
  }
}

/** The level closest in `reasoningEfforts`; of two as close, the one that thinks less. */
function nearestEffort(asked: ReasoningEffort, efforts: readonly ReasoningEffort[]): ReasoningEffort | undefined {
  const distance = (effort: ReasoningEffort) =>
    Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(asked))
  return efforts.filter(effort => effort !== 'none').sort((one, other) => distance(one) - distance(other))[0]
}

function logprobsOf({ logprobs, topLogprobs }: Ask, rules: ParameterRules) {
  if (!logprobs || !rules.logprobs) return {}
  return {
    responseLogprobs: true,
    logprobs: topLogprobs === null || topLogprobs === 0 ? undefined : Math.min(topLogprobs, rules.maximumTopLogprobs),
  }
}

type Format = { readonly responseMimeType?: 'application/json'; readonly responseJsonSchema?: Json }

function formatOf({ responseFormat, tools }: Ask, rules: ParameterRules): Format {
  // Before the generation that thinks in levels, JSON answers and function tools exclude each other.
  const excluded = tools.length > 0 && rules.reasoning.kind !== 'level'
  if (responseFormat.type === 'text' || rules.responseFormat === 'none' || excluded) return {}
  if (responseFormat.type === 'json_object' || rules.responseFormat === 'json_object') {
    return { responseMimeType: 'application/json' }
  }
  return { responseMimeType: 'application/json', responseJsonSchema: plainSchema(responseFormat.schema) }
}

type Calling = { readonly mode: 'AUTO' | 'NONE' | 'ANY'; readonly allowedFunctionNames?: readonly string[] }

/** null = the caller left it open. */
function callingOf({ toolChoice, tools }: Ask, rules: ParameterRules, thinks: boolean): Calling | null {
  if (toolChoice === null || tools.length === 0) return null
  if (toolChoice === 'none') return { mode: 'NONE' }
  const refused =
    rules.forcedToolChoice === 'rejected' || (rules.forcedToolChoice === 'rejected_when_thinking' && thinks)
  if (toolChoice === 'auto' || refused) return { mode: 'AUTO' }
  return toolChoice === 'required' ? { mode: 'ANY' } : { mode: 'ANY', allowedFunctionNames: [toolChoice.name] }
}

function isDemanding(toolChoice: ToolChoice | null): boolean {
  return toolChoice !== null && toolChoice !== 'auto' && toolChoice !== 'none'
}

function declarationOf({ name, description, parameters }: Tool) {
  return { name, description: description ?? '', parametersJsonSchema: parametersOf(parameters) }
}

/** An object schema that describes nothing is refused: left out, it means the same. */
function parametersOf(parameters: Tool['parameters']): Json | undefined {
  const schema = plainSchema(parameters ?? {})
  const { properties, additionalProperties, $ref, anyOf, oneOf } = schema
  const describes = [additionalProperties, $ref, anyOf, oneOf].some(
    keyword => typeof keyword === 'object' || isText(keyword),
  )
  if (!describes && Object.keys(record(properties)).length === 0) return undefined
  return $ref === undefined ? { type: 'object', ...schema } : schema
}

// ─── Schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Keywords that `responseJsonSchema` documents, by what they hold; others are left out, which loosens and never refuses. */
const schemaKeywords: Readonly<Record<string, 'value' | 'schema' | 'list' | 'map'>> = {
  $id: 'value',
  $ref: 'value',
  $anchor: 'value',
  $defs: 'map',
  type: 'value',
  format: 'value',
  title: 'value',
  description: 'value',
  enum: 'value',
  required: 'value',
  minItems: 'value',
  maxItems: 'value',
  minimum: 'value',
  maximum: 'value',
  propertyOrdering: 'value',
  properties: 'map',
  additionalProperties: 'schema',
  items: 'schema',
  prefixItems: 'list',
  anyOf: 'list',
  oneOf: 'list',
}

/** The same schema in the keywords taken here. Depth is bounded where the request's body is read. */
function plainSchema(schema: Json): Json {
  const plain: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(modern(schema))) {
    const kept = keywordValue(keyword, value)
    if (kept !== undefined) plain[keyword] = kept
  }
  // Beside a reference only other `$` keywords may stand.
  if (plain.$ref === undefined) return plain
  return Object.fromEntries(Object.entries(plain).filter(([keyword]) => keyword.startsWith('$')))
}

/** Older spellings, and what generators write for "this one schema", "this one value" and "or nothing". */
function modern({ const: constant, definitions, allOf, ...schema }: Json): Json {
  const [only, ...more] = Array.isArray(allOf) ? allOf : []
  const merged: Json = {
    ...(isRecord(only) && more.length === 0 ? modern(only) : {}),
    ...schema,
    ...(isRecord(definitions) ? { $defs: { ...definitions, ...record(schema.$defs) } } : {}),
    ...(constant === undefined ? {} : constant === null ? { type: 'null' } : { enum: [constant] }),
  }
  const values = merged.enum
  if (!Array.isArray(values) || !values.includes(null)) return merged
  return { anyOf: [{ ...merged, enum: values.filter(value => value !== null) }, { type: 'null' }] }
}

function keywordValue(keyword: string, value: unknown): unknown {
  const holds = lookUp(schemaKeywords, keyword)
  if (holds === undefined) return undefined
  if (keyword === 'enum') return enumOf(value)
  if (keyword === '$ref') return isText(value) ? value.replace(/^#\/definitions\//, '#/$defs/') : undefined
  if (holds === 'list') return Array.isArray(value) ? value.filter(isRecord).map(plainSchema) : undefined
  if (holds === 'schema') return isRecord(value) ? plainSchema(value) : booleanOnly(keyword, value)
  if (holds === 'map') return mapOf(record(value))
  return value
}

/** `items: true` says nothing and is not taken; `additionalProperties: false` says something and is. */
function booleanOnly(keyword: string, value: unknown): boolean | undefined {
  return keyword === 'additionalProperties' && typeof value === 'boolean' ? value : undefined
}

function mapOf(schemas: Json): Json {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, plainSchema(record(schema))]))
}

/** An empty text among the values is a 400; values other than text and numbers are not known here. */
function enumOf(value: unknown): readonly unknown[] | undefined {
  const values = Array.isArray(value) ? value.filter(one => isText(one) || typeof one === 'number') : []
  return values.length === 0 ? undefined : values
}

// ─── Turns ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A turn must hold a visible text in each of these places, whatever the caller left out. */
const fillers = {
  opening: { text: 'Begin.' },
  emptyTurn: { text: '(The message was empty.)' },
  continuation: { text: 'Continue.' },
} as const

/** All system messages in their order, wherever they stood. */
function systemOf({ messages }: Ask): { readonly parts: readonly Part[] } | undefined {
  const parts = messages.flatMap(message =>
    message.role === 'system' && isVisible(message.text) ? [{ text: message.text }] : [],
  )
  return parts.length === 0 ? undefined : { parts }
}

function contentsOf({ messages }: Ask, rules: ParameterRules): readonly Turn[] {
  const turns: Turn[] = []
  const add = (role: Turn['role'], parts: readonly Part[]) => {
    const last = turns.at(-1)
    if (last?.role === role) last.parts.push(...parts)
    else if (parts.length > 0) turns.push({ role, parts: [...parts] })
  }
  let pending: PendingCall[] = []
  let strays: Part[] = []
  const settle = () => {
    add('user', [...pending.map(resultOf), ...strays])
    pending = []
    strays = []
  }
  for (const message of messages) {
    if (message.role === 'system') continue
    if (message.role === 'tool') {
      const call = pending.find(({ id, result }) => id === message.callId && result === null)
      if (call) call.result = message.text
      else strays.push({ text: `Result of tool call ${message.callId}: ${message.text}` })
      continue
    }
    settle()
    if (message.role === 'user') {
      add('user', userParts(message.content))
      continue
    }
    if (message.text !== null && isVisible(message.text)) add('model', [{ text: message.text }])
    add('model', callParts(message.toolCalls, rules))
    pending = message.toolCalls.map(({ id, name }) => ({ id, name, result: null }))
  }
  settle()
  // A turn of calls may not come first.
  if (turns[0]?.parts.some(part => 'functionCall' in part) ?? true) {
    turns.unshift({ role: 'user', parts: [fillers.opening] })
  }
  if (!rules.prefill && turns.at(-1)?.role === 'model') add('user', [fillers.continuation])
  return turns
}

function userParts(content: readonly ContentPart[]): readonly Part[] {
  const parts = content.flatMap(part => (part.type === 'text' && part.text === '' ? [] : [partOf(part)]))
  return parts.some(part => !('text' in part) || isVisible(part.text)) ? parts : [fillers.emptyTurn]
}

function isVisible(text: string): boolean {
  return text.trim() !== ''
}

function partOf(part: ContentPart): Part {
  if (part.type === 'text') return { text: part.text }
  return part.url.startsWith('data:') ? { inlineData: inlineOf(part.url) } : { fileData: fileOf(part.url) }
}

function inlineOf(url: string): { mimeType: string; data: string } {
  const comma = url.indexOf(',')
  const [mimeType, ...parameters] = url.slice('data:'.length, comma).split(';')
  const data = url.slice(comma + 1)
  const base64 = parameters.some(parameter => parameter.trim().toLowerCase() === 'base64')
  return { mimeType: mimeType?.toLowerCase() || 'image/jpeg', data: base64 ? data : percentToBase64(data) }
}

/** Not `decodeURIComponent`: it throws on bytes that are no UTF-8, and an image is seldom that. */
function percentToBase64(text: string): string {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('base64')
}

const imageTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  heic: 'image/heic',
  heif: 'image/heif',
}

/** The type must be named although only its host knows it: by the extension, else by what most images are. */
function fileOf(fileUri: string): { mimeType: string; fileUri: string } {
  const extension = /\.([a-z]+)(?:[?#]|$)/i.exec(fileUri)?.[1]?.toLowerCase() ?? ''
  return { mimeType: lookUp(imageTypes, extension) ?? 'image/jpeg', fileUri }
}

/**
 * From the generation that thinks in levels on, the first call of a step must carry the signature it came with; where the
 * caller's client lost it, this documented value stands in. A caller's text that is no base64 would be a 400.
 */
const lostSignature = 'skip_thought_signature_validator'
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

function callParts(calls: readonly ToolCall[], { reasoning }: ParameterRules): readonly Part[] {
  return calls.map(({ id, name, arguments: text, signature }, position) => {
    const own = signature !== null && base64.test(signature) ? signature : undefined
    const needed = position === 0 && reasoning.kind === 'level' ? lostSignature : undefined
    return { functionCall: { id, name, args: objectIn(text) ?? {} }, thoughtSignature: own ?? needed }
  })
}

type PendingCall = { readonly id: string; readonly name: string; result: string | null }

function resultOf({ id, name, result }: PendingCall): Part {
  if (result === null) return { functionResponse: { id, name, response: { error: 'The tool gave no result.' } } }
  // Numbers become doubles on this wire: a result with longer ones, ids mostly, stays text.
  const parsed = /\d{16}/.test(result) ? null : objectIn(result)
  return { functionResponse: { id, name, response: parsed ?? { result } } }
}

/** The JSON object that a text holds, null where it holds anything else. */
function objectIn(text: string): Json | null {
  const value = parse(text)
  return isRecord(value) ? value : null
}

// ─── The answer ──────────────────────────────────────────────────────────────────────────────────────────────────────

function readResponse(body: unknown): readonly AnswerPart[] {
  const reader = answerReader()
  const parts = reader.take(body)
  if (parts.at(-1)?.type === 'failure') return parts
  // A whole body is complete by being JSON, so a finish reason left out is no cut.
  const rest = reader.finish('finish_missing')
  return rest.length === 0 ? [badAnswer('200 without candidates')] : [...parts, ...rest]
}

function streamReader(): StreamReader {
  const reader = answerReader()
  return {
    read: ({ name, data }: ServerSentEvent) => {
      if (data === '' || data === '[DONE]') return []
      const frame = parse(data)
      if (frame === undefined) return reader.fail(badAnswer('unreadable frame'))
      const parts = reader.take(frame)
      if (name !== 'error' || parts.at(-1)?.type === 'failure') return parts
      return reader.fail(badAnswer('error event'))
    },
    finish: () => reader.finish('finish_required'),
  }
}

type Choice = {
  calls: number
  /** The first one given; a later one never replaces it. */
  finish: FinishReason | null
  /** A call whose arguments still come (`willContinue`). */
  open: { readonly index: number; readonly args: Record<string, unknown> } | null
}

/** What streamed and whole answers share: response objects in, parts out. Dead after a failure or the end. */
function answerReader() {
  const choices = new Map<number, Choice>()
  const ids = new Set<string>()
  let responseId = ''
  let servedModel = ''
  let emitted = false
  let dead = false

  const fail = (failure: AnswerPart): readonly AnswerPart[] => {
    if (dead) return []
    dead = true
    return [failure]
  }

  const take = (body: unknown): readonly AnswerPart[] => {
    const parts: AnswerPart[] = []
    for (const frame of Array.isArray(body) ? body : [body]) {
      if (dead) break
      parts.push(...takeFrame(frame))
    }
    return parts
  }

  const takeFrame = (frame: unknown): readonly AnswerPart[] => {
    if (!isRecord(frame)) return fail(badAnswer('frame is no object'))
    if (frame.error) return fail({ type: 'failure', failure: refusalOf(errorIn(frame), null, null) })
    const parts = [...served(frame), ...usageParts(frame.usageMetadata)]
    const candidates = list(frame.candidates)
    // What came with the failed generation is not handed out: another candidate may still answer in its place.
    const failed = candidates.map(({ finishReason }) => finishReason).find(isFailedGeneration)
    if (failed !== undefined && !emitted)
      return [...parts, ...fail({ type: 'failure', failure: failureOf('generation_failed', failed) })]
    for (const [position, candidate] of candidates.entries()) parts.push(...readCandidate(candidate, position))
    if (isText(record(frame.promptFeedback).blockReason)) block()
    return parts
  }

  const served = ({ responseId: id, modelVersion }: Json): AnswerPart[] => {
    const model = isText(modelVersion) ? modelVersion.replace(/^models\//, '') : servedModel
    if ((!isText(id) || id === responseId) && model === servedModel) return []
    responseId = isText(id) ? id : responseId
    servedModel = model
    return [{ type: 'served', id: responseId || null, model: servedModel || null }]
  }

  const choiceAt = (index: number): Choice => {
    const known = choices.get(index)
    if (known) return known
    const choice: Choice = { calls: 0, finish: null, open: null }
    choices.set(index, choice)
    return choice
  }

  /** A blocked prompt has no candidates: its one choice is ours. */
  const block = () => {
    if (choices.size === 0) choiceAt(0)
    for (const choice of choices.values()) choice.finish ??= 'content_filter'
  }

  const readCandidate = (candidate: Json, position: number): readonly AnswerPart[] => {
    // Index 0 is often left out, as a zero is on this wire.
    const index = isCount(candidate.index) && candidate.index < 128 ? candidate.index : position
    const choice = choiceAt(index)
    const parts: AnswerPart[] = []
    for (const part of list(record(candidate.content).parts)) parts.push(...readPart(part, index, choice))
    parts.push(...logprobParts(candidate.logprobsResult, index))
    if (isText(candidate.finishReason)) choice.finish ??= lookUp(finishReasons, candidate.finishReason) ?? 'stop'
    emitted ||= parts.length > 0
    return parts
  }

  /** Code that Google runs itself and its output, images and bare signatures are no part of a chat answer: skipped. */
  const readPart = (part: Json, index: number, choice: Choice): readonly AnswerPart[] => {
    if (isRecord(part.functionCall)) return readCall(part.functionCall, part.thoughtSignature, index, choice)
    if (!isText(part.text)) return []
    return [{ type: part.thought === true ? 'reasoning' : 'text', choice: index, text: part.text }]
  }

  /** A call comes whole; only where a proxy asks for it, its arguments come in pieces, which are kept until they fit. */
  const readCall = (call: Json, signature: unknown, index: number, choice: Choice): readonly AnswerPart[] => {
    const parts: AnswerPart[] = []
    if (isText(call.name)) {
      parts.push(...closeCall(index, choice))
      choice.open = { index: choice.calls++, args: { ...record(call.args) } }
      parts.push({
        type: 'tool_call',
        choice: index,
        index: choice.open.index,
        id: mintId(call.id),
        name: call.name,
        signature: isText(signature) ? signature : null,
      })
    }
    if (choice.open) for (const piece of list(call.partialArgs)) applyPiece(choice.open.args, piece)
    return call.willContinue === true ? parts : [...parts, ...closeCall(index, choice)]
  }

  const closeCall = (index: number, choice: Choice): readonly AnswerPart[] => {
    if (choice.open === null) return []
    const { index: call, args } = choice.open
    choice.open = null
    return [{ type: 'tool_arguments', choice: index, index: call, text: JSON.stringify(args) }]
  }

  /** The id given, where it is the first of its kind; else one from the answer's own, for results to find their call by. */
  const mintId = (given: unknown): string => {
    const answer = responseId.replace(/[^A-Za-z0-9]/g, '').slice(0, 32)
    let id = isText(given) ? given : ''
    for (let count = ids.size; id === '' || ids.has(id); count++)
      id = answer === '' ? `call_${count}` : `call_${count}_${answer}`
    ids.add(id)
    return id
  }

  const finish = (mode: 'finish_required' | 'finish_missing'): readonly AnswerPart[] => {
    const all = [...choices].sort(([one], [other]) => one - other)
    const whole = mode === 'finish_missing' || all.every(([, choice]) => choice.finish !== null)
    if (dead || all.length === 0 || !whole) return []
    const ends = all.flatMap(([index, choice]): AnswerPart[] => [
      ...closeCall(index, choice),
      { type: 'finish', choice: index, reason: reasonOf(choice) },
    ])
    dead = true
    return [...ends, { type: 'end' }]
  }

  /** What nests deeper than the stack can be read as JSON, and not written again. */
  const guarded =
    <T>(read: (input: T) => readonly AnswerPart[]) =>
    (input: T): readonly AnswerPart[] => {
      try {
        return read(input)
      } catch {
        return fail(badAnswer('nested too deep'))
      }
    }

  return { take: guarded(take), fail, finish: guarded(finish) }
}

/** Calls end with STOP here: that they were made is read off the answer. */
function reasonOf({ finish, calls }: Choice): FinishReason {
  if (finish === null || finish === 'stop') return calls > 0 ? 'tool_calls' : 'stop'
  return finish
}

/** What is not here is `stop`. */
const finishReasons: Readonly<Record<string, FinishReason>> = {
  MAX_TOKENS: 'length',
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  LANGUAGE: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
}

const failedGenerations = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
] as const

function isFailedGeneration(reason: unknown): reason is (typeof failedGenerations)[number] {
  return failedGenerations.some(failed => failed === reason)
}

/** Counts are cumulative; thoughts stand beside the candidates' tokens, the cache inside the prompt's. */
function usageParts(metadata: unknown): readonly AnswerPart[] {
  const counts = record(metadata)
  if (!isCount(counts.promptTokenCount)) return []
  const inputTokens = counts.promptTokenCount + count(counts.toolUsePromptTokenCount)
  const reasoningTokens = count(counts.thoughtsTokenCount)
  const usage: TokenUsage = {
    inputTokens,
    cachedInputTokens: Math.min(count(counts.cachedContentTokenCount), inputTokens),
    cacheWriteTokens: 0,
    outputTokens: count(counts.candidatesTokenCount) + reasoningTokens,
    reasoningTokens,
  }
  return [{ type: 'usage', usage }]
}

function logprobParts(result: unknown, choice: number): readonly AnswerPart[] {
  const { chosenCandidates, topCandidates } = record(result)
  const tops = list(topCandidates)
  const tokens = list(chosenCandidates).map(
    (chosen, position): TokenLogprob => ({
      ...logprobOf(chosen),
      top_logprobs: list(tops[position]?.candidates).map(logprobOf),
    }),
  )
  return tokens.length === 0 ? [] : [{ type: 'logprobs', choice, tokens }]
}

/** Bytes are not told, and cannot be had from a token that is half a character. */
function logprobOf({ token, logProbability }: Json) {
  return {
    token: isText(token) ? token : '',
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: null,
  }
}

/** Puts one piece at its path (`$.stops[0].name`) in the arguments; the pieces of one text follow each other. */
function applyPiece(args: Record<string, unknown>, piece: Json): void {
  const path = isText(piece.jsonPath) ? [...piece.jsonPath.matchAll(/\.([^.[\]]+)|\[(\d+)\]|\[['"](.*?)['"]\]/g)] : []
  let slot: Slot = { holder: { '': args }, key: '' }
  for (const [, name, position, quoted] of path) {
    const inside = position === undefined ? {} : []
    const held = readSlot(slot)
    const holder = typeof held === 'object' && held !== null ? held : writeSlot(slot, inside)
    slot = { holder, key: name ?? quoted ?? String(position) }
  }
  if (path.length === 0) return
  const before = readSlot(slot)
  const value = piece.stringValue ?? piece.numberValue ?? piece.boolValue ?? null
  writeSlot(slot, isText(before) && typeof value === 'string' ? before + value : value)
}

type Slot = { readonly holder: object; readonly key: string }

/** Own properties only: a path is the model's text, and may spell `constructor`. */
function readSlot({ holder, key }: Slot): unknown {
  return Object.getOwnPropertyDescriptor(holder, key)?.value
}

function writeSlot<T>({ holder, key }: Slot, value: T): T {
  // At most one past the end of an array: no index may cost memory.
  const place = Array.isArray(holder) ? String(Math.min(Number(key) || 0, holder.length)) : key
  Object.defineProperty(holder, place, { value, enumerable: true, writable: true, configurable: true })
  return value
}

// ─── Failures ────────────────────────────────────────────────────────────────────────────────────────────────────────

function readFailure(status: number, headers: Headers, body: string): ProviderFailure {
  return refusalOf(errorIn(parse(body)), status, retryAfterOf(headers))
}

type UpstreamError = {
  readonly code: number | null
  readonly status: string
  readonly message: string
  readonly reason: string
  readonly quotas: readonly string[]
  readonly retryAfterMs: number | null
}

/** Reads `{error}` and `[{error}]`, and whatever a proxy may send in their place. */
function errorIn(body: unknown): UpstreamError {
  const envelope = record(Array.isArray(body) ? body[0] : body)
  const error = record(envelope.error)
  const details = list(error.details)
  const quotas = details
    .flatMap(({ violations }) => list(violations))
    .flatMap(({ quotaId }) => (isText(quotaId) ? [quotaId] : []))
  return {
    code: isCount(error.code) && error.code >= 400 ? error.code : null,
    status: isText(error.status) ? error.status : '',
    message: isText(error.message) ? error.message : isText(envelope.error) ? envelope.error : '',
    reason: details.map(({ reason }) => reason).find(isText) ?? '',
    quotas,
    retryAfterMs: details.map(({ retryDelay }) => durationMs(retryDelay)).find(delay => delay !== null) ?? null,
  }
}

/** A duration as protocol buffers write it, in milliseconds: `48s`, `34.4s`. */
function durationMs(duration: unknown): number | null {
  const seconds = isText(duration) ? /^(\d{1,9}(?:\.\d+)?)s$/.exec(duration)?.[1] : undefined
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1_000)
}

/** Streamed errors may name the status alone. */
const statusCodes: Readonly<Record<string, number>> = {
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  OUT_OF_RANGE: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  ABORTED: 409,
  RESOURCE_EXHAUSTED: 429,
  CANCELLED: 499,
  INTERNAL: 500,
  UNKNOWN: 500,
  DATA_LOSS: 500,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
}

function refusalOf(error: UpstreamError, httpStatus: number | null, headerDelayMs: number | null): ProviderFailure {
  const status = httpStatus ?? error.code ?? lookUp(statusCodes, error.status) ?? 500
  const kind = kindOf(status, error)
  // A delay told with a spent day is that of the minute's quota, and would bring us back too soon.
  const retryAfterMs = kind === 'quota_exhausted' ? null : (error.retryAfterMs ?? headerDelayMs)
  // Names alone, and none with a digit: a message may quote the prompt, and what looks like a key is not passed on.
  const names = [error.status, error.reason, ...error.quotas].filter(name => /^[A-Za-z][A-Za-z_-]{0,95}$/.test(name))
  return failureOf(kind, [status, ...names.slice(0, 4)].join(' '), retryAfterMs)
}

function kindOf(status: number, { status: name, message, reason, quotas }: UpstreamError): AttemptFailure {
  // A bad key is a 400 here, told from a bad request by its reason alone; a region or billing fault is ours as well.
  if (reason.startsWith('API_KEY_') || name === 'FAILED_PRECONDITION') return 'credential_refused'
  if (status === 400 && isContextOverflow(message)) return 'context_overflow'
  if (status === 429 && isSpent(quotas, message)) return 'quota_exhausted'
  // Cancelled on their side: the caller had no part in it.
  return status === 499 ? 'unavailable' : kindOfStatus(status)
}

/** The message speaks of plan and billing on every 429 here: only the quota's own name tells a day from a minute. */
function isSpent(quotas: readonly string[], message: string): boolean {
  return quotas.some(quota => /per_?day/i.test(quota)) || /credits are depleted|spend(?:ing)? cap/i.test(message)
}

function badAnswer(detail: string): AnswerPart {
  return { type: 'failure', failure: failureOf('bad_answer', detail) }
}

// ─── Foreign JSON ────────────────────────────────────────────────────────────────────────────────────────────────────

/** undefined where the text is no JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Foreign names may spell `constructor`. */
function lookUp<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function record(value: unknown): Json {
  return isRecord(value) ? value : {}
}

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : []
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function count(value: unknown): number {
  return isCount(value) ? value : 0
}
