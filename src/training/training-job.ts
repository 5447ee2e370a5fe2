import type { Example } from './linear.ts'

/** Training data of one classifier, before training. */
export type TrainingJob = {
  /**
   * Digest of settings and examples. Stored beside the weights, so that outdated weights are detected without training.
   */
  readonly examples: string
  learn(): Promise<Trained>
}

/** Weights of a classifier in stored form, and its results in cross-validation. */
export type Trained = { readonly weights: object; readonly figures: readonly ReportRow[] }

/** One line of the training report: a result and its target. */
export type ReportRow = {
  readonly name: string
  readonly goal: string
  readonly reference: string
  readonly measured: string
}

/** Formats results as a table for a terminal. */
export function getTable(figures: readonly ReportRow[]): string {
  const rows = [
    ['', 'goal', 'reference', 'left out'],
    ...figures.map(figure => [figure.name, figure.goal, figure.reference, figure.measured]),
  ]
  const widths = [0, 1, 2, 3].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(row =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
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
