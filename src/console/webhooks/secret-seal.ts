/**
 * Encrypts signing secrets for the database, so that a copy of it signs nothing. The key is derived from the session
 * secret; secrets that were sealed under the previous session secret remain readable until it is removed.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

export type SecretSeal = {
  /** Returns the sealed secret of one endpoint. */
  seal(endpointId: string, secret: string): string
  /** Returns the secret; null if it was sealed for another endpoint, or under an unknown session secret. */
  open(endpointId: string, sealed: string): string | null
  /** Returns the secret sealed under the current session secret; null if it is already, or cannot be read. */
  reseal(endpointId: string, sealed: string): string | null
}

const nonceBytes = 12
const tagBytes = 16

export function createSecretSeal(secret: string, previousSecret: string | null): SecretSeal {
  const key = keyOf(secret)
  const previousKey = previousSecret === null ? null : keyOf(previousSecret)
  const openPrevious = (endpointId: string, bytes: Buffer) =>
    previousKey === null ? null : opened(previousKey, endpointId, bytes)
  return {
    seal: (endpointId, text) => sealed(key, endpointId, text),
    open(endpointId, text) {
      const bytes = Buffer.from(text, 'base64url')
      return opened(key, endpointId, bytes) ?? openPrevious(endpointId, bytes)
    },
    reseal(endpointId, text) {
      const bytes = Buffer.from(text, 'base64url')
      if (opened(key, endpointId, bytes) !== null) return null
      const secretText = openPrevious(endpointId, bytes)
      return secretText === null ? null : sealed(key, endpointId, secretText)
    },
  }
}

function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'gateway-ai webhook secrets', 32))
}

function sealed(key: Buffer, endpointId: string, text: string): string {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(endpointId))
  const parts = [cipher.update(text, 'utf8'), cipher.final()]
  return Buffer.concat([nonce, ...parts, cipher.getAuthTag()]).toString('base64url')
}

function opened(key: Buffer, endpointId: string, bytes: Buffer): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(endpointId)).setAuthTag(bytes.subarray(-tagBytes))
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return null
  }
}
