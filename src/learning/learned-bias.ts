/**
 * Computes a bias on the routing score from the cells of one query type. The bias is the evidence beyond its own error,
 * bounded by the amount of evidence.
 *
 * A model's measured quality is split into the effect of the query type on all models (`ease`), the catalog's
 * prediction, and the model's own deviation; only the last is learned. Whether measured quality follows the catalog,
 * and how far models differ, is estimated from the account's cells as a mixture over the few cases below. Ratings have
 * an effect besides, which neither catalog nor ease explains away. Cost: each account starts from the catalog.
 */
import { clamp, decayFactor, emptyCell, type LearningCell, maximumBias, ratingWeight } from './learning-cell.ts'
import { defaultQuality } from './response-quality.ts'

/** One model's cell with its catalog quality (0–1). */
export type BiasInput = { readonly figure: number; readonly cell: LearningCell }

/** Estimate for one model from the cells of one query type. */
export type BiasEstimate = {
  /** Bias on the score; 0 below 10 entries without a rating. */
  readonly bias: number
  /** Expected quality and its error. */
  readonly quality: number
  readonly error: number
}

export type BiasParameters = {
  /** Number of standard errors that an effect must exceed to count. The effect is reduced by as much. */
  readonly threshold: number
  /** Prior: how far models deviate from the catalog's prediction, with the likelihood of each case. */
  readonly differences: readonly { readonly deviation: number; readonly likelihood: number }[]
  /**
   * Prior: whether measured quality follows the catalog's figures (1) or is independent of them (0), and the expected
   * ease in each case.
   */
  readonly slopes: readonly { readonly slope: number; readonly ease: number; readonly likelihood: number }[]
  /** Standard deviation of the ease of query types across accounts. */
  readonly easeDeviation: number
  /** Prior variance of single quality values, and the number of entries that the prior counts as. */
  readonly variance: number
  readonly varianceWeight: number
}

/** Catalog figures and qualities are centered here, so that ease and slope are independent. */
const middle = 0.5

/** Tuned with `bun run simulate` on held-out tasks. */
export const biasParameters: BiasParameters = {
  threshold: 0.3,
  differences: [
    { deviation: 0, likelihood: 0.3 },
    { deviation: 0.06, likelihood: 0.3 },
    { deviation: 0.12, likelihood: 0.25 },
    { deviation: 0.2, likelihood: 0.15 },
  ],
  slopes: [
    // Without ratings, most responses of any model only show that nothing went wrong.
    { slope: 0, ease: defaultQuality - middle, likelihood: 0.5 },
    { slope: 1, ease: 0, likelihood: 0.5 },
  ],
  easeDeviation: 0.15,
  variance: 0.2,
  varianceWeight: 10,
}

/**
 * Returns estimates for all models of one query type of one account, in their order. Models without evidence are
 * ignored.
 */
export function estimateBiases(
  known: readonly BiasInput[],
  now: number,
  given: BiasParameters = biasParameters,
): BiasEstimate[] {
  const measured = getMeasured(known, now, given)
  const cases = getCases(measured, given)
  const likeliest = cases.reduce((most, { logLikelihood }) => Math.max(most, logLikelihood), Number.NEGATIVE_INFINITY)
  let total = 0
  for (const item of cases) {
    const likelihood = Math.exp(item.logLikelihood - likeliest)
    total += likelihood
    for (const model of measured) {
      const foretold = item.ease + item.slope * model.above
      const shrink = item.square / (item.square + model.variance)
      const own = shrink * (model.value - foretold)
      model.own += likelihood * own
      model.expected += likelihood * (foretold + own)
      model.error += likelihood * (own * own + shrink * model.variance + shrink * shrink * item.easeVariance)
    }
  }
  const effects = ratingEffects(known, now)
  const estimates: BiasEstimate[] = known.map(() => unknown)
  for (const { index, own, expected, error } of measured) {
    const { entries, ratings } = known[index]?.cell ?? emptyCell
    const [inferredBound, bound] = [maximumBias(entries), maximumBias(entries, ratings)]
    const effect = own / total
    const deviation = Math.sqrt(Math.max(0, error / total - effect * effect))
    const evident = Math.sign(effect) * Math.max(0, Math.abs(effect) - given.threshold * deviation)
    const quality = clamp(middle + expected / total, 0, 1)
    // Bounded first: otherwise strong evidence would hide the next rating behind the bound.
    const inferred = clamp(evident, -inferredBound, inferredBound)
    const bias = clamp(inferred + (effects[index] ?? 0), -bound, bound)
    estimates[index] = { bias, quality, error: deviation }
  }
  return estimates
}

/** Number of entries of ratings at which half of their deviation counts. */
const ratingPrior = 30

/**
 * Returns the effect of each model's ratings: their mean beside that of the other models' ratings, which tells a strict
 * account from a bad model and starts at the quality of a response without signals. One star never raises, and five
 * stars never lower.
 */
function ratingEffects(known: readonly BiasInput[], now: number): number[] {
  const weights = known.map(({ cell }) => {
    const share = cell.ratings === 0 ? 0 : Math.min(1, (ratingWeight * cell.ratings) / cell.entries)
    return share * cell.weight * decayFactor(now - cell.at)
  })
  let [total, sum] = [ratingPrior, ratingPrior * defaultQuality]
  for (const [index, { cell }] of known.entries()) {
    const weight = weights[index] ?? 0
    total += weight
    sum += weight * cell.rating
  }
  return known.map(({ cell }, index) => {
    const weight = weights[index] ?? 0
    const usual = (sum - weight * cell.rating) / (total - weight)
    return (weight / (weight + ratingPrior)) * (cell.rating - usual)
  })
}

const unknown: BiasEstimate = { bias: 0, quality: 0, error: 1 }
/** A model with evidence, centered, and its sums over the cases. */
type Measured = {
  readonly index: number
  readonly above: number
  readonly value: number
  /** Variance of the mean. */
  readonly variance: number
  own: number
  expected: number
  error: number
}

function getMeasured(known: readonly BiasInput[], now: number, given: BiasParameters): Measured[] {
  let spread = given.variance * given.varianceWeight
  let weight = given.varianceWeight
  for (const { cell } of known) {
    spread += cell.spread
    weight += cell.weight
  }
  const measured: Measured[] = []
  for (let index = 0; index < known.length; index++) {
    const biasInput = known[index]
    if (biasInput === undefined || biasInput.cell.weight <= 0) continue
    const variance = spread / weight / (biasInput.cell.weight * decayFactor(now - biasInput.cell.at))
    const [above, value] = [biasInput.figure - middle, biasInput.cell.quality - middle]
    measured.push({ index, above, value, variance, own: 0, expected: 0, error: 0 })
  }
  return measured
}

type Case = {
  readonly slope: number
  /** Variance of the deviations between models. */
  readonly square: number
  readonly ease: number
  readonly easeVariance: number
  readonly logLikelihood: number
}

/** Returns every case with its implied ease and the likelihood of the measurements, without constant factors. */
function getCases(measured: readonly Measured[], given: BiasParameters): Case[] {
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
