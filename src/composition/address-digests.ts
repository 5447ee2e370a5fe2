/**
 * Stored form of a network address that a user signed in from: an HMAC under the session secret, so that a copy of the
 * database does not reveal locations. After a rotation of the secret, the previous secret still finds its digests.
 */
import { createHmac } from 'node:crypto'

/**
 * Digests of one email address at one network address: under the current secret first, then under the previous secret.
 */
export type AddressDigests = (email: string, address: string) => readonly string[]

/** Digests under `secret`, and under `previousSecret` if there is one. */
export function createAddressDigests(secret: string, previousSecret: string | null): AddressDigests {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret]
  return (email, address) =>
    secrets.map(one =>
      createHmac('sha256', `known address ${one}`)
        .update(JSON.stringify([email, address]))
        .digest('hex'),
    )
}
