/**
 * Seals reasoning that a client carries from one turn to the next. The gateway stores none of it. The client cannot read or change
 * it, and no other account can use it.
 */
import { Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type ReasoningItem, reasoningFamilies } from '../core/chat/chat.ts'
import type { ReasoningReader } from '../core/request/parse-messages.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { oneOf, strictObject } from '../core/validation/validate.ts'
import { createTextSeal } from '../http/text-seal.ts'

/**
 * Reasoning that must come back on the next turn, in `reasoning_details` of messages (OpenRouter's field, which clients send
 * back with the message). The gateway seals it, as in the other API forms.
 */

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

export type ReasoningSeal = {
  /** Returns the item as encrypted text, which `open` accepts only for the same account. */
  seal(accountId: string, item: ReasoningItem): string
  /** Returns the item; null if the text was not sealed for this account under a current secret. Never throws. */
  open(accountId: string, text: string): ReasoningItem | null
}

/** A seal, and the account whose items it opens. */
export type ReasoningOpener = { readonly seal: ReasoningSeal; readonly accountId: string }

/** Prefix of sealed items. It separates them from text of a provider, and this format from later ones. */
const prefix = 'gwr1.'

const isItem = TypeCompiler.Compile(
  strictObject({
    family: oneOf(reasoningFamilies),
    kind: oneOf(['signature', 'redacted', 'encrypted']),
    text: Type.String(),
    data: Type.String(),
    id: Type.Union([Type.String(), Type.Null()]),
  }),
)

/** Returns whether a text has the form of a sealed item, of any gateway and account. */
export function isSealed(text: string): boolean {
  return text.startsWith(prefix)
}

/**
 * Returns a seal that encrypts with AES-256-GCM under a key derived from `secret`. It also opens items sealed under
 * `previousSecret`, so that conversations continue after a change of the secret.
 */
export function createReasoningSeal(secret: string, previousSecret: string | null): ReasoningSeal {
  const texts = createTextSeal({ secret, previousSecret, purpose: 'gateway-ai reasoning', prefix })
  return {
    seal(accountId, { family, kind, text, data, id }) {
      return texts.seal(accountId, JSON.stringify({ family, kind, text, data, id }))
    },
    open(accountId, text) {
      const plain = texts.open(accountId, text)
      if (plain === null) return null
      const item = parseUntrustedJson(plain)
      return isItem.Check(item) ? item : null
    },
  }
}
