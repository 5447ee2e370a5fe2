/**
 * Trains the detector of harmful requests in any language (`text/harm/world.ts`) on requests in English and
 * fifteen other languages, against everyday prompts in as many. Notions are shared by all languages, words belong to
 * one.
 */
import { createSlots } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader, type Notions } from '../text/analysis/notions.ts'
import { findParts } from '../text/harm/harm-slots.ts'
import { asksForHarm, fillWorldSlots, worldBits } from '../text/harm/world.ts'
import honestWorld from './data/honest-world.json'
import { readRows } from './data.ts'
import { type Example, filledExample, train } from './linear.ts'
import { moderationExamples } from './templates.ts'
import { leftOut, type ReportRow, shares, type TrainingJob, tableJob } from './training-job.ts'

const settings = { size: 2 ** worldBits, epochs: 8, rate: 0.1, decay: 1e-3, seed: 3 }
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
  for (const { prompt: text, unsafe, source } of await readRows('harmful-requests', 'prompt', 'unsafe', 'source'))
    add(text, { set: 'harmful-requests', source }, unsafe === 1, unsafe === 1 ? 4 : 1)
  for (const { prompt: text, unsafe } of await readRows('xstest', 'prompt', 'unsafe'))
    add(text, { set: 'xstest' }, unsafe === 1, 1)
  for (const { text, lesson, harmful } of moderationExamples())
    if (lesson === 'request' || lesson === 'everyday')
      add(text, { set: 'own', key: null }, harmful, harmful ? 0.25 : lesson === 'everyday' ? 3 : 0.6)
  for (const set of everyday) for (const { prompt: text } of await readRows(set, 'prompt')) add(text, { set }, false, 3)
  for (const set of ['real-user-prompts', 'query-types-2', 'honest-hot-words', 'honest-multilingual'] as const)
    for (const { prompt: text, lang: language, source, english } of await readRows(
      set,
      'prompt',
      'lang',
      'source',
      'english',
    )) {
      const weight = source === 'or-bench-hard' ? 1 : set === 'honest-multilingual' ? 5 : 3
      add(text, { set, key: english ?? text, source, language }, false, weight)
    }
  for (const { prompt: text, injection } of await readRows('prompt-injection', 'prompt', 'injection'))
    if (injection === 0) add(text, { set: 'prompt-injection' }, false, 1)
  for (const [index, { prompt: asked, texts }] of (await readRows('evergreenqa', 'prompt', 'texts')).entries())
    if (index % 2 === 0)
      for (const [language, text] of Object.entries(texts))
        add(text, { set: 'evergreenqa', key: asked, language }, false, 0.5)
  const abroad = 'harmful-multilingual'
  for (const { prompt: text, lang: language, source, english, clear } of await readRows(
    abroad,
    'prompt',
    'lang',
    'source',
    'english',
    'clear',
  ))
    if (clear === 1) add(text, { set: abroad, key: english ?? text, source, language }, true, 2)
  for (const [language, texts] of Object.entries(honestWorld))
    for (const text of texts) add(text, { set: 'own', key: null, language }, false, 3)
  return rows
}

function createPartReader() {
  const readFeatures = createFeatureReader()
  const readNotions = createNotionReader()
  const slots = createSlots(worldBits)
  return (text: string, harmful: boolean, weight: number): Part[] => {
    const features = readFeatures(text)
    readNotions.begin(features)
    const getPart = (from: number, to: number, weight: number): Part => {
      const read = readNotions.read(from, to)
      fillWorldSlots(slots, read, features, [from, to])
      return {
        read: { ...read, found: read.found.slice(0, read.count) },
        example: filledExample(slots, [harmful ? 1 : 0], weight),
      }
    }
    const parts = [getPart(0, features.count, weight)]
    for (const [from, to] of findParts(features)) parts.push(getPart(from, to, weight * partWeight))
    return parts
  }
}

function isBlocked(weights: Float32Array, { example: { slots, values }, read }: Part): boolean {
  let sum = 0
  for (let at = 0; at < slots.length; at++) sum += (weights[slots[at] ?? 0] ?? 0) * (values?.[at] ?? 0)
  return read.language !== 0 && read.count > 0 && asksForHarm(sum, read)
}

/** Judges rows of other languages by models that saw neither their source nor a translation of them. */
function getFigures(rows: readonly Row[]): ReportRow[] {
  const judged = ['harmful-multilingual', 'honest-multilingual', 'real-user-prompts']
  const getSource = ({ set, source, language }: Row) =>
    judged.includes(set) && language !== 'en' ? `${set} ${source}` : null
  const told = leftOut(
    rows,
    getSource,
    learned => train(learned.flatMap(getExamples), settings),
    (weights, row) => ({ row, blocked: row.parts.some(part => isBlocked(weights, part)) }),
    heldOut => {
      const keys = new Set(heldOut.map(({ key }) => key))
      return row => row.key !== null && keys.has(row.key)
    },
  )
  const blocked = (name: string, goal: string, isHarm: boolean, getGroup: (row: Row) => string) =>
    shares(
      `${name}, source left out`,
      goal,
      told.filter(({ row }) => row.harmful === isHarm),
      ({ row }) => getGroup(row),
      ({ blocked: isBlocked }) => isBlocked,
    )
  return [
    ...blocked('harm caught by language', '≥ .72', true, ({ language }) => language),
    ...blocked('harm caught by source', '', true, ({ source }) => source),
    ...blocked('honest refused by language', '≤ .005', false, ({ language }) => language),
  ]
}
