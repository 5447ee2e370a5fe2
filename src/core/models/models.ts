import type { ChatRequest, ContentPart, ReasoningEffort } from '../chat/chat.ts'
import type { PolicyRow } from '../policy/constraints.ts'
import { remembered } from '../text/recent-map.ts'
import { dayMs } from '../text/utc-days.ts'
import type { Prices, Pricing } from './pricing.ts'

export const tiers = ['economy', 'standard', 'premium'] as const
type Tier = (typeof tiers)[number]

type Capabilities = {
  readonly vision: boolean
  /** Images that the upstream fetches by URL, from outside the operator's network. */
  readonly imageUrls: boolean
  /** PDF documents. */
  readonly files: boolean
  readonly tools: boolean
  readonly jsonSchema: boolean
  readonly reasoning: boolean
  readonly streaming: boolean
  readonly webSearch: boolean
}

/** How a model's API controls reasoning. */
export type ReasoningControl =
  | { readonly kind: 'none' }
  /** OpenAI: `reasoning_effort`. */
  | { readonly kind: 'effort' }
  /** Anthropic: `thinking.type` adaptive with `output_config.effort`; `off` is the value sent for `none`. */
  | { readonly kind: 'adaptive'; readonly off: 'disabled' | 'between_tools' | 'lowest_effort' }
  /** Anthropic: `thinking.budget_tokens`, at least 1,024 and under `max_tokens`. */
  | { readonly kind: 'budget'; readonly minimum: number; readonly maximum: number; readonly canDisable: boolean }
  /** Google: `thinkingConfig.thinkingLevel`. */
  | { readonly kind: 'level' }
  /** Google: `thinkingConfig.thinkingBudget`; 0 disables reasoning if `canDisable`. */
  | { readonly kind: 'token_budget'; readonly minimum: number; readonly maximum: number; readonly canDisable: boolean }

/**
 * Parameters that a model's API accepts, as data. An adapter drops or adapts parameters by these rules before the call,
 * instead of reacting to a 400.
 */
export type ParameterRules = {
  /** temperature, top_p (and for OpenAI logprobs). */
  readonly sampling: 'accepted' | 'rejected' | 'only_with_effort_none' | 'accepted_when_thinking_disabled'
  readonly maximumTemperature: number
  /** False: if both are given, only temperature is sent. */
  readonly temperatureWithTopP: boolean
  readonly penalties: boolean
  readonly seed: boolean
  readonly logitBias: boolean
  readonly logprobs: boolean
  readonly maximumTopLogprobs: number
  /** Maximum number of stop sequences; 0 = none. */
  readonly maximumStops: number
  /** Maximum choices per request (`n`). */
  readonly maximumChoices: number
  /** Name of the output cap in OpenAI's wire format. */
  readonly outputCapField: 'max_completion_tokens' | 'max_tokens'
  /** Role of `system` text in OpenAI's wire format. */
  readonly systemRole: 'system' | 'developer'
  /** tool_choice `required` or a named tool. */
  readonly forcedToolChoice: 'accepted' | 'rejected' | 'rejected_when_thinking'
  /** Function tools need `reasoning_effort: "none"` (OpenAI gpt-5.6 on Chat Completions). */
  readonly toolsNeedEffortNone: boolean
  /** OpenAI serves it on its Responses API only; absent = its name tells. */
  readonly responsesOnly?: boolean
  /** The model can continue a final assistant message. */
  readonly prefill: boolean
  /** In the order of `reasoningEfforts`; empty = not supported. */
  readonly efforts: readonly ReasoningEffort[]
  readonly reasoning: ReasoningControl
  /** OpenAI-compatible servers: optional fields that are known to work there. */
  readonly streamOptions: boolean
  readonly parallelToolCalls: boolean
  readonly responseFormat: 'json_schema' | 'json_object' | 'none'
  /** Unknown fields of the client's request may be passed on. */
  readonly passExtras: boolean
}

export type QualityScore = {
  readonly metric: 'artificial_analysis_intelligence_index' | 'livebench_global_average' | 'arena_text_score'
  readonly value: number
  readonly variant: string
  readonly source: string
  readonly date: string
}

export type MeasuredSpeed = {
  readonly tokensPerSecond: number
  /** Includes reasoning at the effort that `variant` names. */
  readonly firstTokenSeconds: number
  readonly variant: string
  readonly source: string
  readonly date: string
}

