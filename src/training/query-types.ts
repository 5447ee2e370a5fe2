import { queryTypes } from '../core/chat/chat.ts'
import { createConceptReader } from '../text/analysis/concepts.ts'
import { effortWords } from '../text/analysis/effort.ts'
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { fillTypeSlots } from '../text/analysis/query-type.ts'
import file from './data/type-sets.json'
import { readRows, readTexts, type SetUse, type SourcedText } from './data.ts'
import { type Example, type FeatureVector, filledFeatures, probabilities, train } from './linear.ts'
import { datedQuestions, shortRequests, typedSentences } from './templates.ts'
import { f1, figure, leftOut, shares, stored, type TrainingJob } from './training-job.ts'

const bits = 15
const settings = { size: 2 ** bits, classes: queryTypes.length, ridge: 1, steps: 40 }

/**
 * A family name carries less information than a label, and there are many; the project's sentences are not real prompts. A
 * larger weight of short requests would classify longer prompts by their few words. Dated questions have numbers in their
 * names (a road, a version) and are no calculations. A larger weight of the many fact questions would classify all of them,
 * and all short prompts, as `other`. `masked`: weight of a row's copy without words, which trains the language-independent
 * features.
 */
const { own } = file
type TypeSet = SetUse & {
  by: 'type' | 'family' | 'source' | 'lang'
  rows: number
  power: number
  most: number
  masked: number
}
const sets = file.sets as readonly TypeSet[]
/** Possible types of a family, since the sets' families are coarser. */
const families: Readonly<Record<string, readonly string[]>> = file.families

type Row = SourcedText & {
  /** Possible types; the first one is the label. */
  readonly classes: readonly number[]
  readonly examples: readonly Example[]
}

/** Reads the training data of the query type classifier: labeled sets, coarse labels, and the project's sentences. */
export async function readQueryTypes(): Promise<TrainingJob> {
  const rows = await readTypeRows(createExampleReader())
  return {
    settings,
    examples: toExamples(rows),
    learn: async () => ({ weights: stored(learn(rows), 3, settings.classes), figures: getFigures(rows) }),
  }
}

/** Returns a classifier that has not seen the sets by which freshness is judged. */
export async function typesWithout(unseen: readonly string[]): Promise<(text: string) => Float64Array> {
  const read = createExampleReader()
  const model = learn((await readTypeRows(read)).filter(({ source }) => source === null || !unseen.includes(source)))
  return text => getChances(model, read(text))
}

async function readTypeRows(read: ReadText): Promise<readonly Row[]> {
  const rows: Row[] = []
  const add = (of: SourcedText, types: readonly string[], weight: number, masked: number) => {
    const classes = types.map(indexOf)
    const examples = [{ ...read(of.text), classes, weight }]
    if (masked > 0) examples.push({ ...read(of.text, false), classes, weight: weight * masked })
    rows.push({ ...of, classes, examples })
  }
  for (const { by, rows: usual, power, most, masked, ...use } of sets) {
    const texts = (await readTexts(use, 'type', 'also', 'family')).filter(({ row }) => row.type !== null)
    const groups = Map.groupBy(texts, ({ row }) => row[by])
    for (const { row, ...of } of texts) {
      // Rare types get a slightly higher weight; otherwise frequent ones would absorb their prompts.
      const count = groups.get(row[by])?.length ?? 1
      const types = families[row.family ?? ''] ?? [row.type ?? [], row.also ?? []].flat()
      add(of, types, Math.min(most, (usual / count) ** power), masked)
    }
  }
  for (const { label, text, weight } of await ownSentences())
    add({ text, key: text, source: null, language: 'en' }, [label], weight, own.masked)
  return rows
}

async function ownSentences() {
  const dated = datedQuestions(2).map(({ text }) => text)
  const questions = (await readRows('evergreenqa', 'prompt', 'texts')).flatMap(({ prompt, texts }, index) => {
    // In English, and alternately in one other language.
    const translations = Object.values(texts)
    return [prompt, translations[index % translations.length] ?? prompt]
  })
  return [
    ...typedSentences(12).map(sentence => ({ ...sentence, weight: own.typed })),
    ...shortRequests(8).map(sentence => ({ ...sentence, weight: own.short })),
    ...dated.map(text => ({ label: 'other', text, weight: own.dated })),
    ...questions.map(text => ({ label: 'other', text, weight: own.questions })),
  ]
}

const toExamples = (rows: readonly Row[]) => rows.flatMap(({ examples }) => examples)
const learn = (rows: readonly Row[]) => train(toExamples(rows), settings)

function indexOf(type: string): number {
  return queryTypes.findIndex(queryType => queryType === (type === 'others' ? 'other' : type))
}

/** Reads the features of a text, with its words or without. */
type ReadText = (text: string, withWords?: boolean) => FeatureVector

function createExampleReader(): ReadText {
  const read = createFeatureReader()
  const mean = createConceptReader(read)
  const slots = createSlots(bits)
  const notionReader = createNotionReader(true, true)
  return (text, withWords) => {
    const features = read(text)
    notionReader.begin(features)
    const notions = notionReader.read(0, Math.min(features.count, effortWords))
    fillTypeSlots(slots, features, mean(features), notions, withWords)
    return filledFeatures(slots)
  }
}

/** Predicts each source by a model trained without it, and other languages by one that saw only English. */
function getFigures(rows: readonly Row[]): string[] {
  const judge = (model: Float32Array, row: Row) => {
    const chances = getChances(model, row.examples[0])
    return { row, said: chances.indexOf(Math.max(...chances)) }
  }
  const isRight = ({ row, said }: ReturnType<typeof judge>) => row.classes.includes(said)
  const ofSources = leftOut(rows, ({ source }) => source, learn, judge)
  const ofLanguages = leftOut(
    rows,
    ({ language }) => (language === 'en' ? null : 'other languages'),
    learn,
    judge,
    ({ key }) => key,
  )
  const told = ofSources.filter(({ row }) => row.source === 'query-types')
  const byType = queryTypes.map((_, type) =>
    f1(told.map(({ row, said }) => ({ is: row.classes[0] === type, said: said === type }))),
  )
  return [
    ...shares('type right, source left out', '≥ .74', ofSources, ({ row }) => row.source ?? '', isRight),
    figure(`query-types left out: macro-F1`, byType.reduce((sum, value) => sum + value, 0) / byType.length, '≥ .66'),
    ...shares('type right, only English learned from', '≥ .70', ofLanguages, ({ row }) => row.language, isRight),
  ]
}

function getChances(model: Float32Array, features: FeatureVector | undefined): Float64Array {
  const chances = new Float64Array(queryTypes.length)
  if (features !== undefined) probabilities(model, features, queryTypes.length, chances)
  return chances
}
