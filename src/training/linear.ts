import type { Slots } from '../text/analysis/feature-slots.ts'

/** A text's slots in the weight table, and the value of each. */
export type FeatureVector = { readonly slots: Int32Array; readonly values: Float32Array }

/** One training text: its features and its label. */
export type Example = FeatureVector & {
  /** Possible classes: one, or several if the label is coarser than the classes. In a logistic model [1] or [0], in one of squared loss the number. */
  readonly classes: readonly number[]
  /** Weight of the example. */
  readonly weight: number
}

/** Returns the features that were filled last. */
export function filledFeatures({ places, values, count }: Slots): FeatureVector {
  return { slots: places.slice(0, count), values: values.slice(0, count) }
}

/** Returns the weighted sum of a text's slots in a table of one column. */
export function predict(weights: Float32Array, { slots, values }: FeatureVector): number {
  return slots.reduce((sum, slot, at) => sum + (weights[slot] ?? 0) * (values[at] ?? 0), 0)
}

/** Writes the probability of each class into `chances`; with one column, that of class 1. */
export function probabilities(
  weights: Float32Array,
  features: FeatureVector,
  classes: number,
  chances: Float64Array,
): void {
  if (classes === 1) {
    chances[0] = 1 / (1 + Math.exp(-predict(weights, features)))
    return
  }
  const { slots, values } = features
  chances.fill(0)
  for (let at = 0; at < slots.length; at++) {
    const from = (slots[at] ?? 0) * classes
    const value = values[at] ?? 0
    for (let item = 0; item < classes; item++)
      chances[item] = (chances[item] ?? 0) + value * (weights[from + item] ?? 0)
  }
  const highest = Math.max(...chances)
  let total = 0
  for (let item = 0; item < classes; item++) {
    chances[item] = Math.exp((chances[item] ?? 0) - highest)
    total += chances[item] ?? 0
  }
  for (let item = 0; item < classes; item++) chances[item] = (chances[item] ?? 0) / total
}

/** Writes prediction minus truth by class into `errors`; returns the loss, without the example's weight. */
function getErrors(
  weights: Float32Array,
  example: Example,
  { classes, isSquared = false }: Settings,
  errors: Float64Array,
): number {
  const truth = example.classes[0] ?? 0
  if (isSquared) {
    const error = predict(weights, example) - truth
    errors[0] = error
    return 0.5 * error ** 2
  }
  probabilities(weights, example, classes, errors)
  if (classes === 1) {
    const chance = errors[0] ?? 0
    errors[0] = chance - truth
    return -Math.log(Math.max(1e-12, truth === 1 ? chance : 1 - chance))
  }
  let allowed = 0
  for (const item of example.classes) allowed += errors[item] ?? 0
  allowed = Math.max(allowed, 1e-12)
  // For a coarse label, the model's own distribution over its classes is the target.
  for (const item of example.classes) errors[item] = (errors[item] ?? 0) * (1 - 1 / allowed)
  return -Math.log(allowed)
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

type Settings = {
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
 * per step. Deterministic.
 */
export function train(examples: readonly Example[], settings: Settings): Weights {
  const size = settings.size * settings.classes
  const getPoint = (weights: Weights) => pointAt(examples, settings, weights)
  let point = getPoint(Float32Array.from(settings.start ?? new Float32Array(size)))
  const pairs: Pair[] = []
  for (let step = 0; step < settings.steps; step++) {
    const { weights, slope, loss } = point
    const direction = towards(slope, pairs)
    const descent = dot(direction, slope)
    let length = step === 0 ? 1 / Math.max(1, Math.sqrt(dot(slope, slope))) : 1
    let next = getPoint(plus(weights, direction, -length))
    // Backtracking line search (Armijo condition).
    for (let attempt = 1; attempt < 20 && next.loss > loss - 1e-4 * length * descent; attempt++) {
      length /= 2
      next = getPoint(plus(weights, direction, -length))
    }
    if (!(next.loss < loss)) break
    const moved = plus(next.weights, weights, -1)
    const turned = plus(next.slope, slope, -1)
    const curve = dot(moved, turned)
    if (curve > 1e-10) pairs.push({ moved, turned, curve })
    if (pairs.length > remembered) pairs.shift()
    point = next
    if (loss - next.loss < 1e-6 * next.loss) break
  }
  return point.weights
}

/** Returns weights with their loss and its gradient. */
function pointAt(examples: readonly Example[], settings: Settings, weights: Weights) {
  const { classes, ridge, start } = settings
  let loss = 0
  const slope = new Float32Array(weights.length)
  const errors = new Float64Array(classes)
  for (const example of examples) {
    loss += example.weight * getErrors(weights, example, settings, errors)
    const { slots, values } = example
    for (let at = 0; at < slots.length; at++) {
      const from = (slots[at] ?? 0) * classes
      const value = (values[at] ?? 0) * example.weight
      for (let item = 0; item < classes; item++)
        slope[from + item] = (slope[from + item] ?? 0) + value * (errors[item] ?? 0)
    }
  }
  for (let place = 0; place < weights.length; place++) {
    const off = (weights[place] ?? 0) - (start?.[place] ?? 0)
    if (off === 0) continue
    const held = typeof ridge === 'number' ? ridge : (ridge[place] ?? 0)
    loss += 0.5 * held * off * off
    slope[place] = (slope[place] ?? 0) + held * off
  }
  return { weights, slope, loss }
}

/** Returns how many examples have each slot. */
export function countUses(examples: readonly FeatureVector[], size: number): Float64Array {
  const uses = new Float64Array(size)
  for (const { slots } of examples) for (const slot of slots) uses[slot] = (uses[slot] ?? 0) + 1
  return uses
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