/** Sources of a catalog row's facts by key, and its published speed. */
type Evidence = {
  readonly limitsSource: string
  readonly deprecationSource: string | null
  readonly releaseDateBasis: string
  readonly notes: string | null
  readonly speed: MeasuredSpeed | null
  /** The predecessor whose score and speed are used if the model has none. */
  readonly nearestRelative: (QualityScore & { readonly id: string; readonly speed: MeasuredSpeed | null }) | null
}

/** Figures that routing compares, derived in `catalog.ts` from published sources on one scale for all models. */
export type RoutingFigures = {
  /** 0–1, higher is better. */
  readonly quality: number
  /** Output tokens per second. */
  readonly tokensPerSecond: number
  /** Milliseconds to the first token. */
  readonly firstTokenMs: number
  /**
   * True if the score is a related model's because none is published for this one. `Evidence` tells the same for speed.
   */
  readonly estimated: boolean
}

/** Source of the prices of a model that a server lists without any: it counts as free, and its records say so. */
export const unknownPrices = 'unknown'

export type Model = {
  /** The model's name in the provider's API. */
  readonly id: string
  /** `openai`, `anthropic`, `google`, or the ID of a configured provider. */
  readonly provider: string
  readonly displayName: string
  readonly tier: Tier
  readonly pricing: Pricing
  /** Where the prices come from, mostly with a date; `unknownPrices` = no source. */
  readonly pricingSource: string
  readonly contextWindow: number
  readonly maxInputTokens: number | null
  readonly maxOutputTokens: number
  readonly capabilities: Capabilities
  readonly parameters: ParameterRules
  readonly aliases: readonly string[]
  readonly marketplaceAliases: readonly string[]
  readonly deprecated: boolean
  /** `YYYY-MM-DD`, first day (UTC) on which it is retired. */
  readonly deprecationDate: string | null
  /** Full name of the successor of a deprecated model. */
  readonly successor: string | null
  readonly releaseDate: string | null
  readonly qualityScores: readonly QualityScore[]
  readonly figures: RoutingFigures
  /** Catalog models only. */
  readonly evidence?: Evidence
  /** All configured hosts in the order of calls, its own provider first; absent = only its own provider serves it. */
  readonly hosts?: readonly ModelHost[]
  /** Guarantees in which it differs from its providers; absent = none. */
  readonly policy?: PolicyRow
  /** Of a model that embeds; absent = a chat model. */
  readonly embedding?: EmbeddingFacts
}

type EmbeddingFacts = {
  /** Full name of the model that computes the vectors: the same for all hosts of one model. */
  readonly space: string
  /** Default length of a vector; null = not configured. */
  readonly dimensions: number | null
  /** Allowed values of `dimensions`; null = the model has only one length. */
  readonly dimensionRange: { readonly minimum: number; readonly maximum: number } | null
  /** Limits of one upstream call; a larger request is split. */
  readonly batch: { readonly inputs: number; readonly tokens: number }
  /** `as_is`: its API accepts token IDs of cl100k_base. `decoded`: it receives the text that they stand for. */
  readonly tokenIds: 'as_is' | 'decoded'
}

/** A provider that serves a model. */
export type ModelHost = {
  /** ID of the provider. */
  readonly host: string
  /** The model's name in that provider's API. */
  readonly upstreamId: string
  readonly pricing: Pricing
  /** Guarantees in which it differs from its provider; absent = none. */
  readonly policy?: PolicyRow
  /** Share of the requests that begin here, among the hosts of the model; absent = the first host begins all. */
  readonly weight?: number
}

/**
 * Returns the model ID that responses carry: `provider/model`. Remembered, since every request looks up every model by it, and
 * a new string would be hashed again each time.
 */
export const fullName = remembered(({ id, provider }: Pick<Model, 'id' | 'provider'>): string => `${provider}/${id}`)

/** The model name that requests automatic routing. */
export const autoModel = 'gateway-ai'

/** Returns the price in USD per million tokens at three input tokens per output token. Tiers are based on it. */
export function blendedPrice(prices: Pick<Prices, 'input' | 'output'>): number {
  return (3 * prices.input + prices.output) / 4
}

