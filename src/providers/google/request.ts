import type { ChatRequest, Message, ReasoningEffort, ReasoningItem, Tool, ToolCall } from '../../core/chat/chat.ts'
import { thinkingBudgets } from '../../core/chat/google-wire.ts'
import { isSendableField } from '../../core/chat/provider-features.ts'
import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { Model, ParameterRules } from '../../core/models/models.ts'
import { isNumeric } from '../../core/validation/untrusted-json.ts'
import { fieldEdits, isNamed } from '../anthropic/source-body.ts'
import { getTurns, inlineImage, placeholderTexts, systemTexts, type ToolExchange } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { encoded, isRecord, isText, type Json, objectIn, record } from '../json.ts'
import { edited, membersAt } from '../json-spans.ts'
import { droppedNames, instructionFor, mayForce, nearestEffort, parametersFor } from '../parameters.ts'
import type { Access, AdapterRequest, ProviderRequest } from '../provider.ts'
import { rewritten } from '../schemas.ts'

/** Keywords that `responseJsonSchema` documents. Others are dropped, which loosens the schema and is never rejected. */
const takenKeywords: ReadonlySet<string> = new Set(
  `$id $ref $anchor $defs type format title description enum required minItems maxItems minimum maximum
  propertyOrdering properties additionalProperties items prefixItems anyOf oneOf`.split(/\s+/),
)

/** Returns the schema with supported keywords. The body parser limits its depth. */
function plainSchema(schema: Json): Json {
  const plain: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(modern(schema))) {
    const kept = takenKeywords.has(keyword) ? keptValue(keyword, value) : undefined
    if (kept !== undefined) plain[keyword] = kept
  }
  // Only `$` keywords may accompany a reference.
  if (plain.$ref === undefined) return plain
  return Object.fromEntries(Object.entries(plain).filter(([keyword]) => keyword.startsWith('$')))
}

/** Converts older spellings, and generators' forms of a single schema, a single value, and nullable values. */
function modern(given: Json): Json {
  const isModern = !olderKeywords.some(keyword => given[keyword] !== undefined)
  if (isModern && !(Array.isArray(given.enum) && given.enum.includes(null))) return given
  const { const: constant, definitions, allOf, ...schema } = given
  const [only, ...more] = Array.isArray(allOf) ? allOf : []
  const merged: Json = {
    ...(isRecord(only) && more.length === 0 && modern(only)),
    ...schema,
    ...(isRecord(definitions) && { $defs: { ...definitions, ...record(schema.$defs) } }),
    ...(constant !== undefined && (constant === null ? { type: 'null' } : { enum: [constant] })),
  }
  const values = merged.enum
  if (!Array.isArray(values) || !values.includes(null)) return merged
  return { anyOf: [{ ...merged, enum: values.filter(value => value !== null) }, { type: 'null' }] }
}

const olderKeywords = ['const', 'definitions', 'allOf'] as const

function keptValue(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'enum':
      return findEnum(value)
    case '$ref':
      return isText(value) ? value.replace(/^#\/definitions\//, '#/$defs/') : undefined
    // `items: true` has no meaning and is rejected; `additionalProperties: false` is supported.
    case 'items':
      return isRecord(value) ? plainSchema(value) : undefined
    default:
      return rewritten(keyword, value, plainSchema)
  }
}

/** An empty string among the values is a 400; only strings and numbers are supported. */
function findEnum(value: unknown): readonly unknown[] | undefined {
  const values = Array.isArray(value) ? value.filter(item => isText(item) || isNumeric(item)) : []
  return values.length === 0 ? undefined : values
}

/** Returns the conversation in the wire format, without system texts. */
function contentsFor(messages: readonly Message[], { prefill, reasoning }: ParameterRules): readonly Json[] {
  const turns = getTurns<Json>(messages, prefill, {
    text: text => ({ text }),
    said: (text, reasoning) => ({ text, thoughtSignature: textSignature(reasoning) }),
    image: imagePart,
    file: ({ url }) => ({ inlineData: { mimeType: 'application/pdf', data: inlineImage(url)?.data ?? '' } }),
    exchange: ({ call, result }, position) => {
      const { id, name } = call
      const thoughtSignature = findSignature(call, position === 0 && reasoning.kind === 'level')
      return [
        { functionCall: { id, name, args: objectIn(call.arguments) ?? {} }, thoughtSignature },
        { functionResponse: { id, name, response: getResponse(result) } },
      ]
    },
  })
  return turns.map(({ role, parts }) => ({ role: role === 'assistant' ? 'model' : role, parts }))
}

const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/**
 * Returns the signature of a call. Models with reasoning levels require it on the first call of a step. If the client
 * lost it, a documented placeholder is sent; client text that is not base64 would cause a 400.
 */
