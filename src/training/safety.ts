/**
 * Trains the two classifiers of `text/harm/harm-features.ts`. In addition to the labeled sets they use the
 * project's sentences (`data/frames.json`) and, as harmless, all other prompts, since everyday prompts must not be
 * blocked.
 */

import { encodeWeights } from '../text/analysis/feature-slots.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createDeedReader } from '../text/harm/deeds.ts'
import { blocksPart, isBlocked } from '../text/harm/harm-classifier.ts'
import { createHarmJudge, type Harm } from '../text/harm/harm-features.ts'
import { featureWeight, findParts, getRegion, type HarmHead, harmHeads, harmSlots } from '../text/harm/harm-slots.ts'
import { compileRules, findBlockingRule, moderationRules } from '../text/rules/pattern-rules.ts'
import { readRows } from './data.ts'
import { type Example, train } from './linear.ts'
import { type ModerationExample, moderationExamples } from './templates.ts'
import { leftOut, type ReportRow, shares, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

type Tuning = {
  /** Weights of words, neighbors and kinds. */
  readonly regions: readonly [number, number, number]
  readonly decay: number
  readonly rate: number
}

/** Set by cross-validation. Content depends on word kinds; requests on words too. */
const tuning: Readonly<Record<HarmHead, Tuning>> = {
  request: { regions: [1, 0.4, 1.2], decay: 4e-3, rate: 0.1 },
  content: { regions: [0.3, 0.1, 1], decay: 1e-2, rate: 0.3 },
}
const epochs = 12
/**
 * Weight of a sentence of a harmless text relative to the whole, and of a sentence of a text that is not a request as a
 * whole.
 */
const partWeight = 0.3
const examWeight = 0.5

/** Reads the training data of the classifiers. */
export async function readModeration(): Promise<TrainingJob> {
  const rows = await labelledRows()
  const parts = rows.map(({ slots, parts, truth, weight }) => [slots, ...parts.map(part => part.slots), truth, weight])
  return { examples: trainingDigest({ tuning, epochs }, parts), learn: async () => trained(rows) }
}

function trained(rows: readonly Row[]): Trained {
  const models = harmHeads.map((head, index) => fit(rows, head, index + 1))
  const scales = models.map(
    ({ weights }) => weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0) / 127,
  )
  const bytes = new Int8Array(harmSlots * harmHeads.length)
  for (const [index, { weights }] of models.entries())
    for (let slot = 0; slot < harmSlots; slot++)
      bytes[slot * harmHeads.length + index] = Math.round((weights[slot] ?? 0) / (scales[index] ?? 1))
  return {
    weights: {
      source:
        'bun run train: harmful-requests, xstest, moderation-openai, prompt-injection, the sets of everyday prompts, and data/frames.json',
      scale: Object.fromEntries(harmHeads.map((head, index) => [head, scales[index] ?? 1])),
      bias: Object.fromEntries(harmHeads.map((head, index) => [head, models[index]?.bias ?? 0])),
      weights: encodeWeights(bytes),
    },
    figures: getFigures(rows),
  }
}

type Model = { readonly weights: Float32Array; readonly bias: number }

/** Trains one classifier. The bias is a slot that every text has. */
function fit(rows: readonly Row[], head: HarmHead, seed: number): Model {
  const { regions, decay, rate } = tuning[head]
  const getExample = (slots: Int32Array, truth: number, weight: number): Example => {
    const loud = featureWeight(slots.length)
    const values = new Float32Array(slots.length + 1).fill(1)
    for (let at = 0; at < slots.length; at++) values[at] = loud * (regions[getRegion(slots[at] ?? 0)] ?? 0)
    const all = new Int32Array(slots.length + 1)
    all.set(slots)
    all[slots.length] = harmSlots
    return { slots: all, values, classes: [truth], weight }
  }
  const examples: Example[] = []
  for (const { slots, parts, truth, weight } of rows) {
    if (weight[head] > 0) examples.push(getExample(slots, truth[head], weight[head]))
    // Every part of a harmless text is harmless, but a harmful text may have only one harmful part.
    if (head !== 'request' || truth.request === 1) continue
    for (const part of parts)
      examples.push(getExample(part.slots, 0, Math.max(examWeight, weight.request) * partWeight))
  }
  const trained = train(examples, { size: harmSlots + 1, epochs, rate, decay, seed })
  const weights = trained.subarray(0, harmSlots).map((value, slot) => value * (regions[getRegion(slot)] ?? 0))
  return { weights, bias: trained[harmSlots] ?? 0 }
}

