import { seededRandom } from './folds.ts'

/** Oblivious trees: all nodes of a level use the same condition, so `depth` results are the index of a leaf. */
export type Forest = {
  readonly depth: number
  /** The column compared at each level of each tree. */
  readonly asked: Uint8Array
  /** The threshold above which the condition is true. */
  readonly above: Float32Array
  /** 2^depth leaves per tree. */
  readonly leaves: Float64Array
}

type ForestSettings = {
  readonly trees: number
  readonly depth: number
  readonly rate: number
  /** Regularization: weight of evidence for 0 in each leaf. */
  readonly ridge: number
  /** Shares of rows and columns that each tree uses. */
  readonly rows: number
  readonly columns: number
  /** Maximum thresholds per column. */
  readonly bins: number
  readonly seed: number
}

type Rows = {
  readonly columns: readonly Float64Array[]
  readonly targets: Float64Array
  readonly weights: Float64Array
}

/** Trains oblivious trees by gradient boosting with squared loss (Friedman 2001). Deterministic. */
export function growForest({ columns, targets, weights }: Rows, settings: ForestSettings): Forest {
  const { trees, depth, rate, ridge } = settings
  const random = seededRandom(settings.seed)
  const cuts = columns.map(column => getCuts(column, settings.bins))
  const binned = columns.map((column, index) => getBins(column, cuts[index] ?? []))
  const count = targets.length
  const rest = targets.slice()
  const leaf = new Uint8Array(count)
  const leafCount = 2 ** depth
  const asked = new Uint8Array(trees * depth)
  const above = new Float32Array(trees * depth)
  const leaves = new Float64Array(trees * leafCount)
  const mass = new Float64Array(leafCount * settings.bins)
  const pull = new Float64Array(leafCount * settings.bins)

  for (let tree = 0; tree < trees; tree++) {
    const seen: number[] = []
    for (let row = 0; row < count; row++) if (random() < settings.rows) seen.push(row)
    const open: number[] = []
    for (let column = 0; column < columns.length; column++) if (random() < settings.columns) open.push(column)
    leaf.fill(0)
    for (let level = 0; level < depth; level++) {
      let best = { worth: -1, column: 0, cut: 0 }
      for (const column of open) {
        const bins = binned[column] ?? leaf
        const cutCount = cuts[column]?.length ?? 0
        mass.fill(0)
        pull.fill(0)
        for (const row of seen) {
          const place = (leaf[row] ?? 0) * settings.bins + (bins[row] ?? 0)
          const weight = weights[row] ?? 0
          mass[place] = (mass[place] ?? 0) + weight
          pull[place] = (pull[place] ?? 0) + weight * (rest[row] ?? 0)
        }
        const cut = bestCut(mass, pull, { groups: 2 ** level, cuts: cutCount, bins: settings.bins, ridge })
        if (cut.worth > best.worth) best = { column, ...cut }
      }
      const place = tree * depth + level
      asked[place] = best.column
      above[place] = cuts[best.column]?.[best.cut] ?? Number.POSITIVE_INFINITY
      const bins = binned[best.column] ?? leaf
      for (let row = 0; row < count; row++) if ((bins[row] ?? 0) > best.cut) leaf[row] = (leaf[row] ?? 0) | (1 << level)
    }
    const leafMass = new Float64Array(leafCount)
    const leafPull = new Float64Array(leafCount)
    for (const row of seen) {
      const at = leaf[row] ?? 0
      leafMass[at] = (leafMass[at] ?? 0) + (weights[row] ?? 0)
      leafPull[at] = (leafPull[at] ?? 0) + (weights[row] ?? 0) * (rest[row] ?? 0)
    }
    for (let at = 0; at < leafCount; at++)
      leaves[tree * leafCount + at] = (rate * (leafPull[at] ?? 0)) / ((leafMass[at] ?? 0) + ridge)
    for (let row = 0; row < count; row++)
      rest[row] = (rest[row] ?? 0) - (leaves[tree * leafCount + (leaf[row] ?? 0)] ?? 0)
  }
  return { depth, asked, above, leaves }
}

/** Returns a forest's prediction for one row. */
export function askForest({ depth, asked, above, leaves }: Forest, values: Float64Array): number {
  let sum = 0
  for (let level = 0, tree = 0; level < asked.length; tree++) {
    let leaf = 0
    for (let bit = 0; bit < depth; bit++, level++)
      if ((values[asked[level] ?? 0] ?? 0) > (above[level] ?? 0)) leaf |= 1 << bit
    sum += leaves[(tree << depth) + leaf] ?? 0
  }
  return sum
}

/** Returns thresholds between neighboring quantiles of a column, in single precision as they are stored. */
function getCuts(column: Float64Array, bins: number): number[] {
  const sorted = column.toSorted()
  const cuts: number[] = []
  for (let bin = 1; bin < bins; bin++) {
    const at = Math.floor((sorted.length * bin) / bins)
    const upper = sorted[at] ?? 0
    let below = at
    while (below > 0 && sorted[below] === upper) below--
    const lower = sorted[below] ?? upper
    const cut = Math.fround((lower + upper) / 2)
    if (lower < upper && cut < upper && cut > (cuts.at(-1) ?? Number.NEGATIVE_INFINITY)) cuts.push(cut)
  }
  return cuts
}

function getBins(column: Float64Array, cuts: readonly number[]): Uint8Array {
  return Uint8Array.from(column, value => {
    let bin = 0
    while (bin < cuts.length && value > (cuts[bin] ?? 0)) bin++
    return bin
  })
}

type Level = { readonly groups: number; readonly cuts: number; readonly bins: number; readonly ridge: number }

/** Returns the threshold that explains most if every current group is split there. */
function bestCut(mass: Float64Array, pull: Float64Array, { groups, cuts, bins, ridge }: Level) {
  const worth = new Float64Array(cuts)
  for (let group = 0; group < groups; group++) {
    let allMass = 0
    let allPull = 0
    for (let bin = 0; bin <= cuts; bin++) {
      allMass += mass[group * bins + bin] ?? 0
      allPull += pull[group * bins + bin] ?? 0
    }
    let lowMass = 0
    let lowPull = 0
    for (let cut = 0; cut < cuts; cut++) {
      lowMass += mass[group * bins + cut] ?? 0
      lowPull += pull[group * bins + cut] ?? 0
      worth[cut] =
        (worth[cut] ?? 0) + lowPull ** 2 / (lowMass + ridge) + (allPull - lowPull) ** 2 / (allMass - lowMass + ridge)
    }
  }
  let best = { worth: -1, cut: 0 }
  for (const [cut, value] of worth.entries()) if (value > best.worth) best = { worth: value, cut }
  return best
}
