/** What a password and an e-mail address may be, and what a password's hash must look like. Hashing itself is done elsewhere. */
import { Type } from '@sinclair/typebox'
import { invalidField } from '../validation/validate.ts'

/** Memory in KiB, passes. */
export type HashingCost = { readonly memoryCost: number; readonly timeCost: number }

/**
 * Argon2id above OWASP's minimum. One lane is what the hash function offers, and its own default
 * takes ten times the memory and time.
 */
export const hashing: HashingCost = { memoryCost: 19_456, timeCost: 3 }

const [minimumCharacters, maximumCharacters] = [8, 128]

/** A password in a body. Wider than what is taken: how long it is, is only known once it is normalised. */
export const passwordSchema = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: `a password of ${minimumCharacters} to ${maximumCharacters} characters`,
})

/** Printable ASCII around one `@`: upper and lower case of anything else differ between us and the database. */
export const emailSchema = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[!-?A-~]{1,64}@[!-?A-~]+$',
  description: 'an e-mail address of at most 254 characters',
})

/** One mailbox, one spelling. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase()
}

/** A chosen password as it is hashed: NFKC, 8 to 128 characters. Throws `invalid_request` naming `param` otherwise. */
export function validateNewPassword(text: string, param: string): string {
  const password = text.normalize('NFKC')
  const characters = [...password].length
  if (characters >= minimumCharacters && characters <= maximumCharacters) return password
  throw invalidField(param, `must be ${passwordSchema.description}`)
}

/** A password somebody offers, as it would have been hashed: never refused for its form, since that would tell. */
export function normalizePassword(text: string): string {
  return text.normalize('NFKC')
}

/** Whether a hash was made with other parameters than today's, so that the next sign-in should replace it. */
export function isOutdated(hash: string, cost = hashing): boolean {
  return !hash.startsWith(beginning(cost))
}

/** A well-formed hash that takes as long to check as a real one and that no password has: for unknown addresses. */
export function dummyHash(cost = hashing): string {
  return `${beginning(cost)}${'A'.repeat(43)}$${'A'.repeat(43)}`
}

function beginning({ memoryCost, timeCost }: HashingCost): string {
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=1$`
}
