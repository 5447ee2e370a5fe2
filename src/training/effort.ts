import { Type } from '@sinclair/typebox'
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
import { encodeWeights } from '../text/weights/stored-weights.ts'
import { areaRecovered } from './apgr.ts'
import { readRows } from './data.ts'
import { getFold } from './folds.ts'
import { getOutcomes, getQuantiles, scoresUnseen } from './gain.ts'
import { nineModels, readGainRows, tests, twoModels } from './gain-rows.ts'
import { trainLbfgs } from './lbfgs.ts'
import { type Example, quantised } from './linear.ts'
import { effortExamples, typedSentences } from './templates.ts'
import { getParts, type ReportRow, type TrainingJob, trainingDigest } from './training-job.ts'

/** Weights set by hand for signs of hard and routine work; learned weights are regularized toward them. */
const priors: Readonly<Record<string, number>> = {
  design: 0.9,
  optimize: 0.6,
  systems: 0.9,
  science: 0.7,
  medicine: 0.6,
  legal: 0.6,
  finance: 0.6,
  ml: 0.7,
  philosophy: 0.7,
  constraint: 0.35,
  deep: 0.6,
  risk: 0.5,
  prove: 1.3,
  mathterm: 0.5,
  algo: 0.5,
  bug: 0.4,
  analyze: 0.6,
  compare: 0.1,
  plan: 0.2,
  simple: -0.7,
  routine: -1.2,
  list: -0.6,
  translate: -1,
  summary: -0.6,
  rewrite: -0.9,
  what: -0.5,
  fact: -1,
  hello: -0.6,
  advice: -0.3,
  creative: -0.3,
  text: -0.3,
  food: -0.7,
  volatile: -0.4,
}

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

const Pair = Type.Object({
  domain: Type.String(),
  language: Type.String(),
  easy: Type.String(),
  hard: Type.String(),
  easy_level: Type.Union([Type.Literal('light'), Type.Literal('middle'), Type.Literal('strong')]),
  hard_level: Type.Union([Type.Literal('light'), Type.Literal('middle'), Type.Literal('strong')]),
})
type DifficultyPair = typeof Pair.static

const Question = Type.Object({ prompt: Type.String() })

type Row = { readonly example: Example; readonly fold: number; readonly set: string }

type Material = {
  readonly own: readonly Row[]
  readonly pairs: readonly DifficultyPair[]
  /** For the classifier of exam questions. */
  readonly exams: readonly Row[]
}

/** Number of folds. A benchmark's question keeps its fold in all training jobs. */
const folds = 5

/** Reads the training data of the effort classifier: the project's prompts, the pairs, and benchmark questions. */
export async function readEffort(): Promise<TrainingJob> {
  const material = await readEffortMaterial()
  const { own, exams } = material
  return {
    examples: trainingDigest(
      { ...settings, priors },
      [...own, ...pairRows(material), ...exams].map(({ example }) => getParts(example)),
    ),
    learn: async () => ({
      weights: { source, ...fitEffort(material) },
      figures: [...getFigures(material), ...(await areaFigures(material))],
    }),
  }
}

const source =
  'prompts of our own (src/training/data/effort.json), difficulty-pairs (development half, a small part), and which texts are benchmark questions'

const read = createFeatureReader()
const notionReader = createNotionReader(true, true)
const slots = createEffortSlots(bits)

function getExample(text: string, value: number, weight: number): Example {
  const features = read(text)
  notionReader.begin(features)
  fillEffortSlots(slots, features, notionReader.read(0, Math.min(features.count, effortWords)))
  return {
    slots: Int32Array.from(slots.places.subarray(0, slots.count)),
    values: slots.values.slice(0, slots.count),
    classes: [value],
    weight,
  }
}

/** A prompt of the middle level counts half for each side. */
function getExamples(text: string, level: Level, weight: number): Example[] {
  if (level === 'middle') return [getExample(text, 1, weight / 2), getExample(text, 0, weight / 2)]
  return [getExample(text, level === 'strong' ? 1 : 0, weight)]
}

