import { Type } from '@sinclair/typebox'
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { effortWords } from '../text/analysis/effort.ts'
import { createFeatureReader, type FeatureReader } from '../text/analysis/features.ts'
import { getLanguage } from '../text/analysis/language.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { classifierScores } from '../text/analysis/prompt-analysis.ts'
import { createTypeSlots, fillTypeSlots } from '../text/analysis/query-type.ts'
import { enhancePrompt } from '../text/enhancement/enhance.ts'
import { encodeWeights } from '../text/weights/stored-weights.ts'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, probabilities, quantised } from './linear.ts'
import { datedQuestions, shortRequests, typedSentences } from './templates.ts'
import { f1, getParts, type ReportRow, type TrainingJob, trainingDigest } from './training-job.ts'

const LabelledQuery = Type.Object({ prompt: Type.String(), type: Type.String(), detail: Type.String() })
const FamilyQuery = Type.Object({ prompt: Type.String(), family: Type.String() })

const Question = Type.Object({ prompt: Type.String(), texts: Type.Record(Type.String(), Type.String()) })

const bits = 15
const folds = 5
const repeats = 2
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
  /** True for a terse prompt of a known type, which enhancement is for. */
  readonly isTerse?: boolean
  /** Further correct types. */
  readonly also?: readonly number[]
  /** Name of a further source or a language. */
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
      const figures = crossValidate(material)
      const { scale, bytes } = quantised(trainLbfgs(examples, settings), weightLimit)
      return { weights: { source, bits, scale, weights: encodeWeights(bytes) }, figures }
    },
  }
}

const source =
  'query-types, query-types-2, query-families and honest-multilingual (development halves), questions of evergreenqa, and sentences of our own; src/training/query-types.ts'

