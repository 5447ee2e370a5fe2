/**
 * Order of the strategy `cost`: lowest list price first. Prices up to `nearEqualPrice` times the lowest remaining one
 * count as equal. Among equals health decides, then the expected cost of the request.
 */
import { fullName, type Model } from '../../core/models/models.ts'

/** A model whose price is at most this multiple of the cheapest one may precede it. */
export const nearEqualPrice = 1.1

export type PricedModel = {
  readonly model: Model
  /** List price that applies to the request, in the same unit for all models. */
  readonly price: number
  readonly isHealthy: boolean
  /** Expected cost of the request, including failed attempts. */
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

/** A stable sort keeps the order by price among equals. */
function byHealth(left: PricedModel, right: PricedModel): number {
  if (left.isHealthy !== right.isHealthy) return left.isHealthy ? -1 : 1
  return left.expectedCost - right.expectedCost || right.model.figures.quality - left.model.figures.quality
}
