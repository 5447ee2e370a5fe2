/** The session secret of an embedded gateway, and digests under a session secret. */
import { createHmac, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomBase62 } from '../../core/accounts/api-keys.ts'

const secretCharacters = 64

/** Returns the secret. It is created once, readable only by this user, and replaced if the file is damaged. */
export function loadOrCreateSessionSecret(path: string): string {
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  if (kept.length >= secretCharacters) return kept
  const secret = randomBase62(secretCharacters, randomBytes)
  writeFileSync(`${path}.unfinished`, secret, { mode: 0o600 })
  renameSync(`${path}.unfinished`, path)
  return secret
}

/**
 * Stored form of a network address that a user signed in from: an HMAC under the session secret, so that a copy of the
 * database does not reveal locations. Under the current secret first, then under the previous one, which still finds
 * its digests after a rotation.
 */
export function createAddressDigests(secret: string, previousSecret: string | null) {
  const secrets = previousSecret === null ? [secret] : [secret, previousSecret]
  return (email: string, address: string): readonly string[] =>
    secrets.map(key =>
      createHmac('sha256', `known address ${key}`)
        .update(JSON.stringify([email, address]))
        .digest('hex'),
    )
}
