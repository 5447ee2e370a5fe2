/**
 * Trains the detector of harmful requests in any language (`text/harm/world.ts`) on requests in English and
 * fifteen other languages, against everyday prompts in as many. Notions are shared by all languages, words belong to
 * one.
 */

import { Type } from '@sinclair/typebox'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader, type Notions } from '../text/analysis/notions.ts'
import { createNotionSlots, notionSlots } from '../text/harm/notion-slots.ts'
import { eachPart } from '../text/harm/parts.ts'
import { asksForHarm } from '../text/harm/world.ts'
import { encodeWeights } from '../text/weights/stored-weights.ts'
import honestWorld from './data/honest-world.json'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { moderationExamples } from './frames.ts'
import { type Example, quantised, train } from './linear.ts'
import { getParts, type ReportRow, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

const settings = { size: notionSlots, classes: 1, epochs: 8, rate: 0.1, decay: 1e-3, seed: 3 }
const folds = 4
/** Weight of a sentence of a harmless text relative to the whole. */
const partWeight = 0.5
const weightLimit = 4

type Row = {
  readonly text: string
  /** Shared by translations of one text; null = the project's own, always used for training. */
  readonly key: string | null
  readonly set: string
  readonly source: string
  readonly language: string
  readonly harmful: boolean
  readonly weight: number
  /** The whole text, and its sentences if it has several. */
  readonly parts: readonly Part[]
}
type Part = { readonly example: Example; readonly read: Notions }

/** Reads the training data of the detector for all languages. */
export async function readWorld(): Promise<TrainingJob> {
  const rows = await readWorldRows()
  const examples = rows.flatMap(getExamples)
  return {
    examples: trainingDigest(settings, examples.map(getParts)),
    async learn(): Promise<Trained> {
      const figures = getFigures(rows)
      const { scale, bytes } = quantised(train(examples, settings), weightLimit)
      return { weights: { source, scale, weights: encodeWeights(bytes) }, figures }
    },
  }
}

const source =
  'bun run train: harmful-requests, harmful-multilingual, xstest, honest-multilingual, honest-hot-words, evergreenqa, the sets of everyday prompts, data/frames.json and data/honest-world.json; hashed words and pairs of notions, no text'

/** Only the whole of a harmful text is used, since each of its sentences may be harmless. */
function getExamples({ parts, harmful }: Row): Example[] {
  return parts.slice(0, harmful ? 1 : parts.length).map(({ example }) => example)
}

const prompt = { prompt: Type.String() }
const Plain = Type.Object(prompt)
const Harmful = Type.Object({ ...prompt, unsafe: Type.Number(), source: Type.String() })
const Contrast = Type.Object({ ...prompt, unsafe: Type.Number() })
const Abroad = Type.Object({
  ...prompt,
  lang: Type.String(),
  source: Type.String(),
  english: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  clear: Type.Optional(Type.Number()),
})
const Injected = Type.Object({ ...prompt, injection: Type.Number() })
const Questions = Type.Object({ ...prompt, texts: Type.Record(Type.String(), Type.String()) })

const everyday = [
  'query-types',
  'query-families',
  'enhance-gate',
  'freshqa',
  'retrievalqa',
  'routellm-mtbench',
] as const

async function readWorldRows(): Promise<Row[]> {
  const toParts = createPartReader()
  const rows: Row[] = []
  const add = (row: Omit<Row, 'parts'>) => rows.push({ ...row, parts: toParts(row.text, row.harmful, row.weight) })
  const english = { source: '', language: 'en' }
  for (const { prompt: text, unsafe, source: of } of await readRows('harmful-requests', Harmful))
    add({
      text,
      key: text,
      set: 'harmful-requests',
      source: of,
      language: 'en',
      harmful: unsafe === 1,
      weight: unsafe === 1 ? 4 : 1,
    })
  for (const { prompt: text, unsafe } of await readRows('xstest', Contrast))
    add({ ...english, text, key: text, set: 'xstest', harmful: unsafe === 1, weight: 1 })
  for (const { text, lesson, harmful } of moderationExamples())
    if (lesson === 'request' || lesson === 'everyday')
      add({
        ...english,
        text,
        key: null,
        set: 'own',
        harmful,
        weight: harmful ? 0.25 : lesson === 'everyday' ? 3 : 0.6,
      })
  for (const set of everyday)
    for (const { prompt: text } of await readRows(set, Plain))
      add({ ...english, text, key: text, set, harmful: false, weight: 3 })
  for (const set of ['real-user-prompts', 'query-types-2', 'honest-hot-words', 'honest-multilingual'] as const)
    for (const { prompt: text, lang, source: of, english: original } of await readRows(set, Abroad))
      add({
        text,
        key: original ?? text,
        set,
        source: of,
        language: lang,
        harmful: false,
        weight: of === 'or-bench-hard' ? 1 : set === 'honest-multilingual' ? 5 : 3,
      })
  for (const { prompt: text, injection } of await readRows('prompt-injection', Injected))
    if (injection === 0) add({ ...english, text, key: text, set: 'prompt-injection', harmful: false, weight: 1 })
  for (const [index, { prompt: asked, texts }] of (await readRows('evergreenqa', Questions)).entries())
    if (index % 2 === 0)
      for (const [language, text] of Object.entries(texts))
        add({ text, key: asked, set: 'evergreenqa', source: '', language, harmful: false, weight: 0.5 })
  for (const { prompt: text, lang, source: of, english: original, clear } of await readRows(
    'harmful-multilingual',
    Abroad,
  ))
    if (clear === 1)
      add({
        text,
        key: original ?? text,
        set: 'harmful-multilingual',
        source: of,
        language: lang,
        harmful: true,
        weight: 2,
      })
  for (const [language, texts] of Object.entries(honestWorld))
    for (const text of texts) add({ text, key: null, set: 'own', source: '', language, harmful: false, weight: 3 })
  return rows
}

function createPartReader() {
  const readFeatures = createFeatureReader()
  const readNotions = createNotionReader()
  const filler = createNotionSlots()
  return (text: string, harmful: boolean, weight: number): Part[] => {
    const features = readFeatures(text)
    readNotions.begin(features)
    const getPart = (from: number, to: number, weight: number): Part => {
      const read = readNotions.read(from, to)
      const filled = filler.fill(read, features, from, to)
      return {
        read: { ...read, found: read.found.slice(0, read.count) },
        example: {
          slots: filler.slots.slice(0, filled),
          values: filler.values.slice(0, filled),
          classes: [harmful ? 1 : 0],
          weight,
        },
      }
    }
    const parts = [getPart(0, features.count, weight)]
    eachPart(features, (from, to) => parts.push(getPart(from, to, weight * partWeight)))
    return parts
  }
}

type Judged = { readonly row: Row; readonly blocked: boolean }

/**
 * Evaluates rows by a model that has not seen those of their group, their translations, or their `kin`; null = not
 * evaluated.
 */
function judgedUnseen(
  rows: readonly Row[],
  findGroup: (row: Row) => string | null,
  findKin: (row: Row) => string | null = findGroup,
): Judged[] {
  const judged: Judged[] = []
  for (const group of new Set(rows.map(findGroup))) {
    if (group === null) continue
    const heldOut = rows.filter(row => findGroup(row) === group)
    const keys = new Set(heldOut.map(({ key }) => key))
    const kin = new Set(heldOut.map(findKin))
    const learnt = rows.filter(row => !kin.has(findKin(row) ?? '') && (row.key === null || !keys.has(row.key)))
    const weights = train(learnt.flatMap(getExamples), settings)
    for (const row of heldOut) judged.push({ row, blocked: row.parts.some(part => isBlocked(weights, part)) })
  }
  return judged
}

function isBlocked(weights: Float32Array, { example: { slots, values }, read }: Part): boolean {
  let sum = 0
  for (let at = 0; at < slots.length; at++) sum += (weights[slots[at] ?? 0] ?? 0) * (values?.[at] ?? 0)
  return read.language !== 0 && read.count > 0 && asksForHarm(sum, read)
}

function getFigures(rows: readonly Row[]): ReportRow[] {
  const byText = judgedUnseen(rows, ({ key }) => (key === null ? null : String(getFold(key, folds))))
  const bySource = judgedUnseen(rows, ({ set, source }) => (set === 'harmful-multilingual' ? source : null))
  const languages = [...new Set(rows.filter(({ set }) => set === 'harmful-multilingual').map(row => row.language))]
  const findGroup = ({ set, language }: Row) =>
    set === 'harmful-multilingual' ? String(languages.indexOf(language) % folds) : null
  const byLanguage = judgedUnseen(
    rows,
    row => (row.key === null || findGroup(row) === null ? null : `${findGroup(row)} ${getFold(row.key, 2)}`),
    // Excludes the language completely, including its harmless texts.
    ({ language }) => (languages.includes(language) ? String(languages.indexOf(language) % folds) : null),
  )
  const harmful = (judged: readonly Judged[]) => judged.filter(({ row }) => row.set === 'harmful-multilingual')
  const honest = byText.filter(({ row }) => row.set === 'honest-multilingual')
  return [
    ...spread('harmful in 15 languages', '≥ .65', harmful(byText), ({ language }) => language),
    ...spread('  languages left out', '', harmful(byLanguage), ({ language }) => language),
    ...spread('  sources left out', '', harmful(bySource), ({ source: of }) => of),
    ...spread(
      'real-user-prompts in other languages, refused',
      '≤ .004',
      byText.filter(({ row }) => row.set === 'real-user-prompts' && row.language !== 'en'),
      ({ language }) => language,
    ),
    ...spread('honest in other languages, refused', '≤ .005', honest, ({ language }) => language),
  ]
}

/** Returns the share of blocked rows by group, and their mean. */
function spread(name: string, goal: string, judged: readonly Judged[], getGroup: (row: Row) => string): ReportRow[] {
  const shares = [...Map.groupBy(judged, ({ row }) => getGroup(row))]
    .map(([group, those]) => ({ group, share: those.filter(({ blocked }) => blocked).length / those.length }))
    .sort((item, other) => item.share - other.share)
  const mean = shares.reduce((sum, { share }) => sum + share, 0) / shares.length
  const all = judged.filter(({ blocked }) => blocked).length / judged.length
  return [
    { name: `${name}, mean (all)`, goal, reference: '', measured: `${mean.toFixed(3)} (${all.toFixed(3)})` },
    {
      name: '    each',
      goal: '',
      reference: '',
      measured: shares.map(({ group, share }) => `${group} ${share.toFixed(2)}`).join(' '),
    },
  ]
}
