/**
 * The model and the effort of one turn of a conversation, as a pure function of what is known of it. A task keeps its
 * model, for its prompt cache and its style; trouble raises the effort first and the model once. Holds no content: only
 * counters, names and keyed digests.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type ReasoningEffort, reasoningEfforts } from '../core/chat/chat.ts'
import { oneOf, strictObject } from '../core/validation/validate.ts'
import { type Level, levels } from './capability-levels.ts'
import { type ChosenEffort, isAbove, mostRaised } from './effort.ts'
import { burnHalfLifeMs } from './runaway.ts'
import { discountScore } from './scoring.ts'

/** State of a conversation after a turn. */
export const conversationStateSchema = strictObject({
  /** `provider/model` of the last turn, and its effort. */
  model: Type.String(),
  effort: Type.Union([oneOf(reasoningEfforts), Type.Null()]),
  /** Highest level of the task. */
  level: oneOf(levels),
  /** Steps by which trouble has raised the effort of the task. */
  raised: Type.Integer({ minimum: 0, maximum: mostRaised }),
  /** Changes of model within the task. */
  switches: Type.Integer(),
  turns: Type.Integer(),
  /** Signs of trouble since the last step. */
  trouble: Type.Integer(),
  /** Turns in a row without progress: an error, or the call of the turn before. */
  stalled: Type.Integer(),
  /** Digests of the last failed tool result, of the last calls, and of the last request; empty = none. */
  error: Type.String(),
  call: Type.String(),
  request: Type.String(),
  /** Input of the last turn as its provider counted it, as a multiple of the gateway's estimate. */
  inputRatio: Type.Number(),
  /** Input tokens that its provider probably has cached. */
  cachedTokens: Type.Number(),
  /** Spending, of which older parts count less (`runaway.ts`), at a monotonic time in milliseconds. */
  spentMicrocents: Type.Number(),
  spentAt: Type.Number(),
})
export type ConversationState = Readonly<Static<typeof conversationStateSchema>>

/** What a request tells about its turn. */
export type TurnFacts = {
  /**
   * `tool`: the results of calls, so within a tool loop. `topic`: a request of its own. `continues`: goes on with the task.
   * `courtesy`: thanks.
   */
  readonly kind: 'tool' | 'topic' | 'continues' | 'courtesy'
  /** The request's own level. */
  readonly level: Level
  /** Digests as in the state; empty = none. */
  readonly error: string
  readonly call: string
  readonly request: string
  /** The gateway's own estimate. */
  readonly inputTokens: number
}

/** A model at an effort, with its score and its quality (0–1) for a level. */
export type Pair = {
  readonly model: string
  readonly effort: ChosenEffort
  readonly score: number
  readonly quality: number
}

/** The eligible pairs of a request, as functions, because most turns need only a part of them. */
export type PairTable<P extends Pair = Pair> = {
  /** The best pair for a level, each model at its best effort, `raised` steps above those of the level; null = none. */
  leader(level: Level, raised: number): P | null
  /** The model at its best effort for the level, whatever its rank; null = it is not eligible or must not be called now. */
  find(model: string, level: Level, raised: number): P | null
  /** The pair at another effort; unchanged if the model does not take it. */
  at(pair: P, effort: ChosenEffort): P
  /** Expected cost of the request, with so many of its input tokens cached. Any unit. */
  cost(pair: P, inputTokens: number, cachedTokens: number): number
  /** Weight of cost in the scores of a level (0–1). */
  costWeight(level: Level): number
}

/** Why a turn has its model. */
export const turnReasons = [
  /** Nothing was known of the conversation. */
  'first',
  /** Within a tool loop neither model nor effort changes. */
  'tool_loop',
  /** A task keeps its model. */
  'same_task',
  /** The other model gains less than the lost cache costs. */
  'cached',
  /** Trouble raised the effort or the model. */
  'escalated',
  /** A higher level, for which the other model gains more. */
  'better',
  /** A new topic, for which the other model saves more than the lost cache costs. */
  'cheaper',
  /** The model of the conversation cannot be called now. */
  'lost',
] as const
export type TurnReason = (typeof turnReasons)[number]

