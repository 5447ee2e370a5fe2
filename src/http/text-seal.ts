/** Encrypts texts under a key derived from the gateway's secret, each for one owner. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export type TextSeal = {
  /** Returns the encrypted text, which `open` accepts only for the same owner. */
  seal(owner: string, text: string): string
  /** Returns the text; null if it was not sealed for this owner under a current secret. Never throws. */
  open(owner: string, sealed: string): string | null
  /** Returns the text sealed under the current secret; null if it is already, or cannot be opened. */
  reseal(owner: string, sealed: string): string | null
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
  const getKey = (from: string) => Buffer.from(hkdfSync('sha256', from, '', purpose, 32))
  const key = getKey(secret)
  const previousKey = previousSecret === null ? null : getKey(previousSecret)
  const seal = (owner: string, text: string) => {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner))
    const sealed = [cipher.update(text, 'utf8'), cipher.final()]
    return prefix + Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]).toString('base64url')
  }
  const openUnder = (under: Buffer | null, owner: string, sealed: string) => {
    if (under === null || !sealed.startsWith(prefix)) return null
    const bytes = Buffer.from(sealed.slice(prefix.length), 'base64url')
    return bytes.length < nonceBytes + tagBytes ? null : opened(under, owner, bytes)
  }
  return {
    seal,
    open: (owner, sealed) => openUnder(key, owner, sealed) ?? openUnder(previousKey, owner, sealed),
    reseal(owner, sealed) {
      const text = openUnder(key, owner, sealed) === null ? openUnder(previousKey, owner, sealed) : null
      return text === null ? null : seal(owner, text)
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
