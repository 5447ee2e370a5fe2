import type { ChatRequest } from '../core/chat/chat.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import { collectDefinitions } from '../core/chat/tool-definitions.ts'
import { messageTexts } from '../core/moderation/text-moderator.ts'
import type { Moderation } from '../moderation/moderation.ts'

export type ScreenAheadDeps = {
  readonly safety: Pick<Moderation, 'screenMessages' | 'screenDefinition'>
  readonly clock: { sleep(milliseconds: number): Promise<void> }
}

/** Requests up to this many characters are moderated in one turn: about 10 ms of work. */
const screenedAtOnce = 32_768

/**
 * Moderates a long request in parts and lets other requests run in between. Moderation caches clean parts, so the final
 * check of the whole request is then fast. Ends at the first blocked part, and when the request is aborted. A single
 * part is checked in one turn, whatever its length.
 */
export async function screenAhead(
  { safety, clock }: ScreenAheadDeps,
  ask: ChatRequest,
  signal: RequestAbortSignal,
): Promise<void> {
  if (ask.bodyCharacters <= screenedAtOnce) return
  let characters = 0
  const isTurnOver = (texts: readonly string[]) => {
    for (const text of texts) characters += text.length
    if (characters < screenedAtOnce) return false
    characters = 0
    return true
  }
  for (const message of ask.messages) {
    if (safety.screenMessages([message]).verdict === 'block') return
    if (!isTurnOver(messageTexts(message))) continue
    await clock.sleep(0)
    if (signal.aborted) return
  }
  for (const definition of collectDefinitions(ask)) {
    if (safety.screenDefinition(definition).verdict === 'block') return
    if (!isTurnOver(definition.texts)) continue
    await clock.sleep(0)
    if (signal.aborted) return
  }
}
