import { Type } from '@sinclair/typebox'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { adjustForQueryType, createFreshnessSlots, fillFreshnessSlots } from '../text/analysis/freshness.ts'
import { encodeWeights } from '../text/weights/stored-weights.ts'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { machineTexts } from './frames.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, probabilities, quantised } from './linear.ts'
import { heldOutTypes } from './query-types.ts'
import { datedQuestions, typedSentences } from './templates.ts'
import { f1, getParts, type ReportRow, type TrainingJob, trainingDigest, weightedF1 } from './training-job.ts'

const needsCurrent = Type.Union([Type.Boolean(), Type.Null()])
const EverGreen = Type.Object({
  prompt: Type.String(),
  needs_current: Type.Boolean(),
  official_split: Type.String(),
  texts: Type.Record(Type.String(), Type.String()),
})
const Fresh = Type.Object({ prompt: Type.String(), fact_type: Type.String() })
const Labelled = Type.Object({ prompt: Type.String(), needs_current: needsCurrent })
const Query = Type.Object({ prompt: Type.String(), type: Type.String(), needs_current: needsCurrent })
const Family = Type.Object({ prompt: Type.String(), family: Type.String() })

const bits = 16
const folds = 5
/** FreshQA is small, so its result depends on the partition into folds. */
const deals = 4
const settings = { size: 2 ** bits, classes: 1, ridge: 0.5, steps: 30 }

type Row = {
  readonly set: 'evergreenqa' | 'freshqa' | 'retrievalqa' | 'query-types' | 'query-families'
  /** Kind of the row within its set: a language, a type, a family. */
  readonly kind: string
  /** Decides the fold, so that a question's translations stay together. */
  readonly key: string
  readonly text: string
  readonly isCurrent: boolean
  readonly example: Example
}

/** Reads the training data of the freshness classifier. */
export async function readFreshness(): Promise<TrainingJob> {
  const getExample = createReader()
  const rows = await readAll(getExample)
  // Excludes questions that are also in a set, so that no fold has seen its test questions.
  const asked = new Set(rows.map(({ text }) => plain(text)))
  const own = [
    ...datedQuestions(24)
      .filter(({ text }) => !asked.has(plain(text)))
      .map(({ text, isCurrent }) => getExample(text, isCurrent, 0.4)),
    ...typedSentences(3).map(({ text }) => getExample(text, false, 0.3)),
    // A status in a log or a line of code must not be looked up.
    ...machineTexts().map(text => getExample(text, false, 0.12)),
  ]
  const examples = [...rows.map(row => row.example), ...own]
  return {
    examples: trainingDigest(settings, examples.map(getParts)),
    async learn() {
      const told: Told[][] = []
      for (let deal = 0; deal < deals; deal++) told.push(heldOut(rows, own, deal, await heldOutTypes(folds, deal)))
      const { scale, bytes } = quantised(trainLbfgs(examples, settings), weightLimit)
      return { weights: { source, bits, scale, weights: encodeWeights(bytes) }, figures: getFigures(told) }
    },
  }
}

const source =
  'evergreenqa, freshqa, retrievalqa, query-types and query-families (development halves), and questions of our own; src/training/freshness.ts'

const weightLimit = 3

/** Returns only the words of a text. */
function plain(text: string): string {
  return (
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(' ') ?? ''
  )
}

type ExampleMaker = (text: string, isCurrent: boolean, weight: number) => Example

function createReader(): ExampleMaker {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createFreshnessSlots(bits)
  return (text, isCurrent, weight) => {
    const features = read(text)
    fillFreshnessSlots(slots, features, mean(features))
    return {
      slots: slots.places.slice(0, slots.count),
      values: slots.values.slice(0, slots.count),
      classes: [isCurrent ? 1 : 0],
      weight,
    }
  }
}

