import type { ChatEvent, ChatEvents } from '../core/chat/chat.ts'
import type { Moderation } from '../moderation/moderation.ts'
import type { ModeratedRequest } from './moderate-input.ts'
import type { RequestContext } from './request-context.ts'

/**
 * Lets through what may be shown of an answer. Nothing goes out before the verdict of whoever was asked to judge the prompt,
 * who has had all the time that the upstream took; a hit ends the answer with `content_filter`, and the upstream call.
 */
export async function* moderateOutput(
  { safety }: { readonly safety: Pick<Moderation, 'screenAnswer'> },
  mode: Parameters<Moderation['screenAnswer']>[0],
  { verdict }: Pick<ModeratedRequest, 'verdict'>,
  answer: AsyncIterable<readonly ChatEvent[]>,
  tally: Pick<RequestContext, 'serving'>,
): ChatEvents {
  const screen = safety.screenAnswer(mode)
  let pending = verdict
  try {
    for await (const batch of answer) {
      if (pending !== null) await pending
      pending = null
      const shown = screen === null ? batch : screen.take(batch)
      if (shown.length > 0) yield shown
      if (screen === null || screen.hit() === null) continue
      tally.serving?.finishes.set(0, 'content_filter')
      return
    }
  } catch (failure) {
    // Of an answer that was cut, what came is owed for: none of it is kept back.
    const rest = pending === null && screen !== null ? screen.rest() : []
    if (rest.length > 0) yield rest
    throw failure
  }
}
