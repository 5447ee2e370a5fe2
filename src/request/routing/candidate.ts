import type { Attempt, HealthState, PlaceReason } from '../../core/chat/attempts.ts'
import type { ChatRequest } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Model, ModelHost, Needs, Unmet } from '../../core/models/models.ts'
import type { PriceTerms } from '../../core/models/pricing.ts'
import type { LearnedBiasLookup } from '../../learning/apply-bias.ts'
import type { Level } from '../../models/capability-levels.ts'
import {
  type ChosenEffort,
  type EffortRules,
  nearestSupported,
  type ReasoningLengths,
  supportedEfforts,
} from '../../models/effort.ts'
import type { Figures, ScoreComponents } from '../../models/scoring.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'
import type { KeyClaim } from '../../providers/keys/key-pool.ts'
import type { RequestAnalysis } from '../../text/analysis/prompt-analysis.ts'

/**
 * Part of a request that only providers of its client's own dialect can read; null = this model's provider can, or there
 * is no such part.
 */
export function unreadable(
  { provider }: ConfiguredProvider,
  model: Pick<Model, 'id' | 'provider'>,
  { source }: Pick<ChatRequest, 'source'>,
): Unmet | null {
  const param = source?.needs[0]
  if (source === null || param === undefined || provider.takesSource?.(model).includes(source.dialect)) return null
  // Messages requests need kinds of blocks and tools; Responses requests need places in the input.
  const at = source.dialect === 'messages' && !Object.hasOwn(source.fields, param) ? 'messages' : param
  return { param: at, what: `\`${param}\`, which only providers of this API form read` }
}

export type Candidate = {
  readonly model: Model
  readonly endpoint: ConfiguredProvider
  /** The host at this endpoint, if the model has several; `model` then has its prices. */
  readonly host?: ModelHost
  /** In auto mode a score of 0–1. In manual mode 1 for the named model, and similarity to it for the others. */
  readonly score: number
  /** Why it has its place in the ranking. */
  readonly place: PlaceReason
  /** Its health when it was ranked. */
  readonly health: HealthState
  /** The effort that it was ranked at; absent or null = none was chosen. A client's own effort stays as it is. */
  readonly effort?: ChosenEffort
  /** Figures behind its score; absent = it was not scored by figures. */
  readonly figures?: Figures
  /** Explanation of the score at the time of the ranking: text and components; null in manual mode. */
  readonly reason: () => string
  readonly parts: () => ScoreParts | null
}

/** `adjustment` is the effect of learning, health and the monthly soft cap on the sum of the others. */
export type ScoreParts = ScoreComponents & { readonly adjustment: number }

/** Returns the effort that a candidate is called with; null = its provider's default. */
export function getEffort(
  { effort = null, model }: Pick<Candidate, 'effort' | 'model'>,
  { reasoningEffort }: Pick<ChatRequest, 'reasoningEffort'>,
): ChosenEffort {
  return reasoningEffort === null ? effort : nearestSupported(reasoningEffort, supportedEfforts(model))
}

/**
 * Returns the host and the key of an attempt as the operator named them, if the provider has several of either. The own
 * key of an account appears by its ID.
 */
export function findVia(
  { endpoint, host }: Pick<Candidate, 'endpoint' | 'host'>,
  claim: KeyClaim | null,
): Pick<Attempt, 'via' | 'ownKey'> | null {
  if (claim !== null && endpoint.own !== undefined)
    return { via: `${endpoint.id}#${claim.key.account.slice(1)}`, ownKey: claim.key.name }
  if (claim !== null) return { via: `${endpoint.id}#${claim.key.name}` }
  return host === undefined ? null : { via: endpoint.id }
}

export type AccountLearning = { readonly epoch: number; findLeaning(queryType: string): LearnedBiasLookup | null }

export type RouteRequest = {
  readonly request: ChatRequest
  readonly caller: Caller
  readonly analysis: RequestAnalysis
  readonly level: Level
  /** Estimated tokens, without the web. */
  readonly inputTokens: number
  readonly needs: Needs
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string
  /** The time of the choice, and the tier that the client names. */
  readonly terms: PriceTerms
  /** Learning of the account at the start of the choice; null = it is off, or not loaded yet. */
  readonly learning: AccountLearning | null
  /** Efforts that an automatic choice may use; absent = a named model. */
  readonly efforts?: EffortRules
  readonly lengths: ReasoningLengths
}
