/** Text for the operator about a failed start or command. */
import { ConfigError } from '../config.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { DataFolderHeld } from '../database/data-folder.ts'
import { NewerSchema } from '../database/database.ts'

/**
 * Converts a thrown value to text: configuration problems one per line, expected errors as their message, other errors
 * with their name.
 */
export function describeError(cause: unknown): string {
  if (cause instanceof ConfigError) return ['the configuration is wrong.', ...cause.problems].join('\n  - ')
  if (cause instanceof DataFolderHeld || cause instanceof NewerSchema) return cause.message
  if (cause instanceof GatewayError) return cause.detail === null ? cause.message : `${cause.message} (${cause.detail})`
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : 'a thrown value'
}
