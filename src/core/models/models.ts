import type { ChatRequest, ContentPart, ReasoningEffort } from '../chat/chat.ts'
import { dayMs } from '../text/utc-days.ts'

/** Prices in USD per million tokens, as the catalogue's sources print them; null = no price of its own: the input price. */
export type Prices = {
  readonly input: number
  readonly output: number
  readonly cachedInput: number | null
  readonly cacheWrite: number | null
}

/** `longContext` prices hold for the whole request once its input tokens (cached included) exceed `aboveInputTokens`. */
export type Pricing = Prices & { readonly longContext: (Prices & { readonly aboveInputTokens: number }) | null }

export const tiers = ['economy', 'standard', 'premium'] as const
export type Tier = (typeof tiers)[number]

export type Capabilities = {
  readonly vision: boolean
  /** Images that the upstream fetches by their URL, from outside the operator's network. */
  readonly imageUrls: boolean
  /** PDF documents. */
  readonly files: boolean
  readonly tools: boolean
  readonly jsonSchema: boolean
  readonly reasoning: boolean
  readonly streaming: boolean
  readonly webSearch: boolean
}

/** How a model's reasoning is steered on its own wire. */
export type ReasoningControl =
  | { readonly kind: 'none' }
  /** OpenAI: `reasoning_effort`. */
  | { readonly kind: 'effort' }
  /** Anthropic: `thinking.type` adaptive with `output_config.effort`; `off` is what `none` becomes. */
  | { readonly kind: 'adaptive'; readonly off: 'disabled' | 'between_tools' | 'lowest_effort' }
  /** Anthropic: `thinking.budget_tokens`, at least 1,024 and under `max_tokens`. */
  | { readonly kind: 'budget'; readonly minimum: number; readonly maximum: number; readonly canDisable: boolean }
  /** Google: `thinkingConfig.thinkingLevel`. */
  | { readonly kind: 'level' }
  /** Google: `thinkingConfig.thinkingBudget`; 0 switches it off where `canDisable`. */
  | { readonly kind: 'token_budget'; readonly minimum: number; readonly maximum: number; readonly canDisable: boolean }

/**
 * What a model's API takes, as data: an adapter drops or adapts a parameter by these rules before the upstream is asked,
 * and never learns them from its 400.
 */
export type ParameterRules = {
  /** temperature, top_p (and for OpenAI logprobs). */
  readonly sampling: 'accepted' | 'rejected' | 'only_with_effort_none' | 'accepted_when_thinking_disabled'
  readonly maximumTemperature: number
  /** False: of temperature and top_p only temperature is sent. */
  readonly temperatureWithTopP: boolean
  readonly penalties: boolean
  readonly seed: boolean
  readonly logitBias: boolean
  readonly logprobs: boolean
  readonly maximumTopLogprobs: number
  /** Most stop sequences it takes; 0 = none. */
  readonly maximumStops: number
  /** Most answers per request (`n`). */
  readonly maximumChoices: number
  /** Name of the output cap on the OpenAI wire. */
  readonly outputCapField: 'max_completion_tokens' | 'max_tokens'
  /** What `system` text is called on the OpenAI wire. */
  readonly systemRole: 'system' | 'developer'
  /** tool_choice `required` or a named tool. */
  readonly forcedToolChoice: 'accepted' | 'rejected' | 'rejected_when_thinking'
  /** Function tools need `reasoning_effort: "none"` (OpenAI gpt-5.6 on Chat Completions). */
  readonly toolsNeedEffortNone: boolean
  /** A final assistant message may be continued. */
  readonly prefill: boolean
  /** Ordered as `reasoningEfforts`; empty = no such parameter. */
  readonly efforts: readonly ReasoningEffort[]
  readonly reasoning: ReasoningControl
  /** OpenAI-compatible servers: fields outside the small set that every such server accepts, if they are known to work. */
  readonly streamOptions: boolean
  readonly parallelToolCalls: boolean
  readonly responseFormat: 'json_schema' | 'json_object' | 'none'
  /** Unknown fields of the caller's request may be sent along. */
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
  /** Includes the thinking at the effort that `variant` names. */
  readonly firstTokenSeconds: number
  readonly variant: string
  readonly source: string
  readonly date: string
}

