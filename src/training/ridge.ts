/** One row of a sparse table: its non-zero columns with values. */
export type SparseRow = { readonly columns: Int32Array; readonly values: Float32Array }

type Problem = {
  readonly rows: readonly SparseRow[]
  readonly targets: Float64Array
  readonly weights: Float64Array
  /** Regularization by column. */
  readonly ridge: Float64Array
}

/** Sufficient for four digits of every score. */
const steps = 40

/**
 * Solves weighted ridge regression by conjugate gradients (Shewchuk 1994) with a diagonal preconditioner; returns one
 * weight per column.
 */
export function solveRidge({ rows, targets, weights, ridge }: Problem): Float64Array {
  const size = ridge.length
  const solution = new Float64Array(size)
  const rest = new Float64Array(size)
  const diagonal = ridge.slice()
  for (const [index, row] of rows.entries()) {
    const weight = weights[index] ?? 0
    spread(rest, row, weight * (targets[index] ?? 0))
    for (let at = 0; at < row.columns.length; at++) {
      const column = row.columns[at] ?? 0
      diagonal[column] = (diagonal[column] ?? 0) + weight * (row.values[at] ?? 0) ** 2
    }
  }
  let scaled = rest.map((value, column) => value / (diagonal[column] ?? 1))
  const direction = scaled.slice()
  let progress = dot(rest, scaled)
  const enough = progress * 1e-8
  const image = new Float64Array(size)
  for (let step = 0; step < steps && progress > enough; step++) {
    for (let column = 0; column < size; column++) image[column] = (ridge[column] ?? 0) * (direction[column] ?? 0)
    for (const [index, row] of rows.entries()) spread(image, row, (weights[index] ?? 0) * predict(row, direction))
    const length = progress / dot(direction, image)
    add(solution, direction, length)
    add(rest, image, -length)
    scaled = rest.map((value, column) => value / (diagonal[column] ?? 1))
    const next = dot(rest, scaled)
    const turn = next / progress
    progress = next
    for (let column = 0; column < size; column++)
      direction[column] = (scaled[column] ?? 0) + turn * (direction[column] ?? 0)
  }
  return solution
}

/** Returns the prediction for a row. */
export function predict({ columns, values }: SparseRow, weights: Float64Array): number {
  let sum = 0
  for (let at = 0; at < columns.length; at++) sum += (values[at] ?? 0) * (weights[columns[at] ?? 0] ?? 0)
  return sum
}

function spread(into: Float64Array, { columns, values }: SparseRow, times: number): void {
  for (let at = 0; at < columns.length; at++) {
    const column = columns[at] ?? 0
    into[column] = (into[column] ?? 0) + times * (values[at] ?? 0)
  }
}

function add(into: Float64Array, what: Float64Array, times: number): void {
  for (let at = 0; at < into.length; at++) into[at] = (into[at] ?? 0) + times * (what[at] ?? 0)
}

function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0
  for (let at = 0; at < left.length; at++) sum += (left[at] ?? 0) * (right[at] ?? 0)
  return sum
}
