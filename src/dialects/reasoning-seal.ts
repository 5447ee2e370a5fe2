/**
 * Seals reasoning that a client carries from one turn to the next. The gateway stores none of it. The client cannot read or change
 * it, and no other account can use it.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { type ReasoningItem, reasoningFamilies } from '../core/chat/chat.ts'
import { parseUntrustedJson } from '../core/validation/untrusted-json.ts'
import { oneOf } from '../core/validation/validate.ts'

export type ReasoningSeal = {
  /** Returns the item as encrypted text, which `open` accepts only for the same account. */
  seal(accountId: string, item: ReasoningItem): string
  /** Returns the item; null if the text was not sealed for this account under a current secret. Never throws. */
  open(accountId: string, text: string): ReasoningItem | null
}

/** Prefix of sealed items. It separates them from text of a provider, and this format from later ones. */
const prefix = 'gwr1.'
const nonceBytes = 12
const tagBytes = 16

const isItem = TypeCompiler.Compile(
  Type.Object(
    {
      family: oneOf(reasoningFamilies),
      kind: oneOf(['signature', 'redacted', 'encrypted']),
      text: Type.String(),
      data: Type.String(),
      id: Type.Union([Type.String(), Type.Null()]),
    },
    { additionalProperties: false },
  ),
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
  const key = keyOf(secret)
  const keys = previousSecret === null ? [key] : [key, keyOf(previousSecret)]
  return {
    seal(accountId, item) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(accountId))
      const { family, kind, text, data, id } = item
      const sealed = [cipher.update(JSON.stringify({ family, kind, text, data, id }), 'utf8'), cipher.final()]
      return prefix + Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString('base64url')
    },
    open(accountId, text) {
      if (!isSealed(text)) return null
      const bytes = Buffer.from(text.slice(prefix.length), 'base64url')
      if (bytes.length < nonceBytes + tagBytes) return null
      for (const one of keys) {
        const plain = opened(one, accountId, bytes)
        if (plain === null) continue
        const item = parseUntrustedJson(plain)
        return isItem.Check(item) ? item : null
      }
      return null
    },
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'gateway-ai reasoning', 32))
}

function opened(key: Buffer, accountId: string, bytes: Buffer): string | null {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(accountId)).setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    // The text was changed, belongs to another account, or was sealed under another secret.
    return null
  }
}