/** Where a catalogue row's facts come from, by source key, and what is published about its speed. */
export type Evidence = {
  readonly limitsSource: string
  readonly deprecationSource: string | null
  readonly releaseDateBasis: string
  readonly notes: string | null
  readonly speed: MeasuredSpeed | null
  /** The predecessor whose score and speed stand in where the model has none. */
  readonly nearestRelative: (QualityScore & { readonly id: string; readonly speed: MeasuredSpeed | null }) | null
}

/** Figures that routing compares; each derived in `catalogue.ts` from a named source, on one scale for all models. */
export type RoutingFigures = {
  /** 0–1, higher is better. */
  readonly quality: number
  /** Output tokens a second. */
  readonly tokensPerSecond: number
  /** Milliseconds to the first token. */
  readonly firstTokenMs: number
  /** True where no public score exists for the model itself and a relative's stands in. Of speed, `Evidence` tells. */
  readonly estimated: boolean
}

export type Model = {
  /** As the provider's API takes it. */
  readonly id: string
  /** `openai`, `anthropic`, `google`, or a configured provider's id. */
  readonly provider: string
  readonly displayName: string
  readonly tier: Tier
  readonly pricing: Pricing
  readonly pricingSource: string
  readonly contextWindow: number
  readonly maxInputTokens: number | null
  readonly maxOutputTokens: number
  readonly capabilities: Capabilities
  readonly parameters: ParameterRules
  readonly aliases: readonly string[]
  readonly marketplaceAliases: readonly string[]
  readonly deprecated: boolean
  /** `YYYY-MM-DD`, first day (UTC) on which it no longer serves. */
  readonly deprecationDate: string | null
  /** Full name of the model to move to, where deprecated. */
  readonly successor: string | null
  readonly releaseDate: string | null
  readonly qualityScores: readonly QualityScore[]
  readonly figures: RoutingFigures
  /** Of catalogue models alone. */
  readonly evidence?: Evidence
}

/** The name that answers carry: `provider/model`. */
export function fullName(model: Pick<Model, 'id' | 'provider'>): string {
  let name = names.get(model)
  if (name === undefined) {
    name = `${model.provider}/${model.id}`
    names.set(model, name)
  }
  return name
}

/** Every request looks up what is known of every model, and a string put together anew has to be hashed anew. */
const names = new WeakMap<Pick<Model, 'id' | 'provider'>, string>()

/** The model string that lets the gateway choose. */
export const autoModel = 'gateway-ai'

/** Price per million tokens with three tokens in for one out, in USD: what tiers are drawn by. */
export function blendedPrice(prices: Pick<Prices, 'input' | 'output'>): number {
  return (3 * prices.input + prices.output) / 4
}

/** The tier that a price falls into. */
export function tierOf(prices: Pick<Prices, 'input' | 'output'>): Tier {
  const price = blendedPrice(prices)
  if (price <= 1.75) return 'economy'
  return price <= 7 ? 'standard' : 'premium'
}

/** The models on offer, and who is meant by a name. */
export type Catalog = {
  readonly list: readonly Model[]
  /** The model of that name, in any case: `id`, `provider/id`, an alias, a reseller's name. Null = no such model. */
  resolve(name: string): Model | null
}

/** Of a model's name. */
export const maximumNameCharacters = 256

/**
 * Looks names up in one table. Where two models share a name, the one more exactly named has it: `provider/id` before
 * `provider/alias` before a bare id before a bare alias, and within these the earlier in `models`.
 */
