import { type Example, getErrors } from './linear.ts'

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
