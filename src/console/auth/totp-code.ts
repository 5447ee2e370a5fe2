/**
 * Time-based one-time passwords (RFC 6238, with HMAC-SHA-1, 6 digits and 30 s as all authenticator apps support them),
 * and recovery codes. The RFC's vectors test these few lines; a library would bring more code than it replaces.
 */
import type { RandomBytes } from '../../core/accounts/api-keys.ts'
import { digestOf } from '../../core/accounts/api-keys.ts'

const stepSeconds = 30
const digits = 6
/** Steps before and after the current one, for clocks that differ and for slow typing (RFC 6238, section 5.2). */
const tolerance = 1
const secretBytes = 20
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const recoveryCodeCount = 10
/** 80 bits: a stored digest cannot be reversed by trying all codes. */
const recoveryBytes = 10

/** Returns a new secret in base32. */
export function newTotpSecret(randomBytes: RandomBytes): string {
  return toBase32(randomBytes(secretBytes))
}

/** Returns the code of a time step (RFC 4226, section 5.3). */
export function totpCode(secret: string, step: number): string {
  const counter = new DataView(new ArrayBuffer(8))
  counter.setBigUint64(0, BigInt(step))
  const mac = new Bun.CryptoHasher('sha1', fromBase32(secret)).update(counter.buffer).digest()
  const view = new DataView(mac.buffer, mac.byteOffset, mac.byteLength)
  const value = view.getUint32((mac.at(-1) ?? 0) & 15) & 0x7fff_ffff
  return `${value % 10 ** digits}`.padStart(digits, '0')
}

/** Returns the time step at `nowMs` whose code this is, at most one step away; null = none. */
export function matchingStep(secret: string, code: string, nowMs: number): number | null {
  const current = Math.floor(nowMs / 1000 / stepSeconds)
  for (let step = current - tolerance; step <= current + tolerance; step++)
    if (step >= 0 && totpCode(secret, step) === code) return step
  return null
}

/** Returns the URI that authenticator apps read from a QR code. */
export function totpUri(secret: string, email: string): string {
  const issuer = 'gateway-ai'
  return `otpauth://totp/${issuer}:${encodeURIComponent(email)}?secret=${secret}&issuer=${issuer}&algorithm=SHA1&digits=${digits}&period=${stepSeconds}`
}

/** Returns new recovery codes: four groups of four characters. */
export function newRecoveryCodes(randomBytes: RandomBytes): readonly string[] {
  return Array.from({ length: recoveryCodeCount }, () =>
    (toBase32(randomBytes(recoveryBytes)).toLowerCase().match(/.{4}/g) ?? []).join('-'),
  )
}

/** Returns the stored form of a recovery code, however it was typed; null = not a recovery code. */
export function recoveryDigest(text: string): string | null {
  const code = text.toLowerCase().replace(/[\s-]/g, '')
  return /^[a-z2-7]{16}$/.test(code) ? digestOf(`recovery ${code}`) : null
}

/** Returns the six digits of a code, however they were typed; null = not a code. */
export function readTotpCode(text: string): string | null {
  const code = text.replace(/\s/g, '')
  return /^\d{6}$/.test(code) ? code : null
}

/** Base32 without padding (RFC 4648). */
export function toBase32(bytes: Uint8Array): string {
  let [text, value, bits] = ['', 0, 0]
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += alphabet.charAt((value >> bits) & 31)
    }
  }
  return bits === 0 ? text : text + alphabet.charAt((value << (5 - bits)) & 31)
}

function fromBase32(text: string): Uint8Array {
  const bytes: number[] = []
  let [value, bits] = [0, 0]
  for (const letter of text) {
    value = ((value << 5) | alphabet.indexOf(letter)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((value >> bits) & 255)
  }
  return Uint8Array.from(bytes)
}
