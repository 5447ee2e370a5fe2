/**
 * Calibration of cost estimates from settled requests: tracks per query type how much longer or shorter outputs are than
 * usual, and the typical error of cost estimates, for all accounts together and for each one. In this process's memory,
 * numbers only; a restart begins with the table of usual lengths.
 */

import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import type { Clock } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import { dayMs } from '../core/text/utc-days.ts'
import { ReasoningCalibration } from '../models/effort.ts'

/** Exponentially decayed sums, updated in place. Times are epoch milliseconds. */
export type CalibrationState = {
  at: number
  /** Outputs that ended normally, and the sum of the natural logarithms of actual over usual tokens. */
  answers: number
  lnLength: number
  /** Requests with a cost, and the sum of the absolute logarithms of actual over estimated cost. */
  requests: number
  lnError: number
}

/** One settled request. */
export type CalibrationSample = {
  /** Actual over usual output tokens; null = truncated, so the length is unknown. */
  readonly lengthRatio: number | null
  /** Actual over estimated cost. */
  readonly costRatio: number
}

const halfLifeMs = 7 * dayMs
/** Weight in responses of the table of usual lengths, and of all accounts' data beside the account's own. */
const prior = { answers: 20 }
/** With fewer requests the typical error is not meaningful. */
const leastRequests = 10
/** Ratios beyond this in either direction are limited to it. */
const farthest = 50

export function emptyCalibration(at: number): CalibrationState {
  return { at, answers: 0, lnLength: 0, requests: 0, lnError: 0 }
}

/** Adds a settled request. */
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

/** The source with the largest weight. */
export type LengthSource = 'table' | 'traffic' | 'account'

export type CalibratedLength = {
  /** Factor on the usual length. */
  readonly factor: number
  readonly source: LengthSource
  /**
   * Typical error of a cost in percent: 40 = the actual cost is 1.4 times the estimate or 1/1.4 of it. Null = too few
   * requests.
   */
  readonly typicalErrorPct: number | null
}

/** Returns the calibration for a query type from all accounts' responses and the account's own; null = none. */
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

export type EstimateCalibrator = {
  /** Reasoning tokens by model and effort. */
  readonly reasoning: ReasoningCalibration
  /** Returns the calibration of a query type, including the account's own responses if `accountId` is given. */
  of(queryType: QueryType, accountId: string | null): CalibratedLength
  settled(accountId: string, queryType: QueryType, outcome: CalibrationSample): void
}

const maximumAccounts = 2_000

export function createEstimateCalibration({ clock }: { readonly clock: Pick<Clock, 'now'> }): EstimateCalibrator {
  const everybody = new Map<QueryType, CalibrationState>()
  const accounts = createRecentMap<CalibrationState>(maximumAccounts * queryTypes.length)

  return {
    reasoning: new ReasoningCalibration(),
    of: (queryType, accountId) =>
      calibratedLength(
        everybody.get(queryType) ?? null,
        accountId === null ? null : (accounts.get(ownKey(accountId, queryType)) ?? null),
      ),
    settled(accountId, queryType, outcome) {
      const now = clock.now()
      const all = everybody.get(queryType) ?? emptyCalibration(now)
      everybody.set(queryType, all)
      addCalibrationSample(all, outcome, now)
      const key = ownKey(accountId, queryType)
      const own = accounts.get(key) ?? emptyCalibration(now)
      // Set again on each use, so that an account in use is not evicted with its generation.
      accounts.set(key, own)
      addCalibrationSample(own, outcome, now)
    },
  }
}

function ownKey(accountId: string, queryType: QueryType): string {
  return `${accountId} ${queryType}`
}
