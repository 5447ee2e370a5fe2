import { Type } from '@sinclair/typebox'
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { effortWords } from '../text/analysis/effort.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { fillTypeSlots } from '../text/analysis/query-type.ts'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, probabilities } from './linear.ts'
import { datedQuestions, shortRequests, typedSentences } from './templates.ts'
import { f1, figure, leftOut, type ReportRow, shares, type TrainingJob, tableJob } from './training-job.ts'

const LabelledQuery = Type.Object({ prompt: Type.String(), type: Type.String() })
const FamilyQuery = Type.Object({ prompt: Type.String(), family: Type.String() })

const Question = Type.Object({ prompt: Type.String(), texts: Type.Record(Type.String(), Type.String()) })

const bits = 15
const languageFolds = 2
const settings = { size: 2 ** bits, classes: queryTypes.length, ridge: 1, steps: 40 }
const codeTypes: readonly number[] = ['code', 'code_algorithm', 'debugging'].map(type => indexOf(type))

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

const labelledSet = 'query-types'
const familySet = 'query-families'
const questionSet = 'evergreenqa'

type Sentence = { readonly type: QueryType; readonly text: string }

/** Prompts of further sources; each of `also` counts as correct too. */
const SourcedQuery = Type.Object({
  prompt: Type.String(),
  type: Type.String(),
  also: Type.Array(Type.String()),
  source: Type.String(),
  task: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})
const ForeignQuery = Type.Object({
  prompt: Type.String(),
  lang: Type.String(),
  type: Type.Union([Type.String(), Type.Null()]),
  english: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})

/** Total weight of the prompts of each source or language. */
const sourceWeight = 20
const languageWeight = 8
/** Weight of a row's copy without words, which trains the language-independent features. */
const maskedWeight = 0.4

type Row = {
  readonly raw: string
  /** Decides the fold; null = always used for training: the project's own. */
  readonly text: string | null
  readonly example: Example
  readonly type: number
  readonly isCode: boolean
  /** Further correct types. */
  readonly also?: readonly number[]
  /** Name of its set, or of its source in `query-types-2`; absent = the project's own. */
  readonly source?: string
  readonly language?: string
}

/**
 * Reads the training data of the query type classifier: `query-types`, coarse labels of `query-families`, and the
 * project's sentences.
 */
export async function readQueryTypes(): Promise<TrainingJob> {
  const material = await readMaterial(createExampleReader())
  return tableJob({
    source,
    settings,
    bits,
    limit: 3,
    examples: getRows(material).map(toExample),
    fit: examples => trainLbfgs(examples, settings),
    figures: () => getFigures(material),
  })
}

const source =
  'query-types, query-types-2, query-families and honest-multilingual (development halves), questions of evergreenqa, and sentences of our own; src/training/query-types.ts'

/** Returns a classifier that has not seen the sets by which freshness is judged. */
export async function typesWithout(sets: readonly string[]): Promise<(text: string) => Float64Array> {
  const read = createExampleReader()
  const rows = getRows(await readMaterial(read)).filter(({ source }) => source === undefined || !sets.includes(source))
  const weights = trainLbfgs(rows.map(toExample), settings)
  return text => getChances(weights, read(text, [], 1))
}

type Material = {
  readonly sourced: readonly Row[]
  readonly foreign: readonly Row[]
  /** Copies of rows without their words. */
  readonly masked: readonly Row[]
  readonly labelled: readonly Row[]
  readonly families: readonly Row[]
  readonly others: readonly Row[]
}

async function readMaterial(getExample: ReadExample): Promise<Material> {
  type Known = Partial<Pick<Row, 'also' | 'source' | 'language'>>
  /** `text` decides the fold; the first of the types is the main one. */
  const getRow = (raw: string, text: string | null, types: readonly number[], weight: number, known: Known): Row => {
    const type = types[0] ?? -1
    return { raw, text, example: getExample(raw, types, weight), type, isCode: codeTypes.includes(type), ...known }
  }
  const labelled = balance(
    (await readRows(labelledSet, LabelledQuery)).map(({ prompt, type }) =>
      getRow(prompt, prompt, [indexOf(type)], 1, { source: labelledSet }),
    ),
  )
  const families = (await readRows(familySet, FamilyQuery)).map(({ prompt, family }) =>
    getRow(prompt, prompt, (typesTable[family] ?? []).map(indexOf), familyWeight, { source: familySet }),
  )
  const ownRow = ({ type, text }: Sentence, weight: number) => getRow(text, null, [indexOf(type)], weight, {})
  const other = [indexOf('other')]
  const others = [
    ...typedSentences(12).map(sentence => ownRow(sentence, ownWeight)),
    ...shortRequests(8).map(sentence => ownRow(sentence, shortWeight)),
    ...datedQuestions(2).map(({ text }) => ownRow({ type: 'other', text }, datedWeight)),
    ...(await readRows(questionSet, Question)).flatMap(({ prompt, texts }, index) => {
      // In English, and alternately in one other language.
      const translations = Object.values(texts)
      return [prompt, translations[index % translations.length] ?? prompt].map(text =>
        getRow(text, prompt, other, questionWeight, { source: questionSet }),
      )
    }),
  ]
  const sourced = even(
    (await readRows('query-types-2', SourcedQuery)).map(({ prompt, type, also, source, task }) => {
      const types = [type, ...also].map(indexOf)
      return getRow(prompt, task ?? prompt, types, 1, { also: types, source })
    }),
    ({ source }) => source ?? '',
    sourceWeight,
  )
  const foreign = even(
    (await readRows('honest-multilingual', ForeignQuery)).flatMap(({ prompt, lang, type, english }) =>
      type === null ? [] : [getRow(prompt, english ?? prompt, [indexOf(type)], 1, { language: lang })],
    ),
    ({ language }) => language ?? '',
    languageWeight,
  )
  const masked = [...labelled, ...sourced, ...foreign, ...others].map(row => ({
    ...row,
    example: getExample(row.raw, row.example.classes, row.example.weight * maskedWeight, false),
  }))
  return { labelled, families, others, sourced, foreign, masked }
}

