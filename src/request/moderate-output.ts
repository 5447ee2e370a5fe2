import type { ChatEvent } from '../core/chat/chat-events.ts'
import { WebCitations } from '../core/chat/citations.ts'
import type { WebSource } from '../core/chat/web-sources.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import type { ModeratedRequest } from './moderate-input.ts'

export type OutputModerationDeps = { readonly safety: Pick<Moderation, 'screenAnswer'> }

/** The moderation layer that ended the output. */
export type OutputHit = { readonly layer: string | null; readonly category: string | null }

/**
 * Yields the output that may be sent. Sends nothing before the external moderation has judged the prompt, which runs
 * during the upstream call. Adds the citations of the web `sources` to text that is sent. A hit ends the output with `content_filter` and aborts the upstream call. Returns the
 * hit; null = none.
 */
export async function* moderateOutput(
  { safety }: OutputModerationDeps,
  mode: Parameters<Moderation['screenAnswer']>[0],
  { verdict, sources }: Pick<ModeratedRequest, 'verdict'> & { readonly sources: readonly WebSource[] },
  answer: AsyncIterable<readonly ChatEvent[]>,
): AsyncGenerator<readonly ChatEvent[], OutputHit | null, void> {
  const screen = safety.screenAnswer(mode)
  const citations = sources.length === 0 ? null : new WebCitations(sources)
  let pending = verdict
  try {
    for await (const batch of answer) {
      if (pending !== null) await pending
      pending = null
      const shown = screen === null ? batch : screen.take(batch)
      if (shown.length > 0) yield citations === null ? shown : citations.add(shown)
      const hit = screen?.hit() ?? null
      if (hit !== null) return { layer: hit.layer, category: hit.category }
    }
    return null
  } catch (failure) {
    // Received text of a truncated output is billed, so it is sent completely.
    const rest = pending === null && screen !== null ? screen.rest() : []
    if (rest.length > 0) yield rest
    throw failure
  }
}
