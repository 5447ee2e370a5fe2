/**
 * Reasoning that must come back on the next turn, in `reasoning_details` of messages (OpenRouter's field, which clients send
 * back with the message). The gateway seals it, as in the other API forms.
 */
import type { ReasoningItem } from '../../core/chat/chat.ts'
import type { ReasoningReader } from '../../core/request/parse-messages.ts'
import { isSealed, type ReasoningSeal } from '../reasoning-seal.ts'

/** Returns one detail. `index` is its place among those of the message. */
export function sealedDetail(item: ReasoningItem, index: number, seal: (item: ReasoningItem) => string) {
  return { type: 'reasoning.encrypted', data: seal(item), format: 'gateway-ai-v1', index } as const
}

/** Creates a reader of an account's details. A detail that OpenRouter itself wrote goes back to OpenRouter. */
export function detailReader(seal: ReasoningSeal, accountId: string): ReasoningReader {
  return detail => {
    const { data } = detail
    if (typeof data === 'string' && isSealed(data)) return seal.open(accountId, data)
    // A client can write anything into its fields, so all of them are moderated.
    const text = JSON.stringify(detail)
    return { family: 'compatible', kind: 'encrypted', text, data: `[${text}]`, id: null }
  }
}
