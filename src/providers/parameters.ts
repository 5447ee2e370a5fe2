/** What a model takes of the parameters that mean the same on every wire, and the names of what it does not take. */
import { type ChatRequest, type ReasoningEffort, reasoningEfforts, type ToolChoice } from '../core/chat/chat.ts'
import type { ParameterRules } from '../core/models/models.ts'

const parameterNames = [
  'n',
  'seed',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'presence_penalty',
  'frequency_penalty',
  'temperature',
  'top_p',
  'stop',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'reasoning_effort',
] as const

/** Wire names of the parameters that mean the same on every wire. */
export type ParameterName = (typeof parameterNames)[number]

/** Collected while a request is written; in the order of the set above when told. */
export type Dropped = Set<ParameterName>

/** Names that may travel in a header; a caller can send any. */
const toldName = /^[\w.-]{1,64}$/
const maximumToldNames = 32

/** The names as they are told: ours first, in the order of the set above, then those of the caller's own fields. */
export function droppedNames(dropped: ReadonlySet<ParameterName>, extras: readonly string[]): readonly string[] {
  if (dropped.size === 0 && extras.length === 0) return none
  const ours: readonly string[] = parameterNames.filter(name => dropped.has(name))
  return [...ours, ...extras.filter(name => toldName.test(name))].slice(0, maximumToldNames)
}

const none: readonly never[] = []

/**
 * The parameters to send, bent to the model's bounds (undefined = not sent), and those dropped. `thinks` says whether the
 * model will; null = that is left to the model.
 */
export function parametersFor(ask: ChatRequest, rules: ParameterRules, thinks: boolean | null) {
  const dropped: Dropped = new Set()
  const sampling = takesSampling(rules, thinks)
  const logprobs = sampling && rules.logprobs
  const temperature = ifTaken(dropped, 'temperature', ask.temperature, sampling)
  const wantedTop = ask.logprobs ? ask.topLogprobs : null
  const topLogprobs = ifTaken(dropped, 'top_logprobs', wantedTop, logprobs && rules.maximumTopLogprobs > 0)
  const stops = ask.stop.includes('') ? ask.stop.filter(text => text !== '') : ask.stop
  if (stops.length > rules.maximumStops) dropped.add('stop')
  if (ask.choices > rules.maximumChoices) dropped.add('n')
  const choices = Math.min(ask.choices, rules.maximumChoices)
  return {
    temperature: temperature === undefined ? undefined : Math.min(temperature, rules.maximumTemperature),
    topP: ifTaken(dropped, 'top_p', ask.topP, sampling && (rules.temperatureWithTopP || temperature === undefined)),
    presencePenalty: ifTaken(dropped, 'presence_penalty', ask.presencePenalty, rules.penalties),
    frequencyPenalty: ifTaken(dropped, 'frequency_penalty', ask.frequencyPenalty, rules.penalties),
    seed: ifTaken(dropped, 'seed', ask.seed, rules.seed),
    logitBias: ifTaken(dropped, 'logit_bias', ask.logitBias, rules.logitBias),
    logprobs: ifTaken(dropped, 'logprobs', ask.logprobs || null, logprobs),
    topLogprobs: topLogprobs === undefined ? undefined : Math.min(topLogprobs, rules.maximumTopLogprobs),
    stops: nonEmpty(stops.length > rules.maximumStops ? stops.slice(0, rules.maximumStops) : stops),
    choices: choices > 1 ? choices : undefined,
    dropped,
  }
}

/** The value where it is taken, else nothing, and that is said. Null was never asked for. */
function ifTaken<T>(dropped: Dropped, name: ParameterName, value: T | null, taken: boolean): T | undefined {
  if (value !== null && !taken) dropped.add(name)
  return taken ? (value ?? undefined) : undefined
}

function takesSampling({ sampling }: ParameterRules, thinks: boolean | null): boolean {
  switch (sampling) {
    case 'accepted':
      return true
    case 'rejected':
      return false
    case 'only_with_effort_none':
      return thinks === false
    case 'accepted_when_thinking_disabled':
      return thinks !== true
  }
}

/** True where the model may be made to call a tool. */
export function mayForce({ forcedToolChoice }: ParameterRules, thinks: boolean): boolean {
  switch (forcedToolChoice) {
    case 'accepted':
      return true
    case 'rejected':
      return false
    case 'rejected_when_thinking':
      return !thinks
  }
}

/** True where the caller wants a tool called, come what may. */
export function isDemanding(choice: ToolChoice | null): choice is Exclude<ToolChoice, 'auto' | 'none'> {
  return choice !== null && choice !== 'auto' && choice !== 'none'
}

/** The level nearest to the one asked for; of two as near, the one that stands first. Null = there is none. */
export function nearestEffort(asked: ReasoningEffort, efforts: readonly ReasoningEffort[]): ReasoningEffort | null {
  const distance = (effort: ReasoningEffort) =>
    Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(asked))
  const least = Math.min(...efforts.map(distance))
  return efforts.find(effort => distance(effort) === least) ?? null
}

/** The list where it holds anything: upstreams refuse an empty one. */
export function nonEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