function findSignature({ signature }: ToolCall, needed: boolean): string | undefined {
  if (signature !== null && base64.test(signature)) return signature
  return needed ? 'skip_thought_signature_validator' : undefined
}

/** What the text of an earlier turn was signed with. */
function textSignature(reasoning: readonly ReasoningItem[]): string | undefined {
  const signed = reasoning.findLast(({ family, id }) => family === 'google' && id === null)
  return signed !== undefined && base64.test(signed.data) ? signed.data : undefined
}

function getResponse(result: ToolExchange['result']): Json {
  if (result === null) return { error: placeholderTexts.missingResult }
  // Numbers become doubles on this wire: a result with longer ones (mostly IDs) stays text.
  return (/\d{16}/.test(result) ? null : objectIn(result)) ?? { result }
}

function imagePart(url: string): Json {
  const image = inlineImage(url)
  if (image === null) return { fileData: { mimeType: kindByExtension(url), fileUri: url } }
  const data = image.isBase64 ? image.data : percentToBase64(image.data)
  return { inlineData: { mimeType: image.kind || 'image/jpeg', data } }
}

/** Not `decodeURIComponent`, which throws on bytes that are not UTF-8, as images usually are. */
function percentToBase64(text: string): string {
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('base64')
}

/** Returns the required media type of an image URL: by its extension, else the most common one. */
function kindByExtension(url: string): string {
  const extension = /\.(png|webp|gif|heic|heif)(?:[?#]|$)/i.exec(url)?.[1]
  return `image/${extension?.toLowerCase() ?? 'jpeg'}`
}

/** The request for the list of models. */
export function toGoogleList({ baseUrl, apiKey }: Access): Pick<ProviderRequest, 'url' | 'headers'> {
  const base = baseUrl.replace(/\/+$/, '').replace(/\/v1beta$/, '')
  return { url: `${base}/v1beta/models`, headers: apiKey === null ? {} : { 'x-goog-api-key': apiKey } }
}

/** Returns the address and the headers of a method of a model. */
export function googleCall(access: Access, { id }: Model, method: string): ReturnType<typeof toGoogleList> {
  const { url, headers } = toGoogleList(access)
  return {
    url: `${url}/${encodeURIComponent(id)}:${method}`,
    headers: { 'content-type': 'application/json', ...headers },
  }
}

/** Builds the request: the client's own body if it has this form and needs no change, otherwise a translation. */
export function toGoogleRequest(question: AdapterRequest, access: Access): ProviderRequest {
  const { model, stream } = question
  const { body, dropped } = translated(question)
  return {
    ...googleCall(access, model, stream ? 'streamGenerateContent?alt=sse' : 'generateContent'),
    body: (dropped.length === 0 ? ownBody(question) : null) ?? encoded(body()),
    droppedParameters: dropped,
  }
}

/**
 * Returns the client's text with the cap of this attempt; null = the request must be translated: it was written for another model or
 * form, or the gateway has changed it.
 */
function ownBody({ request, model, outputCap }: AdapterRequest): string | null {
  const { source } = request
  if (source?.dialect !== 'gemini' || source.messages !== request.messages) return null
  if (source.turn !== undefined || source.sealed?.length !== 0 || !isNamed(model, request.model)) return null
  const { text, fields } = source
  const isUnsendable = (key: string) => !isSendableField('gemini', key, fields[key])
  const members = membersAt(text, 0)
  const config = record(fields.generationConfig)
  if (config.maxOutputTokens === outputCap) return edited(text, fieldEdits(members, {}, isUnsendable))
  const span = members.find(({ key }) => key === 'generationConfig')?.value
  const settings = { maxOutputTokens: outputCap }
  if (span === undefined || Object.keys(config).length === 0)
    return edited(text, fieldEdits(members, { generationConfig: settings }, isUnsendable))
  return edited(text, [...fieldEdits(members, {}, isUnsendable), ...fieldEdits(membersAt(text, span.from), settings)])
}

function translated({ request, model, outputCap }: AdapterRequest) {
  const rules = model.parameters
  const thinking = thinkingFor(request.reasoningEffort, rules)
  const thinks = thinking !== null && thinking.thinkingBudget !== 0
  const parameters = parametersFor(request, { ...rules, logitBias: false }, thinks)
  const calling = callingFor(request, rules, thinks)
  const format = formatFor(request, rules, calling)
  const unforced = isDemanding(request.toolChoice) && request.tools.length > 0 && calling?.mode !== 'ANY'
  const lines = unforced ? [instructionFor(request.toolChoice)] : []
  const extras = sortExtras('google', request.extras)

  const body = () => {
    const system = [...systemTexts(request.messages), ...lines].map(text => ({ text }))
    const functionDeclarations = request.tools.map(declarationFor)
    return {
      systemInstruction: system.length > 0 ? { parts: system } : undefined,
      contents: contentsFor(request.messages, rules),
      tools: functionDeclarations.length > 0 ? [{ functionDeclarations }] : undefined,
      toolConfig: calling === null ? undefined : { functionCallingConfig: calling },
      safetySettings: extras.sent.safetySettings,
      generationConfig: {
        maxOutputTokens: outputCap,
        candidateCount: parameters.choices,
        temperature: parameters.temperature,
        topP: parameters.topP,
        topK: extras.sent.top_k,
        stopSequences: parameters.stops,
        // 32 bits here; folded, so that equal seeds stay equal.
        seed: parameters.seed === undefined ? undefined : parameters.seed | 0,
        presencePenalty: parameters.presencePenalty,
        frequencyPenalty: parameters.frequencyPenalty,
        responseLogprobs: parameters.logprobs,
        logprobs: parameters.topLogprobs || undefined,
        ...format,
        thinkingConfig: thinking ?? undefined,
      },
    }
  }

  const { dropped } = parameters
  if (isDemanding(request.toolChoice) && calling?.mode !== 'ANY') dropped.add('tool_choice')
  if (request.parallelToolCalls === false && request.tools.length > 0) dropped.add('parallel_tool_calls')
  if (isLesser(request.responseFormat.type, format)) dropped.add('response_format')
  if (request.reasoningEffort !== null && request.reasoningEffort !== 'none' && thinking === null)
    dropped.add('reasoning_effort')
  return { body, dropped: droppedNames(dropped, extras.dropped, request.source) }
}

type Thinking = {
  readonly includeThoughts: boolean
  readonly thinkingLevel?: string | undefined
  readonly thinkingBudget?: number
}

/**
 * Returns the reasoning configuration; null = none. Without a requested effort the model decides, and its reasoning is
 * shown.
 */
function thinkingFor(effort: ReasoningEffort | null, { reasoning, efforts }: ParameterRules): Thinking | null {
  switch (reasoning.kind) {
    case 'level':
      // Cannot be turned off: `none` becomes the lowest level, hidden.
      if (effort === null) return { includeThoughts: true }
      return { includeThoughts: effort !== 'none', thinkingLevel: nearestEffort(effort, efforts) ?? undefined }
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

type Format = { readonly responseMimeType?: 'application/json'; readonly responseJsonSchema?: Json }

function formatFor({ responseFormat, tools }: ChatRequest, rules: ParameterRules, calling: Calling | null): Format {
  // JSON output combined with a forced call is a 400; before models with reasoning levels, with any function tool.
  const excluded = calling?.mode === 'ANY' || (tools.length > 0 && rules.reasoning.kind !== 'level')
  if (responseFormat.type === 'text' || rules.responseFormat === 'none' || excluded) return {}
  if (responseFormat.type === 'json_object' || rules.responseFormat === 'json_object') {
    return { responseMimeType: 'application/json' }
  }
  return { responseMimeType: 'application/json', responseJsonSchema: plainSchema(responseFormat.schema) }
}

/** Returns true if the output is constrained less than requested. */
function isLesser(asked: ChatRequest['responseFormat']['type'], format: Format): boolean {
  switch (asked) {
    case 'text':
      return false
    case 'json_object':
      return format.responseMimeType === undefined
    case 'json_schema':
      return format.responseJsonSchema === undefined
  }
}

type Calling = { readonly mode: 'AUTO' | 'NONE' | 'ANY'; readonly allowedFunctionNames?: readonly string[] }

/** Returns the function calling configuration; null = the client left it open. */
function callingFor({ toolChoice, tools }: ChatRequest, rules: ParameterRules, thinks: boolean): Calling | null {
  if (toolChoice === null || tools.length === 0) return null
  if (toolChoice === 'none') return { mode: 'NONE' }
  if (toolChoice === 'auto' || !mayForce(rules, thinks)) return { mode: 'AUTO' }
  return toolChoice === 'required' ? { mode: 'ANY' } : { mode: 'ANY', allowedFunctionNames: [toolChoice.name] }
}

function declarationFor({ name, description, parameters }: Tool): Json {
  return {
    name,
    description: description ?? '',
    parametersJsonSchema: parametersSchema(parameters ?? {}),
  }
}

/** Omits an object schema without properties, which is rejected although it means the same. */
function parametersSchema(parameters: Json): Json | undefined {
  const schema = plainSchema(parameters)
  const { properties, additionalProperties, $ref, anyOf, oneOf } = schema
  const alternatives = [additionalProperties, anyOf, oneOf].some(held => isRecord(held) || Array.isArray(held))
  if (!alternatives && !isText($ref) && Object.keys(record(properties)).length === 0) return undefined
  return $ref === undefined ? { type: 'object', ...schema } : schema
}