async function readEffortMaterial(): Promise<Material> {
  const own = effortExamples(settings.each).flatMap(({ text, level, field }) =>
    getExamples(text, level, 1).map(example => ({ example, fold: field, set: '' })),
  )
  const exams: Row[] = []
  for (const set of [...twoModels, nineModels]) {
    // Its prompts are mostly from users.
    if (set === 'routellm-mtbench') continue
    const rows = await readRows(set, Question)
    for (const { prompt } of rows) {
      const question = prompt.split('\nAfter careful thought')[0] ?? prompt
      const example = getExample(prompt, 1, settings.setWeight / rows.length)
      exams.push({ example, fold: getFold(question, folds), set })
    }
  }
  const requests = [
    ...effortExamples(settings.each).map(({ text }) => text),
    ...typedSentences(2)
      .filter(({ type }) => type !== 'math')
      .map(({ text }) => text),
  ].map(text => ({ example: getExample(text, 0, 1), fold: -1, set: '' }))
  return { own, pairs: await readRows('difficulty-pairs', Pair), exams: [...exams, ...requests] }
}

function pairRows({ pairs }: Material): Row[] {
  return pairs.flatMap(({ easy, hard, easy_level, hard_level }) =>
    [...getExamples(easy, easy_level, settings.pairWeight), ...getExamples(hard, hard_level, settings.pairWeight)].map(
      example => ({ example, fold: -1, set: '' }),
    ),
  )
}

/** Trains both models; `without` = what is excluded from each. */
function fitEffort(
  material: Material,
  without: {
    readonly own?: (row: Row) => boolean
    readonly pair?: (pair: DifficultyPair) => boolean
    readonly exam?: (row: Row) => boolean
  } = {},
): KeptEffort {
  const { own, pairs, exams } = material
  const start = new Float32Array(settings.size)
  for (const [notion, weight] of Object.entries(priors))
    for (const [index, { place, value }] of effortNotionSlots(notion, bits).entries())
      start[place] = (settings.prior * weight) / 2 ** index / value
  const effort = trainLbfgs(
    [
      ...own.filter(row => !without.own?.(row)),
      ...pairRows({ ...material, pairs: pairs.filter(pair => !without.pair?.(pair)) }),
    ].map(({ example }) => example),
    { ...settings, start },
  )
  const exam = trainLbfgs(
    exams.filter(row => !without.exam?.(row)).map(({ example }) => example),
    { ...settings, steps: 40 },
  )
  return { effort: toStoredTable(effort), exam: toStoredTable(exam) }
}

function toStoredTable(weights: Float32Array) {
  const { scale, bytes } = quantised(weights, 4)
  return { source: '', bits, scale, weights: encodeWeights(bytes) }
}

/** Returns a function that computes a prompt's gain with these weights. */
function gainReader(weights: KeptEffort): (text: string) => number {
  const head = createDifficultyHead(gain, weights)
  return text => {
    const features = read(text)
    notionReader.begin(features)
    return head.strongGain(features, notionReader.read(0, Math.min(features.count, effortWords)))
  }
}

type Judged = DifficultyPair & { readonly low: number; readonly high: number }

function judged(pairs: readonly DifficultyPair[], getGain: (text: string) => number): Judged[] {
  return pairs.map(pair => ({ ...pair, low: getGain(pair.easy), high: getGain(pair.hard) }))
}

