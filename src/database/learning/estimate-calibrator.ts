/**
 * What estimates have learnt from what requests really cost, in this process's memory: per query type, of everybody and of each
 * account. Numbers alone, no content; a restart begins with the table.
 */
import { type QueryType, queryTypes } from '../../core/chat/chat.ts'
import {
  type Foreseen,
  type Foresight,
  foresee,
  nothingForeseen,
  type Outcome,
  takeOutcome,
} from '../../core/usage/estimate-calibration.ts'
import { createRecent } from '../../core/text/recent-map.ts'

export type ForesightBook = {
  /** What is known of a query type; of the account's own answers too where one is named. */
  of(queryType: QueryType, accountId: string | null): Foreseen
  settled(accountId: string, queryType: QueryType, outcome: Outcome): void
}

const maximumAccounts = 2_000

export function createForesightBook({ clock }: { readonly clock: { now(): number } }): ForesightBook {
  const everybody = new Map<QueryType, Foresight>()
  const accounts = createRecent<Foresight>(maximumAccounts * queryTypes.length)

  return {
    of: (queryType, accountId) =>
      foresee(
        everybody.get(queryType) ?? null,
        accountId === null ? null : (accounts.get(ownKey(accountId, queryType)) ?? null),
      ),
    settled(accountId, queryType, outcome) {
      const now = clock.now()
      const all = everybody.get(queryType) ?? nothingForeseen(now)
      everybody.set(queryType, all)
      takeOutcome(all, outcome, now)
      const key = ownKey(accountId, queryType)
      const own = accounts.get(key) ?? nothingForeseen(now)
      // Set again each time, or an account in use would be forgotten with its generation.
      accounts.set(key, own)
      takeOutcome(own, outcome, now)
    },
  }
}

function ownKey(accountId: string, queryType: QueryType): string {
  return `${accountId} ${queryType}`
}
