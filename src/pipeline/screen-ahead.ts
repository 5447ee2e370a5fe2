import type { ChatRequest } from '../core/chat/chat.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import { collectDefinitions } from '../core/chat/tool-definitions.ts'
import type { Moderation } from '../moderation/moderation.ts'

export type ScreenAheadDeps = {
  readonly safety: Pick<Moderation, 'screenSteps'>
  readonly clock: { sleep(milliseconds: number): Promise<void> }
}

/** Requests up to this many characters are moderated in one turn: about 10 ms of work. */
const screenedAtOnce = 32_768

/**
 * Moderates a long request in parts, and a long text in pieces, and lets other requests run in between. Moderation caches clean parts,
 * so the final check of the whole request is then fast. Ends at the first blocked part, and when the request is aborted.
 */
export async function screenAhead(
  { safety, clock }: ScreenAheadDeps,
  ask: ChatRequest,
  signal: RequestAbortSignal,
): Promise<void> {
  if (ask.bodyCharacters <= screenedAtOnce) return
  let characters = 0
  for (const part of [...ask.messages, ...collectDefinitions(ask)]) {
    const steps = safety.screenSteps(part)
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) {
      characters += step.value
      if (characters < screenedAtOnce) continue
      characters = 0
      await clock.sleep(0)
      if (signal.aborted) return
    }
    if (step.value.verdict === 'block') return
  }
}
