/** Reports a failed start to the operator. */

import type { Config } from '../config/config.ts'
import { describeError } from '../core/validation/operator-errors.ts'

/** Writes the reason to stderr and ends the process with exit code 1. */
export function exitWithStartupError(cause: unknown): never {
  process.stderr.write(`gateway-ai cannot start: ${typeof cause === 'string' ? cause : describeError(cause)}\n`)
  process.exit(1)
}

/** Converts an error of listening to advice. */
export function listenErrorText({ host, port }: Pick<Config, 'host' | 'port'>, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null
  const where = `${host}:${port}`
  if (code === 'EADDRINUSE') return `${where} is in use. Stop what listens there, or set PORT to another.`
  if (code === 'EACCES') return `${where} takes more rights than this process has. Set PORT to one above 1023.`
  // Includes a host name that does not resolve, for which Bun reports an existing file.
  return `nothing can listen on ${where}. Check HOST and PORT.`
}
