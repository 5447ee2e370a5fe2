/**
 * What a network address that a user has signed in from is stored as: an HMAC under the session secret, so that the
 * database alone does not tell where users are. After a change of the secret the previous one still finds its digests.
 */
import { createHmac } from 'node:crypto'

/** Digests of one email address at one network address: the current secret's first, then the previous secret's. */
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