/** Returns a classifier for each text that was trained without the text's fold in this partition. */
export async function heldOutTypes(folds: number, deal: number): Promise<(text: string, key: string) => Float64Array> {
  const read = createExampleReader()
  const all = getRows(await readMaterial(read))
  const models = Array.from({ length: folds }, (_, fold) =>
    trainLbfgs(
      all.filter(row => row.text === null || getFold(row.text, folds, deal) !== fold).map(toExample),
      settings,
    ),
  )
  return (text, key) => {
    const chances = new Float64Array(queryTypes.length)
    const model = models[getFold(key, folds, deal)]
    if (model !== undefined) probabilities(model, read(text, [], 1), queryTypes.length, chances)
    return chances
  }
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
  const labelled: Row[] = (await readRows('query-types', LabelledQuery)).map(({ prompt, type, detail }) => {
    const index = indexOf(type)
    const isTerse = detail === 'terse' && queryTypes[index] !== 'other'
    const example = getExample(prompt, [index], 1)
    return { raw: prompt, text: prompt, example, type: index, isCode: codeTypes.includes(index), isTerse }
  })
  const families: Row[] = (await readRows('query-families', FamilyQuery)).map(({ prompt, family }) => ({
    raw: prompt,
    text: prompt,
    example: getExample(prompt, (typesTable[family] ?? []).map(indexOf), familyWeight),
    type: -1,
    isCode: family === 'code',
  }))
  const question = (text: string, asked: string | null): Row => {
    const type = indexOf('other')
    return { raw: text, text: asked, example: getExample(text, [type], questionWeight), type, isCode: false }
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
  ]
  const others = [
    ...own,
    ...datedQuestions(2).map(({ text }) => question(text, null)),
    ...(await readRows('evergreenqa', Question)).flatMap(({ prompt, texts }, index) => {
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

function crossValidate(material: Material): ReportRow[] {
  const { labelled, families, sourced, foreign } = material
  const all = getRows(material)
  const told: { readonly is: number; readonly said: number }[] = []
  const familyTold: { readonly is: boolean; readonly said: boolean }[] = []
  const enhanced: boolean[] = []
  const foreignTold: Judged[] = []
  const sourcedTold: Judged[] = []
  const readFeatures = createFeatureReader()
  const readAside = createFeatureReader()
  for (let round = 0; round < folds * repeats; round++) {
    const isHeldOut = ({ text }: Row) =>
      text !== null && getFold(text, folds, Math.floor(round / folds)) === round % folds
    const weights = trainLbfgs(all.filter(row => !isHeldOut(row)).map(toExample), settings)
    if (round < folds) {
      for (const row of foreign.filter(isHeldOut)) foreignTold.push({ row, isRight: isRight(weights, row) })
      for (const row of sourced.filter(isHeldOut)) sourcedTold.push({ row, isRight: isRight(weights, row) })
    }
    for (const row of labelled.filter(isHeldOut)) told.push({ is: row.type, said: likeliest(weights, row.example) })
    for (const row of labelled.filter(isHeldOut))
      if (row.isTerse) enhanced.push(isEnhanced(weights, row, readFeatures, readAside))
    for (const row of families.filter(isHeldOut))
      familyTold.push({ is: row.isCode, said: codeTypes.includes(likeliest(weights, row.example)) })
  }
  const right = told.filter(({ is, said }) => is === said).length / told.length
  const byType = queryTypes.map((_, type) => f1(told.map(({ is, said }) => ({ is: is === type, said: said === type }))))
  const isCode = ({ is, said }: { is: number; said: number }) => ({
    is: codeTypes.includes(is),
    said: codeTypes.includes(said),
  })
  const mean = byType.reduce((sum, value) => sum + value, 0) / byType.length
  return [
    { name: 'accuracy', goal: '≥ .750', reference: '.630', measured: right.toFixed(3) },
    { name: 'macro-F1', goal: '≥ .700', reference: '.550', measured: mean.toFixed(3) },
    { name: 'code family F1, query-types', goal: '≥ .930', reference: '–', measured: f1(told.map(isCode)).toFixed(3) },
    { name: 'code family F1, query-families', goal: '≥ .930', reference: '–', measured: f1(familyTold).toFixed(3) },
    {
      name: 'terse prompts that are enhanced',
      goal: '≥ .950',
      reference: '–',
      measured: (enhanced.filter(is => is).length / enhanced.length).toFixed(3),
    },
    ...shares('new sources', '≥ .75 / ≥ .55', sourcedTold, ({ source }) => source ?? ''),
    ...leftOut(material),
    ...shares('other languages', '≥ .70 / ≥ .50', foreignTold, ({ language }) => language ?? ''),
    ...queryTypes.map((type, index) => ({
      name: `  F1 of ${type}`,
      goal: '',
      reference: '',
      measured: (byType[index] ?? 0).toFixed(2),
    })),
  ]
}

type Judged = { readonly row: Row; readonly isRight: boolean }

function isRight(weights: Float32Array, row: Row): boolean {
  return (row.also ?? [row.type]).includes(likeliest(weights, row.example))
}

/**
 * Predicts each source by a model trained without it, and each language by one trained without the language, including
 * originals.
 */
function leftOut({ labelled, families, others, sourced, foreign, masked }: Material): ReportRow[] {
  const all = getRows({ labelled, families, others, sourced, foreign, masked })
  const told = [...new Set(sourced.map(({ source }) => source))].flatMap(source => {
    const weights = trainLbfgs(all.filter(row => row.source !== source).map(toExample), settings)
    return sourced.filter(row => row.source === source).map(row => ({ row, isRight: isRight(weights, row) }))
  })
  // Without other languages except in the project's sentences, by folds of the English originals.
  const told2 = Array.from({ length: folds }, (_, fold) => fold).flatMap(fold => {
    const isHeldOut = ({ text }: Row) => text !== null && getFold(text, folds) === fold
    const weights = trainLbfgs(
      all.filter(row => row.language === undefined && !isHeldOut(row)).map(toExample),
      settings,
    )
    return foreign.filter(isHeldOut).map(row => ({ row, isRight: isRight(weights, row) }))
  })
  return [
    ...shares('source left out', '≥ .75 / ≥ .55', told, ({ source }) => source ?? ''),
    ...shares('all other languages left out', '', told2, ({ language }) => language ?? ''),
  ]
}

/** Languages with fewer rows are not reported. */
const fewestRows = 20

/** Returns the share of correct predictions: mean and worst of the groups, and each. */
function shares(name: string, goal: string, told: readonly Judged[], getGroup: (row: Row) => string): ReportRow[] {
  const groups = [...Map.groupBy(told, ({ row }) => getGroup(row))]
    .filter(([, of]) => of.length >= fewestRows)
    .map(([group, of]) => ({ group, share: of.filter(judged => judged.isRight).length / of.length }))
    .sort((item, other) => item.share - other.share)
  const mean = groups.reduce((sum, { share }) => sum + share, 0) / Math.max(1, groups.length)
  const each = groups.map(({ group, share }) => `${group} ${share.toFixed(2)}`).join(', ')
  const all = told.filter(judged => judged.isRight).length / Math.max(1, told.length)
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

/** Returns true if a prompt is enhanced as its predicted type. */
function isEnhanced(
  weights: Float32Array,
  { text, example }: Row,
  readFeatures: FeatureReader,
  readAside: FeatureReader,
): boolean {
  if (text === null) return false
  const queryType = queryTypes[likeliest(weights, example)] ?? 'other'
  const queryTypeScores = classifierScores(getChances(weights, example))
  return enhancePrompt(text, { queryType, queryTypeScores, language: getLanguage(text, readFeatures(text), readAside) })
    .changed
}
