import { getHash } from '../text/analysis/features.ts'
import { cueCount, type StoredGainModel, standardScore } from '../text/analysis/quality-gain.ts'
import { anchors, bits, type GainRow, readGainRows, tests } from './gain-rows.ts'
import { countUses, type Example, predict, train } from './linear.ts'
import { figure, leftOut, stored, type TrainingJob } from './training-job.ts'

/** Reads the training data of the gain classifier: all sets, and the anchors. */
export async function readGain(): Promise<TrainingJob> {
  const rows = await readGainRows()
  return {
    settings,
    examples: getExamples(rows).examples,
    async learn() {
      const { words, cues } = fitGain(rows)
      const quantiles = getQuantiles(rows, scoresUnseen(rows, getFold))
      const figures = areaFigures(rows, scoresUnseen(rows, getSet))
      return { weights: { ...stored(words, 1), cues, quantiles }, figures }
    },
  }
}

/** Returns the score of each row under a model trained without its part. */
export function scoresUnseen(rows: readonly GainRow[], getPart: (row: GainRow) => string | number): readonly number[] {
  return leftOut(rows, getPart, fitGain, getGainScore)
}

export const getSet = ({ set }: GainRow) => set

/** Equal texts are in the same fold. One task of the nine models repeats questions of other sets with a sentence appended. */
function getFold({ prompt }: GainRow): number {
  return (getHash(prompt.split('\nAfter careful thought')[0] ?? '') >>> 0) % 5
}

/** Returns the area of each test, and their mean, by scores of models that had not seen the set. */
export function areaFigures(rows: readonly GainRow[], scores: readonly number[]): string[] {
  const areas = tests.map(test => {
    const outcomes = rows.map(({ outcomes }, index) => ({ score: scores[index] ?? 0, outcome: outcomes[test] }))
    return areaRecovered(outcomes.flatMap(({ score, outcome }) => (outcome === undefined ? [] : { score, ...outcome })))
  })
  return [
    ...tests.map((test, index) => figure(`APGR ${test}, left out`, areas[index] ?? 0)),
    figure('APGR mean of 7, left out', areas.reduce((sum, area) => sum + area, 0) / areas.length, '≥ .62'),
  ]
}

/**
 * Returns scores at the percentiles 0, 1, … 100 of the reference traffic: each set weighs by the square root of its size, so
 * that many kinds of prompts count and large sets more. The project's own prompts are no traffic.
 */
export function getQuantiles(rows: readonly GainRow[], scores: readonly number[]): number[] {
  const weights = getRowWeights(rows).map((weight, index) => (rows[index]?.set === anchors ? 0 : weight))
  const order = [...scores.keys()].sort((left, right) => (scores[left] ?? 0) - (scores[right] ?? 0))
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  let at = 0
  let below = weights[order[0] ?? 0] ?? 0
  return Array.from({ length: 101 }, (_, percent) => {
    while (below < (percent / 100) * all && at < order.length - 1) below += weights[order[++at] ?? 0] ?? 0
    return Number((scores[order[at] ?? 0] ?? 0).toPrecision(6))
  })
}

/** A trained model of strong minus weak, before rounding. */
type GainModel = { readonly words: Float32Array; readonly cues: StoredGainModel['cues'] }

/** Set by cross-validation. */
const settings = {
  /** Factor on the gain of anchors: unlike graded answers they have no noise and would otherwise dominate. */
  anchorPart: 0.7,
  /** Share of a row's target that is the mean of its subject or task. */
  groupPart: 0.2,
  /** Regularization if the total row weight is 10,000; of a word over the square of its rarity. */
  ridge: { word: 600, cue: 10_000, set: 1 },
  steps: 100,
}

/** Returns a model's prediction for a row. */
function getGainScore({ words, cues }: GainModel, row: GainRow): number {
  const ofCue = (kind: GainModel['cues'][number], cue: number) => kind.weight * standardScore(row.cues[cue] ?? 0, kind)
  return cues.reduce((sum, kind, cue) => sum + ofCue(kind, cue), predict(words, row.words))
}

/**
 * Returns per row strong minus weak relative to the set's mean, in the set's standard deviations. `groupPart` of it is
 * replaced by the mean of the row's subject or task: less noise, and the linear model can only learn subjects by their
 * words.
 */
function getTargets(rows: readonly GainRow[]): number[] {
  const { anchorPart, groupPart } = settings
  const getGain = ({ outcomes }: GainRow) =>
    Object.values(outcomes).reduce((sum, { weak, strong }) => sum + strong - weak, 0)
  const getGroup = ({ set, group }: GainRow) => `${set} ${group}`
  const usualBy = (getName: (row: GainRow) => string) =>
    new Map([...Map.groupBy(rows, getName)].map(([name, of]) => [name, getUsual(of, getGain)]))
  const sets = usualBy(({ set }) => set)
  const groups = usualBy(getGroup)
  return rows.map(row => {
    const set = sets.get(row.set) ?? nothingKnown
    const group = groups.get(getGroup(row)) ?? nothingKnown
    const ofGroup = (group.mean * group.count + set.mean * 10) / (group.count + 10)
    const target = ((1 - groupPart) * getGain(row) + groupPart * ofGroup - set.mean) / set.spread
    return row.set === anchors ? target * anchorPart : target
  })
}

