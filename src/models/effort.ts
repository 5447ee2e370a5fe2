/**
 * Reasoning effort, the second axis of automatic routing: which efforts a request allows on a model, and what an effort
 * changes about its quality, cost and speed. The figures are priors; the lengths are calibrated from settled requests.
 */
import { type ChatRequest, type ReasoningEffort, reasoningEfforts, type Strategy } from '../core/chat/chat.ts'
import { forcesTool, fullName, type Model } from '../core/models/models.ts'
import { remembered } from '../core/text/recent-map.ts'
import { type Level, levels } from './capability-levels.ts'

/** The effort of an attempt; null = the gateway sets none, so the provider's default or the client's own applies. */
export type ChosenEffort = ReasoningEffort | null

/**
 * Reasoning tokens of a usual request, and the share of a model's best quality on demanding work. Tokens are the project's
 * own figures. Shares follow LiveBench 2026-01-08, for models that it lists at two efforts: none 0.46 to 0.79, high 0.95 to
 * 0.98 of xhigh.
 */
const usual: Readonly<Record<ReasoningEffort, { readonly tokens: number; readonly quality: number }>> = {
  none: { tokens: 0, quality: 0.55 },
  minimal: { tokens: 150, quality: 0.62 },
  low: { tokens: 400, quality: 0.8 },
  medium: { tokens: 800, quality: 0.9 },
  high: { tokens: 2_000, quality: 0.96 },
  xhigh: { tokens: 4_000, quality: 1 },
  max: { tokens: 8_000, quality: 1 },
}

/** Expected reasoning tokens by model and effort. A new object for each change, so that tables can compare it. */
export type ReasoningLengths = { readonly of: (model: Model, effort: ReasoningEffort) => number }

/** Lengths before any measurement. */
export const usualLengths: ReasoningLengths = { of: (_model, effort) => usual[effort].tokens }

/** Returns the reasoning tokens of an output. Without a set effort, of the provider's default, taken as `medium`. */
export function expectedReasoning(model: Model, effort: ChosenEffort, lengths: ReasoningLengths): number {
  if (effort !== null) return lengths.of(model, effort)
  return alwaysReasons(model) ? lengths.of(model, 'medium') : 0
}

/** Returns true if the model reasons even if the request does not ask for it. */
function alwaysReasons({ parameters: { reasoning, efforts } }: Model): boolean {
  switch (reasoning.kind) {
    case 'none':
    case 'budget':
      return false
    case 'effort':
      return !efforts.includes('none')
    case 'adaptive':
      return reasoning.off !== 'disabled'
    case 'level':
    case 'token_budget':
      return true
  }
}

type Mode = Level | Strategy

/** Efforts from and to which a mode chooses, and how much of the quality of reasoning its requests need (0–1). */
const modeEfforts: Readonly<
  Record<Mode, { readonly from: ReasoningEffort; readonly to: ReasoningEffort; readonly need: number }>
> = {
  light: { from: 'none', to: 'low', need: 0.1 },
  middle: { from: 'low', to: 'medium', need: 0.5 },
  // The conversation raises it where it does not suffice.
  strong: { from: 'medium', to: 'medium', need: 1 },
  balanced: { from: 'low', to: 'medium', need: 0.5 },
  quality: { from: 'high', to: 'xhigh', need: 1 },
  cost: { from: 'none', to: 'low', need: 0.1 },
  speed: { from: 'none', to: 'low', need: 0.1 },
}

/** Highest number of steps by which a conversation raises its efforts. */
export const mostRaised = 3
/** Below these output caps of the client, reasoning would leave no room for the output. */
const [leastCap, usualCap] = [1_024, 4_096]

/** What a request allows as effort. `key` numbers the values, so that a table can have a ranking for each. */
export type EffortRules = {
  readonly key: number
  /** The client's own effort; null = the gateway chooses. */
  readonly client: ReasoningEffort | null
  /** Steps above (or, if negative, below) the efforts of the mode. */
  readonly raised: number
  readonly withTools: boolean
  readonly forcedTool: boolean
  /** The client sets sampling parameters, which some models accept only without reasoning. */
  readonly samples: boolean
  readonly room: 'least' | 'some' | 'full'
}

const rooms = ['least', 'some', 'full'] as const
const known: (EffortRules | undefined)[] = []

/** Returns the rules of a request. `raised` is between -`mostRaised` and `mostRaised`. Equal rules are one object. */
export function getEffortRules(request: ChatRequest, raised = 0): EffortRules {
  const { reasoningEffort: client, tools, temperature, topP, maxOutputTokens: cap } = request
  const withTools = tools.length > 0
  const forcedTool = forcesTool(request)
  const samples = temperature !== null || topP !== null
  const room = cap === null || cap >= usualCap ? 2 : cap >= leastCap ? 1 : 0
  const flags = (withTools ? 1 : 0) + (forcedTool ? 2 : 0) + (samples ? 4 : 0) + room * 8
  const key =
    client === null ? reasoningEfforts.length + (raised + mostRaised) * 24 + flags : reasoningEfforts.indexOf(client)
  known[key] ??= { key, client, raised, withTools, forcedTool, samples, room: rooms[room] }
  return known[key]
}

/** Number of different rules. */
export const effortRuleCount = reasoningEfforts.length + (2 * mostRaised + 1) * 24

/**
 * Returns the efforts of a model, lowest first; empty = it takes none. Adaptive reasoning that can be turned off has `none`.
 * Remembered, since a table asks for every model.
 */
export const supportedEfforts = remembered(({ parameters }: Model): readonly ReasoningEffort[] => {
  const { reasoning, efforts } = parameters
  const isOptional = reasoning.kind === 'adaptive' && reasoning.off === 'disabled' && efforts.length > 0
  return isOptional && !efforts.includes('none') ? ['none', ...efforts] : efforts
})