export type TurnChoice<P extends Pair = Pair> = {
  /** Null = no pair is eligible. */
  readonly pair: P | null
  readonly reason: TurnReason
  /** The state that the turn leaves once it is settled. */
  readonly next: ConversationState
}

/** Signs of trouble that raise the effort: an error counts 1, the same error again 2, the same request again 2. */
const troubleToRaise = 3
/** Score deficit (0–1) that counts as a tie. */
const margin = 0.05
/** Below this an estimate is no basis for a ratio, and providers cache nothing. */
export const leastCachedTokens = 1_024
const [leastRatio, mostRatio] = [0.2, 5]

/** Chooses the pair of a turn. `state` null = nothing is known of the conversation. */
export function chooseTurn<P extends Pair>(
  state: ConversationState | null,
  facts: TurnFacts,
  table: PairTable<P>,
): TurnChoice<P> {
  const next = nextState(state, facts)
  if (state === null) return chosen(next, table.leader(next.level, next.raised), 'first')
  const kept = table.find(state.model, next.level, next.raised)
  if (kept === null) return switched(next, table.leader(next.level, next.raised), 'lost')
  if (facts.kind === 'tool') return chosen(next, table.at(kept, state.effort), 'tool_loop')
  // Its answer needs little, and the task may go on.
  if (facts.kind === 'courtesy') return chosen(next, table.find(state.model, 'light', 0) ?? kept, 'same_task')
  const isSameTask = isSame(state, facts)
  if (isSameTask && next.trouble >= troubleToRaise) {
    const raised = escalated(state, next, table)
    if (raised !== null) return raised
  }
  const rises = levels.indexOf(next.level) > levels.indexOf(state.level)
  if (isSameTask && (!rises || next.switches > 0)) return chosen(next, kept, 'same_task')
  const best = table.leader(next.level, next.raised)
  if (best === null || best.model === kept.model) return chosen(next, kept, 'same_task')
  return isWorthSwitching(state, facts, { kept, best, rises }, table)
    ? switched(next, best, rises || state.cachedTokens < leastCachedTokens ? 'better' : 'cheaper')
    : chosen(next, kept, 'cached')
}

/** Whether a request goes on with the task of the turn before: a repeated request does. */
function isSame(state: ConversationState, { kind, request }: TurnFacts): boolean {
  return kind !== 'topic' || (request !== '' && request === state.request)
}

/**
 * Returns whether the gain of another model exceeds the cost of the lost cache. Where a higher level gets more quality, the
 * score decides, at the price with the cache. Else the gain is money: the task could come back, so the cache must be filled
 * again out of what the request saves.
 */
function isWorthSwitching<P extends Pair>(
  state: ConversationState,
  facts: TurnFacts,
  { kept, best, rises }: { readonly kept: P; readonly best: P; readonly rises: boolean },
  table: PairTable<P>,
): boolean {
  const input = facts.inputTokens * state.inputRatio
  const cached = Math.min(state.cachedTokens, input)
  const costWeight = table.costWeight(facts.level)
  if (cached < leastCachedTokens || costWeight === 0) return best.score > kept.score
  const keptCost = table.cost(kept, input, cached)
  const freshCost = table.cost(kept, input, 0)
  const bestCost = table.cost(best, input, 0)
  if (!rises || best.quality <= kept.quality) return keptCost - bestCost > freshCost - keptCost
  if (bestCost < keptCost) return best.score > kept.score
  return best.score - kept.score > margin + costWeight * discountScore(keptCost / freshCost)
}

