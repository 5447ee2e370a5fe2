import { Type } from '@sinclair/typebox'
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { effortWords } from '../text/analysis/effort.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { createTypeSlots, fillTypeSlots } from '../text/analysis/query-type.ts'
import { encodeWeights } from '../text/weights/stored-weights.ts'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, probabilities, quantised } from './linear.ts'
import { datedQuestions, shortRequests, typedSentences } from './templates.ts'
import { f1, getParts, type ReportRow, type TrainingJob, trainingDigest } from './training-job.ts'

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
  const examples = getRows(material).map(toExample)
  return {
    examples: trainingDigest(settings, examples.map(getParts)),
    async learn() {
      const figures = leftOut(material)
      const { scale, bytes } = quantised(trainLbfgs(examples, settings), weightLimit)
      return { weights: { source, bits, scale, weights: encodeWeights(bytes) }, figures }
    },
  }
}

const source =
  'query-types, query-types-2, query-families and honest-multilingual (development halves), questions of evergreenqa, and sentences of our own; src/training/query-types.ts'

/** Returns a classifier that has not seen the sets by which freshness is judged. */
export async function typesWithout(sets: readonly string[]): Promise<(text: string) => Float64Array> {
  const read = createExampleReader()
  const weights = fit(await readMaterial(read), ({ source }) => source === undefined || !sets.includes(source))
  return text => getChances(weights, read(text, [], 1))
}

