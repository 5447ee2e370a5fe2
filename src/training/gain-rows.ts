import { createFeatureReader } from '../text/analysis/features.ts'
import { createCueReader, createSlotReader } from '../text/analysis/quality-gain.ts'
import { readRows } from './data.ts'
import { type FeatureVector, filledFeatures } from './linear.ts'
import { effortExamples } from './templates.ts'

/** A prompt, and how models did on it. */
type GainPrompt = {
  readonly prompt: string
  readonly set: string
  /** Subject, task or source within the set. */
  readonly group: string
  /** By test, how its weak and strong model did. */
  readonly outcomes: Readonly<Record<string, { readonly weak: number; readonly strong: number }>>
}

/** A prompt with its features for the gain classifier; the value of a word is its share in the length of their vector. */
export type GainRow = GainPrompt & {
  readonly words: FeatureVector
  readonly cues: Float64Array
}

/** The table of hashed words has 2^bits slots. */
export const bits = 16

/**
 * Pairs by which the nine models are evaluated. The set's README recommends the first two; the third has a gap in
 * between. The strong model is the same, so that only the gap differs.
 */
const strongest = 'llama-3.1-nemotron-51b-instruct'
const pairs = {
  'nine, large gap': 'mistral-7b-instruct-v0.3',
  'nine, middle gap': 'gemma-2-9b-it',
  'nine, small gap': 'llama-3.1-8b-instruct',
}

export const nineModels = 'llmrouter-9models'
export const twoModels = ['routellm-mmlu', 'routellm-gsm8k', 'routellm-mtbench', 'routerarena-sub10'] as const

/** The project's own prompts as a set. */
export const anchors = 'anchors'

/** All tests in printing order. */
export const tests: readonly string[] = [...twoModels, ...Object.keys(pairs)]

/** Returns the development halves of the sets, and the anchors. */
export async function readGainRows(): Promise<GainRow[]> {
  const rows: GainPrompt[] = []
  for (const set of twoModels)
    for (const { prompt, group, weak, strong } of await readRows(set, 'prompt', 'group', 'weak', 'strong'))
      rows.push({ set, group, prompt, outcomes: { [set]: { weak, strong } } })
  // Requests of the project keep the rank learned from exams from being reversed for other prompts.
  for (const { text: prompt, label } of effortExamples(4))
    rows.push({ set: anchors, group: '', prompt, outcomes: { [anchors]: { weak: 0, strong: gainOfLevel[label] } } })
  for (const { prompt, group, scores } of await readRows(nineModels, 'prompt', 'group', 'scores')) {
    const strong = scores[strongest] ?? 0
    const outcomes = Object.entries(pairs).map(([test, weak]) => [test, { weak: scores[weak] ?? 0, strong }] as const)
    rows.push({ set: nineModels, group, prompt, outcomes: Object.fromEntries(outcomes) })
  }
  const readFeatures = createFeatureReader()
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()
  return rows.map(row => {
    const features = readFeatures(row.prompt)
    const words = filledFeatures(readSlots(features))
    words.values.fill(1 / Math.sqrt(Math.max(1, words.slots.length)))
    return { ...row, words, cues: readCues(features).slice() }
  })
}

const gainOfLevel = { light: 0, middle: 0.5, strong: 1 }