/** Raises the effort of the task; if the model has no higher one, its level and once its model. Null = nothing is left. */
function escalated<P extends Pair>(
  state: ConversationState,
  next: ConversationState,
  table: PairTable<P>,
): TurnChoice<P> | null {
  for (let raised = next.raised + 1; raised <= mostRaised; raised++) {
    const pair = table.find(state.model, next.level, raised)
    if (pair !== null && isAbove(pair.effort, state.effort))
      return chosen({ ...next, raised, trouble: 0 }, pair, 'escalated')
  }
  if (next.switches > 0) return null
  for (const level of levels.slice(levels.indexOf(next.level) + 1)) {
    const best = table.leader(level, 0)
    if (best !== null && best.model !== state.model)
      return switched({ ...next, level, raised: 0, trouble: 0 }, best, 'escalated')
  }
  return null
}

function chosen<P extends Pair>(next: ConversationState, pair: P | null, reason: TurnReason): TurnChoice<P> {
  return { pair, reason, next: pair === null ? next : { ...next, model: pair.model, effort: pair.effort } }
}

function switched<P extends Pair>(next: ConversationState, pair: P | null, reason: TurnReason): TurnChoice<P> {
  return chosen({ ...next, cachedTokens: 0, switches: next.switches + 1 }, pair, reason)
}

/** Returns the counters of a conversation with one more turn, before its model is chosen. */
export function nextState(state: ConversationState | null, facts: TurnFacts): ConversationState {
  const { level, error, call, request, kind } = facts
  if (state === null) return { ...unknown, level, error, call, request, turns: 1 }
  const isNew = !isSame(state, facts)
  const isRepeated = kind === 'topic' && !isNew
  const isSameError = error !== '' && error === state.error
  const isStalled = error !== '' || (call !== '' && call === state.call)
  const signs = (error === '' ? 0 : isSameError ? 2 : 1) + (isRepeated ? 2 : 0)
  const stalled = isNew ? 0 : kind === 'tool' ? (isStalled ? state.stalled + 1 : 0) : state.stalled
  if (isNew) return { ...state, ...ofTask, level, error, call, request, stalled, turns: state.turns + 1 }
  return {
    ...state,
    level: kind === 'tool' || kind === 'courtesy' ? state.level : higher(state.level, level),
    turns: state.turns + 1,
    // Progress is no trouble, but one success between failures does not end it.
    trouble: signs > 0 ? state.trouble + signs : kind === 'tool' ? Math.max(0, state.trouble - 1) : state.trouble,
    stalled,
    error: kind === 'tool' ? error : state.error,
    call: kind === 'tool' ? call : state.call,
    // The results of calls belong to the request before them.
    request: kind === 'tool' ? state.request : request,
  }
}

const ofTask = { raised: 0, switches: 0, trouble: 0, stalled: 0, error: '', call: '' }
const unknown: ConversationState = {
  ...ofTask,
  model: '',
  effort: null,
  level: 'light',
  turns: 0,
  request: '',
  inputRatio: 1,
  cachedTokens: 0,
  spentMicrocents: 0,
  spentAt: 0,
}

function higher(level: Level, other: Level): Level {
  return levels.indexOf(level) < levels.indexOf(other) ? other : level
}

/** A turn as its provider reported it. */
type SettledTurn = {
  readonly model: string
  readonly effort: ReasoningEffort | null
  /** The gateway's estimate, and the provider's count. */
  readonly estimatedTokens: number
  readonly inputTokens: number
  /** Input tokens that the provider has cached now; 0 = it caches nothing. */
  readonly cachedTokens: number
  readonly microcents: number
  /** Monotonic milliseconds. */
  readonly at: number
}

/** Returns the state after a settled turn. Both sides of a later choice then count tokens as the provider does. */
export function settleTurn(next: ConversationState, turn: SettledTurn): ConversationState {
  const { model, effort, estimatedTokens, inputTokens, cachedTokens, microcents, at } = turn
  const ratio = estimatedTokens < leastCachedTokens ? next.inputRatio : inputTokens / estimatedTokens
  return {
    ...next,
    model,
    effort,
    inputRatio: Math.max(leastRatio, Math.min(mostRatio, ratio)),
    cachedTokens,
    spentMicrocents: next.spentMicrocents * 0.5 ** (Math.max(0, at - next.spentAt) / burnHalfLifeMs) + microcents,
    spentAt: at,
  }
}
