import type { ChatEvent, ChatEvents } from '../core/chat/chat.ts'
import type { Safety } from '../moderation/moderation.ts'
import type { Screened } from './moderate-input.ts'
import type { Tally } from './request-context.ts'

/**
 * Lets through what may be shown of an answer. Nothing goes out before the verdict of whoever was asked to judge the prompt,
 * who has had all the time that the upstream took; a hit ends the answer with `content_filter`, and the upstream call.
 */
export async function* screen(
  { safety }: { readonly safety: Pick<Safety, 'screenAnswer'> },
  mode: Parameters<Safety['screenAnswer']>[0],
  { verdict }: Pick<Screened, 'verdict'>,
  answer: AsyncIterable<readonly ChatEvent[]>,
  tally: Pick<Tally, 'serving'>,
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
