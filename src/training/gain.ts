import { areaRecovered, type ModelOutcome } from './apgr.ts'
import { fitGain, type GainModel, gainSettings, getGainScore, getRowWeights, keepModel } from './gain-model.ts'
import { type GainRow, readGainRows, tests } from './gain-rows.ts'
import { figure, type ReportRow, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

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
    figures: [
      ...areaFigures(
        'left out',
        rows,
        scoresUnseen(rows, row => row.set),
      ),
      ...areaFigures('in folds', rows, unseen).slice(-1),
      shareFigure(rows, unseen),
    ],
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
export function areaFigures(how: string, rows: readonly GainRow[], scores: Float64Array): ReportRow[] {
  const areas = tests.map(test => areaRecovered(getOutcomes(test, rows, scores)))
  return [
    ...tests.map((test, index) => figure(`APGR ${test}, ${how}`, areas[index] ?? 0)),
    figure(`APGR mean of 7, ${how}`, areas.reduce((sum, area) => sum + area, 0) / areas.length, '≥ .62'),
  ]
}

/** Returns the deviation of the share of strong calls from the requested one, if half of the folds rank the others. */
function shareFigure(rows: readonly GainRow[], scores: Float64Array): ReportRow {
  const weights = getBlend(rows)
  const halves = [0, 1].map(half =>
    weights.map((weight, index) => ((rows[index]?.fold ?? 0) % 2 === half ? weight : 0)),
  )
  const [known = [], fresh = []] = halves
  const all = fresh.reduce((sum, weight) => sum + weight, 0)
  const misses = [0.1, 0.2, 0.35, 0.5, 0.65, 0.8].map(share => {
    const threshold = getQuantile(scores, known, 1 - share)
    const sent = fresh.reduce((sum, weight, index) => ((scores[index] ?? 0) >= threshold ? sum + weight : sum), 0)
    return Math.abs(sent / all - share)
  })
  return figure('share of strong calls', `± ${(Math.max(...misses) * 100).toFixed(1)}`, '± 3 points')
}

/** Returns scores at the percentiles 0, 1, … 100 of the reference traffic. */
export function getQuantiles(rows: readonly GainRow[], scores: Float64Array): number[] {
  const weights = getBlend(rows)
  return Array.from({ length: 101 }, (_, percent) => Number(getQuantile(scores, weights, percent / 100).toPrecision(6)))
}

/**
 * Returns weights of the reference traffic: each set by the square root of its size, so that many kinds of prompts
 * count and large sets more. The project's own prompts are no traffic.
 */
function getBlend(rows: readonly GainRow[]): readonly number[] {
  return Array.from(getRowWeights(rows, -0.5, 1), (weight, index) => (rows[index]?.set === 'anchors' ? 0 : weight))
}

function getQuantile(scores: Float64Array, weights: readonly number[], share: number): number {
  const order = [...scores.keys()].sort((left, right) => (scores[left] ?? 0) - (scores[right] ?? 0))
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  let below = 0
  for (const index of order) {
    below += weights[index] ?? 0
    if (below >= share * all) return scores[index] ?? 0
  }
  return scores[order.at(-1) ?? 0] ?? 0
}
