/** What routing goes by: a request as it was read, and what is known of models, providers and the account. */

import type { PromptAnalysis } from '../../core/analysis/prompt-analysis.ts'
import type { ChatRequest, QueryType } from '../../core/chat/chat.ts'
import type { LearnedBiasLookup } from '../../core/learning/apply-bias.ts'
import type { Caller, Limits } from '../../core/limits/plans.ts'
import type { Catalog, Needs, RoutingFigures } from '../../core/models/models.ts'
import type { CacheAffinity } from '../../core/routing/cache-affinity.ts'
import type { Level, LevelShares } from '../../core/routing/capability-levels.ts'
import type { Figures } from '../../core/routing/scoring.ts'
import type { CalibratedOutput } from '../../core/usage/cost-estimate.ts'
import type { QuotaStatus } from '../../limits/meter.ts'
import type { ConfiguredProvider } from '../../providers/provider.ts'

export type RouteRequest = {
  readonly ask: ChatRequest
  readonly caller: Caller
  readonly reading: PromptAnalysis
  readonly level: Level
  /** Estimated, without the web. */
  readonly inputTokens: number
  readonly needs: Needs
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string
  /** Of the account's learning, as the choice begins. */
  readonly epoch: number | null
}

/** What routing must know of a candidate's health, by its key. */
export type HealthView = {
  /** False while it is to be left alone. */
  mayTry(key: string): boolean
  stateOf(key: string): 'healthy' | 'degraded' | 'unhealthy'
  /** The figures published of a model, moved towards what was measured here; null = nothing was. Absent = nothing is. */
  figuresOf?(key: string, published: RoutingFigures): Figures | null
}

export type RouteDeps = {
  readonly catalogue: Catalog
  readonly endpoints: ReadonlyMap<string, ConfiguredProvider>
  readonly health: HealthView
  readonly meter: { standing(accountId: string, limits: Limits): QuotaStatus | null }
  readonly clock: { /** Epoch milliseconds. */ now(): number }
  /** How much of its monthly soft cap an account has used, 1 = all. Absent = nobody has one. */
  readonly budget?: { shareOf(caller: Caller): number }
  /** What was learnt of an account, from memory; null = not known yet. Absent = nothing is learnt. */
  readonly learning?: { of(accountId: string): AccountLearning | null }
  /** 0 ≤ x < 1, for the few requests that look at another model. Absent = none does. */
  readonly random?: () => number
  /** Target shares of requests by level. Absent = the usual ones. */
  readonly shares?: LevelShares
  /** What answers are longer by than usual. Absent = as long as usual. */
  readonly foresight?: { of(queryType: QueryType, accountId: string | null): CalibratedOutput }
  /** Who answered the conversation before. Absent = nobody knows. */
  readonly ties?: { of(accountId: string, ask: ChatRequest): CacheAffinity | null }
}

export type AccountLearning = { readonly epoch: number; leaningOf(queryType: string): LearnedBiasLookup | null }
