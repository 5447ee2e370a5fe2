import { areaRecovered, callsFor, type ModelOutcome } from './apgr.ts'
import { fitGain, type GainModel, gainSettings, getGainScore, keepModel } from './gain-model.ts'
import { type GainRow, readGainRows, tests } from './gain-rows.ts'
import { type ReportRow, type Trained, type TrainingJob, trainingDigest } from './training-job.ts'

/**
 * Required results, and those of a linear model over hashed words on the other halves: trained per set, and on all
 * sets.
 */
const goals: Readonly<Record<string, { readonly goal: string; readonly reference: string }>> = {
  'routellm-mmlu': { goal: '≥ .66', reference: '.670 own, .620 frozen' },
  'routellm-gsm8k': { goal: '≥ .66', reference: '.677 own, .639 frozen' },
  'routellm-mtbench': { goal: '≥ .60', reference: '' },
  'routerarena-sub10': { goal: '≥ .65', reference: '.646 own, .640 frozen' },
  'nine, large gap': { goal: '≥ .60', reference: '' },
  'nine, middle gap': { goal: '≥ .60', reference: '' },
  'nine, small gap': { goal: '≥ .60', reference: '' },
}

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

/** Trains on all sets, and reports results of models that had not seen the prompt or the set. */
function trained(rows: readonly GainRow[]): Trained {
  const unseen = scoresUnseen(rows, row => row.fold)
  const leftOut = scoresUnseen(rows, row => row.set)
  const quantiles = getQuantiles(rows, unseen)
  return {
    weights: { source, ...keepModel(fitGain(rows)), quantiles },
    figures: [
      ...areaFigures(rows, unseen),
      meanFigure('mean of 7', '≥ .70', '.667', rows, unseen),
      ...leftOutFigures(rows, leftOut),
      meanFigure('mean of 7, left out', '≥ .62', '.581; length .602', rows, leftOut),
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
export function getOutcomes(test: string, rows: readonly GainRow[], scores: Float64Array): ModelOutcome[] {
  return rows.flatMap((row, index) => {
    const outcome = row.outcomes.get(test)
    return outcome === undefined ? [] : [{ score: scores[index] ?? 0, ...outcome }]
  })
}

function areaFigures(rows: readonly GainRow[], scores: Float64Array): ReportRow[] {
  return tests.map(test => {
    const outcomes = getOutcomes(test, rows, scores)
    const calls = [0.5, 0.8].map(part => `CPT${part * 100} ${(callsFor(part, outcomes) * 100).toFixed(0)} %`).join(', ')
    const { goal, reference } = goals[test] ?? { goal: '', reference: '' }
    const lengths = Float64Array.from(rows, ({ cues }) => cues[0] ?? 0)
    const length = areaRecovered(getOutcomes(test, rows, lengths)).toFixed(3)
    return {
      name: test,
      goal,
      reference,
      measured: `${areaRecovered(outcomes).toFixed(3)} (length ${length}, ${calls})`,
    }
  })
}

function leftOutFigures(rows: readonly GainRow[], scores: Float64Array): ReportRow[] {
  return tests.map(test => ({
    name: `${test}, left out`,
    goal: '',
    reference: '',
    measured: areaRecovered(getOutcomes(test, rows, scores)).toFixed(3),
  }))
}

function meanFigure(name: string, goal: string, reference: string, rows: readonly GainRow[], scores: Float64Array) {
  const areas = tests.map(test => areaRecovered(getOutcomes(test, rows, scores)))
  const mean = areas.reduce((sum, area) => sum + area, 0) / areas.length
  return { name, goal, reference, measured: mean.toFixed(3) }
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
  const measured = `± ${(Math.max(...misses) * 100).toFixed(1)}`
  return { name: 'share of strong calls', goal: '± 3 points', reference: '', measured }
}

/** Returns scores at the percentiles 0, 1, … 100 of the reference traffic. */
export function getQuantiles(rows: readonly GainRow[], scores: Float64Array): number[] {
  const weights = getBlend(rows)
  return Array.from({ length: 101 }, (_, percent) => Number(getQuantile(scores, weights, percent / 100).toPrecision(6)))
}

/**
 * Returns weights of the reference traffic: each set by the square root of its size, so that many kinds of prompts
 * count and large sets more.
 */
function getBlend(rows: readonly GainRow[]): readonly number[] {
  const sizes = new Map<string, number>()
  for (const { set } of rows) sizes.set(set, (sizes.get(set) ?? 0) + 1)
  // The project's own prompts are not traffic.
  return rows.map(({ set }) => (set === 'anchors' ? 0 : (sizes.get(set) ?? 1) ** -0.5))
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
