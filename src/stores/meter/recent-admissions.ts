import { createWindowLog, type WindowLog } from '../../core/windows-log.ts'
import { maximumAccounts, remember } from '../remember.ts'

/** The last minute's admissions by this gateway, whichever meter decided. */
export type RecentAdmissions = {
  note(accountId: string): void
  /** The last one did not count. */
  takeBack(accountId: string): void
  count(accountId: string): number
  /** How long ago each was in ms, oldest first. */
  ages(accountId: string): number[]
  /** Those of the wanted that had any. */
  accounts(isWanted: (accountId: string) => boolean): Iterable<string>
}

const minuteMs = 60_000

/** None yet. Accounts that were admitted longest ago are forgotten first. */
export function createRecentAdmissions(clock: { now(): number }): RecentAdmissions {
  const logs = new Map<string, WindowLog>()
  return {
    note(accountId) {
      const log = logs.get(accountId) ?? createWindowLog(minuteMs)
      log.add(clock.now())
      remember(logs, accountId, log, maximumAccounts)
    },
    takeBack: accountId => logs.get(accountId)?.takeBack(),
    count: accountId => logs.get(accountId)?.count(clock.now()) ?? 0,
    ages: accountId => logs.get(accountId)?.ages(clock.now()) ?? [],
    *accounts(isWanted) {
      for (const [accountId, log] of logs) if (isWanted(accountId) && log.count(clock.now()) > 0) yield accountId
    },
  }
}
