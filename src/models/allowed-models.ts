/** Models that an API key may use, as patterns: `openai/gpt-5.5`, `anthropic/*`, `openai/gpt-5*`. */
import { GatewayError } from '../core/validation/errors.ts'

/** A pattern: the full name of a model, or its beginning and `*`. */
export const modelPattern = '^[A-Za-z0-9_.-]{1,64}/[A-Za-z0-9_.:/@-]{0,250}\\*?$'

/** Returns true if a full name (`provider/model`) matches one of the patterns; absent patterns allow all. */
export function isModelAllowed(patterns: readonly string[] | undefined, fullName: string): boolean {
  if (patterns === undefined) return true
  return patterns.some(pattern =>
    pattern.endsWith('*') ? fullName.startsWith(pattern.slice(0, -1)) : fullName === pattern,
  )
}

/** Returns the error for a model that the API key may not use. */
export function modelNotAllowed(patterns: readonly string[]): GatewayError {
  const message = `This API key may only use these models: ${patterns.join(', ')}.`
  return new GatewayError('forbidden', message, { param: 'model', shouldRetry: false })
}
