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
import honestWorld from './data/honest-world.json'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { moderationExamples } from './frames.ts'
import { type Example, train } from './linear.ts'
import { leftOut, type ReportRow, shares, type TrainingJob, tableJob } from './training-job.ts'

const settings = { size: notionSlots, classes: 1, epochs: 8, rate: 0.1, decay: 1e-3, seed: 3 }
/** Parts of the texts, or of the languages, that are left out together. */
const folds = 4
/** Weight of a sentence of a harmless text relative to the whole. */
const partWeight = 0.5

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
  return tableJob({
    source,
    settings,
    limit: 4,
    examples: rows.flatMap(getExamples),
    fit: examples => train(examples, settings),
    figures: () => getFigures(rows),
  })
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
  type Origin = { readonly set: string } & Partial<Pick<Row, 'key' | 'source' | 'language'>>
  const add = (text: string, origin: Origin, harmful: boolean, weight: number) => {
    const parts = toParts(text, harmful, weight)
    rows.push({ key: text, source: '', language: 'en', ...origin, text, harmful, weight, parts })
  }
  for (const { prompt: text, unsafe, source } of await readRows('harmful-requests', Harmful))
    add(text, { set: 'harmful-requests', source }, unsafe === 1, unsafe === 1 ? 4 : 1)
  for (const { prompt: text, unsafe } of await readRows('xstest', Contrast))
    add(text, { set: 'xstest' }, unsafe === 1, 1)
  for (const { text, lesson, harmful } of moderationExamples())
    if (lesson === 'request' || lesson === 'everyday')
      add(text, { set: 'own', key: null }, harmful, harmful ? 0.25 : lesson === 'everyday' ? 3 : 0.6)
  for (const set of everyday) for (const { prompt: text } of await readRows(set, Plain)) add(text, { set }, false, 3)
  for (const set of ['real-user-prompts', 'query-types-2', 'honest-hot-words', 'honest-multilingual'] as const)
    for (const { prompt: text, lang: language, source, english } of await readRows(set, Abroad)) {
      const weight = source === 'or-bench-hard' ? 1 : set === 'honest-multilingual' ? 5 : 3
      add(text, { set, key: english ?? text, source, language }, false, weight)
    }
  for (const { prompt: text, injection } of await readRows('prompt-injection', Injected))
    if (injection === 0) add(text, { set: 'prompt-injection' }, false, 1)
  for (const [index, { prompt: asked, texts }] of (await readRows('evergreenqa', Questions)).entries())
    if (index % 2 === 0)
      for (const [language, text] of Object.entries(texts))
        add(text, { set: 'evergreenqa', key: asked, language }, false, 0.5)
  const abroad = 'harmful-multilingual'
  for (const { prompt: text, lang: language, source, english, clear } of await readRows(abroad, Abroad))
    if (clear === 1) add(text, { set: abroad, key: english ?? text, source, language }, true, 2)
  for (const [language, texts] of Object.entries(honestWorld))
    for (const text of texts) add(text, { set: 'own', key: null, language }, false, 3)
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

function isBlocked(weights: Float32Array, { example: { slots, values }, read }: Part): boolean {
  let sum = 0
  for (let at = 0; at < slots.length; at++) sum += (weights[slots[at] ?? 0] ?? 0) * (values?.[at] ?? 0)
  return read.language !== 0 && read.count > 0 && asksForHarm(sum, read)
}

/** Judges rows by a model that saw neither their group, nor their kin, nor a translation of them. */
function unseen(
  rows: readonly Row[],
  findGroup: (row: Row) => string | null,
  findKin: (row: Row) => string | null = findGroup,
): Judged[] {
  return leftOut(
    rows,
    findGroup,
    learned => train(learned.flatMap(getExamples), settings),
    (weights, row) => ({ row, blocked: row.parts.some(part => isBlocked(weights, part)) }),
    heldOut => {
      const keys = new Set(heldOut.map(({ key }) => key))
      const kin = new Set(heldOut.map(findKin))
      return row => kin.has(findKin(row) ?? '') || (row.key !== null && keys.has(row.key))
    },
  )
}

function getFigures(rows: readonly Row[]): ReportRow[] {
  const ofSet = (set: string) => rows.filter(row => row.set === set)
  const languages = [...new Set(ofSet('harmful-multilingual').map(row => row.language))]
  const findGroup = ({ language }: Row) =>
    languages.includes(language) ? String(languages.indexOf(language) % folds) : null
  const bySource = unseen(rows, ({ set, source, language }) =>
    set === 'harmful-multilingual' ||
    set === 'honest-multilingual' ||
    (set === 'real-user-prompts' && language !== 'en')
      ? `${set} ${source}`
      : null,
  )
  const byLanguage = unseen(
    rows,
    row => (row.key === null || row.set !== 'harmful-multilingual' ? null : `${findGroup(row)} ${getFold(row.key, 2)}`),
    // Excludes the language completely, including its harmless texts.
    findGroup,
  )
  const byText = unseen(rows, ({ key }) => (key === null ? null : String(getFold(key, folds))))
  const blocked = (name: string, goal: string, set: string, told: readonly Judged[]) =>
    shares(
      name,
      goal,
      told.filter(({ row }) => row.set === set && row.language !== 'en'),
      ({ row }) => row.language,
      judged => judged.blocked,
    )
  return [
    ...[
      { how: 'texts', told: byText },
      { how: 'sources', told: bySource },
    ].flatMap(({ how, told }) => [
      ...blocked(`harmful, ${how} left out`, '≥ .72', 'harmful-multilingual', told),
      ...blocked(`real users, ${how} left out: refused`, '≤ .005', 'real-user-prompts', told),
      ...blocked(`honest, ${how} left out: refused`, '≤ .005', 'honest-multilingual', told),
    ]),
    ...shares(
      'harmful, by source left out',
      '',
      bySource.filter(({ row }) => row.set === 'harmful-multilingual'),
      ({ row }) => row.source,
      judged => judged.blocked,
    ),
    ...blocked('harmful, languages left out', '', 'harmful-multilingual', byLanguage),
  ]
}