/** Returns the tier of a price. */
export function getTier(prices: Pick<Prices, 'input' | 'output'>): Tier {
  const price = blendedPrice(prices)
  if (price <= 1.75) return 'economy'
  return price <= 7 ? 'standard' : 'premium'
}

/** Properties by which a model is looked up. */
type Named = Pick<Model, 'id' | 'provider' | 'aliases' | 'marketplaceAliases'>

/** The available models and their names. */
export type Catalog<M extends Named = Model> = {
  readonly list: readonly M[]
  /** Finds a model by `id`, `provider/id`, alias or reseller's name, case-insensitively. Null = unknown. */
  resolve(name: string): M | null
  /** Finds a model that the operator switched off, by the same names. Absent = none is. */
  findDisabled?(name: string): M | null
}

/** Maximum length of a model name. */
export const maximumNameCharacters = 256

/**
 * Builds a catalog with one look-up table. If two models share a name, the more exact form wins: `provider/id`, then
 * `provider/alias`, then a bare ID, then a bare alias; among equals the earlier model. The names of a model that is
 * switched off stay its own: they never mean another model.
 */
export function buildCatalog<M extends Named>(
  models: readonly M[],
  isEnabled: (model: M) => boolean = () => true,
): Catalog<M> {
  const byName = new Map<string, M>()
  const add = (getNames: (model: M) => readonly string[]) => {
    for (const model of models) {
      for (const name of getNames(model)) {
        const key = name.toLowerCase()
        if (!byName.has(key)) byName.set(key, model)
      }
    }
  }
  add(model => [fullName(model)])
  add(model => [...model.aliases.map(id => fullName({ id, provider: model.provider })), ...model.marketplaceAliases])
  add(model => [model.id])
  add(model => model.aliases)
  const find = (name: string, isWanted: (model: M) => boolean) => {
    const model = name.length > maximumNameCharacters ? undefined : byName.get(name.toLowerCase())
    return model !== undefined && isWanted(model) ? model : null
  }
  const list = models.filter(isEnabled)
  const enabled = new Set(list)
  return {
    list,
    resolve: name => find(name, model => enabled.has(model)),
    findDisabled: name => find(name, model => !enabled.has(model)),
  }
}

export type Deprecation = 'current' | 'deprecated' | 'retired'

/**
 * Returns the deprecation state on a day (`YYYY-MM-DD`, UTC, or a longer ISO time). A model is retired from its
 * deprecation date on.
 */
export function getDeprecation(model: Pick<Model, 'deprecated' | 'deprecationDate'>, todayIso: string): Deprecation {
  if (model.deprecationDate !== null && todayIso.slice(0, 10) >= model.deprecationDate) return 'retired'
  return model.deprecated ? 'deprecated' : 'current'
}

const leavingDays = 7

/** Returns true from 7 days before a model's deprecation date, when automatic routing stops choosing it. */
export function leavingSoon({ deprecationDate }: Pick<Model, 'deprecationDate'>, todayIso: string): boolean {
  return deprecationDate !== null && deprecationDate <= lastLeaving(todayIso)
}

let leaving = { today: '', last: '' }

/**
 * Returns the last deprecation date within 7 days of `todayIso`. Cached per day, since it is used for every model of
 * every request.
 */
function lastLeaving(todayIso: string): string {
  if (todayIso !== leaving.today) {
    const last = new Date(Date.parse(todayIso.slice(0, 10)) + leavingDays * dayMs)
    leaving = { today: todayIso, last: last.toISOString().slice(0, 10) }
  }
  return leaving.last
}

/** Capabilities that a request requires. Without one of them, the output would be a different one. */
export type Needs = {
  readonly stream: boolean
  readonly vision: boolean
  readonly imageUrls: boolean
  readonly files: boolean
  readonly tools: boolean
  readonly forcedTool: boolean
  readonly responseFormat: 'text' | 'json_object' | 'json_schema'
  readonly choices: number
  readonly logprobs: boolean
  /** 0 = not requested. */
  readonly topLogprobs: number
  /** True if a reasoning effort above `none` is requested. */
  readonly reasoning: boolean
  /** True if `none` is requested: some models return log probabilities only then. */
  readonly noReasoning: boolean
}

/**
 * Returns the capabilities that a request requires. Parameters that can be dropped or approximated (`temperature`, …)
 * are not included.
 */
