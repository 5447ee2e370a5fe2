/** Chat request in the form that the steps of routing read. */

import type { ChatRequest } from '../../core/chat/chat.ts'
import type { Caller } from '../../core/limits/plans.ts'
import type { Needs } from '../../core/models/models.ts'
import type { PriceTerms } from '../../core/models/pricing.ts'
import type { Level } from '../../models/capability-levels.ts'
import type { RequestAnalysis } from '../../text/analysis/prompt-analysis.ts'

export type RouteRequest = {
  readonly ask: ChatRequest
  readonly caller: Caller
  readonly reading: RequestAnalysis
  readonly level: Level
  /** Estimated tokens, without the web. */
  readonly inputTokens: number
  readonly needs: Needs
  /** `YYYY-MM-DD`, UTC. */
  readonly today: string
  /** The time of the choice, and the tier that the client names. */
  readonly terms: PriceTerms
  /** Learning of the account at the start of the choice. */
  readonly epoch: number | null
}
