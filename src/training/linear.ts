import { seededRandom, shuffled } from './folds.ts'

/** One training text: its slots in the weight table, and its label. */
export type Example = {
  readonly slots: Int32Array
  /** Value of each slot; absent = 1 each. */
  readonly values?: Float32Array
  /** Possible classes: one, or several if the label is coarser than the classes. In a logistic model [1] or [0], in one of squared loss the number. */
  readonly classes: readonly number[]
  /** Weight of the example. */
  readonly weight: number
}

type Settings = {
  /** Slots in the table. */
  readonly size: number
  /** 1 = a logistic model of class 1 against class 0; otherwise one column per class. */
  readonly classes: number
  readonly epochs: number
  readonly rate: number
  /** Decay of each used weight toward 0 (or `start`) per step. */
  readonly decay: number
  readonly seed: number
  /** Initial weights, which are also the target of the decay. */
  readonly start?: Float32Array
}

/**
 * Trains a linear model by AdaGrad (Duchi, Hazan and Singer 2011). Returns its weights by slot, with all classes of a
 * slot adjacent. Deterministic.
 */
export function train(examples: readonly Example[], settings: Settings): Float32Array {
  const { size, classes, epochs, rate, decay, start } = settings
  const weights = start === undefined ? new Float32Array(size * classes) : start.slice()
  const squares = new Float32Array(size * classes).fill(1e-4)
  const sum = new Float64Array(size * classes)
  const errors = new Float64Array(classes)
  const random = seededRandom(settings.seed)
  let averaged = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const index of shuffled(examples.length, random)) {
      const example = examples[index]
      if (example === undefined) continue
      getErrors(weights, example, classes, errors)
      const { slots, values } = example
      for (let at = 0; at < slots.length; at++) {
        const from = (slots[at] ?? 0) * classes
        const value = (values === undefined ? 1 : (values[at] ?? 0)) * example.weight
        for (let item = 0; item < classes; item++) {
          const place = from + item
          const weight = weights[place] ?? 0
          const slope = (errors[item] ?? 0) * value + decay * (weight - (start?.[place] ?? 0))
          const square = (squares[place] ?? 0) + slope * slope
          squares[place] = square
          weights[place] = weight - (rate * slope) / Math.sqrt(square)
        }
      }
    }
    // The mean over the last half is more stable than the last step.
    if (epoch < epochs / 2) continue
    averaged++
    for (let place = 0; place < sum.length; place++) sum[place] = (sum[place] ?? 0) + (weights[place] ?? 0)
  }
  return Float32Array.from(sum, total => total / averaged)
}

/** Writes prediction minus truth by class into `errors`; returns the loss, without the example's weight. */
export function getErrors(
  weights: Float32Array,
  example: Example,
  classes: number,
  errors: Float64Array,
  isSquared = false,
): number {
  const truth = example.classes[0] ?? 0
  if (isSquared) {
    const error = predict(weights, example) - truth
    errors[0] = error
    return 0.5 * error * error
  }
  probabilities(weights, example, classes, errors)
  if (classes === 1) {
    const chance = errors[0] ?? 0
    errors[0] = chance - truth
    return -Math.log(Math.max(1e-12, truth === 1 ? chance : 1 - chance))
  }
  let allowed = 0
  for (const value of example.classes) allowed += errors[value] ?? 0
  allowed = Math.max(allowed, 1e-12)
  // For a coarse label, the model's own distribution over its classes is the target.
  for (const value of example.classes) errors[value] = (errors[value] ?? 0) * (1 - 1 / allowed)
  return -Math.log(allowed)
}

/** Returns the weighted sum of an example's slots in a table of one column. */
function predict(weights: Float32Array, { slots, values }: Pick<Example, 'slots' | 'values'>): number {
  let sum = 0
  for (let at = 0; at < slots.length; at++)
    sum += (values === undefined ? 1 : (values[at] ?? 0)) * (weights[slots[at] ?? 0] ?? 0)
  return sum
}

/** Writes the probability of each class into `result`. */
export function probabilities(
  weights: Float32Array,
  { slots, values }: Pick<Example, 'slots' | 'values'>,
  classes: number,
  result: Float64Array,
): void {
  result.fill(0)
  for (let at = 0; at < slots.length; at++) {
    const from = (slots[at] ?? 0) * classes
    const value = values === undefined ? 1 : (values[at] ?? 0)
    for (let item = 0; item < classes; item++) result[item] = (result[item] ?? 0) + value * (weights[from + item] ?? 0)
  }
  if (classes === 1) {
    result[0] = 1 / (1 + Math.exp(-(result[0] ?? 0)))
    return
  }
  const highest = Math.max(...result)
  let total = 0
  for (let value = 0; value < classes; value++) {
    result[value] = Math.exp((result[value] ?? 0) - highest)
    total += result[value] ?? 0
  }
  for (let value = 0; value < classes; value++) result[value] = (result[value] ?? 0) / total
}

/**
 * Returns weights as bytes: −127 to 127 times `scale`. The few weights beyond `limit` are clipped, so that the others
 * keep their precision.
 */
export function quantised(weights: Float32Array, limit: number): { readonly scale: number; readonly bytes: Int8Array } {
  const largest = weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0)
  const scale = Math.min(largest, limit) / 127 || 1
  return { scale, bytes: Int8Array.from(weights, weight => Math.max(-127, Math.min(127, Math.round(weight / scale)))) }
}
