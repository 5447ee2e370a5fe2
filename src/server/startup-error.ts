/** A start that fails, in words that an operator can act on. */

import { describeError } from '../composition/error-text.ts'
import type { Config } from '../config.ts'

/** Says why on stderr and ends the process with 1. */
export function exitWithStartupError(cause: unknown): never {
  process.stderr.write(`gateway-ai cannot start: ${typeof cause === 'string' ? cause : describeError(cause)}\n`)
  process.exit(1)
}

/** What listening fails with. */
export function listenErrorText({ host, port }: Pick<Config, 'host' | 'port'>, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') return `${where} is in use. Stop what listens there, or set PORT to another.`
  if (code === 'EACCES') return `${where} takes more rights than this process has. Set PORT to one above 1023.`
  // Among others what a name makes that does not resolve, which Bun reports as a file that exists.
  return `nothing can listen on ${where}. Check HOST and PORT.`
}
