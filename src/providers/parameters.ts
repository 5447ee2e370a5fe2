/** Parameters with the same meaning on every wire: what a model accepts, and the names of what is dropped. */
import {
  type ChatRequest,
  type ReasoningEffort,
  reasoningEfforts,
  type SourceBody,
  type ToolChoice,
} from '../core/chat/chat.ts'
import type { ParameterRules } from '../core/models/models.ts'
import { remembered } from '../core/text/recent-map.ts'

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

/** Wire names of the parameters with the same meaning on every wire. */
type ParameterName = (typeof parameterNames)[number]

/** Collected while a request is built; reported in the order of the set above. */
type DroppedNames = Set<ParameterName>

/** Names that may be sent in a header, since a client can send any. */
const toldName = /^[\w.-]{1,64}$/
const maximumToldNames = 32

/**
 * Returns the names to report: first those of the set above, in its order, then the client's own fields. A `source` in another API
 * form adds the fields that only its form has.
 */
export function droppedNames(
  dropped: ReadonlySet<ParameterName>,
  extras: readonly string[],
  source: Pick<SourceBody, 'sameFormOnly'> | null = null,
): readonly string[] {
  const sameFormOnly = source?.sameFormOnly ?? none
  if (dropped.size === 0 && extras.length === 0 && sameFormOnly.length === 0) return none
  const ours: readonly string[] = dropped.size === 0 ? none : parameterNames.filter(name => dropped.has(name))
  const own = [...new Set([...extras, ...sameFormOnly])].filter(name => toldName.test(name))
  return [...ours, ...own].slice(0, maximumToldNames)
}

const none: readonly never[] = []

/**
 * Returns the parameters to send, adapted to the model's limits (undefined = not sent), and the dropped ones. `thinks`
 * = whether the model will reason; null = it decides itself.
 */
export function parametersFor(request: ChatRequest, rules: ParameterRules, thinks: boolean | null) {
  const dropped: DroppedNames = new Set()
  const sampling = takesSampling(rules, thinks)
  const logprobs = sampling && rules.logprobs
  const temperature = ifTaken(dropped, 'temperature', request.temperature, sampling)
  const wantedTop = request.logprobs ? request.topLogprobs : null
  const topLogprobs = ifTaken(dropped, 'top_logprobs', wantedTop, logprobs && rules.maximumTopLogprobs > 0)
  const stops = request.stop.includes('') ? request.stop.filter(text => text !== '') : request.stop
  if (stops.length > rules.maximumStops) dropped.add('stop')
  if (request.choices > rules.maximumChoices) dropped.add('n')
  const choices = Math.min(request.choices, rules.maximumChoices)
  return {
    temperature: temperature === undefined ? undefined : Math.min(temperature, rules.maximumTemperature),
    topP: ifTaken(dropped, 'top_p', request.topP, sampling && (rules.temperatureWithTopP || temperature === undefined)),
    presencePenalty: ifTaken(dropped, 'presence_penalty', request.presencePenalty, rules.penalties),
    frequencyPenalty: ifTaken(dropped, 'frequency_penalty', request.frequencyPenalty, rules.penalties),
    seed: ifTaken(dropped, 'seed', request.seed, rules.seed),
    logitBias: ifTaken(dropped, 'logit_bias', request.logitBias, rules.logitBias),
    logprobs: ifTaken(dropped, 'logprobs', request.logprobs || null, logprobs),
    topLogprobs: topLogprobs === undefined ? undefined : Math.min(topLogprobs, rules.maximumTopLogprobs),
    stops: nonEmpty(stops.length > rules.maximumStops ? stops.slice(0, rules.maximumStops) : stops),
    choices: choices > 1 ? choices : undefined,
    dropped,
  }
}

/** What forms other than OpenAI's and Google's lack for all models. */
const wordless = {
  penalties: false,
  seed: false,
  logitBias: false,
  logprobs: false,
  maximumChoices: 1,
} satisfies Partial<ParameterRules>

/** Returns a model's rules within what those forms have. */
export const rulesOfOthers = remembered((rules: ParameterRules): ParameterRules => ({ ...rules, ...wordless }))

/** Returns the value if accepted, else records it as dropped. Null = not requested. */
function ifTaken<T>(dropped: DroppedNames, name: ParameterName, value: T | null, taken: boolean): T | undefined {
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

/** Returns true if the model can be forced to call a tool. */
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

/** Requests in the prompt a call that cannot be forced. `name` undefined = of any tool. */
export function callInstruction(name: string | undefined): string {
  return name === undefined ? 'Answer by calling one of the tools.' : `Answer by calling the tool \`${name}\`.`
}

/** Returns the instruction for a choice that the model cannot be forced to follow. */
export function instructionFor(choice: Exclude<ToolChoice, 'auto' | 'none'>): string {
  return callInstruction(choice === 'required' ? undefined : choice.name)
}

/** Returns the level nearest to the requested one; of two equally near, the first. Null = none. */
export function nearestEffort(asked: ReasoningEffort, efforts: readonly ReasoningEffort[]): ReasoningEffort | null {
  const distance = (effort: ReasoningEffort) =>
    Math.abs(reasoningEfforts.indexOf(effort) - reasoningEfforts.indexOf(asked))
  const least = Math.min(...efforts.map(distance))
  return efforts.find(effort => distance(effort) === least) ?? null
}

/** Returns the list, or undefined if it is empty, since upstreams reject empty lists. */
export function nonEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}