function logOdds({ weights, bias }: Model, slots: Int32Array): number {
  let sum = 0
  for (const slot of slots) sum += weights[slot] ?? 0
  return sum * featureWeight(slots.length) + bias
}

/**
 * Evaluates patterns and classifier together, as in the service, by models that learned nothing of the source; there are no
 * labeled texts for URLs.
 */
function getFigures(rows: readonly Row[]): ReportRow[] {
  const rules = compileRules(moderationRules)
  const readFeatures = createFeatureReader()
  const readDeeds = createDeedReader()
  const told = leftOut(
    rows,
    row => row.source,
    (learned, seed) => harmHeads.map((head, index) => ({ head, model: fit(learned, head, seed * 10 + index + 1) })),
    (models, row) => ({
      row,
      blocked:
        findBlockingRule(rules, row.text, 'prompt') !== null ||
        isBlocked(getOdds(models, row)) ||
        readDeeds(readFeatures(row.text)) !== null ||
        row.parts.some(part => blocksPart(getOdds(models, part), row.parts.length)),
    }),
  )
  const blocked = (name: string, goal: string, isHarm: boolean) =>
    shares(
      `${name}, source left out`,
      goal,
      told.filter(({ row: { truth, isInjection } }) => (truth.request === 1 || isInjection === true) === isHarm),
      ({ row }) => row.source ?? '',
      ({ blocked: isBlocked }) => isBlocked,
    )
  return [...blocked('harm caught', '≥ .65', true), ...blocked('honest refused', '≤ .005', false)]
}

type Models = readonly { readonly head: HarmHead; readonly model: Model }[]

function getOdds(models: Models, { slots, kinds }: Pick<Row, 'slots' | 'kinds'>) {
  const odds = { request: 0, content: 0, evidence: slots.length, kinds }
  for (const { head, model } of models) odds[head] = logOdds(model, slots)
  return odds
}

/** A labeled text: the target of each classifier, and its weight (0 = unlabeled). */
type Row = {
  readonly text: string
  /** Rows of one source are left out together; null = only learned from. */
  readonly source: string | null
  readonly truth: Readonly<Record<HarmHead, number>>
  readonly weight: Readonly<Record<HarmHead, number>>
  /** Only the rules are to catch it. */
  readonly isInjection?: boolean
  readonly slots: Int32Array
  /** Number of words of each kind. */
  readonly kinds: Uint16Array
  /** Its sentences, if it has several. */
  readonly parts: readonly Pick<Row, 'slots' | 'kinds'>[]
}

/** Returns all training rows in a fixed order. */
async function labelledRows(): Promise<Row[]> {
  const read = createRowReader()
  const rows = [...(await labelledSets()), ...(await everydayPrompts()), ...moderationExamples().map(rowOfExample)]
  // A template's placeholder identifies the collection, not the attack.
  return rows.map(row => ({ ...row, ...read(row.text.replace('[INSERT PROMPT HERE]', '')) }))
}

/** Creates a reader of a text's features for the classifiers. */
function createRowReader(): (text: string) => Pick<Row, 'slots' | 'kinds' | 'parts'> {
  const read = createFeatureReader()
  const { judge, slots } = createHarmJudge()
  const told = ({ evidence, kinds }: Harm) => ({ slots: slots.slice(0, evidence), kinds: kinds.slice() })
  return text => {
    const features = read(text)
    const whole = told(judge(features, 0, features.count))
    const parts: Row['parts'][number][] = []
    for (const [from, to] of findParts(features)) parts.push(told(judge(features, from, to)))
    return { ...whole, parts }
  }
}

type Labelled = Omit<Row, 'slots' | 'kinds' | 'parts'>

