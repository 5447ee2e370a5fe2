import type { Model } from '../../core/models/models.ts'
import type { ScoreComponents } from '../../core/routing/scoring.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'

export type Candidate = {
  readonly model: Model
  readonly endpoint: ConfiguredProvider
  /** 0–1 in auto mode; in manual mode 1 for the named model, nearness to it for the others. */
  readonly score: number
  /** For whoever asks how the choice came about: in words, and what the score is made of; null in manual mode. */
  readonly reason: () => string
  readonly parts: () => ScoreParts | null
}

/** `adjustment` is what learning, health and the month's soft cap made of the sum of the others. */
export type ScoreParts = ScoreComponents & { readonly adjustment: number }