const getRows = ({ labelled, families, others, sourced, foreign, masked }: Material): readonly Row[] => [
  ...labelled,
  ...families,
  ...others,
  ...sourced,
  ...foreign,
  ...masked,
]

/** Returns rows whose groups have equal weight, `total` each. */
function even(rows: readonly Row[], getGroup: (row: Row) => string, total: number): Row[] {
  const sizes = Map.groupBy(rows, getGroup)
  return rows.map(row => ({
    ...row,
    example: { ...row.example, weight: Math.min(0.3, total / (sizes.get(getGroup(row))?.length ?? 1)) },
  }))
}

const toExample = ({ example }: Row) => example

function indexOf(type: string): number {
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
    return {
      slots: slots.places.slice(0, slots.count),
      values: slots.values.slice(0, slots.count),
      classes,
      weight,
    }
  }
}

/** Rare types get a slightly higher weight; otherwise frequent ones would absorb their prompts. */
function balance(rows: readonly Row[]): readonly Row[] {
  return rows.map(row => {
    const alike = rows.filter(other => other.type === row.type).length
    return { ...row, example: { ...row.example, weight: (60 / alike) ** 0.3 } }
  })
}

/** Predicts each source by a model trained without it, and other languages by one that saw only English. */
function getFigures(material: Material): ReportRow[] {
  const all = getRows(material)
  const judged = new Set([...material.labelled, ...material.families, ...material.sourced])
  const foreign = new Set(material.foreign)
  const judge = (weights: Float32Array, row: Row): Judged => ({ row, said: likeliest(weights, row.example) })
  const learn = (rows: readonly Row[]) => trainLbfgs(rows.map(toExample), settings)
  // The copies without words are left out with their rows.
  const ofSources = leftOut(
    all,
    row => (judged.has(row) ? (row.source ?? null) : null),
    learn,
    judge,
    ([heldOut]) =>
      row =>
        row.source !== undefined && row.source === heldOut?.source,
  )
  const ofLanguages = leftOut(
    all,
    row => (foreign.has(row) ? getFold(row.text ?? '', languageFolds) : null),
    learn,
    judge,
    ([heldOut]) => {
      const fold = getFold(heldOut?.text ?? '', languageFolds)
      return row => row.language !== undefined || (row.text !== null && getFold(row.text, languageFolds) === fold)
    },
  )
  const of = (name: string) => ofSources.filter(({ row }) => row.source === name)
  const told = of(labelledSet)
  const byType = queryTypes.map((_, type) =>
    f1(told.map(({ row, said }) => ({ is: row.type === type, said: said === type }))),
  )
  const codeF1 = (judged: readonly Judged[]) =>
    f1(judged.map(({ row, said }) => ({ is: row.isCode, said: codeTypes.includes(said) })))
  return [
    figure('query-types left out: accuracy', told.filter(isRight).length / told.length, '≥ .74'),
    figure('  macro-F1', byType.reduce((sum, value) => sum + value, 0) / byType.length, '≥ .66'),
    figure('  F1 by type', queryTypes.map((type, index) => `${type} ${byType[index]?.toFixed(2)}`).join(', ')),
    figure('  code family F1', codeF1(told), '≥ .93'),
    figure('query-families left out: code family F1', codeF1(of(familySet)), '≥ .93'),
    ...shares(
      'query-types-2, source left out',
      '≥ .75 / ≥ .55',
      ofSources.filter(({ row }) => row.also !== undefined),
      ({ row }) => row.source ?? '',
      isRight,
    ),
    ...shares('other languages left out', '', ofLanguages, ({ row }) => row.language ?? '', isRight),
  ]
}

type Judged = { readonly row: Row; readonly said: number }

function isRight({ row, said }: Judged): boolean {
  return (row.also ?? [row.type]).includes(said)
}

function getChances(weights: Float32Array, example: Example): Float64Array {
  const chances = new Float64Array(queryTypes.length)
  probabilities(weights, example, queryTypes.length, chances)
  return chances
}

function likeliest(weights: Float32Array, example: Example): number {
  const chances = getChances(weights, example)
  return chances.indexOf(Math.max(...chances))
}
