import { Type } from '@sinclair/typebox'
import { type QueryType, queryTypes } from '../core/chat.ts'
import { scoresOf } from '../core/classify.ts'
import { enhance } from '../core/enhance.ts'
import { createConceptReader } from '../core/reading/concepts.ts'
import { createFeatureReader, type FeatureReader } from '../core/reading/features.ts'
import { languageOf } from '../core/reading/language.ts'
import { createTypeSlots, fillTypeSlots } from '../core/reading/query-type.ts'
import { kept } from '../core/weights.ts'
import { converge } from './converged.ts'
import type { Course } from './course.ts'
import { readRows } from './data.ts'
import { digestOf, partsOf } from './digest.ts'
import { type Figure, f1 } from './figures.ts'
import { foldOf } from './folds.ts'
import { questionsOfOurOwn } from './freshness-templates.ts'
import { type Example, probabilities, quantised } from './linear.ts'
import { sentencesOfOurOwn } from './query-templates.ts'
import { shortRequestsOfOurOwn } from './short-templates.ts'

const LabelledQuery = Type.Object({ prompt: Type.String(), type: Type.String(), detail: Type.String() })
const FamilyQuery = Type.Object({ prompt: Type.String(), family: Type.String() })

const Question = Type.Object({ prompt: Type.String(), texts: Type.Record(Type.String(), Type.String()) })

const bits = 14
const folds = 5
const repeats = 2
const settings = { size: 2 ** bits, classes: queryTypes.length, ridge: 1, steps: 40 }
const codeTypes: readonly number[] = ['code', 'code_algorithm', 'debugging'].map(type => indexOf(type))

/** What a family may be by type: the sets' families are coarser. */
const typesOf: Readonly<Record<string, readonly QueryType[]>> = {
  code: ['code', 'code_algorithm', 'debugging'],
  math: ['math'],
  creative: ['creative', 'writing'],
  factual: ['other'],
}
/** A family's name says less than a label of its own, and there are many; our own sentences are no real prompts. */
const familyWeight = 0.1
const ownWeight = 0.15
/** Louder, they would take longer prompts for what their few words say. */
const shortWeight = 0.03

/** So many questions about facts would make all of them, and all short prompts, `other`. */
const questionWeight = 0.015

type Sentence = { readonly type: QueryType; readonly text: string }

type Row = {
  /** Decides the fold; null = always learned from: of our own making. */
  readonly text: string | null
  readonly example: Example
  readonly type: number
  readonly isCode: boolean
  /** It says little of what it wants, of a known type: what enhancement is for. */
  readonly isTerse?: boolean
}

/** Reads what the types' head learns: `query-types`, coarsely `query-families`, and sentences of our own. */
export async function readQueryTypes(): Promise<Course> {
  const material = await readMaterial(createExampleReader())
  const examples = [...material.labelled, ...material.families, ...material.others].map(toExample)
  return {
    examples: digestOf(settings, examples.map(partsOf)),
    async learn() {
      const figures = crossValidate(material)
      const { scale, bytes } = quantised(converge(examples, settings), weightLimit)
      return { weights: { source, bits, scale, weights: kept(bytes) }, figures }
    },
  }
}

const source =
  'query-types and query-families (development halves), questions of evergreenqa, and sentences of our own; src/training/query-types.ts'

/** What the types' head says of a text that it has not learned from, nor from any other of the text's fold in this deal. */
export async function heldOutTypes(folds: number, deal: number): Promise<(text: string, key: string) => Float64Array> {
  const read = createExampleReader()
  const { labelled, families, others } = await readMaterial(read)
  const all = [...labelled, ...families, ...others]
  const models = Array.from({ length: folds }, (_, fold) =>
    converge(all.filter(row => row.text === null || foldOf(row.text, folds, deal) !== fold).map(toExample), settings),
  )
  return (text, key) => {
    const chances = new Float64Array(queryTypes.length)
    const model = models[foldOf(key, folds, deal)]
    if (model !== undefined) probabilities(model, read(text, [], 1), queryTypes.length, chances)
    return chances
  }
}

type Material = {
  readonly labelled: readonly Row[]
  readonly families: readonly Row[]
  readonly others: readonly Row[]
}

