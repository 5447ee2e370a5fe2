/** Changes of the gateway to the last user turn in a body that a provider otherwise receives as its client wrote it. */
import type { ChatRequest, Message, TurnChange } from './chat.ts'

/** Returns the request with `messages`, which differ from its own only by `change`. The client's body stays in use. */
export function withTurn(ask: ChatRequest, messages: readonly Message[], change: TurnChange): ChatRequest {
  const { source } = ask
  // After another change the body is outdated, and stays so.
  if (source === null || source.messages !== ask.messages) return { ...ask, messages }
  return { ...ask, messages, source: { ...source, messages, turn: { ...source.turn, ...change } } }
}
