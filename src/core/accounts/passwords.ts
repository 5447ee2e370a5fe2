/** Rules for passwords, email addresses and password hashes. Hashing itself happens in `console/auth/password-hashing.ts`. */
import { Type } from '@sinclair/typebox'
import { invalidField } from '../validation/validate.ts'

/** `memoryCost` in KiB, `timeCost` in passes. */
type HashingCost = { readonly memoryCost: number; readonly timeCost: number }

/**
 * Argon2id above OWASP's minimum. Bun's hash function supports a parallelism of 1 only; its own default needs ten times
 * the memory and time.
 */
export const hashing: HashingCost = { memoryCost: 19_456, timeCost: 3 }

const [minimumCharacters, maximumCharacters] = [8, 128]

/**
 * A password in a request body. The bound is wider than the real one, since the length is only known after
 * normalization.
 */
export const passwordSchema = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: `a password of ${minimumCharacters} to ${maximumCharacters} characters`,
})

/** Printable ASCII around one `@`. For other characters, lower-casing differs between JavaScript and the database. */
export const emailSchema = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[!-?A-~]{1,64}@[!-?A-~]+$',
  description: 'an email address of at most 254 characters',
})

/** Returns the one spelling under which an email address is stored and compared. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase()
}

/**
 * Returns a new password in the form that is hashed: NFKC, 8 to 128 characters. Throws `invalid_request` naming `param`
 * otherwise.
 */
export function validateNewPassword(text: string, param: string): string {
  const password = text.normalize('NFKC')
  const characters = [...password].length
  if (characters >= minimumCharacters && characters <= maximumCharacters) return password
  throw invalidField(param, `must be ${passwordSchema.description}`)
}

/**
 * Returns a sign-in password in the form that was hashed. Never rejects its format, since that would reveal the rules
 * that a stored password follows.
 */
export function normalizePassword(text: string): string {
  return text.normalize('NFKC')
}

/** Returns true if a hash was made with other parameters than today's, so that the next sign-in replaces it. */
export function isOutdated(hash: string, cost = hashing): boolean {
  return !hash.startsWith(beginning(cost))
}

/**
 * Returns a well-formed hash that no password matches. Checking it for an unknown email address takes as long as for a
 * real one.
 */
export function dummyHash(cost = hashing): string {
  return `${beginning(cost)}${'A'.repeat(43)}$${'A'.repeat(43)}`
}

function beginning({ memoryCost, timeCost }: HashingCost): string {
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`
}

export type Passwords = {
  /**
   * Returns the Argon2id hash of a password. `source` is the client that the work is for: a network address, or the ID
   * of a signed-in user; null = the operator. Throws `ip_rate_limited` if the source has too much work waiting, and
   * `service_unavailable` if the queue is full.
   */
  hash(password: string, source: string | null): Promise<string>
  /**
   * Compares a password with a hash. Null stands for an unknown user: it takes as long and never matches. `outdated`:
   * correct, but hashed with other parameters than the current ones. Throws like `hash`.
   */
  verify(password: string, hash: string | null, source: string | null): Promise<'wrong' | 'right' | 'outdated'>
}
