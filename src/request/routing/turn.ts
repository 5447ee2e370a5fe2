/** Reads what a request tells about its turn, and chooses the turn's pair among the eligible models. */
import type { Message } from '../../core/chat/chat.ts'
import { fullName, type Model } from '../../core/models/models.ts'
import { ratesAt } from '../../core/models/pricing.ts'
import type { Clock } from '../../core/ports.ts'
import { getCost } from '../../core/usage/money.ts'
import { GatewayError } from '../../core/validation/errors.ts'
import type { CacheAffinityTracker } from '../../learning/cache-affinity.ts'
import type { Level } from '../../models/capability-levels.ts'
import {
  type ConversationState,
  chooseTurn,
  nextState,
  type Pair,
  type PairTable,
  type TurnChoice,
  type TurnFacts,
} from '../../models/conversation.ts'
import { getEffortRules, isAbove, qualityAt, supportedEfforts } from '../../models/effort.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import { findRunaway, type Runaway, type RunawayBounds } from '../../models/runaway.ts'
import { getWeights, type Scored } from '../../models/scoring.ts'
import { getUserText } from '../../text/segments/conversation.ts'
import type { RouteRequest } from './candidate.ts'
import { routingHealth } from './hosts.ts'
import { getScoringMode, likelyOutputTokens, type OutputForecast, type ScoredModels } from './score-candidates.ts'

