import type { ChatRequest } from '../core/chat/chat.ts'
import { abortError, type RequestAbortSignal } from '../core/chat/request-abort.ts'
import { collectDefinitions } from '../core/chat/tool-definitions.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import { charactersPerTurn, createPacer } from '../text/moderation/pacing.ts'
import { blockedBy } from './moderate-input.ts'

export type ScreenAheadDeps = {
  readonly safety: Pick<Moderation, 'screenSteps'>
  readonly clock: { sleep(milliseconds: number): Promise<void> }
}

/**
 * Moderates a long request in parts, and a long text in pieces, and lets other requests run in between. Moderation caches clean parts,
 * so the final check of the whole request is then fast. Throws the error of the first blocked part, since that check would read the
 * part again at once, and that of an abort.
 */
export async function screenAhead(
  { safety, clock }: ScreenAheadDeps,
  ask: ChatRequest,
  signal: RequestAbortSignal,
): Promise<void> {
  if (ask.bodyCharacters <= charactersPerTurn) return
  const verdictOf = createPacer(async () => {
    await clock.sleep(0)
    if (signal.aborted) throw abortError(signal)
  })
  for (const part of [...ask.messages, ...collectDefinitions(ask)]) {
    const verdict = await verdictOf(safety.screenSteps(part))
    if (verdict.verdict === 'block') throw blockedBy(part.role === 'definition' ? part.param : 'messages', verdict)
  }
}