/** Returns the efforts among which a mode chooses for a model, lowest first; never empty. */
export function listEfforts(model: Model, mode: Mode, rules: EffortRules): readonly ChosenEffort[] {
  const efforts = supportedEfforts(model)
  const [lowest] = efforts
  const { toolsNeedEffortNone, forcedToolChoice, sampling } = model.parameters
  if (lowest === undefined || (rules.withTools && toolsNeedEffortNone)) return [null]
  if (rules.client !== null) return [nearestSupported(rules.client, efforts)]
  const mustNotThink =
    (rules.forcedTool && forcedToolChoice === 'rejected_when_thinking') ||
    (rules.samples && sampling === 'accepted_when_thinking_disabled')
  if (mustNotThink) return [lowest === 'none' ? lowest : null]
  if (rules.room === 'least') return [lowest]
  const place = (effort: ReasoningEffort) => reasoningEfforts.indexOf(effort)
  const { from, to } = modeEfforts[mode]
  // An agent sees its failures, and its conversation then raises the effort.
  const raised = rules.raised - (rules.withTools && isLevel(mode) ? 1 : 0)
  const most = Math.min(place(to) + raised, place(rules.room === 'some' ? 'medium' : 'max'))
  const least = Math.min(place(from) + raised, most)
  const within = efforts.filter(effort => place(effort) >= least && place(effort) <= most)
  if (within.length > 0) return within
  return [efforts.findLast(effort => place(effort) < least) ?? lowest]
}

/** Returns whether an effort is higher than another; none is lower than any. */
export function isAbove(effort: ChosenEffort, other: ChosenEffort): boolean {
  return effort !== null && (other === null || reasoningEfforts.indexOf(effort) > reasoningEfforts.indexOf(other))
}

function isLevel(mode: Mode): mode is Level {
  return levels.some(level => level === mode)
}

/** Returns the effort that a provider gets for the client's own: the nearest, the higher of two equally near. */
export function nearestSupported(wanted: ReasoningEffort, efforts: readonly ReasoningEffort[]): ChosenEffort {
  const place = reasoningEfforts.indexOf(wanted)
  let nearest: ChosenEffort = null
  let least = Number.POSITIVE_INFINITY
  for (const effort of efforts) {
    const distance = Math.abs(reasoningEfforts.indexOf(effort) - place)
    if (distance <= least) [nearest, least] = [effort, distance]
  }
  return nearest
}

/** Returns the share of its quality (0–1) that a model keeps at an effort, for requests of a mode. */
export function qualityAt(model: Model, effort: ChosenEffort, mode: Mode): number {
  const best = supportedEfforts(model).at(-1)
  if (effort === null || best === undefined) return 1
  return 1 - modeEfforts[mode].need * (1 - usual[effort].quality / usual[best].quality)
}

/** Published times to the first token include the reasoning at `high`. Other work before it takes as long as 300 tokens. */
const beforeTokens = 300

/** Returns the time to the first token at an effort as a multiple of the model's figure. */
export function firstTokenAt(effort: ChosenEffort): number {
  if (effort === null) return 1
  return (beforeTokens + usual[effort].tokens) / (beforeTokens + usual.high.tokens)
}

/** Decayed sums of the reasoning tokens of settled requests. */
type LengthSum = { tokens: number; requests: number }

/** Weight of the prior in requests, and the share by which a length must change to change the rankings. */
const [priorRequests, leastChange] = [20, 0.1]
/** Requests after which an earlier one counts half. */
const halfLifeRequests = 500

/** Learns reasoning lengths by model and effort from settled requests, after those of the ledger at the start. */
export class ReasoningCalibration {
  private readonly sums = new Map<string, LengthSum>()
  private readonly lengths = new Map<string, number>()
  current: ReasoningLengths = usualLengths

  /** Adds requests of one model and effort with their reasoning tokens in all. */
  add(model: string, effort: ReasoningEffort, tokens: number, requests = 1): void {
    this.count(key(model, effort), tokens, requests)
    this.count(key('', effort), tokens, requests)
    const length = this.shrunk(key(model, effort), this.shrunk(key('', effort), usual[effort].tokens))
    const before = this.lengths.get(key(model, effort)) ?? usual[effort].tokens
    if (Math.abs(length - before) <= leastChange * Math.max(before, usual.minimal.tokens)) return
    this.lengths.set(key(model, effort), length)
    this.current = { of: (other, level) => this.lengths.get(key(fullName(other), level)) ?? usual[level].tokens }
  }

  /** Adds sums of earlier requests, which weigh at most as much as the requests of a half-life. */
  seed(rows: readonly { model: string; effort: string; tokens: number; requests: number }[]): void {
    for (const { model, effort, tokens, requests } of rows) {
      const known = reasoningEfforts.find(name => name === effort)
      const weight = Math.min(requests, halfLifeRequests)
      if (known !== undefined && requests > 0) this.add(model, known, (tokens / requests) * weight, weight)
    }
  }

  private count(name: string, tokens: number, requests: number): void {
    const sum = this.sums.get(name) ?? { tokens: 0, requests: 0 }
    const kept = 0.5 ** (requests / halfLifeRequests)
    this.sums.set(name, { tokens: sum.tokens * kept + tokens, requests: sum.requests * kept + requests })
  }

  private shrunk(name: string, prior: number): number {
    const { tokens, requests } = this.sums.get(name) ?? { tokens: 0, requests: 0 }
    return (tokens + priorRequests * prior) / (requests + priorRequests)
  }
}

function key(model: string, effort: ReasoningEffort): string {
  return `${effort} ${model}`
}
