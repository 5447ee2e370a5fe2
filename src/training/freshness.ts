import { Type } from '@sinclair/typebox'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { adjustForQueryType, fillFreshnessSlots } from '../text/analysis/freshness.ts'
import { readRows } from './data.ts'
import { machineTexts } from './frames.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, probabilities } from './linear.ts'
import { typesWithout } from './query-types.ts'
import { datedQuestions, typedSentences } from './templates.ts'
import { f1, figure, leftOut, type ReportRow, type TrainingJob, tableJob } from './training-job.ts'

const needsCurrent = Type.Union([Type.Boolean(), Type.Null()])
const EverGreen = Type.Object({
  prompt: Type.String(),
  needs_current: Type.Boolean(),
  texts: Type.Record(Type.String(), Type.String()),
})
const Fresh = Type.Object({ prompt: Type.String(), fact_type: Type.String() })
const Labelled = Type.Object({ prompt: Type.String(), needs_current: needsCurrent })
const Query = Type.Object({ prompt: Type.String(), type: Type.String(), needs_current: needsCurrent })
const Family = Type.Object({ prompt: Type.String(), family: Type.String() })

const bits = 16
const settings = { size: 2 ** bits, classes: 1, ridge: 0.5, steps: 30 }

type Row = {
  readonly set: 'evergreenqa' | 'freshqa' | 'retrievalqa' | 'query-types' | 'query-families'
  /** Kind of the row within its set: a language, a type, a family. */
  readonly kind: string
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
    ...datedQuestions(40)
      .filter(({ text }) => !asked.has(plain(text)))
      .map(({ text, isCurrent }) => getExample(text, isCurrent, 0.4)),
    ...typedSentences(3).map(({ text }) => getExample(text, false, 0.3)),
    // A status in a log or a line of code must not be looked up.
    ...machineTexts().map(text => getExample(text, false, 0.12)),
  ]
  return tableJob({
    source,
    settings,
    bits,
    limit: 3,
    examples: [...rows.map(row => row.example), ...own],
    fit: examples => trainLbfgs(examples, settings),
    figures: async () =>
      getFigures(unseen(rows, own, await typesWithout(['evergreenqa', 'query-types', 'query-families']))),
  })
}

const source =
  'evergreenqa, freshqa, retrievalqa, query-types and query-families (development halves), and questions of our own; src/training/freshness.ts'

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
  const slots = createSlots(bits)
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
  const add = (set: Row['set'], kind: string, text: string, isCurrent: boolean, weight: number) =>
    rows.push({ set, kind, text, isCurrent, example: getExample(text, isCurrent, weight) })
  for (const { prompt, needs_current, texts } of await readRows('evergreenqa', EverGreen)) {
    add('evergreenqa', 'English', prompt, needs_current, 1)
    for (const [language, text] of Object.entries(texts)) add('evergreenqa', language, text, needs_current, 0.5)
  }
  for (const { prompt, fact_type } of await readRows('freshqa', Fresh))
    if (fact_type !== 'slow-changing') add('freshqa', fact_type, prompt, fact_type === 'fast-changing', 3)
  for (const { prompt, needs_current } of await readRows('retrievalqa', Labelled))
    if (needs_current !== null) add('retrievalqa', '', prompt, needs_current, 1)
  for (const { prompt, type, needs_current } of await readRows('query-types', Query))
    if (needs_current !== null) add('query-types', type, prompt, needs_current, 4)
  for (const { prompt, family } of await readRows('query-families', Family))
    add('query-families', family, prompt, false, family === 'factual' ? 0.3 : 1)
  return rows
}

/** Languages of `evergreenqa` beside English. */
const languages = ['Russian', 'French', 'German', 'Hebrew', 'Arabic', 'Chinese']
const timeless = ['code', 'code_algorithm', 'debugging', 'math', 'creative']

type Told = { readonly row: Row; readonly is: boolean; readonly said: boolean }

/** Returns predictions for each row by a model that was not trained on its set. */
function unseen(rows: readonly Row[], own: readonly Example[], getTypes: (text: string) => Float64Array): Told[] {
  const chance = new Float64Array(1)
  return leftOut(
    rows,
    // Sets of one origin are left out together.
    ({ set }) => (set === 'query-families' ? 'query-types' : set),
    learned => trainLbfgs([...learned.map(({ example }) => example), ...own], settings),
    (weights, row) => {
      probabilities(weights, row.example, 1, chance)
      return { row, is: row.isCurrent, said: adjustForQueryType(chance[0] ?? 0, getTypes(row.text)) > 0.5 }
    },
  )
}

function getFigures(told: readonly Told[]): ReportRow[] {
  return [
    figure('evergreenqa left out, English, F1', f1(of(told, 'evergreenqa', 'English'))),
    ...languages.map(language => figure(`  ${language}`, f1(of(told, 'evergreenqa', language)))),
    figure('freshqa left out, fast against never, F1', f1(of(told, 'freshqa')), '≥ .90'),
    figure('retrievalqa left out: searched in vain, %', inVain(of(told, 'retrievalqa'))),
    figure('query-types left out: searched in vain, %', inVain(of(told, 'query-types')), '≤ 1'),
    figure(
      '  code, math, creative, with query-families, %',
      inVain([...of(told, 'query-types', ...timeless), ...of(told, 'query-families', ...timeless)]),
      '≤ 0.3',
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
