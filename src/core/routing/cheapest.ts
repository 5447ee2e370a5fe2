/**
 * The order of the strategy `cost`: the lowest list price first. Prices of up to `nearEqualPrice` times the lowest one left
 * count as equal, and only among equals does health decide, then the cost that is expected of the request.
 */
import { fullName, type Model } from '../models/models.ts'

/** A model up to this many times the price of the cheapest one may stand before it. */
export const nearEqualPrice = 1.1

export type PricedModel = {
  readonly model: Model
  /** List price that applies to the request; any unit, as long as it is the same for all. */
  readonly price: number
  readonly isHealthy: boolean
  /** Expected cost of the request, failed attempts included. */
  readonly expectedCost: number
}

/** Sorts models by price, and near-equal ones by health. The order of `models` does not matter. */
export function cheapestFirst<T extends PricedModel>(models: readonly T[]): T[] {
  const byPrice = models.toSorted(
    (left, right) => left.price - right.price || (fullName(left.model) < fullName(right.model) ? -1 : 1),
  )
  const ordered: T[] = []
  let lowest = Number.NaN
  let equals: T[] = []
  for (const entry of byPrice) {
    if (!(entry.price <= lowest * nearEqualPrice)) {
      ordered.push(...equals.sort(byHealth))
      equals = []
      lowest = entry.price
    }
    equals.push(entry)
  }
  ordered.push(...equals.sort(byHealth))
  return ordered
}

/** A stable sort keeps the order by price where nothing else decides. */
function byHealth(left: PricedModel, right: PricedModel): number {
  if (left.isHealthy !== right.isHealthy) return left.isHealthy ? -1 : 1
  return left.expectedCost - right.expectedCost || right.model.figures.quality - left.model.figures.quality
}
