import type { ChatRequest, ReasoningEffort, Tool } from '../../core/chat/chat.ts'
import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { ParameterRules } from '../../core/models/models.ts'
import { systemTexts } from '../conversation-steps.ts'
import { sortExtras } from '../extras.ts'
import { encoded, isRecord, isText, type Json, record } from '../json.ts'
import { droppedNames, instructionFor, mayForce, nearestEffort, parametersFor } from '../parameters.ts'
import type { Access, ProviderAsk, ProviderRequest } from '../provider.ts'
import { contentsFor } from './conversation.ts'
import { plainSchema } from './schema.ts'

/** Builds the request. */
export function toGoogleRequest({ ask, model, outputCap, stream }: ProviderAsk, access: Access): ProviderRequest {
  const rules = model.parameters
  const thinking = thinkingFor(ask.reasoningEffort, rules)
  const thinks = thinking !== null && thinking.thinkingBudget !== 0
  const parameters = parametersFor(ask, { ...rules, logitBias: false }, thinks)
  const calling = callingFor(ask, rules, thinks)
  const format = formatFor(ask, rules, calling)
  const unforced = isDemanding(ask.toolChoice) && ask.tools.length > 0 && calling?.mode !== 'ANY'
  const lines = unforced ? [instructionFor(ask.toolChoice)] : []
  const system = [...systemTexts(ask.messages), ...lines].map(text => ({ text }))
  const functionDeclarations = ask.tools.map(declarationFor)

  const body = {
    systemInstruction: system.length > 0 ? { parts: system } : undefined,
    contents: contentsFor(ask.messages, rules),
    tools: functionDeclarations.length > 0 ? [{ functionDeclarations }] : undefined,
    toolConfig: calling === null ? undefined : { functionCallingConfig: calling },
    generationConfig: {
      maxOutputTokens: outputCap,
      candidateCount: parameters.choices,
      temperature: parameters.temperature,
      topP: parameters.topP,
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

  const dropped = new Set(parameters.dropped)
  if (isDemanding(ask.toolChoice) && calling?.mode !== 'ANY') dropped.add('tool_choice')
  if (ask.parallelToolCalls === false && ask.tools.length > 0) dropped.add('parallel_tool_calls')
  if (isLesser(ask.responseFormat.type, format)) dropped.add('response_format')
  if (ask.reasoningEffort !== null && ask.reasoningEffort !== 'none' && thinking === null)
    dropped.add('reasoning_effort')

  const base = access.baseUrl.replace(/\/+$/, '').replace(/\/v1beta$/, '')
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
  return {
    url: `${base}/v1beta/models/${encodeURIComponent(model.id)}:${method}`,
    headers: {
      'content-type': 'application/json',
      ...(access.apiKey !== null && { 'x-goog-api-key': access.apiKey }),
    },
    body: encoded(body),
    droppedParameters: droppedNames(dropped, sortExtras('google', ask.extras).dropped, ask.source),
  }
}

type Thinking = {
  readonly includeThoughts: boolean
  readonly thinkingLevel?: string | undefined
  readonly thinkingBudget?: number
}

/**
 * Effort mapping of Google's own compatible endpoint; the two values above `high` are the gateway's: the model's
 * maximum.
 */
const thinkingBudgets: Readonly<Record<Exclude<ReasoningEffort, 'none'>, number>> = {
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: Number.MAX_SAFE_INTEGER,
  max: Number.MAX_SAFE_INTEGER,
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
