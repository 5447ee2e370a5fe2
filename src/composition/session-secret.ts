import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { randomBase62 } from '../core/accounts/api-keys.ts'

/** The embedded gateway's own session secret: made once, readable by nobody else. One that was torn is made anew. */
export function loadOrCreateSessionSecret(path: string): string {
  const kept = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
  if (kept.length >= secretCharacters) return kept
  const secret = randomBase62(secretCharacters, randomBytes)
  writeFileSync(`${path}.unfinished`, secret, { mode: 0o600 })
  renameSync(`${path}.unfinished`, path)
  return secret
}

const secretCharacters = 64
