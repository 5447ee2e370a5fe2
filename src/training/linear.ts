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

/** Returns an example of the features that were filled last. */
export function filledExample(
  { places, values, count }: { readonly places: Int32Array; readonly values: Float32Array; readonly count: number },
  classes: readonly number[],
  weight: number,
): Example {
  return { slots: places.slice(0, count), values: values.slice(0, count), classes, weight }
}

type Settings = {
  /** Slots in the table. */
  readonly size: number
  readonly epochs: number
  readonly rate: number
  /** Decay of each used weight toward 0 per step. */
  readonly decay: number
  readonly seed: number
}

/** Trains a logistic model of class 1 against class 0 by AdaGrad (Duchi, Hazan and Singer 2011). Deterministic. */
export function train(examples: readonly Example[], settings: Settings): Float32Array {
  const { size, epochs, rate, decay } = settings
  const weights = new Float32Array(size)
  const squares = new Float32Array(size).fill(1e-4)
  const sum = new Float64Array(size)
  const errors = new Float64Array(1)
  const random = seededRandom(settings.seed)
  let averaged = 0
  for (let epoch = 0; epoch < epochs; epoch++) {
    for (const index of shuffled(examples.length, random)) {
      const example = examples[index]
      if (example === undefined) continue
      getErrors(weights, example, 1, errors)
      const { slots, values } = example
      for (let at = 0; at < slots.length; at++) {
        const place = slots[at] ?? 0
        const value = (values === undefined ? 1 : (values[at] ?? 0)) * example.weight
        const weight = weights[place] ?? 0
        const slope = (errors[0] ?? 0) * value + decay * weight
        const square = (squares[place] ?? 0) + slope * slope
        squares[place] = square
        weights[place] = weight - (rate * slope) / Math.sqrt(square)
      }
    }
    // The mean over the last half is more stable than the last step.
    if (epoch < epochs / 2) continue
    averaged++
    for (let place = 0; place < size; place++) sum[place] = (sum[place] ?? 0) + (weights[place] ?? 0)
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

type Weights = Float32Array<ArrayBuffer>

type Ridge = {
  /** Slots in the table. */
  readonly size: number
  /** 1 = a logistic model of class 1 against class 0; otherwise one column per class. */
  readonly classes: number
  /** L2 regularization toward 0 or `start`, of all slots or by slot: half of it times each squared weight is added to the loss. */
  readonly ridge: number | Float64Array
  /** The one class is a number to be predicted: the loss is half the squared error. */
  readonly isSquared?: boolean
  /** Steps of L-BFGS; some dozens converge sufficiently. */
  readonly steps: number
  /** Initial weights, which are also the regularization target. */
  readonly start?: Weights
}

const remembered = 8

/**
 * Trains a linear model to the minimum of its loss by L-BFGS (Nocedal and Wright 2006, algorithm 7.5) with all examples
 * per step. Slower than `train`, but better for few examples: regularization does not depend on how rare a feature is.
 */
export function trainLbfgs(examples: readonly Example[], settings: Ridge): Weights {
  const size = settings.size * settings.classes
  const start = settings.start ?? new Float32Array(size)
  let weights = Float32Array.from(start)
  let slope = new Float32Array(size)
  let loss = getLoss(examples, settings, start, weights, slope)
  const pairs: { readonly moved: Weights; readonly turned: Weights; readonly curve: number }[] = []
  for (let step = 0; step < settings.steps; step++) {
    const direction = towards(slope, pairs)
    const descent = dot(direction, slope)
    let length = step === 0 ? 1 / Math.max(1, Math.sqrt(dot(slope, slope))) : 1
    let next = weights
    let nextSlope = slope
    let nextLoss = Number.POSITIVE_INFINITY
    // Backtracking line search (Armijo condition).
    for (let attempt = 0; attempt < 20; attempt++, length /= 2) {
      next = plus(weights, direction, -length)
      nextSlope = new Float32Array(size)
      nextLoss = getLoss(examples, settings, start, next, nextSlope)
      if (nextLoss <= loss - 1e-4 * length * descent) break
    }
    if (!(nextLoss < loss)) break
    const moved = plus(next, weights, -1)
    const turned = plus(nextSlope, slope, -1)
    const curve = dot(moved, turned)
    if (curve > 1e-10) pairs.push({ moved, turned, curve })
    if (pairs.length > remembered) pairs.shift()
    const gain = loss - nextLoss
    weights = next
    slope = nextSlope
    loss = nextLoss
    if (gain < 1e-6 * loss) break
  }
  return weights
}

/** Returns the loss at `weights` and adds its gradient to `slope`, which must be zero. */
function getLoss(
  examples: readonly Example[],
  { classes, ridge, isSquared = false }: Ridge,
  start: Weights,
  weights: Weights,
  slope: Weights,
): number {
  let loss = 0
  const errors = new Float64Array(classes)
  for (const example of examples) {
    loss += example.weight * getErrors(weights, example, classes, errors, isSquared)
    const { slots, values } = example
    for (let at = 0; at < slots.length; at++) {
      const from = (slots[at] ?? 0) * classes
      const value = (values === undefined ? 1 : (values[at] ?? 0)) * example.weight
      for (let item = 0; item < classes; item++)
        slope[from + item] = (slope[from + item] ?? 0) + value * (errors[item] ?? 0)
    }
  }
  for (let place = 0; place < weights.length; place++) {
    const off = (weights[place] ?? 0) - (start[place] ?? 0)
    if (off === 0) continue
    const held = typeof ridge === 'number' ? ridge : (ridge[place] ?? 0)
    loss += 0.5 * held * off * off
    slope[place] = (slope[place] ?? 0) + held * off
  }
  return loss
}

type Pair = { readonly moved: Weights; readonly turned: Weights; readonly curve: number }

/** Returns the search direction: the gradient corrected by the curvature of earlier steps. */
function towards(slope: Weights, pairs: readonly Pair[]): Weights {
  let direction = Float32Array.from(slope)
  const shares: number[] = []
  for (const { moved, turned, curve } of pairs.toReversed()) {
    const share = dot(moved, direction) / curve
    shares.unshift(share)
    direction = plus(direction, turned, -share)
  }
  const last = pairs.at(-1)
  if (last !== undefined) {
    const scale = last.curve / dot(last.turned, last.turned)
    for (let place = 0; place < direction.length; place++) direction[place] = (direction[place] ?? 0) * scale
  }
  for (const [index, { moved, turned, curve }] of pairs.entries())
    direction = plus(direction, moved, (shares[index] ?? 0) - dot(turned, direction) / curve)
  return direction
}

function dot(left: Weights, right: Weights): number {
  let total = 0
  for (let place = 0; place < left.length; place++) total += (left[place] ?? 0) * (right[place] ?? 0)
  return total
}

function plus(left: Weights, right: Weights, times: number): Weights {
  const sum = new Float32Array(left.length)
  for (let place = 0; place < sum.length; place++) sum[place] = (left[place] ?? 0) + times * (right[place] ?? 0)
  return sum
}