function fit(material: Material, isLearned: (row: Row) => boolean): Float32Array {
  return trainLbfgs(getRows(material).filter(isLearned).map(toExample), settings)
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

async function readMaterial(getExample: readExample): Promise<Material> {
  const labelled: Row[] = (await readRows(labelledSet, LabelledQuery)).map(({ prompt, type }) => {
    const index = indexOf(type)
    const example = getExample(prompt, [index], 1)
    const isCode = codeTypes.includes(index)
    return { raw: prompt, text: prompt, example, type: index, isCode, source: labelledSet }
  })
  const families: Row[] = (await readRows(familySet, FamilyQuery)).map(({ prompt, family }) => ({
    raw: prompt,
    text: prompt,
    example: getExample(prompt, (typesTable[family] ?? []).map(indexOf), familyWeight),
    type: -1,
    isCode: family === 'code',
    source: familySet,
  }))
  const question = (text: string, asked: string): Row => {
    const type = indexOf('other')
    const example = getExample(text, [type], questionWeight)
    return { raw: text, text: asked, example, type, isCode: false, source: questionSet }
  }
  const ownRow = ({ type, text }: Sentence, weight: number): Row => ({
    raw: text,
    text: null,
    example: getExample(text, [indexOf(type)], weight),
    type: indexOf(type),
    isCode: codeTypes.includes(indexOf(type)),
  })
  const own: Row[] = [
    ...typedSentences(12).map(sentence => ownRow(sentence, ownWeight)),
    ...shortRequests(8).map(sentence => ownRow(sentence, shortWeight)),
    ...datedQuestions(2).map(({ text }) => ownRow({ type: 'other', text }, datedWeight)),
  ]
  const others = [
    ...own,
    ...(await readRows(questionSet, Question)).flatMap(({ prompt, texts }, index) => {
      // In English, and alternately in one other language.
      const translations = Object.values(texts)
      return [question(prompt, prompt), question(translations[index % translations.length] ?? prompt, prompt)]
    }),
  ]
  const sourced = even(
    (await readRows('query-types-2', SourcedQuery)).map(({ prompt, type, also, source, task }): Row => {
      const types = [type, ...also].map(indexOf)
      const main = types[0] ?? 0
      const example = getExample(prompt, types, 1)
      return {
        raw: prompt,
        text: task ?? prompt,
        example,
        type: main,
        isCode: codeTypes.includes(main),
        also: types,
        source,
      }
    }),
    ({ source }) => source ?? '',
    sourceWeight,
  )
  const foreign = even(
    (await readRows('honest-multilingual', ForeignQuery)).flatMap(({ prompt, lang, type, english }): Row[] => {
      if (type === null) return []
      const index = indexOf(type)
      const example = getExample(prompt, [index], 1)
      const row = { raw: prompt, text: english ?? prompt, example, type: index, isCode: codeTypes.includes(index) }
      return [{ ...row, language: lang }]
    }),
    ({ language }) => language ?? '',
    languageWeight,
  )
  const balanced = balance(labelled)
  const masked = [...balanced, ...sourced, ...foreign, ...others].map(row => ({
    ...row,
    example: getExample(row.raw, row.example.classes, row.example.weight * maskedWeight, false),
  }))
  return { labelled: balanced, families, others, sourced, foreign, masked }
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

const weightLimit = 3

function indexOf(type: string): number {
  return queryTypes.findIndex(queryType => queryType === (type === 'others' ? 'other' : type))
}

type readExample = (text: string, classes: readonly number[], weight: number, withWords?: boolean) => Example

function createExampleReader(): readExample {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createTypeSlots(bits)
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
function leftOut(material: Material): ReportRow[] {
  const { labelled, families, sourced, foreign } = material
  const unseen = (rows: readonly Row[], isLearned: (row: Row) => boolean) => {
    const weights = fit(material, isLearned)
    return rows.map(row => ({ row, said: likeliest(weights, row.example) }))
  }
  const without = (rows: readonly Row[], source: string | undefined) =>
    unseen(
      rows.filter(row => row.source === source),
      row => row.source !== source,
    )
  const told = without(labelled, labelledSet)
  const ofFamilies = without(families, familySet)
  const ofSources = [...new Set(sourced.map(({ source }) => source))].flatMap(source => without(sourced, source))
  const ofLanguages = Array.from({ length: languageFolds }, (_, fold) => fold).flatMap(fold => {
    const isHeldOut = ({ text }: Row) => text !== null && getFold(text, languageFolds) === fold
    return unseen(foreign.filter(isHeldOut), row => row.language === undefined && !isHeldOut(row))
  })
  const byType = queryTypes.map((_, type) =>
    f1(told.map(({ row, said }) => ({ is: row.type === type, said: said === type }))),
  )
  const codeF1 = (judged: readonly Judged[]) =>
    f1(judged.map(({ row, said }) => ({ is: row.isCode, said: codeTypes.includes(said) }))).toFixed(3)
  const figure = (name: string, goal: string, measured: string): ReportRow => ({ name, goal, reference: '', measured })
  return [
    figure('query-types left out: accuracy', '≥ .74', (told.filter(isRight).length / told.length).toFixed(3)),
    figure('  macro-F1', '≥ .66', (byType.reduce((sum, value) => sum + value, 0) / byType.length).toFixed(3)),
    figure('  F1 by type', '', queryTypes.map((type, index) => `${type} ${byType[index]?.toFixed(2)}`).join(', ')),
    figure('  code family F1', '≥ .93', codeF1(told)),
    figure('query-families left out: code family F1', '≥ .93', codeF1(ofFamilies)),
    ...shares('query-types-2, source left out', '≥ .75 / ≥ .55', ofSources, ({ source }) => source ?? ''),
    ...shares('other languages left out', '', ofLanguages, ({ language }) => language ?? ''),
  ]
}

type Judged = { readonly row: Row; readonly said: number }

function isRight({ row, said }: Judged): boolean {
  return (row.also ?? [row.type]).includes(said)
}

/** Languages with fewer rows are not reported. */
const fewestRows = 20

/** Returns the share of correct predictions: mean and worst of the groups, and each. */
function shares(name: string, goal: string, told: readonly Judged[], getGroup: (row: Row) => string): ReportRow[] {
  const groups = [...Map.groupBy(told, ({ row }) => getGroup(row))]
    .filter(([, of]) => of.length >= fewestRows)
    .map(([group, of]) => ({ group, share: of.filter(isRight).length / of.length }))
    .sort((item, other) => item.share - other.share)
  const mean = groups.reduce((sum, { share }) => sum + share, 0) / Math.max(1, groups.length)
  const each = groups.map(({ group, share }) => `${group} ${share.toFixed(2)}`).join(', ')
  const all = told.filter(isRight).length / Math.max(1, told.length)
  return [
    {
      name: `${name}: mean / worst`,
      goal,
      reference: '',
      measured: `${mean.toFixed(3)} / ${(groups[0]?.share ?? 0).toFixed(2)} (all rows ${all.toFixed(3)})`,
    },
    { name: '', goal: '', reference: '', measured: each },
  ]
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
