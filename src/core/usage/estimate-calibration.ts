/**
 * How well costs were foreseen, and what that teaches: answers are longer or shorter than usual by a factor, which is followed
 * per query type, and how far the foreseen cost then was from the real one is what is told as its usual error.
 */
import { dayMs } from '../text/utc-days.ts'

/** Sums under a fading weight, changed in place. Times are epoch milliseconds. */
export type CalibrationState = {
  at: number
  /** Answers that ended by themselves, and the natural logarithms of their tokens over the usual ones. */
  answers: number
  lnLength: number
  /** All requests that cost something, and how far off their costs were: absolute logarithms of real over foreseen. */
  requests: number
  lnError: number
}

/** One settled request. */
export type CalibrationSample = {
  /** Output tokens over those that were usual before anything was measured; null = cut short, which says nothing of them. */
  readonly lengthRatio: number | null
  /** Real over foreseen cost. */
  readonly costRatio: number
}

const halfLifeMs = 7 * dayMs
/** What the table of usual answers counts as, and what all accounts together do beside an account's own answers. */
const prior = { answers: 20 }
/** Fewer say nothing of how far off estimates are. */
const leastRequests = 10
/** A ratio beyond this either way is counted as this. */
const farthest = 50

export function emptyCalibration(at: number): CalibrationState {
  return { at, answers: 0, lnLength: 0, requests: 0, lnError: 0 }
}

/** Takes a settled request in. */
export function addCalibrationSample(
  line: CalibrationState,
  { lengthRatio, costRatio }: CalibrationSample,
  now: number,
): void {
  const kept = now <= line.at ? 1 : 0.5 ** ((now - line.at) / halfLifeMs)
  line.at = now
  line.answers *= kept
  line.lnLength *= kept
  line.requests = line.requests * kept + 1
  line.lnError = line.lnError * kept + Math.abs(bounded(costRatio))
  if (lengthRatio === null) return
  line.answers++
  line.lnLength += bounded(lengthRatio)
}

function bounded(ratio: number): number {
  return Math.log(Math.max(1 / farthest, Math.min(farthest, ratio)))
}

/** Where a length was learnt from: the one that says most. */
export type LengthSource = 'table' | 'traffic' | 'account'

export type CalibratedLength = {
  /** What to multiply a usual length by. */
  readonly factor: number
  readonly source: LengthSource
  /** By how much a cost is off, as a rule: 40 = the real one is 1.4 times or a 1.4th of it. Null = too few to say. */
  readonly typicalErrorPct: number | null
}

/** What is known from everybody's answers of a query type, and of those an account's own; null = none. */
export function calibratedLength(everybody: CalibrationState | null, own: CalibrationState | null): CalibratedLength {
  const all = shrunk(everybody, 0)
  const factor = Math.exp(shrunk(own, all))
  const known = (line: CalibrationState | null, least: number) => (line?.answers ?? 0) >= least
  const told = (own?.requests ?? 0) >= leastRequests ? own : everybody
  return {
    factor,
    source: known(own, prior.answers) ? 'account' : known(everybody, prior.answers) ? 'traffic' : 'table',
    typicalErrorPct:
      told === null || told.requests < leastRequests
        ? null
        : Math.round(100 * (Math.exp(told.lnError / told.requests) - 1)),
  }
}

function shrunk(line: CalibrationState | null, towards: number): number {
  if (line === null) return towards
  return (line.lnLength + prior.answers * towards) / (line.answers + prior.answers)
}
