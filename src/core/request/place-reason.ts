/**
 * Why a candidate has its place in a ranking. The step that moves a candidate writes the reason, so that an explanation
 * cannot contradict the order.
 */
export const placeReasons = [
  /** The request names it. */
  'requested',
  /** By its score, highest first. */
  'score',
  /** By its price, lowest first: the strategy `cost`. */
  'price',
  /** Ahead of a near score of another provider's second model, so that one outage does not affect both. */
  'other_provider',
  /** Ahead of its score, because it has the conversation in its prompt cache. */
  'cached',
  /** First, because this request explores a near tie. */
  'explored',
  /** Behind all models that allow the requested output length. */
  'output_limit',
  /** Behind all models that may be called now. */
  'unhealthy',
] as const
export type PlaceReason = (typeof placeReasons)[number]
