import type { Level } from '../models/capability-levels.ts'
import { createDifficultyHead, examShare, mixedGain } from '../text/analysis/difficulty.ts'
import {
  createEffortHead,
  createEffortSlots,
  effortNotionSlots,
  effortWords,
  fillEffortSlots,
  type KeptEffort,
} from '../text/analysis/effort.ts'
import { createFeatureReader } from '../text/analysis/features.ts'
import { createNotionReader } from '../text/analysis/notions.ts'
import { percentileRank } from '../text/analysis/quality-gain.ts'
import gain from '../text/weights/gain.json'
import file from './data/effort.json'
import { readRows } from './data.ts'
import { areaFigures, getQuantiles, getSet, scoresUnseen } from './gain.ts'
import { nineModels, readGainRows, twoModels } from './gain-rows.ts'
import { type Example, filledFeatures, train } from './linear.ts'
import { effortExamples, typedSentences } from './templates.ts'
import { figure, leftOut, stored, type TrainingJob } from './training-job.ts'

/** Weights set by hand for signs of hard and routine work; learned weights are regularized toward them. */
const priors: Readonly<Record<string, number>> = file.priors

const bits = 13
const settings = {
  size: 2 ** bits,
  classes: 1,
  ridge: 1,
  steps: 60,
  /** Strength of that regularization. */
  prior: 1.5,
  /** Examples per line with several. */
  each: 4,
  /** Weight of a pair's prompt relative to one of the project's own. */
  pairWeight: 0.7,
  /** Total weight of the project's requests against the sets' questions, per set. */
  setWeight: 600,
}

const pairSet = 'difficulty-pairs'
const readPairs = () => readRows(pairSet, 'easy', 'hard', 'easy_level', 'hard_level')

/** An example for one of the two classifiers: of effort, or of exam questions. `set` null = the project's own. */
type Row = { readonly of: 'effort' | 'exam'; readonly set: string | null; readonly example: Example }

/** Reads the training data of the effort classifier: the project's prompts, the pairs, and benchmark questions. */
export async function readEffort(): Promise<TrainingJob> {
  const rows = await readAll()
  return {
    settings: { ...settings, priors },
    examples: rows.map(({ example }) => example),
    learn: async () => ({
      weights: fitEffort(rows),
      figures: [...(await pairFigures(rows)), ...(await unseenAreas(rows))],
    }),
  }
}

const read = createFeatureReader()
const notionReader = createNotionReader(true, true)
const slots = createEffortSlots(bits)

function readText(text: string) {
  const features = read(text)
  notionReader.begin(features)
  return { features, notions: notionReader.read(0, Math.min(features.count, effortWords)) }
}

function getRow(of: Row['of'], set: string | null, text: string, value: number, weight: number): Row {
  const { features, notions } = readText(text)
  fillEffortSlots(slots, features, notions)
  return { of, set, example: { ...filledFeatures(slots), classes: [value], weight } }
}

async function readAll(): Promise<Row[]> {
  const { each, pairWeight, setWeight } = settings
  const rows: Row[] = []
  /** A prompt of the middle level counts half for each side. */
  const add = (set: string | null, text: string, level: Level, weight: number) => {
    const share = level === 'middle' ? 0.5 : 1
    if (level !== 'light') rows.push(getRow('effort', set, text, 1, weight * share))
    if (level !== 'strong') rows.push(getRow('effort', set, text, 0, weight * share))
  }
  const prompts = effortExamples(each)
  for (const { text, label } of prompts) add(null, text, label, 1)
  for (const { easy, hard, easy_level, hard_level } of await readPairs()) {
    add(pairSet, easy, easy_level, pairWeight)
    add(pairSet, hard, hard_level, pairWeight)
  }
  for (const set of [...twoModels, nineModels]) {
    // Its prompts are mostly from users.
    if (set === 'routellm-mtbench') continue
    const questions = await readRows(set, 'prompt')
    for (const { prompt } of questions) rows.push(getRow('exam', set, prompt, 1, setWeight / questions.length))
  }
  for (const { text } of [...prompts, ...typedSentences(2).filter(({ label }) => label !== 'math')])
    rows.push(getRow('exam', null, text, 0, 1))
  return rows
}

/** Trains both models. */
function fitEffort(rows: readonly Row[]): KeptEffort {
  const start = new Float32Array(settings.size)
  for (const [notion, weight] of Object.entries(priors))
    for (const [index, { place, value }] of effortNotionSlots(notion, bits).entries())
      start[place] = (settings.prior * weight) / 2 ** index / value
  const fit = (name: Row['of'], more: object) => {
    const examples = rows.filter(({ of }) => of === name).map(({ example }) => example)
    return stored(train(examples, { ...settings, ...more }), 4)
  }
  return { effort: fit('effort', { start }), exam: fit('exam', {}) }
}

/** Returns how benchmark questions and requests rank, by models that have not seen the set. */
async function unseenAreas(examples: readonly Row[]): Promise<string[]> {
  const rows = await readGainRows()
  const scores = scoresUnseen(rows, getSet)
  const ranks = getQuantiles(rows, scores)
  const gains = leftOut(
    rows.map((row, index) => ({ ...row, rank: percentileRank(ranks, scores[index] ?? 0) })),
    getSet,
    learned => {
      const sets = new Set([null, pairSet, ...learned.map(({ set }) => set)])
      return createEffortHead(fitEffort(examples.filter(({ set }) => sets.has(set))))
    },
    (head, { prompt, rank }) => {
      const { features, notions } = readText(prompt)
      const { effort, examChance } = head(features, notions)
      return mixedGain(rank, effort, examShare(examChance))
    },
  )
  return areaFigures(rows, gains)
}

/** Judges the pairs by models that learned from none of them. */
async function pairFigures(rows: readonly Row[]): Promise<string[]> {
  const head = createDifficultyHead(gain, fitEffort(rows.filter(({ set }) => set !== pairSet)))
  const getGain = (text: string) => {
    const { features, notions } = readText(text)
    return head.strongGain(features, notions)
  }
  const pairs = await readPairs()
  const inOrder = pairs.filter(({ easy, hard }) => getGain(hard) > getGain(easy))
  const getGains = (level: Level) =>
    pairs
      .flatMap(({ easy, hard, easy_level, hard_level }) => [
        { text: easy, of: easy_level },
        { text: hard, of: hard_level },
      ])
      .flatMap(({ text, of }) => (of === level ? [getGain(text)] : []))
  const [light, strong] = [getGains('light'), getGains('strong')]
  const asLight = strong.filter(gain => gain < 0.4)
  const asStrong = light.filter(gain => gain >= 0.7)
  return [
    figure('pairs in order', inOrder.length / pairs.length, '≥ .92'),
    figure('  strong prompts called light', asLight.length / strong.length, '≤ .02'),
    figure('  light prompts called strong', asStrong.length / light.length, '≤ .03'),
  ]
}