/** Returns all labeled rows. Weights: an unnecessary search costs money, and trivia does not change. */
async function readAll(getExample: ExampleMaker): Promise<readonly Row[]> {
  const rows: Row[] = []
  const add = (set: Row['set'], kind: string, key: string, text: string, isCurrent: boolean, weight: number) =>
    rows.push({ set, kind, key, text, isCurrent, example: getExample(text, isCurrent, weight) })
  for (const { prompt, needs_current, texts, official_split } of await readRows('evergreenqa', EverGreen)) {
    add(
      'evergreenqa',
      official_split === 'train_synth' ? 'English, generated' : 'English',
      prompt,
      prompt,
      needs_current,
      1,
    )
    for (const [language, text] of Object.entries(texts)) add('evergreenqa', language, prompt, text, needs_current, 0.5)
  }
  for (const { prompt, fact_type } of await readRows('freshqa', Fresh))
    if (fact_type !== 'slow-changing') add('freshqa', fact_type, prompt, prompt, fact_type === 'fast-changing', 3)
  for (const { prompt, needs_current } of await readRows('retrievalqa', Labelled))
    if (needs_current !== null) add('retrievalqa', '', prompt, prompt, needs_current, 1)
  for (const { prompt, type, needs_current } of await readRows('query-types', Query))
    if (needs_current !== null) add('query-types', type, prompt, prompt, needs_current, 4)
  for (const { prompt, family } of await readRows('query-families', Family))
    add('query-families', family, prompt, prompt, false, family === 'factual' ? 0.3 : 1)
  return rows
}

/** Languages of `evergreenqa` beside English. */
const languages = ['Russian', 'French', 'German', 'Hebrew', 'Arabic', 'Chinese']
const timeless = ['code', 'code_algorithm', 'debugging', 'math', 'creative']

type Told = { readonly row: Row; readonly is: boolean; readonly said: boolean }

/** Returns predictions for each row by a model that was not trained on its fold. */
function heldOut(
  rows: readonly Row[],
  own: readonly Example[],
  deal: number,
  getTypes: (text: string, key: string) => Float64Array,
): Told[] {
  const told: Told[] = []
  const chance = new Float64Array(1)
  for (let fold = 0; fold < folds; fold++) {
    const learned = rows.filter(row => getFold(row.key, folds, deal) !== fold).map(row => row.example)
    const weights = trainLbfgs([...learned, ...own], settings)
    for (const row of rows) {
      if (getFold(row.key, folds, deal) !== fold) continue
      probabilities(weights, row.example, 1, chance)
      told.push({ row, is: row.isCurrent, said: adjustForQueryType(chance[0] ?? 0, getTypes(row.text, row.key)) > 0.5 })
    }
  }
  return told
}

function getFigures(told: readonly (readonly Told[])[]): ReportRow[] {
  const figure = (name: string, goal: string, reference: string, measure: (told: readonly Told[]) => number) => {
    const values = told.map(measure)
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    const [least, most] = [Math.min(...values), Math.max(...values)]
    return { name, goal, reference, measured: `${mean.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})` }
  }
  return [
    figure('evergreenqa, English, weighted F1', '≥ .890', '.857', all =>
      weightedF1(of(all, 'evergreenqa', 'English', 'English, generated')),
    ),
    figure('  without generated questions', '', '', all => weightedF1(of(all, 'evergreenqa', 'English'))),
    ...languages.map(language =>
      figure(`  ${language}`, '≥ .820', '–', all => weightedF1(of(all, 'evergreenqa', language))),
    ),
    figure('freshqa, fast against never, F1', '≥ .900', '–', all => f1(of(all, 'freshqa'))),
    figure('real prompts searched for in vain, %', '≤ 1', '–', all => inVain(of(all, 'query-types'))),
    figure('  code, math, creative, %', '≤ 0.3', '–', all =>
      inVain([...of(all, 'query-types', ...timeless), ...of(all, 'query-families', ...timeless)]),
    ),
  ]
}

/** Returns the predictions for a set's rows, or for some kinds of them. */
function of(told: readonly Told[], set: Row['set'], ...kinds: readonly string[]): readonly Told[] {
  return told.filter(({ row }) => row.set === set && (kinds.length === 0 || kinds.includes(row.kind)))
}

/** Returns the percentage of rows without need for current data for which the web is searched. */
function inVain(told: readonly Told[]): number {
  const settled = told.filter(({ is }) => !is)
  return (100 * settled.filter(({ said }) => said).length) / settled.length
}