/** Characters of a text that its digest is about. */
const comparedCharacters = 4_000
/** How tools report failures where the API form has no mark for them. */
const failedText =
  /^\W{0,8}(?:error|exception|traceback|fatal|failed|failure|panic|command failed|permission denied|no such file|exit (?:code|status):? [1-9])\b|^\s*\{\s*"(?:error|is_error)"\s*:(?!\s*(?:null|false|""))/i

/** Returns the facts of a turn. `getDigest` is keyed, so that digests are meaningless elsewhere. */
function readTurnFacts(
  { request, analysis, level, inputTokens }: Pick<RouteRequest, 'request' | 'analysis' | 'level' | 'inputTokens'>,
  getDigest: (text: string) => string,
): TurnFacts {
  const { messages } = request
  const at = messages.findLastIndex(({ role }) => role === 'assistant')
  const calling = messages[at]
  const results = messages.slice(at + 1)
  const digest = (text: string) => getDigest(text.slice(0, comparedCharacters))
  if (calling?.role === 'assistant' && calling.toolCalls.length > 0 && results.some(({ role }) => role === 'tool')) {
    const failed = results.find(hasFailed)
    return {
      kind: 'tool',
      level,
      // Times and positions differ between failures that are the same.
      error: failed?.role === 'tool' ? digest(failed.text.replace(/\d+/g, '0')) : '',
      call: digest(calling.toolCalls.map(call => `${call.name} ${call.arguments}`).join('\n')),
      request: '',
      inputTokens,
    }
  }
  const text = getUserText(messages.findLast(({ role }) => role === 'user'))
  return { kind: kinds[analysis.turn], level, error: '', call: '', request: digest(text), inputTokens }
}

const kinds = { own: 'topic', part: 'continues', none: 'continues', courtesy: 'courtesy' } as const

function hasFailed(message: Message): boolean {
  return message.role === 'tool' && (message.isError === true || failedText.test(message.text.slice(0, 400)))
}

/** A ranking of the eligible models for one level. */
type LevelRanking<S> = {
  readonly request: RouteRequest
  readonly scores: S
  /** In the order of calls. */
  readonly ordered: readonly Scored[]
}

type RankedPair<S> = Pair & { readonly entry: Scored; readonly ranking: LevelRanking<S> }

export type TurnRanking<S> = LevelRanking<S> &
  Pick<TurnChoice, 'reason' | 'next'> & {
    /** The step of runaway protection; null = none. */
    readonly runaway: Runaway | null
  }

export type TurnDeps = OutputForecast & {
  readonly health: Pick<HealthTracker, 'getStanding'>
  /** States of conversations. Absent = none is known. */
  readonly ties?: Pick<CacheAffinityTracker, 'find' | 'digest'>
  /** Bounds of conversations. Absent or null = none. */
  readonly runaway?: { readonly bounds: RunawayBounds; readonly clock: Pick<Clock, 'monotonic'> } | null
}

/** Returns the state that a turn of a named model leaves, and its runaway step; null = no bound is set, so it is not read. */
export function followConversation(
  deps: TurnDeps,
  request: RouteRequest,
): Pick<TurnRanking<unknown>, 'reason' | 'next' | 'runaway'> | null {
  if (deps.runaway == null) return null
  const { accountId } = request.caller
  const facts = readTurnFacts(request, text => deps.ties?.digest(accountId, text) ?? '')
  const next = nextState(deps.ties?.find(accountId, request.request) ?? null, facts)
  return { reason: 'first', next, runaway: checkRunaway(deps, next) }
}

/** Returns the step of a conversation. Throws `conversation_stopped` at the last one. */
function checkRunaway({ runaway: bounded }: TurnDeps, next: ConversationState): Runaway | null {
  const runaway = bounded == null ? null : findRunaway(next, bounded.bounds, bounded.clock.monotonic())
  if (runaway?.step !== 'stop') return runaway
  const message = `The gateway stopped this conversation: ${runaway.cause}. Do not repeat the request. Report to your user what failed, or begin a new task.`
  throw new GatewayError('conversation_stopped', message, { shouldRetry: false })
}

/** The second step of runaway protection gives a conversation at most this effort. */
const loweredEffort = 'low'

/**
 * Returns the ranking of a turn, with the chosen pair first. `rank` returns that of one level: its request has the level and
 * the efforts.
 */
export function rankConversation<S extends { readonly scores: Pick<ScoredModels, 'long' | 'getFigures'> }>(
  deps: TurnDeps,
  request: RouteRequest,
  rank: (request: RouteRequest) => LevelRanking<S>,
): TurnRanking<S> {
  const { accountId } = request.caller
  const facts = readTurnFacts(request, text => deps.ties?.digest(accountId, text) ?? '')
  const state = deps.ties?.find(accountId, request.request) ?? null
  const outputTokens = likelyOutputTokens(deps, request)
  const rankings = new Map<string, LevelRanking<S>>()
  const ranking = (level: Level, raised: number): LevelRanking<S> => {
    const key = `${level} ${raised}`
    let known = rankings.get(key)
    if (known === undefined) {
      const isOwn = level === request.level && raised === 0
      known = rank(isOwn ? request : { ...request, level, efforts: getEffortRules(request.request, raised) })
      rankings.set(key, known)
    }
    return known
  }
  const toPair = (from: LevelRanking<S>, entry: Scored | null | undefined): RankedPair<S> | null =>
    entry == null ? null : { ...describePair(from, entry), entry, ranking: from }
  const table: PairTable<RankedPair<S>> = {
    leader(level, raised) {
      const from = ranking(level, raised)
      return toPair(from, from.ordered[0])
    },
    find(model, level, raised) {
      const from = ranking(level, raised)
      return toPair(from, findEntry(deps, from, model))
    },
    at(pair, effort) {
      if (request.request.reasoningEffort !== null || !takes(pair.entry.model, effort)) return pair
      const { parts: _, ...entry } = pair.entry
      return { ...pair, effort, entry: { ...entry, effort } }
    },
    cost: ({ entry }, inputTokens, cachedInputTokens) =>
      getCost(ratesAt(entry.model.pricing, request.terms), {
        inputTokens,
        cachedInputTokens,
        cacheWriteTokens: 0,
        outputTokens: outputTokens(entry.model, entry.effort),
        reasoningTokens: 0,
      }),
    costWeight: level => getWeights(getScoringMode({ ...request, level })).cost,
  }
  const choice = chooseTurn(state, facts, table)
  const { reason } = choice
  const runaway = checkRunaway(deps, choice.next)
  const isLowered = runaway?.step === 'lower' && isAbove(choice.pair?.effort ?? null, loweredEffort)
  const pair = choice.pair === null || !isLowered ? choice.pair : table.at(choice.pair, loweredEffort)
  const next = { ...choice.next, effort: pair?.effort ?? null }
  if (pair === null) return { ...ranking(request.level, 0), reason, next, runaway }
  const { entry } = pair
  const { ordered } = pair.ranking
  if (ordered[0] === entry) return { ...pair.ranking, reason, next, runaway }
  const place = reason === 'cached' ? 'cached' : 'conversation'
  const isLeader = ordered[0]?.model === entry.model
  const first: Scored = isLeader ? entry : { ...entry, place }
  const others = ordered.filter(({ model }) => model !== entry.model)
  return { ...pair.ranking, ordered: [first, ...others], reason, next, runaway }
}

/** Returns the entry of an eligible model that may be called now; null = there is none. */
function findEntry(
  { health }: TurnDeps,
  { ordered, scores }: LevelRanking<{ readonly scores: Pick<ScoredModels, 'long'> }>,
  model: string,
): Scored | null {
  const isModel = (entry: Scored) => fullName(entry.model) === model
  const entry = ordered.find(isModel) ?? scores.scores.long.find(isModel)
  if (entry === undefined) return null
  const { state, mayTry } = routingHealth(health, entry.model)
  return state !== 'unhealthy' && mayTry ? entry : null
}

function describePair(
  { request, scores }: LevelRanking<{ readonly scores: Pick<ScoredModels, 'getFigures'> }>,
  { model, effort = null, score }: Scored,
): Pair {
  const { strategy, level } = getScoringMode(request)
  const quality = scores.scores.getFigures(model).quality * qualityAt(model, effort, strategy ?? level)
  return { model: fullName(model), effort, score, quality }
}

function takes(model: Model, effort: Pair['effort']): boolean {
  return effort === null || supportedEfforts(model).includes(effort)
}