/** Returns how benchmark questions and requests rank, by models that have not seen the fold or set. */
async function areaFigures(material: Material): Promise<ReportRow[]> {
  const rows = await readGainRows()
  const texts = rows.map(({ prompt }) => prompt)
  const mixed = (getPart: (row: { readonly fold: number; readonly set: string }) => string | number) => {
    const scores = scoresUnseen(rows, getPart)
    const ranks = getQuantiles(
      rows,
      scoresUnseen(rows, row => row.fold),
    )
    const heads = new Map(
      [...new Set(rows.map(getPart))].map(part => [
        part,
        createEffortHead(fitEffort(material, { exam: row => row.set !== '' && getPart(row) === part })),
      ]),
    )
    const gains = Float64Array.from(rows, (row, index) => {
      const features = read(texts[index] ?? '')
      notionReader.begin(features)
      const notions = notionReader.read(0, Math.min(features.count, effortWords))
      const told = heads.get(getPart(row))?.(features, notions)
      if (told === undefined) return 0
      return mixedGain(percentileRank(ranks, scores[index] ?? 0), told.effort, examShare(features, told.examChance))
    })
    return tests.map(test => areaRecovered(getOutcomes(test, rows, gains)))
  }
  const mean = (areas: readonly number[]) => (areas.reduce((sum, area) => sum + area, 0) / areas.length).toFixed(3)
  const folds = mixed(row => row.fold)
  const sets = mixed(row => row.set)
  return [
    ...tests.map((test, index) => ({
      name: `APGR ${test}`,
      goal: '',
      reference: '',
      measured: (folds[index] ?? 0).toFixed(3),
    })),
    { name: 'APGR mean of 7', goal: '≥ .70', reference: '.667 without effort', measured: mean(folds) },
    { name: 'APGR mean of 7, sets left out', goal: '≥ .62', reference: '.607 without effort', measured: mean(sets) },
  ]
}

function getFigures(material: Material): ReportRow[] {
  const { pairs } = material
  const none = judged(pairs, gainReader(fitEffort(material, { pair: () => true })))
  const domains = [...new Set(pairs.map(({ domain }) => domain))]
  const left = domains.flatMap(domain =>
    judged(
      pairs.filter(pair => pair.domain === domain),
      gainReader(fitEffort(material, { pair: pair => pair.domain === domain })),
    ),
  )
  return [...pairFigures('no pair learned from', none), ...pairFigures('its domain left out', left)]
}

function pairFigures(how: string, all: readonly Judged[]): ReportRow[] {
  const share = (of: readonly Judged[], is: (item: Judged) => boolean) => of.filter(is).length / Math.max(1, of.length)
  const ordered = (of: readonly Judged[]) => share(of, ({ low, high }) => high > low)
  const ofLevel = (level: Level) =>
    all.flatMap(({ low, high, easy_level, hard_level }) => [
      ...(easy_level === level ? [low] : []),
      ...(hard_level === level ? [high] : []),
    ])
  const getPart = (gains: readonly number[], is: (gain: number) => boolean) => gains.filter(is).length / gains.length
  const byDomain = [...Map.groupBy(all, ({ domain }) => domain)]
    .map(([domain, of]) => ({ domain, right: ordered(of) }))
    .sort((item, other) => item.right - other.right)
  const worst = byDomain[0]?.right ?? 0
  const names = byDomain.filter(({ right }) => right === worst).map(({ domain }) => domain)
  const figure = (name: string, goal: string, measured: string): ReportRow => ({
    name: `${name} (${how})`,
    goal,
    reference: '',
    measured,
  })
  return [
    figure('pairs in order', '≥ .92', ordered(all).toFixed(3)),
    figure(
      '  the easy one longer',
      '≥ .90',
      ordered(all.filter(({ easy, hard }) => easy.length > hard.length)).toFixed(3),
    ),
    figure('  worst domain', '≥ .80', `${worst.toFixed(2)} ${names.join(', ')}`),
    figure('  English', '', ordered(all.filter(({ language }) => language === 'en')).toFixed(3)),
    figure('  other languages', '', ordered(all.filter(({ language }) => language !== 'en')).toFixed(3)),
    figure('  strong prompts called light', '≤ .02', getPart(ofLevel('strong'), value => value < 0.4).toFixed(3)),
    figure('  light prompts called strong', '≤ .03', getPart(ofLevel('light'), value => value >= 0.7).toFixed(3)),
    figure('  light prompts called light', '', getPart(ofLevel('light'), value => value < 0.4).toFixed(3)),
    figure('  strong prompts called strong', '', getPart(ofLevel('strong'), value => value >= 0.7).toFixed(3)),
  ]
}
