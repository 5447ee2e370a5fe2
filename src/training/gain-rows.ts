import type { Level } from '../models/capability-levels.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createCueReader, createSlotReader } from '../text/analysis/quality-gain.ts'
import file from './data/gain-anchors.json'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { effortExamples } from './templates.ts'

/** A training prompt with the expected gain of a strong model: 0 = none, 1 = large. */
type Anchor = { readonly prompt: string; readonly gain: number }

/**
 * Returns prompts of everyday kinds that no labeled set has: polite phrases and small favors, which any model can do,
 * and work of many steps, where models differ. Judged by hand; they keep routing sensible for prompts other than exams.
 */
function anchors(): Anchor[] {
  return [
    ...file.easy.map(prompt => ({ prompt, gain: 0 })),
    ...file.topics.flatMap((topic, index) => [
      { prompt: filled(file.easyForms, index, topic), gain: 0.1 },
      { prompt: filled(file.middleForms, index, topic), gain: 0.4 },
    ]),
    ...file.trades.flatMap((trade, index) => [
      { prompt: filled(file.hardForms, index, trade), gain: 0.9 },
      { prompt: filled(file.hardForms, index + 3, trade), gain: 0.9 },
    ]),
    ...file.hard.map(prompt => ({ prompt, gain: 1 })),
  ]
}

function filled(forms: readonly string[], index: number, what: string): string {
  return (forms[index % forms.length] ?? '').replace('…', what)
}

/** Features of one prompt for the gain classifier, and how models did on it. */
export type GainRow = {
  readonly prompt: string
  readonly set: string
  /** Subject, task or source within the set. */
  readonly group: string
  readonly fold: number
  readonly slots: Int32Array
  readonly cues: Float64Array
  /** By test, how its weak and strong model did. */
  readonly outcomes: ReadonlyMap<string, { readonly weak: number; readonly strong: number }>
}

/** The table of hashed words has 2^bits slots. */
export const bits = 16

/**
 * Pairs by which the nine models are evaluated. The set's README recommends the first two; the third has a gap in
 * between. The strong model is the same, so that only the gap differs.
 */
const pairs = [
  { test: 'nine, large gap', weak: 'mistral-7b-instruct-v0.3', strong: 'llama-3.1-nemotron-51b-instruct' },
  { test: 'nine, middle gap', weak: 'gemma-2-9b-it', strong: 'llama-3.1-nemotron-51b-instruct' },
  { test: 'nine, small gap', weak: 'llama-3.1-8b-instruct', strong: 'llama-3.1-nemotron-51b-instruct' },
] as const

export const nineModels = 'llmrouter-9models'
export const twoModels = ['routellm-mmlu', 'routellm-gsm8k', 'routellm-mtbench', 'routerarena-sub10'] as const

/** All tests in printing order. */
export const tests: readonly string[] = [...twoModels, ...pairs.map(({ test }) => test)]

/** Returns the development halves of the sets, and the anchors as a set of their own. */
export async function readGainRows(): Promise<GainRow[]> {
  const toRow = createRowReader()
  const rows: GainRow[] = []
  for (const set of twoModels)
    for (const { prompt, group, weak, strong } of await readRows(set, 'prompt', 'group', 'weak', 'strong'))
      rows.push(toRow({ set, group, prompt }, new Map([[set, { weak, strong }]])))
  for (const { prompt, gain } of [...anchors(), ...requests()])
    rows.push(toRow({ set: 'anchors', group: '', prompt }, new Map([['anchors', { weak: 0, strong: gain }]])))
  for (const { prompt, group, scores } of await readRows(nineModels, 'prompt', 'group', 'scores')) {
    const outcomes = pairs.map(
      ({ test, weak, strong }) => [test, { weak: scores[weak] ?? 0, strong: scores[strong] ?? 0 }] as const,
    )
    rows.push(toRow({ set: nineModels, group, prompt }, new Map(outcomes)))
  }
  return rows
}

/** Returns requests of the project, so that the rank learned from exams is not reversed for other prompts. */
function requests(): Anchor[] {
  return effortExamples(4).map(({ text, level }) => ({ prompt: text, gain: gainOfLevel[level] }))
}

const gainOfLevel: Readonly<Record<Level, number>> = { light: 0, middle: 0.5, strong: 1 }

type Prompt = { readonly set: string; readonly group: string; readonly prompt: string }

function createRowReader() {
  const readFeatures = createFeatureReader()
  const readSlots = createSlotReader(bits)
  const readCues = createCueReader()
  return ({ set, group, prompt }: Prompt, outcomes: GainRow['outcomes']): GainRow => {
    const features = readFeatures(prompt)
    const { places, count } = readSlots(features)
    return {
      prompt,
      set,
      group,
      // One task of the nine models repeats questions of other sets with this sentence appended.
      fold: getFold(prompt.split('\nAfter careful thought')[0] ?? prompt, 5),
      slots: places.slice(0, count),
      cues: readCues(features).slice(),
      outcomes,
    }
  }
}