async function readMaterial(exampleOf: ExampleOf): Promise<Material> {
  const labelled: Row[] = (await readRows('query-types', LabelledQuery)).map(({ prompt, type, detail }) => {
    const index = indexOf(type)
    const isTerse = detail === 'terse' && queryTypes[index] !== 'other'
    const example = exampleOf(prompt, [index], 1)
    return { text: prompt, example, type: index, isCode: codeTypes.includes(index), isTerse }
  })
  const families: Row[] = (await readRows('query-families', FamilyQuery)).map(({ prompt, family }) => ({
    text: prompt,
    example: exampleOf(prompt, (typesOf[family] ?? []).map(indexOf), familyWeight),
    type: -1,
    isCode: family === 'code',
  }))
  const question = (text: string, asked: string | null): Row => {
    const type = indexOf('other')
    return { text: asked, example: exampleOf(text, [type], questionWeight), type, isCode: false }
  }
  const ownRow = ({ type, text }: Sentence, weight: number): Row => ({
    text: null,
    example: exampleOf(text, [indexOf(type)], weight),
    type: indexOf(type),
    isCode: codeTypes.includes(indexOf(type)),
  })
  const own: Row[] = [
    ...sentencesOfOurOwn(12).map(sentence => ownRow(sentence, ownWeight)),
    ...shortRequestsOfOurOwn(8).map(sentence => ownRow(sentence, shortWeight)),
  ]
  const others = [
    ...own,
    ...questionsOfOurOwn(2).map(({ text }) => question(text, null)),
    ...(await readRows('evergreenqa', Question)).flatMap(({ prompt, texts }, index) => {
      // In English, and in one other language each, by turns.
      const translations = Object.values(texts)
      return [question(prompt, prompt), question(translations[index % translations.length] ?? prompt, prompt)]
    }),
  ]
  return { labelled: balance(labelled), families, others }
}

const toExample = ({ example }: Row) => example

const weightLimit = 3

function indexOf(type: string): number {
  return queryTypes.findIndex(one => one === (type === 'others' ? 'other' : type))
}

type ExampleOf = (text: string, classes: readonly number[], weight: number) => Example

function createExampleReader(): ExampleOf {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createTypeSlots(bits)
  return (text, classes, weight) => {
    const features = read(text)
    fillTypeSlots(slots, features, mean(features))
    return {
      slots: slots.places.slice(0, slots.count),
      values: slots.values.slice(0, slots.count),
      classes,
      weight,
    }
  }
}

/** Rare types count a little more: else the frequent ones take their prompts. */
function balance(rows: readonly Row[]): readonly Row[] {
  return rows.map(row => {
    const alike = rows.filter(other => other.type === row.type).length
    return { ...row, example: { ...row.example, weight: (60 / alike) ** 0.3 } }
  })
}

function crossValidate({ labelled, families, others }: Material): Figure[] {
  const told: { readonly is: number; readonly said: number }[] = []
  const familyTold: { readonly is: boolean; readonly said: boolean }[] = []
  const enhanced: boolean[] = []
  const readFeatures = createFeatureReader()
  const readAside = createFeatureReader()
  for (let round = 0; round < folds * repeats; round++) {
    const isHeldOut = ({ text }: Row) =>
      text !== null && foldOf(text, folds, Math.floor(round / folds)) === round % folds
    const rows = [...labelled, ...families, ...others].filter(row => !isHeldOut(row))
    const weights = converge(rows.map(toExample), settings)
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
  const mean = byType.reduce((sum, one) => sum + one, 0) / byType.length
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
    ...queryTypes.map((type, index) => ({
      name: `  F1 of ${type}`,
      goal: '',
      reference: '',
      measured: (byType[index] ?? 0).toFixed(2),
    })),
  ]
}

function chancesOf(weights: Float32Array, example: Example): Float64Array {
  const chances = new Float64Array(queryTypes.length)
  probabilities(weights, example, queryTypes.length, chances)
  return chances
}

function likeliest(weights: Float32Array, example: Example): number {
  const chances = chancesOf(weights, example)
  return chances.indexOf(Math.max(...chances))
}

/** Whether a prompt gains, as the type that it is taken for. */
function isEnhanced(
  weights: Float32Array,
  { text, example }: Row,
  readFeatures: FeatureReader,
  readAside: FeatureReader,
): boolean {
  if (text === null) return false
  const queryType = queryTypes[likeliest(weights, example)] ?? 'other'
  const queryTypeScores = scoresOf(chancesOf(weights, example))
  return enhance(text, { queryType, queryTypeScores, language: languageOf(text, readFeatures(text), readAside) })
    .changed
}
