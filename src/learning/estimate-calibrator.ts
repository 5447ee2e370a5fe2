/**
 * Calibrates cost estimates from settled requests per query type, for all accounts together and for each one. In this
 * process's memory, numbers only; a restart begins with the table of usual lengths.
 */
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import {
  addCalibrationSample,
  type CalibratedLength,
  type CalibrationSample,
  type CalibrationState,
  calibratedLength,
  emptyCalibration,
} from './estimate-calibration.ts'

export type EstimateCalibrator = {
  /** Returns the calibration of a query type, including the account's own responses if `accountId` is given. */
  of(queryType: QueryType, accountId: string | null): CalibratedLength
  settled(accountId: string, queryType: QueryType, outcome: CalibrationSample): void
}

const maximumAccounts = 2_000

export function createForesightBook({ clock }: { readonly clock: { now(): number } }): EstimateCalibrator {
  const everybody = new Map<QueryType, CalibrationState>()
  const accounts = createRecentMap<CalibrationState>(maximumAccounts * queryTypes.length)

  return {
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
