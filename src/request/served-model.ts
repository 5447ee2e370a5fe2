import type { Catalog, Model } from '../core/models/models.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/**
 * Returns the model that served. If the provider answers with another model of its catalog (the successor of a retired
 * one), returns that one, also for the price. A dated snapshot of the called model counts as the called model.
 */
export function servedModel(
  catalogue: Pick<Catalog, 'resolve'>,
  { candidate: { model, host }, upstreamModel }: Pick<UpstreamResponse, 'candidate' | 'upstreamModel'>,
): Model {
  // Another host has its own names and prices.
  const isElsewhere = host !== undefined && host.host !== model.provider
  if (upstreamModel === null || upstreamModel === model.id || isElsewhere) return model
  const other = catalogue.resolve(`${model.provider}/${upstreamModel}`)
  return other !== null && other.provider === model.provider ? other : model
}