/** Returns row weights with sum 10,000: each set weighs by the square root of its size. */
function getRowWeights(rows: readonly GainRow[]): number[] {
  const sizes = Map.groupBy(rows, ({ set }) => set)
  const weights = rows.map(({ set }) => 1 / Math.sqrt(sizes.get(set)?.length ?? 1))
  const sum = weights.reduce((all, weight) => all + weight, 0)
  return weights.map(weight => (weight * 10_000) / sum)
}

const wordSlots = 2 ** bits

/**
 * Trains a model of a strong model's gain: linear over hashed words and cues. The target is strong minus weak relative to
 * the mean of the row's set, so that the set itself explains nothing.
 */
function fitGain(rows: readonly GainRow[]): GainModel {
  const { word, cue, set } = settings.ridge
  const { examples, kinds, size } = getExamples(rows)
  const ridge = countUses(examples, size).map((uses, slot) => {
    if (slot >= wordSlots) return slot < wordSlots + cueCount ? cue : set
    return word / Math.max(0.1, Math.log(rows.length / uses)) ** 2
  })
  const weights = train(examples, { size, classes: 1, ridge, isSquared: true, steps: settings.steps })
  return {
    words: weights.subarray(0, wordSlots),
    cues: kinds.map((kind, index) => ({ ...kind, weight: weights[wordSlots + index] ?? 0 })),
  }
}

/** Returns rows for the linear model: words, cues, and a column for the set, which absorbs what its rows share. */
function getExamples(rows: readonly GainRow[]) {
  const graded = rows.filter(({ set }) => set !== anchors)
  const kinds = Array.from({ length: cueCount }, (_, cue) => {
    const { mean, spread } = getUsual(graded, ({ cues }) => cues[cue] ?? 0)
    return { mean, spread }
  })
  const sets = [...new Set(rows.map(({ set }) => set))]
  const targets = getTargets(rows)
  const weights = getRowWeights(rows)
  const cueSlots = kinds.map((_, cue) => wordSlots + cue)
  const examples = rows.map(({ words, cues, set }, index): Example => {
    const scores = kinds.map((kind, cue) => standardScore(cues[cue] ?? 0, kind))
    return {
      slots: Int32Array.of(...words.slots, ...cueSlots, wordSlots + cueCount + sets.indexOf(set)),
      values: Float32Array.of(...words.values, ...scores, 1),
      classes: [targets[index] ?? 0],
      weight: weights[index] ?? 0,
    }
  })
  return { examples, kinds, size: wordSlots + cueCount + sets.length }
}

type Usual = { readonly mean: number; readonly spread: number; readonly count: number }
const nothingKnown: Usual = { mean: 0, spread: 1, count: 0 }

/** Returns mean, standard deviation and count of values. */
function getUsual(rows: readonly GainRow[], getValue: (row: GainRow) => number): Usual {
  const mean = rows.reduce((sum, row) => sum + getValue(row), 0) / rows.length
  const square = rows.reduce((sum, row) => sum + (getValue(row) - mean) ** 2, 0) / rows.length
  return { mean, spread: Math.sqrt(square) || 1, count: rows.length }
}

/** Outcome of one prompt: the router's score, and how well each of the two models did. */
type ModelOutcome = { readonly score: number; readonly weak: number; readonly strong: number }

/**
 * Returns the area under the performance gap recovered (APGR) as the share of prompts sent to the strong model, highest
 * scores first, goes from 0 to 1 (Ong et al. 2024, RouteLLM). Chance reaches 0.5; values above 1 are possible if the
 * weak model is better on some prompts. Prompts of equal score are sent together, as a straight line.
 */
export function areaRecovered(outcomes: readonly ModelOutcome[]): number {
  const ranked = outcomes.toSorted((left, right) => right.score - left.score)
  const gap = ranked.reduce((sum, { weak, strong }) => sum + strong - weak, 0)
  let area = 0
  let gained = 0
  let before = { share: 0, recovered: 0 }
  for (const [index, { score, weak, strong }] of ranked.entries()) {
    gained += strong - weak
    if (ranked[index + 1]?.score === score) continue
    // Recovered: (mixed − weak) / (strong − weak).
    const point = { share: (index + 1) / ranked.length, recovered: gained / gap }
    area += ((point.share - before.share) * (point.recovered + before.recovered)) / 2
    before = point
  }
  return area
}
