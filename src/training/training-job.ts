import type { ReportRow } from './report-table.ts'

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
