import type { ReportRow } from './report-table.ts'

/** One head's course, read and not yet learned. */
export type TrainingJob = {
  /** A digest of settings and examples. It is kept beside the weights, so that others are noticed without training. */
  readonly examples: string
  learn(): Promise<Trained>
}

/** A head's weights, as they are kept, and what cross-validation says of them. */
export type Trained = { readonly weights: object; readonly figures: readonly ReportRow[] }
