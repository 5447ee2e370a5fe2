/**
 * What the cells of one query type come to: a bias on the router's score, which is what the evidence carries beyond its own
 * error, and bounded by how much evidence there is.
 *
 * A model's measured quality is taken apart into what the query type does to every model (`ease`), what the catalogue's
 * figure foretells, and what is the model's own: only the last is learnt. Whether measured quality follows the catalogue
 * at all, and how far models differ, is itself read from the account's cells, as a mixture over the few cases below. What
 * this gives up: nothing is learnt from other accounts, so each begins from the catalogue.
 */
import { type Cell, clamp, decayFactor, maximumBias } from './learning-cell.ts'
import { defaultQuality } from './response-quality.ts'

/** One model's cell, with the catalogue's figure of its quality (0–1). */
export type BiasInput = { readonly figure: number; readonly cell: Cell }

/** What the cells of one query type come to for one model. */
export type BiasEstimate = {
  /** On the score; 0 below 10 entries. */
  readonly bias: number
  /** Quality to expect, and how far that may be off. */
  readonly quality: number
  readonly error: number
}

export type BiasParameters = {
  /** How many of its own errors an effect must exceed to count, and is lessened by. */
  readonly threshold: number
  /** How far models differ from what the catalogue foretells, and how likely that is beforehand. */
  readonly differences: readonly { readonly deviation: number; readonly likelihood: number }[]
  /** Whether measured quality follows the catalogue's figures (1) or knows nothing of them (0), and the ease to expect then. */
  readonly slopes: readonly { readonly slope: number; readonly ease: number; readonly likelihood: number }[]
  /** How far query types of accounts differ in ease from that. */
  readonly easeDeviation: number
  /** Variance of single qualities, before any was seen, and as how many entries that counts. */
  readonly variance: number
  readonly varianceWeight: number
}

/** Figures and qualities are told from here, so that ease and slope do not stand in for one another. */
const middle = 0.5

/** Tuned on `bun run simulate`, by tasks left out. */
export const biasParameters: BiasParameters = {
  threshold: 0.3,
  differences: [
    { deviation: 0, likelihood: 0.3 },
    { deviation: 0.06, likelihood: 0.3 },
    { deviation: 0.12, likelihood: 0.25 },
    { deviation: 0.2, likelihood: 0.15 },
  ],
  slopes: [
    // Without ratings all that is seen of most answers, whoever gave them, is that nothing is wrong with them.
    { slope: 0, ease: defaultQuality - middle, likelihood: 0.5 },
    { slope: 1, ease: 0, likelihood: 0.5 },
  ],
  easeDeviation: 0.15,
  variance: 0.2,
  varianceWeight: 10,
}

/** Estimates for all models of one query type of one account, in their order. Models without evidence count for nothing. */
export function estimateBiases(
  known: readonly BiasInput[],
  now: number,
  given: BiasParameters = biasParameters,
): BiasEstimate[] {
  const measured = measuredOf(known, now, given)
  const cases = casesOf(measured, given)
  const likeliest = cases.reduce((most, { logLikelihood }) => Math.max(most, logLikelihood), Number.NEGATIVE_INFINITY)
  let total = 0
  for (const one of cases) {
    const likelihood = Math.exp(one.logLikelihood - likeliest)
    total += likelihood
    for (const model of measured) {
      const foretold = one.ease + one.slope * model.above
      const shrink = one.square / (one.square + model.variance)
      const own = shrink * (model.value - foretold)
      model.own += likelihood * own
      model.expected += likelihood * (foretold + own)
      model.error += likelihood * (own * own + shrink * model.variance + shrink * shrink * one.easeVariance)
    }
  }
  const estimates: BiasEstimate[] = known.map(() => unknown)
  for (const { index, own, expected, error } of measured) {
    const bound = maximumBias(known[index]?.cell.entries ?? 0)
    const effect = own / total
    const deviation = Math.sqrt(Math.max(0, error / total - effect * effect))
    const evident = Math.sign(effect) * Math.max(0, Math.abs(effect) - given.threshold * deviation)
    const quality = clamp(middle + expected / total, 0, 1)
    estimates[index] = { bias: clamp(evident, -bound, bound), quality, error: deviation }
  }
  return estimates
}

const unknown: BiasEstimate = { bias: 0, quality: 0, error: 1 }
/** A model with evidence, told from the middle, and what the cases add up to for it. */
type Measured = {
  readonly index: number
  readonly above: number
  readonly value: number
  /** Of the mean. */
  readonly variance: number
  own: number
  expected: number
  error: number
}

function measuredOf(known: readonly BiasInput[], now: number, given: BiasParameters): Measured[] {
  let spread = given.variance * given.varianceWeight
  let weight = given.varianceWeight
  for (const { cell } of known) {
    spread += cell.spread
    weight += cell.weight
  }
  const measured: Measured[] = []
  for (let index = 0; index < known.length; index++) {
    const one = known[index]
    if (one === undefined || one.cell.weight <= 0) continue
    const variance = spread / weight / (one.cell.weight * decayFactor(now - one.cell.at))
    const [above, value] = [one.figure - middle, one.cell.quality - middle]
    measured.push({ index, above, value, variance, own: 0, expected: 0, error: 0 })
  }
  return measured
}

type Case = {
  readonly slope: number
  /** Variance of the models' own differences. */
  readonly square: number
  readonly ease: number
  readonly easeVariance: number
  readonly logLikelihood: number
}

/** Every case, with the ease that it would mean and how likely it makes what was measured; constants left out. */
function casesOf(measured: readonly Measured[], given: BiasParameters): Case[] {
  const cases: Case[] = []
  for (const { slope, ease: usualEase, likelihood: ofSlope } of given.slopes)
    for (const { deviation, likelihood } of given.differences) {
      const square = deviation * deviation
      let precision = 1 / given.easeDeviation ** 2
      let [sum, squares, logVariances] = [0, 0, 0]
      for (const model of measured) {
        const variance = square + model.variance
        const value = model.value - slope * model.above - usualEase
        precision += 1 / variance
        sum += value / variance
        squares += (value * value) / variance
        logVariances += Math.log(variance)
      }
      const misfit = logVariances + Math.log(precision) + squares - (sum * sum) / precision
      const logLikelihood = Math.log(ofSlope * likelihood) - misfit / 2
      cases.push({ slope, square, ease: usualEase + sum / precision, easeVariance: 1 / precision, logLikelihood })
    }
  return cases
}
