/**
 * Limits of one upstream call. `tokens` limits a batch of several inputs: a single input is sent whatever its length.
 */
type BatchLimits = { readonly inputs: number; readonly tokens: number }

/** Inputs from index `from` up to but excluding `to`. */
type Batch = { readonly from: number; readonly to: number; readonly tokens: number }

/** Splits inputs of these token counts into batches within the limits, in order. */
export function splitIntoBatches(tokens: readonly number[], limits: BatchLimits): readonly Batch[] {
  const batches: Batch[] = []
  let from = 0
  let sum = 0
  for (const [index, count] of tokens.entries()) {
    const isFull = index - from >= limits.inputs || (index > from && sum + count > limits.tokens)
    if (isFull) {
      batches.push({ from, to: index, tokens: sum })
      from = index
      sum = 0
    }
    sum += count
  }
  if (from < tokens.length) batches.push({ from, to: tokens.length, tokens: sum })
  return batches
}
