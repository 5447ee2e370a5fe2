import type { Message } from '../../core/chat/chat.ts'
import { type Catalog, leavingSoon, type Model } from '../../core/models/models.ts'
import { type LevelShares, levelOf } from '../../models/capability-levels.ts'
import { score } from '../../models/scoring.ts'
import type { PromptAnalyzer } from '../../text/analysis/prompt-analysis.ts'

type LikelyModelDeps = {
  readonly catalogue: Pick<Catalog, 'list'>
  readonly clock: { now(): number }
  readonly read: PromptAnalyzer
  readonly shares: LevelShares
}

/** Returns the model that routing would choose for these messages regardless of account and health; null = none. */
export function likelyModel(
  { catalogue, clock, read, shares }: LikelyModelDeps,
  messages: readonly Message[],
): Model | null {
  const now = clock.now()
  const today = new Date(now).toISOString().slice(0, 10)
  const staying = catalogue.list.filter(model => !leavingSoon(model, today))
  const level = levelOf(read(messages).strongGain, shares)
  return score(staying, { strategy: null, level, terms: { at: now, tier: null } })[0]?.model ?? null
}