const truth = (request: number, content: number) => ({ request, content })
const weight = truth
const nothing = truth(0, 0)

async function labelledSets(): Promise<Labelled[]> {
  const rows: Labelled[] = []
  const add = (text: string, source: string, truth: Row['truth'], weight: Row['weight']) =>
    rows.push({ text, source, truth, weight })
  // Few, but phrased as in practice, so they weigh more than all of the project's sentences.
  for (const { prompt, unsafe, source } of await readRows('harmful-requests', 'prompt', 'unsafe', 'source'))
    add(prompt, source, truth(unsafe, 0), unsafe === 1 ? weight(7, 0) : weight(1, 0.5))
  for (const { prompt, unsafe } of await readRows('xstest', 'prompt', 'unsafe'))
    add(prompt, 'xstest', truth(unsafe, 0), weight(1, unsafe === 1 ? 0 : 0.5))
  for (const { prompt, flagged: is } of await readRows('moderation-openai', 'prompt', 'flagged'))
    add(prompt, 'moderation-openai', truth(is, is), weight(is === 1 ? 0.1 : 2, 1))
  for (const { prompt, injection: is } of await readRows('prompt-injection', 'prompt', 'injection')) {
    const counts = is === 0 && isKnownJailbreak(prompt) ? nothing : weight(is === 1 ? 0 : 1, 0.3)
    rows.push({ text: prompt, source: 'prompt-injection', truth: nothing, weight: counts, isInjection: is === 1 })
  }
  // Harmless requests that sound alarming. Some of the first source are borderline, so they weigh less.
  for (const { prompt, source } of await readRows('honest-hot-words', 'prompt', 'source'))
    add(prompt, source, nothing, weight(source === 'or-bench-hard' ? 1 : 2, 0.3))
  return rows
}

/** Returns true for a known jailbreak that some sets label as harmless, which would be a wrong label. */
function isKnownJailbreak(text: string): boolean {
  return text.includes('known as DAN')
}

/** Exam questions cover every topic, including morals and crime, but are not requests for harm. */
const examSet = 'routellm-mmlu'
/**
 * Sets of prompts by users or tests, which must not be dominated by the project's sentences; every fourth prompt of the
 * large ones.
 */
const realUsers = 'real-user-prompts'
const everydaySets = [
  'query-types',
  'query-types-2',
  'query-families',
  'enhance-gate',
  'freshqa',
  'retrievalqa',
  'routellm-mtbench',
  realUsers,
]
const largeSets = ['evergreenqa', 'llmrouter-9models', examSet]

async function everydayPrompts(): Promise<Labelled[]> {
  const rows: Labelled[] = []
  // Parts of it are also in other sets.
  const users = new Set((await readRows(realUsers, 'prompt')).map(({ prompt: text }) => text))
  const seen = new Set<string>()
  for (const set of [...everydaySets, ...largeSets]) {
    const isLarge = largeSets.includes(set)
    const counts = isLarge ? weight(set === examSet ? 0 : 0.5, 0.1) : weight(3, 0.3)
    for (const [index, { prompt: text }] of (await readRows(set, 'prompt')).entries()) {
      if ((isLarge && index % 4 !== 0) || seen.has(text) || isKnownJailbreak(text)) continue
      seen.add(text)
      rows.push({ text, source: users.has(text) ? realUsers : null, truth: nothing, weight: counts })
    }
  }
  return rows
}

function rowOfExample({ text, lesson, harmful: isHarmful }: ModerationExample): Labelled {
  const is = isHarmful ? 1 : 0
  const row = { text, source: null }
  switch (lesson) {
    case 'request':
      // The real prompts decide what is harmful; the project's only add vocabulary.
      return { ...row, truth: truth(is, 0), weight: isHarmful ? weight(0.25, 0) : weight(0.9, 0.06) }
    case 'everyday':
      return { ...row, truth: nothing, weight: weight(3, 0) }
    case 'content':
      return { ...row, truth: truth(is, is), weight: weight(isHarmful ? 0 : 0.2, 0.3) }
    case 'jailbreak':
      return { ...row, truth: nothing, weight: isHarmful ? nothing : weight(0.2, 0.05) }
  }
}
