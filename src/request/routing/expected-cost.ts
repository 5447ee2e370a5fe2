/** Expected length and price of a request, shared by the steps of routing. */
import { blendedPrice, fitsWindow, type Model } from '../../core/models/models.ts'
import { ratesAt } from '../../core/models/pricing.ts'
import { priceTable } from '../../core/usage/money.ts'
import { baseCost, type CalibratedOutput, expectedOutput, unknownLength } from '../cost-estimate.ts'
import type { RouteRequest } from './route-request.ts'

export type OutputForecast = {
  /** Expected output length relative to the usual one. Absent = usual length. */
  readonly foresight?: {
    of(queryType: RouteRequest['reading']['queryType'], accountId: string | null): CalibratedOutput
  }
}

/** Returns the expected output tokens of a model, all choices together. */
export function likelyOutputTokens({ foresight }: OutputForecast, request: RouteRequest): (model: Model) => number {
  const { reading, caller, ask } = request
  const known = foresight?.of(reading.queryType, caller.accountId) ?? unknownLength
  return model => expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
}

type PricedRequest = Pick<RouteRequest, 'inputTokens' | 'terms'>

/** Returns the blended price of a request of this input length, at its time. Only for comparisons: it has no unit. */
export function listPrice({ pricing }: Model, { inputTokens, terms }: PricedRequest): number {
  return blendedPrice(priceTable(ratesAt(pricing, terms), inputTokens))
}

/** Returns the cost of a request with this output without caching, at its time. */
export function expectedCost({ pricing }: Model, { inputTokens, terms }: PricedRequest, outputTokens: number): number {
  return baseCost(ratesAt(pricing, terms), inputTokens, outputTokens)
}

/** Returns whether a model allows the client's own output cap. */
export function allowsOutputLength({ ask: { maxOutputTokens }, inputTokens }: RouteRequest, model: Model): boolean {
  if (maxOutputTokens === null) return true
  return model.maxOutputTokens >= maxOutputTokens && fitsWindow(model, inputTokens, maxOutputTokens)
}
