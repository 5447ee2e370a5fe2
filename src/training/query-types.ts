import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { effortWords } from '../text/analysis/effort.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { fillTypeSlots } from '../text/analysis/query-type.ts'
import { readRows } from './data.ts'
import { type Example, filledExample, probabilities, trainLbfgs } from './linear.ts'
import { datedQuestions, shortRequests, typedSentences } from './templates.ts'
import { f1, figure, leftOut, type ReportRow, shares, type TrainingJob, tableJob } from './training-job.ts'

const bits = 15
const settings = { size: 2 ** bits, classes: queryTypes.length, ridge: 1, steps: 40 }

/** Possible types of a family, since the sets' families are coarser. */
const typesTable: Readonly<Record<string, readonly QueryType[]>> = {
  code: ['code', 'code_algorithm', 'debugging'],
  math: ['math'],
  creative: ['creative', 'writing'],
  factual: ['other'],
}
/**
 * A family name carries less information than a label, and there are many; the project's sentences are not real
 * prompts.
 */
const familyWeight = 0.1
const ownWeight = 0.3
/** A larger weight would classify longer prompts by their few words. */
const shortWeight = 0.3
/** A larger weight for these many fact questions would classify all of them, and all short prompts, as `other`. */
const questionWeight = 0.015
/** Questions about the world with numbers in their names (a road, a version) are no calculations. */
const datedWeight = 0.1
/** Total weight of the prompts of each source or language. */
const sourceWeight = 20
const languageWeight = 8
/** Weight of a row's copy without words, which trains the language-independent features. */
const maskedWeight = 0.4

const labelledSet = 'query-types'

type Row = {
  readonly text: string
  /** Correct types; the first one is the label. */
  readonly types: readonly number[]
  readonly example: Example
  /** Its set, or its source in a set of several; absent = the project's own. */
  readonly source?: string
  /** Absent = only learned from. */
  readonly isJudged?: boolean
  readonly language?: string
  /** The English original of a text in another language. */
  readonly original?: string
}

/** Reads the training data of the query type classifier: labeled sets, coarse labels, and the project's sentences. */
export async function readQueryTypes(): Promise<TrainingJob> {
  const rows = await readTypeRows(createExampleReader())
  const examples = rows.map(toExample)
  const fit = (all: readonly Example[]) => trainLbfgs(all, settings)
  return tableJob({ source, settings, bits, limit: 3, examples, fit, figures: () => getFigures(rows) })
}

const source =
  'query-types, query-types-2, query-families and honest-multilingual (development halves), questions of evergreenqa, and sentences of our own; src/training/query-types.ts'

/** Returns a classifier that has not seen the sets by which freshness is judged. */
export async function typesWithout(sets: readonly string[]): Promise<(text: string) => Float64Array> {
  const read = createExampleReader()
  const weights = learn(
    (await readTypeRows(read)).filter(row => row.source === undefined || !sets.includes(row.source)),
  )
  return text => getChances(weights, read(text, [], 1))
}

async function readTypeRows(getExample: ReadExample): Promise<readonly Row[]> {
  type Known = Partial<Omit<Row, 'text' | 'types' | 'example'>>
  const getRow = (text: string, types: readonly number[], weight: number, known: Known = {}): Row => {
    return { text, types, example: getExample(text, types, weight), ...known }
  }
  const getOwn = (sentences: readonly { readonly type: QueryType; readonly text: string }[], weight: number) =>
    sentences.map(({ type, text }) => getRow(text, [indexOf(type)], weight))
  const other = [indexOf('other')]
  const labelled = weighted(
    (await readRows(labelledSet, 'prompt', 'type')).map(({ prompt, type }) =>
      getRow(prompt, [indexOf(type)], 1, { source: labelledSet, isJudged: true }),
    ),
    ({ types }) => types[0],
    // Rare types get a slightly higher weight; otherwise frequent ones would absorb their prompts.
    count => (60 / count) ** 0.3,
  )
  const families = (await readRows('query-families', 'prompt', 'family')).map(({ prompt, family }) => {
    const types = (typesTable[family] ?? []).map(indexOf)
    return getRow(prompt, types, familyWeight, { source: 'query-families', isJudged: true })
  })
  const others = [
    ...getOwn(typedSentences(12), ownWeight),
    ...getOwn(shortRequests(8), shortWeight),
    ...datedQuestions(2).map(({ text }) => getRow(text, other, datedWeight)),
    ...(await readRows('evergreenqa', 'prompt', 'texts')).flatMap(({ prompt, texts }, index) => {
      // In English, and alternately in one other language.
      const translations = Object.values(texts)
      return [prompt, translations[index % translations.length] ?? prompt].map(text =>
        getRow(text, other, questionWeight, { source: 'evergreenqa' }),
      )
    }),
  ]
  const sourced = weighted(
    (await readRows('query-types-2', 'prompt', 'type', 'also', 'source')).map(({ prompt, type, also, source }) =>
      getRow(prompt, [type, ...also].map(indexOf), 1, { source, isJudged: true }),
    ),
    row => row.source,
    count => Math.min(0.3, sourceWeight / count),
  )
  const foreign = weighted(
    (await readRows('honest-multilingual', 'prompt', 'lang', 'type', 'english')).flatMap(
      ({ prompt, lang: language, type, english }) =>
        type === null ? [] : [getRow(prompt, [indexOf(type)], 1, { language, original: english ?? prompt })],
    ),
    row => row.language,
    count => Math.min(0.3, languageWeight / count),
  )
  const masked = [...labelled, ...sourced, ...foreign, ...others].map(row => ({
    ...row,
    isJudged: false,
    example: getExample(row.text, row.example.classes, row.example.weight * maskedWeight, false),
  }))
  return [...labelled, ...families, ...others, ...sourced, ...foreign, ...masked]
}

