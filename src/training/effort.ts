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
import file from './data/effort.json'
import { readRows } from './data.ts'
import { areaFigures, getQuantiles, scoresUnseen } from './gain.ts'
import { type GainRow, getGainFold, nineModels, readGainRows, twoModels } from './gain-rows.ts'
import { trainLbfgs } from './lbfgs.ts'
import type { Example } from './linear.ts'
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

type Row = { readonly example: Example; readonly set: string; readonly fold: number }

/** The project's own prompts are never left out. */
const ownPlace = { set: '', fold: -1 } as const

type Material = {
  readonly own: readonly Row[]
  readonly pairs: readonly DifficultyPair[]
  /** For the classifier of exam questions. */
  readonly exams: readonly Row[]
}

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
      figures: [...getFigures(material), ...(await unseenAreas(material))],
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
  const own = effortExamples(settings.each).flatMap(({ text, level }) =>
    getExamples(text, level, 1).map(example => ({ example, ...ownPlace })),
  )
  const exams: Row[] = []
  for (const set of [...twoModels, nineModels]) {
    // Its prompts are mostly from users.
    if (set === 'routellm-mtbench') continue
    const rows = await readRows(set, Question)
    for (const { prompt } of rows) {
      const example = getExample(prompt, 1, settings.setWeight / rows.length)
      exams.push({ example, set, fold: getGainFold(prompt) })
    }
  }
  const requests = [
    ...effortExamples(settings.each).map(({ text }) => text),
    ...typedSentences(2)
      .filter(({ type }) => type !== 'math')
      .map(({ text }) => text),
  ].map(text => ({ example: getExample(text, 0, 1), ...ownPlace }))
  return { own, pairs: await readRows('difficulty-pairs', Pair), exams: [...exams, ...requests] }
}

function pairRows({ pairs }: Material): Row[] {
  return pairs.flatMap(({ easy, hard, easy_level, hard_level }) =>
    [...getExamples(easy, easy_level, settings.pairWeight), ...getExamples(hard, hard_level, settings.pairWeight)].map(
      example => ({ example, ...ownPlace }),
    ),
  )
}

/** Trains both models; `without` = what is excluded from each. */
function fitEffort(
  material: Material,
  without: {
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
    [...own, ...pairRows({ ...material, pairs: pairs.filter(pair => !without.pair?.(pair)) })].map(
      ({ example }) => example,
    ),
    { ...settings, start },
  )
  const exam = trainLbfgs(
    exams.filter(row => !without.exam?.(row)).map(({ example }) => example),
    { ...settings, steps: 40 },
  )
  return { effort: toStoredTable(effort), exam: toStoredTable(exam) }
}

const toStoredTable = (weights: Float32Array) => ({ source: '', bits, ...stored(weights, 4) })

/** Returns a function that computes a prompt's gain with these weights. */
function gainReader(weights: KeptEffort): (text: string) => number {
  const head = createDifficultyHead(gain, weights)
  return text => {
    const { features, notions } = readText(text)
    return head.strongGain(features, notions)
  }
}

type Judged = DifficultyPair & { readonly low: number; readonly high: number }

function judged(pairs: readonly DifficultyPair[], getGain: (text: string) => number): Judged[] {
  return pairs.map(pair => ({ ...pair, low: getGain(pair.easy), high: getGain(pair.hard) }))
}

/** Returns how benchmark questions and requests rank, by models that have not seen the set or fold. */
async function unseenAreas(material: Material): Promise<ReportRow[]> {
  const rows = await readGainRows()
  const inFolds = scoresUnseen(rows, row => row.fold)
  const ranks = getQuantiles(rows, inFolds)
  const areas = (
    how: string,
    scores: Float64Array,
    getPart: (row: Pick<GainRow, 'set' | 'fold'>) => string | number,
  ) => {
    const isOfPart = (part: string | number) => (row: Row) => row.set !== '' && getPart(row) === part
    const heads = new Map(
      [...new Set(rows.map(getPart))].map(part => [
        part,
        createEffortHead(fitEffort(material, { exam: isOfPart(part) })),
      ]),
    )
    const gains = Float64Array.from(rows, (row, index) => {
      const { features, notions } = readText(row.prompt)
      const told = heads.get(getPart(row))?.(features, notions)
      if (told === undefined) return 0
      return mixedGain(percentileRank(ranks, scores[index] ?? 0), told.effort, examShare(features, told.examChance))
    })
    return areaFigures(how, rows, gains)
  }
  return [
    ...areas(
      'left out',
      scoresUnseen(rows, row => row.set),
      row => row.set,
    ),
    ...areas('in folds', inFolds, row => row.fold).slice(-1),
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
  const told = (name: string, goal: string, measured: number | string) => figure(`${name} (${how})`, measured, goal)
  return [
    told('pairs in order', '≥ .92', ordered(all)),
    told('  the easy one longer', '≥ .90', ordered(all.filter(({ easy, hard }) => easy.length > hard.length))),
    told('  worst domain', '≥ .80', `${worst.toFixed(2)} ${names.join(', ')}`),
    told('  English', '', ordered(all.filter(({ language }) => language === 'en'))),
    told('  other languages', '', ordered(all.filter(({ language }) => language !== 'en'))),
    told(
      '  strong prompts called light',
      '≤ .02',
      getPart(ofLevel('strong'), value => value < 0.4),
    ),
    told(
      '  light prompts called strong',
      '≤ .03',
      getPart(ofLevel('light'), value => value >= 0.7),
    ),
    told(
      '  light prompts called light',
      '',
      getPart(ofLevel('light'), value => value < 0.4),
    ),
    told(
      '  strong prompts called strong',
      '',
      getPart(ofLevel('strong'), value => value >= 0.7),
    ),
  ]
}