export function buildCatalog(models: readonly Model[]): Catalog {
  const byName = new Map<string, Model>()
  const add = (namesOf: (model: Model) => readonly string[]) => {
    for (const model of models) {
      for (const name of namesOf(model)) {
        const key = name.toLowerCase()
        if (!byName.has(key)) byName.set(key, model)
      }
    }
  }
  add(model => [fullName(model)])
  add(model => [...model.aliases.map(id => fullName({ id, provider: model.provider })), ...model.marketplaceAliases])
  add(model => [model.id])
  add(model => model.aliases)
  return {
    list: models,
    resolve: name => (name.length > maximumNameCharacters ? null : (byName.get(name.toLowerCase()) ?? null)),
  }
}

export type Deprecation = 'current' | 'deprecated' | 'retired'

/** Where a model stands on a day (`YYYY-MM-DD`, UTC, or any longer ISO time): on its deprecation date it is retired. */
export function deprecationOf(model: Pick<Model, 'deprecated' | 'deprecationDate'>, todayIso: string): Deprecation {
  if (model.deprecationDate !== null && todayIso.slice(0, 10) >= model.deprecationDate) return 'retired'
  return model.deprecated ? 'deprecated' : 'current'
}

const leavingDays = 7

/** True from 7 days before a model's deprecation date on: auto-routing no longer chooses it. */
export function leavingSoon({ deprecationDate }: Pick<Model, 'deprecationDate'>, todayIso: string): boolean {
  return deprecationDate !== null && deprecationDate <= lastLeaving(todayIso)
}

let leaving = { today: '', last: '' }

/** The last of the dates that are near on a day; asked for every model of every request, and the same all day. */
function lastLeaving(todayIso: string): string {
  if (todayIso !== leaving.today) {
    const last = new Date(Date.parse(todayIso.slice(0, 10)) + leavingDays * dayMs)
    leaving = { today: todayIso, last: last.toISOString().slice(0, 10) }
  }
  return leaving.last
}

/** What a request needs of whoever is to answer it: where one of these is missing, the answer would be another one. */
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
  /** 0 = not asked for. */
  readonly topLogprobs: number
  /** A reasoning effort above `none` was asked for. */
  readonly reasoning: boolean
  /** `none` was asked for: only then do some models give log probabilities. */
  readonly noReasoning: boolean
}

/** Reads off an ask what only some models can do. What can be left out or approached (`temperature`, …) is no need. */
export function needsOf(ask: ChatRequest): Needs {
  return {
    stream: ask.stream !== null,
    vision: holdsPart(ask, ({ type }) => type === 'image'),
    imageUrls: holdsPart(ask, part => part.type === 'image' && !/^data:/i.test(part.url)),
    files: holdsPart(ask, ({ type }) => type === 'file'),
    tools: ask.tools.length > 0,
    forcedTool:
      ask.tools.length > 0 &&
      (ask.toolChoice === 'required' || typeof ask.toolChoice === 'object') &&
      ask.toolChoice !== null,
    responseFormat: ask.responseFormat.type,
    choices: ask.choices,
    logprobs: ask.logprobs,
    topLogprobs: ask.logprobs ? (ask.topLogprobs ?? 0) : 0,
    reasoning: ask.reasoningEffort !== null && ask.reasoningEffort !== 'none',
    noReasoning: ask.reasoningEffort === 'none',
  }
}

function holdsPart({ messages }: ChatRequest, isWanted: (part: ContentPart) => boolean): boolean {
  return messages.some(message => message.role === 'user' && message.content.some(isWanted))
}

/** `param` is the compatible wire's name of the parameter at fault, `what` ends the sentence "this model does not support …". */
export type Unmet = { readonly param: string; readonly what: string }

/** The first need a model cannot meet; null = it can do what is asked. */
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
 * The first need that a model is only brought near to: asked in words to call a tool, or made to do without reasoning. It is
 * told as dropped, and whoever meets the need in full is the better choice; null = nothing is dropped.
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

/** True where input and output fit the model's published window. Soft limits: for choosing a model, not for refusing. */
export function fitsWindow(model: Model, inputTokens: number, outputTokens: number): boolean {
  return (
    inputTokens <= (model.maxInputTokens ?? model.contextWindow) && inputTokens + outputTokens <= model.contextWindow
  )
}
