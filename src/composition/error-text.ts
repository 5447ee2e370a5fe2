/** What stopped a start or a command, as the operator should read it. */
import { ConfigError } from '../config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { DataFolderHeld } from '../database/data-folder.ts'
import { NewerSchema } from '../database/database.ts'

/** A thrown thing in words: a configuration's problems one a line, what we foresaw by its message, the rest with its kind. */
export function describeError(cause: unknown): string {
  if (cause instanceof ConfigError) return ['the configuration is wrong.', ...cause.problems].join('\n  - ')
  if (cause instanceof DataFolderHeld || cause instanceof NewerSchema) return cause.message
  if (cause instanceof GatewayError) return cause.detail === null ? cause.message : `${cause.message} (${cause.detail})`
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'a thrown value'
}
