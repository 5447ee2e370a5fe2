/** Models that an API key may use, as patterns: `openai/gpt-5.5`, `anthropic/*`, `openai/gpt-5*`. */
import { autoModel, type Catalog, fullName, type Model } from '../core/models/models.ts'
import { GatewayError } from '../core/validation/errors.ts'

/** A pattern: the full name of a model, or its beginning and `*`. */
export const modelPattern = '^[A-Za-z0-9_.-]{1,64}/[A-Za-z0-9_.:/@-]{0,250}\\*?$'

/** Returns true if a full name (`provider/model`) matches one of the patterns; absent patterns allow all. */
export function isModelAllowed(patterns: readonly string[] | undefined, name: string): boolean {
  if (patterns === undefined) return true
  return patterns.some(pattern => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern))
}

/** Returns the error for a model that the API key may not use. */
export function modelNotAllowed(patterns: readonly string[]): GatewayError {
  const message = `This API key may only use these models: ${patterns.join(', ')}.`
  return new GatewayError('forbidden', message, { param: 'model', shouldRetry: false })
}

/** Returns the error for a model that the operator switched off; null = the name is of none. */
export function disabledModel(
  { findDisabled }: { readonly findDisabled?: (name: string) => Pick<Model, 'id' | 'provider'> | null },
  name: string,
): GatewayError | null {
  const model = findDisabled?.(name) ?? null
  if (model === null) return null
  const message = `${fullName(model)} is switched off by the operator of this gateway. Choose a model from GET /v1/models.`
  return new GatewayError('model_not_found', message, { param: 'model' })
}

/** Returns the error for a name of no model. Both kinds of model may have names that are switched off. */
export function unknownModel(name: string, ...catalogs: readonly Parameters<typeof disabledModel>[0][]): GatewayError {
  for (const catalog of catalogs) {
    const disabled = disabledModel(catalog, name)
    if (disabled !== null) return disabled
  }
  return new GatewayError('model_not_found', 'Unknown model. List models with GET /v1/models.', { param: 'model' })
}

/** Returns the chat model of a name; null = automatic routing. Throws `model_not_found`. */
export function findNamed(
  catalog: Pick<Catalog, 'resolve' | 'findDisabled'>,
  name: string | null = null,
): Model | null {
  if (name === null || name.toLowerCase() === autoModel) return null
  const model = catalog.resolve(name)
  if (model === null) throw unknownModel(name, catalog)
  return model
}