/** Returns rows with a weight by the number of rows in their group. */
function weighted(
  rows: readonly Row[],
  getGroup: (row: Row) => string | number | undefined,
  weigh: (count: number) => number,
): Row[] {
  const groups = Map.groupBy(rows, getGroup)
  return rows.map(row => ({
    ...row,
    example: { ...row.example, weight: weigh(groups.get(getGroup(row))?.length ?? 1) },
  }))
}

const toExample = ({ example }: Row) => example
const learn = (rows: readonly Row[]) => trainLbfgs(rows.map(toExample), settings)

function indexOf(type: string | null): number {
  return queryTypes.findIndex(queryType => queryType === (type === 'others' ? 'other' : type))
}

type ReadExample = (text: string, classes: readonly number[], weight: number, withWords?: boolean) => Example

function createExampleReader(): ReadExample {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createSlots(bits)
  const notionReader = createNotionReader(true, true)
  return (text, classes, weight, withWords) => {
    const features = read(text)
    notionReader.begin(features)
    const notions = notionReader.read(0, Math.min(features.count, effortWords))
    fillTypeSlots(slots, features, mean(features), notions, withWords)
    return filledExample(slots, classes, weight)
  }
}

/** Predicts each source by a model trained without it, and other languages by one that saw only English. */
function getFigures(rows: readonly Row[]): ReportRow[] {
  const judge = (weights: Float32Array, row: Row): Judged => {
    const chances = getChances(weights, row.example)
    return { row, said: chances.indexOf(Math.max(...chances)) }
  }
  const ofSources = leftOut(
    rows,
    row => (row.isJudged === true ? (row.source ?? null) : null),
    learn,
    judge,
    ([heldOut]) =>
      row =>
        row.source !== undefined && row.source === heldOut?.source,
  )
  const ofLanguages = leftOut(
    rows,
    ({ language, isJudged }) => (language === undefined || isJudged === false ? null : 'other languages'),
    learn,
    judge,
    heldOut => {
      const originals = new Set(heldOut.map(({ original }) => original))
      return row => row.language !== undefined || originals.has(row.text)
    },
  )
  const told = ofSources.filter(({ row }) => row.source === labelledSet)
  const byType = queryTypes.map((_, type) =>
    f1(told.map(({ row, said }) => ({ is: row.types[0] === type, said: said === type }))),
  )
  const isRight = ({ row, said }: Judged) => row.types.includes(said)
  return [
    ...shares('type right, source left out', '≥ .74', ofSources, ({ row }) => row.source ?? '', isRight),
    figure(`${labelledSet} left out: macro-F1`, byType.reduce((sum, value) => sum + value, 0) / byType.length, '≥ .66'),
    ...shares('type right, only English learned from', '≥ .70', ofLanguages, ({ row }) => row.language ?? '', isRight),
  ]
}

type Judged = { readonly row: Row; readonly said: number }

function getChances(weights: Float32Array, example: Example): Float64Array {
  const chances = new Float64Array(queryTypes.length)
  probabilities(weights, example, queryTypes.length, chances)
  return chances
}
