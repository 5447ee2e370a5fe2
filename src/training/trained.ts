import type { Figure } from './figures.ts'

/** One head's training: its weights, as they are written to `core/weights/<name>.json`, and figures without those rows. */
export type Trained = { readonly weights: object; readonly figures: readonly Figure[] }