export function getNeeds(request: ChatRequest): Needs {
  const vision = holdsPart(request, ({ type }) => type === 'image')
  return {
    stream: request.stream !== null,
    vision,
    imageUrls: vision && holdsPart(request, part => part.type === 'image' && !/^data:/i.test(part.url)),
    files: holdsPart(request, ({ type }) => type === 'file'),
    tools: request.tools.length > 0,
    forcedTool: forcesTool(request),
    responseFormat: request.responseFormat.type,
    choices: request.choices,
    logprobs: request.logprobs,
    topLogprobs: request.logprobs ? (request.topLogprobs ?? 0) : 0,
    reasoning: request.reasoningEffort !== null && request.reasoningEffort !== 'none',
    noReasoning: request.reasoningEffort === 'none',
  }
}

/** Whether the model must call a tool. */
export function forcesTool({ tools, toolChoice }: Pick<ChatRequest, 'tools' | 'toolChoice'>): boolean {
  return tools.length > 0 && toolChoice !== null && (toolChoice === 'required' || typeof toolChoice === 'object')
}

function holdsPart({ messages }: ChatRequest, isWanted: (part: ContentPart) => boolean): boolean {
  return messages.some(message => message.role === 'user' && message.content.some(isWanted))
}

/** `param` is the parameter's name in the compatible API; `what` completes "this model does not support …". */
export type Unmet = { readonly param: string; readonly what: string }

/** Returns the first requirement that a model cannot meet; null = it meets all. */
export function unmet(model: Model, needs: Needs): Unmet | null {
  const { capabilities, parameters } = model
  if (needs.vision && !capabilities.vision) return { param: 'messages', what: 'images' }
  if (needs.imageUrls && !capabilities.imageUrls) return { param: 'messages', what: 'images by URL' }
  if (needs.files && !capabilities.files) return { param: 'messages', what: 'files' }
  if (needs.tools && !capabilities.tools) return { param: 'tools', what: 'tools' }
  if (!givesFormat(model, needs.responseFormat))
    return { param: 'response_format', what: `the response format \`${needs.responseFormat}\`` }
  if (needs.stream && !capabilities.streaming) return { param: 'stream', what: 'streaming' }
  if (needs.choices > parameters.maximumChoices) {
    const most = parameters.maximumChoices
    return { param: 'n', what: most === 1 ? 'more than one choice' : `more than ${most} choices` }
  }
  if (needs.logprobs && !givesLogprobs(parameters, needs)) {
    const condition = parameters.logprobs ? ' without `reasoning_effort: "none"`' : ''
    return { param: 'logprobs', what: `log probabilities${condition}` }
  }
  if (needs.topLogprobs > parameters.maximumTopLogprobs)
    return { param: 'top_logprobs', what: `${needs.topLogprobs} top log probabilities` }
  return null
}

/**
 * Returns the first requirement that a model meets only approximately: a forced tool call requested in the prompt, or
 * reasoning turned off. It is reported as dropped, and models that meet it fully are preferred. Null = none.
 */
export function unmetInFull({ parameters }: Model, needs: Needs): Unmet | null {
  if (needs.tools && needs.reasoning && parameters.toolsNeedEffortNone)
    return { param: 'reasoning_effort', what: 'reasoning beside tools' }
  if (needs.forcedTool && parameters.forcedToolChoice === 'rejected')
    return { param: 'tool_choice', what: 'being made to call a tool' }
  return null
}

function givesFormat({ capabilities, parameters }: Model, format: Needs['responseFormat']): boolean {
  switch (format) {
    case 'text':
      return true
    case 'json_object':
      return parameters.responseFormat !== 'none'
    case 'json_schema':
      return capabilities.jsonSchema && parameters.responseFormat === 'json_schema'
  }
}

function givesLogprobs(parameters: ParameterRules, needs: Needs): boolean {
  return parameters.logprobs && (needs.noReasoning || parameters.sampling !== 'only_with_effort_none')
}

/**
 * Returns true if input and output fit the model's published window. Soft limits: used for choosing a model, not for
 * rejecting.
 */
export function fitsWindow(model: Model, inputTokens: number, outputTokens: number): boolean {
  return (
    inputTokens <= (model.maxInputTokens ?? model.contextWindow) && inputTokens + outputTokens <= model.contextWindow
  )
}
