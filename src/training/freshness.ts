import { createConceptReader } from '../text/analysis/concepts.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { adjustForQueryType, fillFreshnessSlots } from '../text/analysis/freshness.ts'
import { readRows } from './data.ts'
import { type Example, filledFeatures, predict, train } from './linear.ts'
import { typesWithout } from './query-types.ts'
import { datedQuestions, machineTexts, typedSentences } from './templates.ts'
import { leftOut, shares, stored, type TrainingJob } from './training-job.ts'

const bits = 16
const settings = { size: 2 ** bits, classes: 1, ridge: 0.5, steps: 30 }

type Row = {
  /** Its set; null = a sentence of the project, only learned from. */
  readonly set: string | null
  /** Kind of the row within its set: a language, a type, a family. */
  readonly kind: string
  readonly text: string
  /** Only the words of the text. */
  readonly words: string
  readonly isCurrent: boolean
  readonly example: Example
}

/** Reads the training data of the freshness classifier. */
export async function readFreshness(): Promise<TrainingJob> {
  const rows = await readAll()
  const examples = rows.map(toExample)
  return {
    settings,
    examples,
    learn: async () => ({ weights: stored(train(examples, settings), 3), figures: await getFigures(rows) }),
  }
}

const toExample = ({ example }: Row) => example

/** Returns all rows. Weights: an unnecessary search costs money, and trivia does not change. */
async function readAll(): Promise<readonly Row[]> {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createSlots(bits)
  const rows: Row[] = []
  const add = (set: string | null, kind: string, text: string, isCurrent: boolean | null, weight: number) => {
    if (isCurrent === null) return
    const features = read(text)
    fillFreshnessSlots(slots, features, mean(features))
    const example = { ...filledFeatures(slots), classes: [isCurrent ? 1 : 0], weight }
    const words = (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')
    rows.push({ set, kind, text, words, isCurrent, example })
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
    add('query-families', family ?? '', prompt, false, family === 'factual' ? 0.3 : 1)
  for (const { text, label } of datedQuestions(40)) add(null, '', text, label === 'current', 0.4)
  for (const { text } of typedSentences(3)) add(null, '', text, false, 0.3)
  // A status in a log or a line of code must not be looked up.
  for (const text of machineTexts()) add(null, '', text, false, 0.25)
  return rows
}

/** Predicts each row by a model that was not trained on its set, nor on the same words. */
async function getFigures(rows: readonly Row[]): Promise<string[]> {
  const getTypes = await typesWithout(['evergreenqa', 'query-types', 'query-families'])
  const told = leftOut(
    rows,
    // Sets of one origin are left out together.
    ({ set }) => (set === 'query-families' ? 'query-types' : set),
    learned => train(learned.map(toExample), settings),
    (weights, row) => {
      const chance = 1 / (1 + Math.exp(-predict(weights, row.example)))
      return { row, isFound: adjustForQueryType(chance, getTypes(row.text)) > 0.5 }
    },
    ({ words }) => words,
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
