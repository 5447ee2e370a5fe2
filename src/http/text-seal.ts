/** Encrypts texts under a key derived from the gateway's secret, each for one owner. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export type TextSeal = {
  /** Returns the encrypted text, which `open` accepts only for the same owner. */
  seal(owner: string, text: string): string
  /** Returns the text; null if it was not sealed for this owner under a current secret. Never throws. */
  open(owner: string, sealed: string): string | null
}

const nonceBytes = 12
const tagBytes = 16

type TextSealOptions = {
  readonly secret: string
  /** Opens older texts after a change of the secret. */
  readonly previousSecret: string | null
  /** Texts of one purpose cannot be opened for another one. */
  readonly purpose: string
  /** Beginning of sealed texts. It separates them from other texts, and this format from later ones. */
  readonly prefix: string
}

/** Returns a seal that encrypts with AES-256-GCM. */
export function createTextSeal({ secret, previousSecret, purpose, prefix }: TextSealOptions): TextSeal {
  const keyOf = (from: string) => Buffer.from(hkdfSync('sha256', from, '', purpose, 32))
  const key = keyOf(secret)
  const keys = previousSecret === null ? [key] : [key, keyOf(previousSecret)]
  return {
    seal(owner, text) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
      const sealed = [cipher.update(text, 'utf8'), cipher.final()]
      return prefix + Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString('base64url')
    },
    open(owner, sealed) {
      if (!sealed.startsWith(prefix)) return null
      const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url')
      if (bytes.length < nonceBytes + tagBytes) return null
      for (const one of keys) {
        const text = opened(one, owner, bytes)
        if (text !== null) return text
      }
      return null
    },
  }
}

function opened(key: Buffer, owner: string, bytes: Buffer): string | null {
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(owner)).setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    // The text was changed, belongs to another owner, or was sealed under another secret.
    return null
  }
}
