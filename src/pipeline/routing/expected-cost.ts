/** Length and price that routing expects of a request, shared by its steps. */
import { blendedPrice, fitsWindow, type Model } from '../../core/models/models.ts'
import { type CalibratedOutput, expectedOutput, unknownLength } from '../../core/usage/cost-estimate.ts'
import { priceTable } from '../../core/usage/money.ts'
import type { RouteRequest } from './route-request.ts'

export type OutputForecast = {
  /** How much longer than usual outputs are. Absent = as long as usual. */
  readonly foresight?: {
    of(queryType: RouteRequest['reading']['queryType'], accountId: string | null): CalibratedOutput
  }
}

/** Returns the output tokens to expect of a model, all choices together. */
export function likelyOutputTokens({ foresight }: OutputForecast, request: RouteRequest): (model: Model) => number {
  const { reading, caller, ask } = request
  const known = foresight?.of(reading.queryType, caller.accountId) ?? unknownLength
  return model => expectedOutput(model, reading, ask.maxOutputTokens, known).tokens * ask.choices
}

/** Returns the blended price of a request with so much input. Only for comparisons: it has no unit. */
export function listPrice({ pricing }: Model, inputTokens: number): number {
  const { input, output } = priceTable(pricing, inputTokens)
  return blendedPrice({ input, output })
}

/** Whether a model does not end the output before the caller's own cap does. */
export function allowsOutputLength({ ask: { maxOutputTokens }, inputTokens }: RouteRequest, model: Model): boolean {
  if (maxOutputTokens === null) return true
  return model.maxOutputTokens >= maxOutputTokens && fitsWindow(model, inputTokens, maxOutputTokens)
}
