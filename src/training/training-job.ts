import { encodeWeights } from '../text/analysis/feature-slots.ts'
import { type Example, quantised } from './linear.ts'

/** Training data of one classifier, before training. */
export type TrainingJob = {
  /**
   * Digest of settings and examples. Stored beside the weights, so that outdated weights are detected without training.
   */
  readonly examples: string
  learn(): Promise<Trained>
}

/** Weights of a classifier in stored form, and its results on sources that it had not seen. */
export type Trained = { readonly weights: object; readonly figures: readonly ReportRow[] }

/** One line of the training report: a result and its target. */
export type ReportRow = { readonly name: string; readonly goal: string; readonly measured: string }

/** Returns a line of the report. */
export function figure(name: string, measured: number | string, goal = ''): ReportRow {
  return { name, goal, measured: typeof measured === 'number' ? measured.toFixed(3) : measured }
}

/** Formats results as a table for a terminal. */
export function getTable(figures: readonly ReportRow[]): string {
  const rows = [['', 'goal', 'left out'], ...figures.map(({ name, goal, measured }) => [name, goal, measured])]
  const widths = [0, 1, 2].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/**
 * Returns the training of a head that is one table: its weights in stored form, clipped at `limit`, beside the figures.
 */
export function tableJob(head: {
  readonly source: string
  readonly settings: object
  readonly examples: readonly Example[]
  /** The size of the table as stored. */
  readonly bits?: number
  readonly limit: number
  readonly fit: (examples: readonly Example[]) => Float32Array
  readonly figures: () => readonly ReportRow[] | Promise<readonly ReportRow[]>
}): TrainingJob {
  const { source, settings, examples, bits, limit } = head
  return {
    examples: trainingDigest(settings, examples.map(getParts)),
    async learn() {
      const figures = await head.figures()
      return { weights: { source, ...(bits !== undefined && { bits }), ...stored(head.fit(examples), limit) }, figures }
    },
  }
}

/** Returns a table in stored form. */
export function stored(weights: Float32Array, limit: number): { readonly scale: number; readonly weights: string } {
  const { scale, bytes } = quantised(weights, limit)
  return { scale, weights: encodeWeights(bytes) }
}

/**
 * Evaluates the rows of each group by a model that saw nothing of it. `getGroup` returns null for rows that are only
 * learned from; `getKin` tells of further rows that are too close to those held out.
 */
export function leftOut<Row, Model, Told>(
  rows: readonly Row[],
  getGroup: (row: Row) => string | number | null,
  fit: (learned: readonly Row[], index: number) => Model,
  judge: (model: Model, row: Row) => Told,
  getKin: (heldOut: readonly Row[]) => (row: Row) => boolean = () => () => false,
): Told[] {
  const groups = [...new Set(rows.map(getGroup))].filter(group => group !== null).sort()
  return groups.flatMap((group, number) => {
    const heldOut = rows.filter(row => getGroup(row) === group)
    const isKin = getKin(heldOut)
    const learned = rows.filter(row => getGroup(row) !== group && !isKin(row))
    const model = fit(learned, number)
    return heldOut.map(row => judge(model, row))
  })
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
): ReportRow[] {
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

/** Part of an example: numbers as they are in memory, everything else as JSON. */
type Part = Int32Array<ArrayBuffer> | Float32Array<ArrayBuffer> | object | string | number

/**
 * Returns a digest of settings and examples in order, as 16 hexadecimal digits, which identifies what a classifier was
 * trained on. Pass numbers from logarithms or powers in single precision: their last digits depend on the machine.
 */
export function trainingDigest(settings: object, examples: Iterable<readonly Part[]>): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(JSON.stringify(settings))
  for (const parts of examples)
    for (const part of parts) {
      hasher.update(part instanceof Int32Array || part instanceof Float32Array ? part : JSON.stringify(part))
      hasher.update('\n')
    }
  return hasher.digest('hex').slice(0, 16)
}

/** Returns an example as parts of a digest. */
export function getParts({ slots, values, classes, weight }: Example): readonly Part[] {
  return [slots, values ?? '', classes, Math.fround(weight)]
}
