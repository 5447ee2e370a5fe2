import { cueCount, type StoredGainModel, standardScore } from '../text/analysis/quality-gain.ts'
import { areaRecovered, type ModelOutcome } from './apgr.ts'
import { bits, type GainRow, readGainRows, tests } from './gain-rows.ts'
import { trainLbfgs } from './linear.ts'
import { figure, type ReportRow, stored, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

const source =
  'Learned by `bun run train` from the development halves of RouteLLM (MMLU, GSM8K, MT-Bench), RouterArena and LLMRouter, ' +
  'and from prompts written for it. Hashed words; no text.'

/** Reads the training data of the gain classifier: all sets, and the anchors. */
export async function readGain(): Promise<TrainingJob> {
  const rows = await readGainRows()
  return { examples: trainingDigest(gainSettings, rows.map(getParts)), learn: async () => trained(rows) }
}

function getParts({ set, group, fold, slots, cues, outcomes }: GainRow) {
  return [set, group, fold, slots, Float32Array.from(cues), [...outcomes]]
}

/** Trains on all sets, and reports results of models that had not seen the set. */
function trained(rows: readonly GainRow[]): Trained {
  const unseen = scoresUnseen(rows, row => row.fold)
  return {
    weights: { source, ...keepModel(fitGain(rows)), quantiles: getQuantiles(rows, unseen) },
    figures: areaFigures(
      rows,
      scoresUnseen(rows, row => row.set),
    ),
  }
}

/** Returns the score of each row under a model trained without its part. */
export function scoresUnseen(rows: readonly GainRow[], getPart: (row: GainRow) => string | number): Float64Array {
  const models = new Map<string | number, GainModel>()
  for (const part of new Set(rows.map(getPart))) models.set(part, fitGain(rows.filter(row => getPart(row) !== part)))
  return Float64Array.from(rows, row => {
    const model = models.get(getPart(row))
    return model === undefined ? 0 : getGainScore(model, row)
  })
}

/** Returns the outcomes of one test, ranked by scores. */
function getOutcomes(test: string, rows: readonly GainRow[], scores: Float64Array): ModelOutcome[] {
  return rows.flatMap((row, index) => {
    const outcome = row.outcomes.get(test)
    return outcome === undefined ? [] : [{ score: scores[index] ?? 0, ...outcome }]
  })
}

/** Returns the area of each test, and their mean, by scores of models that had not seen the set. */
export function areaFigures(rows: readonly GainRow[], scores: Float64Array): ReportRow[] {
  const areas = tests.map(test => areaRecovered(getOutcomes(test, rows, scores)))
  return [
    ...tests.map((test, index) => figure(`APGR ${test}, left out`, areas[index] ?? 0)),
    figure('APGR mean of 7, left out', areas.reduce((sum, area) => sum + area, 0) / areas.length, '≥ .62'),
  ]
}

/**
 * Returns scores at the percentiles 0, 1, … 100 of the reference traffic: each set weighs by the square root of its size, so
 * that many kinds of prompts count and large sets more. The project's own prompts are no traffic.
 */
export function getQuantiles(rows: readonly GainRow[], scores: Float64Array): number[] {
  const weights = getRowWeights(rows, -0.5, 1).map((weight, index) => (rows[index]?.set === 'anchors' ? 0 : weight))
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
type GainModel = {
  readonly words: Float32Array
  readonly cues: StoredGainModel['cues']
}

/** Set by cross-validation. */
const gainSettings = {
  /**
   * Weight of each test for a prompt that several tests judge. A small gap makes a small denominator of the recovered
   * share, so it weighs more; but not proportionally, since it is also noisier.
   */
  testWeights: { 'nine, large gap': 0.35, 'nine, middle gap': 0.3, 'nine, small gap': 0.65 } as Readonly<
    Record<string, number>
  >,
  /** Factor on the gain of anchors: unlike graded answers they have no noise and would otherwise dominate. */
  anchorPart: 0.7,
  /** Share of a row's target that is the mean of its subject or task. */
  groupPart: 0.2,
  /**
   * Rows are weighted by set size to this power: with 0 the largest set would dominate, with −1 all sets count the
   * same.
   */
  sizePower: -0.5,
  /** Regularization of the linear model if the total row weight is 10,000. */
  ridge: { word: 600, cue: 10_000, set: 1 },
}

/** Returns a model's prediction for a row. */
function getGainScore({ words, cues }: GainModel, { slots, cues: values }: GainRow): number {
  let sum = 0
  for (const slot of slots) sum += words[slot] ?? 0
  let score = sum / Math.sqrt(Math.max(1, slots.length))
  for (const [cue, kind] of cues.entries()) score += kind.weight * standardScore(values[cue] ?? 0, kind)
  return score
}

/** Returns a model in stored form: words as bytes. */
function keepModel({ words, cues }: GainModel): Omit<StoredGainModel, 'source' | 'quantiles'> {
  return {
    bits,
    ...stored(words, 1),
    cues: cues.map(({ mean, spread, weight }) => ({
      mean: rounded(mean),
      spread: rounded(spread),
      weight: rounded(weight),
    })),
  }
}

/**
 * Returns per row strong minus weak relative to the set's mean, in the set's standard deviations. `groupPart` of it is
 * replaced by the mean of the row's subject or task: less noise, and the linear model can only learn subjects by their
 * words.
 */
function getTargets(rows: readonly GainRow[]): Float64Array {
  const { testWeights, anchorPart, groupPart } = gainSettings
  const gains = rows.map(({ outcomes }) => {
    let gain = 0
    for (const [test, { weak, strong }] of outcomes) gain += (testWeights[test] ?? 1) * (strong - weak)
    return gain
  })
  const sets = usualBy(rows, gains, ({ set }) => set)
  const groups = usualBy(rows, gains, groupName)
  return Float64Array.from(rows, (row, index) => {
    const set = sets.get(row.set) ?? nothingKnown
    const group = groups.get(groupName(row)) ?? nothingKnown
    const ofGroup = (group.mean * group.count + set.mean * 10) / (group.count + 10)
    const target = ((1 - groupPart) * (gains[index] ?? 0) + groupPart * ofGroup - set.mean) / set.spread
    return row.set === 'anchors' ? target * anchorPart : target
  })
}

function groupName({ set, group }: GainRow): string {
  return `${set} ${group}`
}

/** Returns row weights by set size to `power`, with sum `total`. */
function getRowWeights(rows: readonly GainRow[], power: number, total: number): Float64Array {
  const sizes = new Map<string, number>()
  for (const { set } of rows) sizes.set(set, (sizes.get(set) ?? 0) + 1)
  const weights = Float64Array.from(rows, ({ set }) => (sizes.get(set) ?? 1) ** power)
  const sum = weights.reduce((all, weight) => all + weight, 0)
  return weights.map(weight => (weight * total) / sum)
}

/**
 * Trains a model of a strong model's gain: linear over hashed words and cues. The target is strong minus weak relative to
 * the mean of the row's set, so that the set itself explains nothing.
 */
function fitGain(rows: readonly GainRow[]): GainModel {
  const { ridge, sizePower } = gainSettings
  const size = 2 ** bits
  const rarity = rarities(rows)
  const kinds = usualCues(rows.filter(({ set }) => set !== 'anchors'))
  const sets = [...new Set(rows.map(({ set }) => set))]
  const held = new Float64Array(size + cueCount + sets.length)
  held.fill(ridge.word, 0, size)
  held.fill(ridge.cue, size, size + cueCount)
  held.fill(ridge.set, size + cueCount)
  const targets = getTargets(rows)
  const weights = getRowWeights(rows, sizePower, 10_000)
  const solution = trainLbfgs(
    rows.map((row, index) => ({
      ...getSparse(row, rarity, kinds, sets.indexOf(row.set)),
      classes: [targets[index] ?? 0],
      weight: weights[index] ?? 0,
    })),
    { size: held.length, classes: 1, ridge: held, isSquared: true, steps: 100 },
  )
  return {
    words: Float32Array.from(rarity, (rare, slot) => rare * (solution[slot] ?? 0)),
    cues: kinds.map((kind, cue) => ({ ...kind, weight: solution[size + cue] ?? 0 })),
  }
}

/**
 * Returns a row for the linear model: its words by rarity, its cues, and a column for its set that absorbs what the set
 * shares.
 */
function getSparse(row: GainRow, rarity: Float64Array, kinds: readonly Kind[], set: number) {
  const count = row.slots.length
  const size = rarity.length
  const slots = new Int32Array(count + cueCount + 1)
  const values = new Float32Array(slots.length)
  const each = 1 / Math.sqrt(Math.max(1, count))
  slots.set(row.slots)
  for (let at = 0; at < count; at++) values[at] = each * (rarity[row.slots[at] ?? 0] ?? 0)
  for (const [cue, kind] of kinds.entries()) {
    slots[count + cue] = size + cue
    values[count + cue] = standardScore(row.cues[cue] ?? 0, kind)
  }
  slots[count + cueCount] = size + cueCount + set
  values[count + cueCount] = 1
  return { slots, values }
}

/** Returns the rarity of each slot: the logarithm of all rows over rows that have it. */
function rarities(rows: readonly GainRow[]): Float64Array {
  const found = new Float64Array(2 ** bits)
  for (const { slots } of rows) for (const slot of slots) found[slot] = (found[slot] ?? 0) + 1
  return found.map(count => (count === 0 ? 0 : Math.log(rows.length / count)))
}

type Kind = { readonly mean: number; readonly spread: number }

/** Returns mean and standard deviation of the cues, with every set weighted equally. */
function usualCues(rows: readonly GainRow[]): readonly Kind[] {
  const weights = getRowWeights(rows, -1, 1)
  return Array.from({ length: cueCount }, (_, cue) => {
    let mean = 0
    let square = 0
    for (const [index, { cues }] of rows.entries()) {
      const value = cues[cue] ?? 0
      mean += (weights[index] ?? 0) * value
      square += (weights[index] ?? 0) * value ** 2
    }
    return { mean, spread: Math.sqrt(Math.max(0, square - mean ** 2)) || 1 }
  })
}

const nothingKnown = { mean: 0, spread: 1, count: 0 }

/** Returns mean, standard deviation and count of values, grouped by a name of their rows. */
function usualBy(rows: readonly GainRow[], values: readonly number[], getName: (row: GainRow) => string) {
  const named = Map.groupBy(rows.keys(), index => {
    const row = rows[index]
    return row === undefined ? '' : getName(row)
  })
  return new Map(
    [...named].map(([name, indexes]) => {
      const count = indexes.length
      const mean = indexes.reduce((sum, index) => sum + (values[index] ?? 0), 0) / count
      const square = indexes.reduce((sum, index) => sum + ((values[index] ?? 0) - mean) ** 2, 0) / count
      return [name, { mean, spread: Math.sqrt(square) || 1, count }]
    }),
  )
}

/** Rounds to six digits, which is sufficient. */
function rounded(value: number): number {
  return Number(value.toPrecision(6))
}
