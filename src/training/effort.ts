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
import { areaFigures, getQuantiles, scoresUnseen } from './gain.ts'
import { nineModels, readGainRows, twoModels } from './gain-rows.ts'
import { type Example, filledExample, trainLbfgs } from './linear.ts'
import { effortExamples, typedSentences } from './templates.ts'
import { figure, getParts, type ReportRow, stored, type TrainingJob, trainingDigest } from './training-job.ts'

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

type DifficultyPair = Awaited<ReturnType<typeof readPairs>>[number]
const readPairs = () => readRows('difficulty-pairs', 'easy', 'hard', 'easy_level', 'hard_level')

/** An example for the classifier of exam questions; `set` '' = no question, which is never left out. */
type ExamRow = { readonly example: Example; readonly set: string }

type Material = {
  readonly own: readonly Example[]
  readonly pairs: readonly DifficultyPair[]
  readonly exams: readonly ExamRow[]
}

/** Reads the training data of the effort classifier: the project's prompts, the pairs, and benchmark questions. */
export async function readEffort(): Promise<TrainingJob> {
  const material = await readEffortMaterial()
  const { own, pairs, exams } = material
  return {
    examples: trainingDigest(
      { ...settings, priors },
      [...own, ...pairs.flatMap(pairExamples), ...exams.map(({ example }) => example)].map(getParts),
    ),
    learn: async () => ({
      weights: { source, ...fitEffort(material) },
      figures: [...pairFigures(material), ...(await unseenAreas(material))],
    }),
  }
}

const source =
  'prompts of our own (src/training/data/effort.json), difficulty-pairs (development half, a small part), and which texts are benchmark questions'

const read = createFeatureReader()
const notionReader = createNotionReader(true, true)
const slots = createEffortSlots(bits)

function readText(text: string) {
  const features = read(text)
  notionReader.begin(features)
  return { features, notions: notionReader.read(0, Math.min(features.count, effortWords)) }
}

function getExample(text: string, value: number, weight: number): Example {
  const { features, notions } = readText(text)
  fillEffortSlots(slots, features, notions)
  return filledExample(slots, [value], weight)
}

/** A prompt of the middle level counts half for each side. */
function getExamples(text: string, level: Level, weight: number): Example[] {
  if (level === 'middle') return [getExample(text, 1, weight / 2), getExample(text, 0, weight / 2)]
  return [getExample(text, level === 'strong' ? 1 : 0, weight)]
}

function pairExamples({ easy, hard, easy_level, hard_level }: DifficultyPair): Example[] {
  const { pairWeight } = settings
  return [...getExamples(easy, easy_level, pairWeight), ...getExamples(hard, hard_level, pairWeight)]
}

async function readEffortMaterial(): Promise<Material> {
  const prompts = effortExamples(settings.each)
  const own = prompts.flatMap(({ text, level }) => getExamples(text, level, 1))
  const exams: ExamRow[] = []
  for (const set of [...twoModels, nineModels]) {
    // Its prompts are mostly from users.
    if (set === 'routellm-mtbench') continue
    const rows = await readRows(set, 'prompt')
    for (const { prompt } of rows) exams.push({ example: getExample(prompt, 1, settings.setWeight / rows.length), set })
  }
  for (const { text } of [...prompts, ...typedSentences(2).filter(({ type }) => type !== 'math')])
    exams.push({ example: getExample(text, 0, 1), set: '' })
  return { own, pairs: await readPairs(), exams }
}

/** Trains both models. */
function fitEffort({ own, pairs, exams }: Material): KeptEffort {
  const start = new Float32Array(settings.size)
  for (const [notion, weight] of Object.entries(priors))
    for (const [index, { place, value }] of effortNotionSlots(notion, bits).entries())
      start[place] = (settings.prior * weight) / 2 ** index / value
  const effort = trainLbfgs([...own, ...pairs.flatMap(pairExamples)], { ...settings, start })
  const exam = trainLbfgs(
    exams.map(({ example }) => example),
    { ...settings, steps: 40 },
  )
  return { effort: toStoredTable(effort), exam: toStoredTable(exam) }
}

const toStoredTable = (weights: Float32Array) => ({ source: '', bits, ...stored(weights, 4) })

/** Returns how benchmark questions and requests rank, by models that have not seen the set. */
async function unseenAreas(material: Material): Promise<ReportRow[]> {
  const rows = await readGainRows()
  const ranks = getQuantiles(
    rows,
    scoresUnseen(rows, row => row.fold),
  )
  const scores = scoresUnseen(rows, row => row.set)
  const heads = new Map(
    [...new Set(rows.map(row => row.set))].map(part => [
      part,
      createEffortHead(fitEffort({ ...material, exams: material.exams.filter(({ set }) => set !== part) })),
    ]),
  )
  const gains = Float64Array.from(rows, (row, index) => {
    const { features, notions } = readText(row.prompt)
    const told = heads.get(row.set)?.(features, notions)
    if (told === undefined) return 0
    return mixedGain(percentileRank(ranks, scores[index] ?? 0), told.effort, examShare(told.examChance))
  })
  return areaFigures(rows, gains)
}

/** Judges the pairs by models that learned from none of them. */
function pairFigures(material: Material): ReportRow[] {
  const head = createDifficultyHead(gain, fitEffort({ ...material, pairs: [] }))
  const getGain = (text: string) => {
    const { features, notions } = readText(text)
    return head.strongGain(features, notions)
  }
  const judged = material.pairs.map(pair => ({ ...pair, low: getGain(pair.easy), high: getGain(pair.hard) }))
  const share = (of: Level, is: (gain: number) => boolean) => {
    const gains = judged.flatMap(({ low, high, easy_level, hard_level }) => [
      ...(easy_level === of ? [low] : []),
      ...(hard_level === of ? [high] : []),
    ])
    return gains.filter(is).length / gains.length
  }
  return [
    figure('pairs in order', judged.filter(({ low, high }) => high > low).length / judged.length, '≥ .92'),
    figure(
      '  strong prompts called light',
      share('strong', value => value < 0.4),
      '≤ .02',
    ),
    figure(
      '  light prompts called strong',
      share('light', value => value >= 0.7),
      '≤ .03',
    ),
  ]
}
