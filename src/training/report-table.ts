/** One line of the training report: a result and its target. */
export type ReportRow = {
  readonly name: string
  readonly goal: string
  readonly reference: string
  readonly measured: string
}

/** Formats results as a table for a terminal. */
export function tableOf(figures: readonly ReportRow[]): string {
  const rows = [
    ['', 'goal', 'reference', 'cross-validated'],
    ...figures.map(one => [one.name, one.goal, one.reference, one.measured]),
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

/** Returns the mean F1 score of both classes, weighted by their frequency. */
export function weightedF1(pairs: readonly { readonly is: boolean; readonly said: boolean }[]): number {
  const yes = pairs.filter(({ is }) => is).length / pairs.length
  return yes * f1(pairs) + (1 - yes) * f1(pairs.map(({ is, said }) => ({ is: !is, said: !said })))
}
