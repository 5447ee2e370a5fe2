import type { ReasoningEffort, ResponseFormat, Tool, ToolChoice } from '../../core/chat/chat.ts'
import { isDemanding } from '../../core/chat/tool-definitions.ts'
import type { Model, ParameterRules } from '../../core/models/models.ts'
import { hasTierPrices, isPricedTier } from '../../core/models/pricing.ts'
import { sortExtras } from '../extras.ts'
import { encoded, type Json } from '../json.ts'
import { cacheControl, isClaude, withJoinedSystem, withPromptMarks } from '../marked-prompt.ts'
import { droppedNames, instructionFor, mayForce, nearestEffort, parametersFor } from '../parameters.ts'
import type { Access, AdapterRequest, ProviderRequest } from '../provider.ts'
import { isStrict } from '../schemas.ts'
import { type Dialect, getDialect, type Instruction, messagesFor } from './conversation.ts'

/** Builds the request. A model only receives parameters that its `ParameterRules` allow. */
export function toRequest(
  { request, model, outputCap, stream, cacheMarks }: AdapterRequest,
  access: Access,
  official: boolean,
): ProviderRequest {
  const rules = model.parameters
  const { dialect } = getAddress(access, official)
  const marksCache = !official && (dialect.cacheMarks || isClaude(model))
  const prompt = marksCache ? withPromptMarks(request, cacheMarks ?? null) : withJoinedSystem(request)
  const withTools = request.tools.length > 0
  const effort = effortFor(request.reasoningEffort, rules, withTools)
  const parameters = parametersFor(request, rules, effort === null ? null : effort !== 'none')
  const { dropped } = parameters
  const effortForced = withTools && rules.toolsNeedEffortNone && request.reasoningEffort !== 'none'
  if (request.reasoningEffort !== null && (effort === null || effortForced)) dropped.add('reasoning_effort')
  const thinks = model.capabilities.reasoning && effort !== 'none'
  const unforced = isDemanding(request.toolChoice) && !mayForce(rules, thinks)
  if (withTools && unforced) dropped.add('tool_choice')
  if (withTools && request.parallelToolCalls !== null && !rules.parallelToolCalls) dropped.add('parallel_tool_calls')
  const { field, instruction, lesser } = formatFor(request.responseFormat, rules.responseFormat)
  if (lesser) dropped.add('response_format')
  const instructions = instruction === null ? [] : [instruction]
  if (withTools && unforced) instructions.push(callLine(request.toolChoice))
  const extras = extrasFor(request.extras, model, official, access.extraFields)
  const own: Json = {
    model: model.id,
    messages: messagesFor(prompt.messages, { rules, official, dialect, instructions, marksCache }),
    stream: stream || undefined,
    stream_options: stream && rules.streamOptions ? getStreamOptions(dialect) : undefined,
    [rules.outputCapField]: outputCap,
    temperature: parameters.temperature,
    top_p: parameters.topP,
    presence_penalty: parameters.presencePenalty,
    frequency_penalty: parameters.frequencyPenalty,
    [dialect.seedField]: parameters.seed,
    logit_bias: parameters.logitBias,
    logprobs: parameters.logprobs,
    top_logprobs: parameters.topLogprobs,
    stop: parameters.stops,
    n: parameters.choices,
    // Without tools OpenAI answers 400 to any of the three.
    tools: withTools ? prompt.tools.map(tool => toolFor(tool, marksCache)) : undefined,
    tool_choice: withTools ? toolChoiceFor(unforced ? 'auto' : request.toolChoice) : undefined,
    parallel_tool_calls: withTools && rules.parallelToolCalls ? (request.parallelToolCalls ?? undefined) : undefined,
    response_format: field,
    reasoning_effort: effort ?? undefined,
    ...(request.endUser === null ? null : endUserFor(request.endUser, rules, official)),
  }
  const { url, headers } = endpointAt(access, official, { stream })
  return {
    url,
    headers,
    body: encoded(Object.keys(extras.sent).length === 0 ? own : { ...extras.sent, ...own }),
    droppedParameters: droppedNames(
      dropped,
      [...extras.dropped, ...looseTools(request.tools), ...prompt.droppedMarks],
      request.source,
    ),
  }
}

const callLine = (choice: Parameters<typeof instructionFor>[0]): Instruction => ({
  text: instructionFor(choice),
  unlessJsonIsNamed: false,
})

/** Returns the address and the headers of a request to `path` beside `/chat/completions`. */
export function endpointAt(
  access: Access,
  official: boolean,
  { path = 'chat/completions', stream = false }: { readonly path?: string; readonly stream?: boolean },
): Endpoint {
  const { url, dialect, endpoints } = getAddress(access, official)
  const accept = stream ? 'text/event-stream' : 'application/json'
  for (const [known, endpoint] of endpoints) if (known === path && endpoint.headers.accept === accept) return endpoint
  const key = access.apiKey === null ? null : dialect.keyHeader(access.apiKey)
  const headers = { 'content-type': 'application/json', accept, ...key }
  const endpoint = { url: url.replace('chat/completions', path), headers }
  endpoints.push([path, endpoint])
  return endpoint
}

type Endpoint = Pick<ProviderRequest, 'url' | 'headers'>

type Address = {
  readonly url: string
  readonly dialect: Dialect
  /** Those used so far, by their path. */
  readonly endpoints: [path: string, Endpoint][]
}

/** Cached, since a server's URL and key do not change while the gateway runs. */
const addresses = new WeakMap<Access, Address>()

function getStreamOptions({ padsEvents }: Dialect): Json {
  return padsEvents ? { include_usage: true, include_obfuscation: false } : { include_usage: true }
}

