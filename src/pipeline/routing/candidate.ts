import type { ChatRequest } from '../../core/chat/chat.ts'
import type { Model, Unmet } from '../../core/models/models.ts'
import type { ScoreComponents } from '../../core/routing/scoring.ts'
import type { ConfiguredProvider } from '../../providers/configured-provider.ts'

/** What of a request only providers of its client's own API form can read; null = this one can, or there is nothing of it. */
export function unreadable({ provider }: ConfiguredProvider, { source }: Pick<ChatRequest, 'source'>): Unmet | null {
  const param = source?.needs[0]
  if (source === null || param === undefined || provider.takesSource?.includes(source.dialect)) return null
  // The needs of Messages are kinds of blocks and tools, those of Responses places in the input.
  const at = source.dialect === 'messages' ? 'messages' : param
  return { param: at, what: `\`${param}\`, which only providers of this API form read` }
}

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
