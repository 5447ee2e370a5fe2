import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomBase62 } from '../core/accounts/api-keys.ts'

/**
 * Returns the session secret of an embedded gateway. It is created once, readable only by this user, and replaced if
 * the file is damaged.
 */
export function loadOrCreateSessionSecret(path: string): string {
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  if (kept.length >= secretCharacters) return kept
  const secret = randomBase62(secretCharacters, randomBytes)
  writeFileSync(`${path}.unfinished`, secret, { mode: 0o600 })
  renameSync(`${path}.unfinished`, path)
  return secret
}

const secretCharacters = 64