function getAddress(access: Access, official: boolean): Address {
  const known = addresses.get(access)
  if (known !== undefined) return known
  const base = new URL(access.baseUrl)
  const dialect = getDialect(base.hostname, official, access.dialect)
  const address = { url: chatCompletionsUrl(base), dialect, endpoints: [] }
  addresses.set(access, address)
  return address
}

/**
 * Returns the URL of `/chat/completions` under the base. A path without a version (`/v1`, `/v1beta/openai`,
 * `/api/paas/v4`) gets `/v1`, since servers often document their URL without it. A path that ends in
 * `/chat/completions` or names an Azure deployment is used unchanged. Keeps a query (`?api-version=`).
 */
function chatCompletionsUrl(base: URL): string {
  const path = base.pathname.replace(/\/+$/, '')
  if (path.endsWith('/chat/completions')) return `${base.origin}${path}${base.search}`
  const versioned = /\/v\d[^/]*(?:\/|$)/.test(path) || path.includes('/openai/deployments/')
  return `${base.origin}${path}${versioned ? '' : '/v1'}/chat/completions${base.search}`
}

/** Returns the URL of the list of models, with the same base. */
export function modelsUrl(baseUrl: string): string {
  return chatCompletionsUrl(new URL(baseUrl)).replace('/chat/completions', '/models')
}

/** The request for the list of models. OpenRouter shows its list to anyone, and checks a key at another path. */
export function toModelList(access: Access, official: boolean) {
  const { dialect } = getAddress(access, official)
  const url = modelsUrl(access.baseUrl)
  return {
    url: access.dialect === 'openrouter' ? url.replace(/\/models\b/, '/key') : url,
    headers: access.apiKey === null ? {} : dialect.keyHeader(access.apiKey),
  }
}

/**
 * Returns the nearest supported level, the higher of two equally near: a request for a little reasoning should not get
 * none. Null = none is sent.
 */
function effortFor(wanted: ReasoningEffort | null, rules: ParameterRules, withTools: boolean): ReasoningEffort | null {
  if (withTools && rules.toolsNeedEffortNone) return 'none'
  return wanted === null ? null : nearestEffort(wanted, rules.efforts.toReversed())
}

function toolChoiceFor(choice: ToolChoice | null): unknown {
  return isDemanding(choice) && choice !== 'required'
    ? { type: 'function', function: { name: choice.name } }
    : (choice ?? undefined)
}

function toolFor({ name, description, parameters, strict, cache }: Tool, marksCache: boolean): Json {
  return {
    type: 'function',
    function: {
      name,
      description: description ?? undefined,
      parameters: parameters ?? undefined,
      strict: strict === true ? isStrict(strict, parameters ?? {}) || undefined : (strict ?? undefined),
    },
    cache_control: marksCache && cache !== undefined ? cacheControl(cache) : undefined,
  }
}

/** Returns the name that reports tools whose `strict` is dropped. */
export function looseTools(tools: readonly Tool[]): readonly string[] {
  return tools.some(({ strict, parameters }) => strict === true && !isStrict(strict, parameters ?? {}))
    ? ['tools.strict']
    : []
}

type Format = {
  readonly field: Json | undefined
  readonly instruction: Instruction | null
  /** True if the model supports less than requested. */
  readonly lesser: boolean
}

/** OpenAI answers 400 to `json_object` if no message contains the word JSON. */
const jsonInstruction: Instruction = { text: 'Answer with one JSON object.', unlessJsonIsNamed: true }

export function formatFor(format: ResponseFormat, supported: ParameterRules['responseFormat']): Format {
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
  const sent = isStrict(strict, schema)
  const json_schema = {
    name,
    description: description ?? undefined,
    schema,
    strict: sent || (strict === false ? false : undefined),
  }
  return { field: { type: 'json_schema', json_schema }, instruction: null, lesser: strict === true && !sent }
}

/**
 * Returns the end-user ID. OpenAI limits `safety_identifier` to 128 characters; compatible servers know only `user`, if
 * at all.
 */
function endUserFor(endUser: string, rules: ParameterRules, official: boolean): Json {
  if (official) return { safety_identifier: endUser.slice(0, 128) }
  return rules.passExtras ? { user: endUser } : {}
}

type Takes = (value: unknown, model: Model) => boolean

/**
 * Values of OpenAI's own fields that a model accepts. OpenAI rejects other values with 400, or charges more for them.
 */
export const officialValues: Readonly<Record<string, Takes>> = {
  verbosity: (_, { capabilities }) => capabilities.reasoning,
  // The cost of a tier without a price could not be billed.
  service_tier: (value, { pricing }) => isPricedTier(pricing, value),
  // Replaced by `prompt_cache_options` in gpt-6.
  prompt_cache_retention: (_, { id }) => Number(/^gpt-(\d+)/.exec(id)?.[1] ?? 0) < 6,
  // Audio output is not supported.
  modalities: value => Array.isArray(value) && value.every(item => item === 'text'),
}

function extrasFor(
  extras: Json,
  model: Model,
  official: boolean,
  listed: readonly string[] | undefined,
): ReturnType<typeof sortExtras> {
  if (official)
    return sortExtras('openai', extras, { takes: (name, value) => officialValues[name]?.(value, model) ?? true })
  return sortExtras('compatible', extras, {
    takes: (name, value) => (name === 'service_tier' ? sendsTier(value, model, listed) : model.parameters.passExtras),
    ...(listed !== undefined && { listed }),
  })
}

/**
 * Returns whether a compatible server receives this tier: only one with a price, also if the operator lists the field. A server
 * whose models have no tier prices may not know the field.
 */
export function sendsTier(tier: unknown, { parameters, pricing }: Model, listed: readonly string[] = []): boolean {
  return (
    parameters.passExtras && isPricedTier(pricing, tier) && (hasTierPrices(pricing) || listed.includes('service_tier'))
  )
}
