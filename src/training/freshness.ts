import { createConceptReader } from '../text/analysis/concepts.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { adjustForQueryType, fillFreshnessSlots } from '../text/analysis/freshness.ts'
import { readRows } from './data.ts'
import { type Example, filledExample, probabilities, trainLbfgs } from './linear.ts'
import { typesWithout } from './query-types.ts'
import { datedQuestions, machineTexts, typedSentences } from './templates.ts'
import { leftOut, type ReportRow, shares, type TrainingJob, tableJob } from './training-job.ts'

const bits = 16
const settings = { size: 2 ** bits, classes: 1, ridge: 0.5, steps: 30 }

type Row = {
  readonly set: string
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
    ...machineTexts().map(text => getExample(text, false, 0.25)),
  ]
  return tableJob({
    source,
    settings,
    bits,
    limit: 3,
    examples: [...rows.map(row => row.example), ...own],
    fit: examples => trainLbfgs(examples, settings),
    figures: () => getFigures(rows, own),
  })
}

const source =
  'evergreenqa, freshqa, retrievalqa, query-types and query-families (development halves), and questions of our own; src/training/freshness.ts'

/** Returns only the words of a text. */
const plain = (text: string) => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')

type ExampleMaker = (text: string, isCurrent: boolean, weight: number) => Example

function createReader(): ExampleMaker {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createSlots(bits)
  return (text, isCurrent, weight) => {
    const features = read(text)
    fillFreshnessSlots(slots, features, mean(features))
    return filledExample(slots, [isCurrent ? 1 : 0], weight)
  }
}

/** Returns all labeled rows. Weights: an unnecessary search costs money, and trivia does not change. */
async function readAll(getExample: ExampleMaker): Promise<readonly Row[]> {
  const rows: Row[] = []
  const add = (set: string, kind: string, text: string, isCurrent: boolean | null, weight: number) => {
    if (isCurrent !== null) rows.push({ set, kind, text, isCurrent, example: getExample(text, isCurrent, weight) })
  }
  for (const { prompt, needs_current, texts } of await readRows('evergreenqa', 'prompt', 'needs_current', 'texts')) {
    add('evergreenqa', 'English', prompt, needs_current, 1)
    for (const [language, text] of Object.entries(texts)) add('evergreenqa', language, text, needs_current, 0.5)
  }
  for (const { prompt, fact_type } of await readRows('freshqa', 'prompt', 'fact_type'))
    if (fact_type !== 'slow-changing') add('freshqa', '', prompt, fact_type === 'fast-changing', 3)
  for (const { prompt, needs_current } of await readRows('retrievalqa', 'prompt', 'needs_current'))
    add('retrievalqa', '', prompt, needs_current, 1)
  for (const { prompt, type, needs_current } of await readRows('query-types', 'prompt', 'type', 'needs_current'))
    add('query-types', type ?? '', prompt, needs_current, 4)
  for (const { prompt, family } of await readRows('query-families', 'prompt', 'family'))
    add('query-families', family, prompt, false, family === 'factual' ? 0.3 : 1)
  return rows
}

/** Predicts each row by a model that was not trained on its set. */
async function getFigures(rows: readonly Row[], own: readonly Example[]): Promise<ReportRow[]> {
  const getTypes = await typesWithout(['evergreenqa', 'query-types', 'query-families'])
  const chance = new Float64Array(1)
  const told = leftOut(
    rows,
    // Sets of one origin are left out together.
    ({ set }) => (set === 'query-families' ? 'query-types' : set),
    learned => trainLbfgs([...learned.map(({ example }) => example), ...own], settings),
    (weights, row) => {
      probabilities(weights, row.example, 1, chance)
      return { row, isFound: adjustForQueryType(chance[0] ?? 0, getTypes(row.text)) > 0.5 }
    },
  )
  const found = (name: string, goal: string, isCurrent: boolean) =>
    shares(
      `${name}, set left out`,
      goal,
      told.filter(({ row }) => row.isCurrent === isCurrent),
      ({ row }) => `${row.set} ${row.kind}`.trim(),
      ({ isFound }) => isFound,
    )
  return [...found('current data found', '≥ .90', true), ...found('searched in vain', '≤ .01', false)]
}
