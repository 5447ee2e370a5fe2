import type { ChatEvent } from '../core/chat/chat-events.ts'
import type { Moderation } from '../moderation/moderation.ts'
import type { ModeratedRequest } from './moderate-input.ts'

export type OutputModerationDeps = { readonly safety: Pick<Moderation, 'screenAnswer'> }

/**
 * Yields the output that may be sent. Sends nothing before the external moderation has judged the prompt, which runs
 * during the upstream call. A hit ends the output with `content_filter` and aborts the upstream call. Returns whether
 * there was a hit.
 */
export async function* moderateOutput(
  { safety }: OutputModerationDeps,
  mode: Parameters<Moderation['screenAnswer']>[0],
  { verdict }: Pick<ModeratedRequest, 'verdict'>,
  answer: AsyncIterable<readonly ChatEvent[]>,
): AsyncGenerator<readonly ChatEvent[], boolean, void> {
  const screen = safety.screenAnswer(mode)
  let pending = verdict
  try {
    for await (const batch of answer) {
      if (pending !== null) await pending
      pending = null
      const shown = screen === null ? batch : screen.take(batch)
      if (shown.length > 0) yield shown
      if (screen !== null && screen.hit() !== null) return true
    }
    return false
  } catch (failure) {
    // Received text of a truncated output is billed, so it is sent completely.
    const rest = pending === null && screen !== null ? screen.rest() : []
    if (rest.length > 0) yield rest
    throw failure
  }
}
