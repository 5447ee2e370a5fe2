import { encodeWeights, type StoredWeights } from '../text/analysis/feature-slots.ts'
import { type Example, quantised } from './linear.ts'

/** Training data of one classifier, before training. */
export type TrainingJob = {
  readonly settings: object
  /** All examples; for models in several steps, those of each. */
  readonly examples: readonly Example[]
  learn(): Promise<Trained>
}

/** Weights of a classifier in stored form, and lines on its results on sources that it had not seen. */
export type Trained = { readonly weights: object; readonly figures: readonly string[] }

/** Returns a line of the report: a result and its goal. */
export function figure(name: string, measured: number | string, goal = ''): string {
  const value = typeof measured === 'number' ? measured.toFixed(3) : measured
  return `${name.padEnd(58)} ${goal.padEnd(6)} ${value}`.trimEnd()
}

/** Returns a table in stored form, clipped at `limit`. */
export function stored(weights: Float32Array, limit: number, classes = 1): StoredWeights {
  const { scale, bytes } = quantised(weights, limit)
  return { bits: Math.log2(weights.length / classes), scale, weights: encodeWeights(bytes) }
}

/**
 * Judges the rows of each group by a model that saw nothing of it; returns the results in row order. `getGroup` returns null
 * for rows that are only learned from. Rows that share a key are too close to learn from one and judge the other.
 */
export function leftOut<Row, Model, Told>(
  rows: readonly Row[],
  getGroup: (row: Row) => string | number | null,
  fit: (learned: readonly Row[]) => Model,
  judge: (model: Model, row: Row) => Told,
  getKey?: (row: Row) => string,
): Told[] {
  const told = new Map<Row, Told>()
  for (const group of new Set(rows.map(getGroup))) {
    if (group === null) continue
    const heldOut = rows.filter(row => getGroup(row) === group)
    const keys = new Set(getKey === undefined ? [] : heldOut.map(getKey))
    const isKin = (row: Row) => getKey !== undefined && keys.has(getKey(row))
    const model = fit(rows.filter(row => getGroup(row) !== group && !isKin(row)))
    for (const row of heldOut) told.set(row, judge(model, row))
  }
  return rows.flatMap(row => told.get(row) ?? [])
}

/** Groups with fewer rows are not reported. */
const fewestRows = 20

/** Returns the share of rows by group: mean and extreme of the groups, and each. */
export function shares<Told>(
  name: string,
  goal: string,
  told: readonly Told[],
  getGroup: (told: Told) => string,
  is: (told: Told) => boolean,
): string[] {
  const groups = [...Map.groupBy(told, getGroup)]
    .filter(([, of]) => of.length >= fewestRows)
    .map(([group, of]) => ({ group, share: of.filter(is).length / of.length }))
    .sort((item, other) => item.share - other.share)
  const mean = groups.reduce((sum, { share }) => sum + share, 0) / Math.max(1, groups.length)
  const all = (told.filter(is).length / Math.max(1, told.length)).toFixed(3)
  const ends = [groups[0], groups.at(-1)].map(group => (group?.share ?? 0).toFixed(2)).join(' to ')
  return [
    figure(`${name}: mean, range`, `${mean.toFixed(3)}, ${ends} (all rows ${all})`, goal),
    figure('', groups.map(({ group, share }) => `${group} ${share.toFixed(2)}`).join(', ')),
  ]
}

/** Returns the F1 score of pairs of truth and prediction. */
export function f1(pairs: readonly { readonly is: boolean; readonly said: boolean }[]): number {
  const hits = pairs.filter(({ is, said }) => is && said).length
  const wrong = pairs.filter(({ is, said }) => is !== said).length
  return hits === 0 ? 0 : (2 * hits) / (2 * hits + wrong)
}

/**
 * Returns a digest of settings and examples in order, as 16 hexadecimal digits, which is stored beside the weights, so that
 * outdated ones are detected without training. In single precision: the last digits of logarithms depend on the machine.
 */
export function trainingDigest({ settings, examples }: Pick<TrainingJob, 'settings' | 'examples'>): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(JSON.stringify(settings))
  for (const { slots, values, classes, weight } of examples)
    for (const part of [slots, values, Float32Array.of(...classes, weight)]) hasher.update(part)
  return hasher.digest('hex').slice(0, 16)
}
