/**
 * In-memory cache of accounts' learning data, so that routing reads it without waiting. Postgres is the authority. An
 * account that is not loaded yet routes like a new one; one in use is reloaded every few seconds, and one with a new
 * rating or deletion (from any instance) within 500 ms.
 */

import { type Actor, actingAs } from '../core/audit/audit.ts'
import { startFollowing, startRepeating, whenNeeded } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import { createRecentMap } from '../core/text/recent-map.ts'
import type { Database } from '../database/database.ts'
import type { UsageScope } from '../database/visible-requests.ts'
import type { LearnedBias, LearnedBiasLookup } from './apply-bias.ts'
import { type BiasInput, estimateBiases } from './learned-bias.ts'
import { accountsToPurge, erase, purgeEntries, type Rating, rate, readChanges, readEpochs } from './learning.ts'
import { type CandidateCell, type CellKey, readCells } from './learning-cells.ts'
import type { LengthStatistics } from './response-quality.ts'

/** Learning data that routing and settlement read for one account. */
type AccountLearning = {
  /**
   * Number of deletions so far. Stored with each learning entry, so that entries from before a deletion are rejected.
   */
  readonly epoch: number
  /** Returns the learned biases of a query type; null = no data. */
  findLeaning(queryType: string): LearnedBiasLookup | null
  /** Returns statistics of output lengths; null until there are ten responses. */
  findUsualRatio(queryType: string): LengthStatistics | null
}

export type LearningCache = {
  /** Returns an account's data from memory; null = not loaded, which starts loading it. */
  of(accountId: string): AccountLearning | null
  /** Reloads accounts that learned from stored usage records, if they are in use. */
  refresh(accountIds: readonly string[]): void
  /** Rates a request; its effect is in memory when this resolves. Null if the account has no such request. */
  rate(scope: UsageScope, requestId: string, rating: Rating): Promise<CellKey | null>
  /** Deletes the account's learning data: memory and cells before this resolves, entries then or soon after. */
  erase(accountId: string, actor?: Actor): Promise<void>
  /** Returns the account's cells from Postgres. */
  cells(accountId: string): Promise<readonly CandidateCell[]>
  close(): Promise<void>
}

type LearningCacheOptions = {
  readonly database: Database
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  /** Returns a model's catalog quality (0–1) by `provider/model`; null = not in the catalog. */
  readonly findFigure: (model: string) => number | null
  readonly log: Pick<Log, 'warn'>
}

type Topic = { readonly leans: ReadonlyMap<string, LearnedBias>; readonly usualRatio: LengthStatistics | null }
type Remembered = AccountLearning & { readonly order: number; readonly readAt: number; readonly changedAt: number }

const maximumAccounts = 5_000
const readAgainMs = 5_000
const readAfterMs = 100
const pollMs = 2_000
/** Polls overlap by this much, since a transaction may commit after a later one. */
const overlapMs = 5_000
const accountsAtOnce = 100
const sweepEveryMs = 60_000
/** Maximum time that a deletion waits for its entries; the rest continues in the background. */
const sweepWithinMs = 10_000
/** Time within which a request's record is in Postgres, also on a busy machine. */
const shippedWithinMs = 5_000
const askAgainMs = 100

/** Creates a cache and starts its background jobs. */
export function createLearningCache({ database, clock, findFigure, log }: LearningCacheOptions): LearningCache {
  const remembered = createRecentMap<Remembered>(maximumAccounts)
  /** Shares one copy of each model's name between all accounts. */
  const names = new Map<string, string>()
  const wanted = new Set<string>()
  /** Numbers of reads in the order of their start: the result of the latest one wins. */
  let reads = 0
  let isReading = false
  /** By the database's clock; null before the first poll. */
  let changesSeen: number | null = null

  const known = (cell: CandidateCell) => {
    const figure = findFigure(cell.model)
    if (figure === null) return []
    const name = names.get(cell.model) ?? cell.model
    names.set(name, name)
    return [{ name, figure, cell }]
  }

  const read = async (accountIds: readonly string[], changedAt = 0): Promise<void> => {
    const order = ++reads
    // Reads the epoch first: cells of a later epoch than recorded are fixed by the next read, but not the other way
    // round.
    const epochs = await readEpochs(database, accountIds)
    const cells = Map.groupBy(await readCells(database, accountIds), cell => cell.accountId)
    for (const accountId of accountIds) {
      const before = remembered.get(accountId)
      if (before !== undefined && before.order > order) continue
      remembered.set(accountId, {
        ...getLearning(epochs.get(accountId) ?? 0, (cells.get(accountId) ?? []).flatMap(known), clock.now()),
        order,
        readAt: clock.monotonic(),
        changedAt: Math.max(changedAt, before?.changedAt ?? 0),
      })
    }
  }

  const readWanted = async () => {
    if (isReading) return scan.need()
    isReading = true
    try {
      while (wanted.size > 0) {
        const some = [...wanted].slice(0, accountsAtOnce)
        for (const accountId of some) wanted.delete(accountId)
        await read(some)
      }
    } finally {
      isReading = false
      // After a failure: the accounts that are left.
      if (wanted.size > 0) scan.need()
    }
  }
  const scan = whenNeeded(readAfterMs, readWanted)
  const want = (accountId: string) => {
    wanted.add(accountId)
    scan.need()
  }

  const poll = async () => {
    const { now, changes } = await readChanges(database, changesSeen === null ? null : changesSeen - overlapMs)
    changesSeen = now
    for (const { accountId, changedAt } of changes) {
      const known = remembered.get(accountId)
      if (known !== undefined && known.changedAt < changedAt) await read([accountId], changedAt)
    }
  }

  const sweepLeft = async () => {
    for (const accountId of await accountsToPurge(database)) await purgeEntries(database, accountId, () => true)
  }

  // Reports changes from now on, instead of after the first interval.
  poll().catch(() => {})
  const jobs = [startFollowing(pollMs, poll, database.onWrite), startRepeating(sweepEveryMs, sweepLeft, () => {}), scan]

  return {
    of(accountId) {
      const known = remembered.get(accountId)
      if (known === undefined || clock.monotonic() - known.readAt > readAgainMs) {
        want(accountId)
        if (known === undefined) readWanted().catch(() => {})
      }
      return known ?? null
    },
    refresh(accountIds) {
      for (const accountId of accountIds) if (remembered.has(accountId)) want(accountId)
    },
    async rate(scope, requestId, rating) {
      const until = clock.now() + (mayBeOnItsWay(requestId, clock.now()) ? shippedWithinMs : 0)
      let rated = await rate(database, scope, requestId, rating, clock.now())
      while (rated === null && clock.now() < until) {
        await clock.sleep(askAgainMs)
        rated = await rate(database, scope, requestId, rating, clock.now())
      }
      if (rated !== null) await read([scope.accountId])
      return rated
    },
    async erase(accountId, actor) {
      await erase(actor === undefined ? database : actingAs(database, actor), accountId, clock.now())
      await read([accountId])
      const until = clock.monotonic() + sweepWithinMs
      try {
        await purgeEntries(database, accountId, () => clock.monotonic() < until)
      } catch (cause) {
        // The data is already deleted for all readers; the next cleanup removes the unread entries.
        log.warn('learning_cleanup_failed', { detail: cause instanceof Error ? cause.message : String(cause) })
      }
    },
    cells: accountId => readCells(database, [accountId]),
    async close() {
      await Promise.all(jobs.map(job => job.close()))
    },
  }
}

/**
 * Returns true if a request's record may not be in Postgres yet. IDs contain their creation time (UUID version 7), so
 * an old one is either stored or does not exist.
 */
function mayBeOnItsWay(requestId: string, now: number): boolean {
  const madeAt = Number.parseInt(/^req_([0-9a-f]{12})[0-9a-f]{20}$/.exec(requestId)?.[1] ?? '', 16)
  return Math.abs(now - madeAt) < shippedWithinMs
}

type KnownCell = BiasInput & { readonly name: string; readonly cell: CandidateCell }

function getLearning(epoch: number, cells: readonly KnownCell[], now: number): AccountLearning {
  const topics = new Map<string, Topic>()
  for (const [queryType, ofType] of Map.groupBy(cells, ({ cell }) => cell.queryType))
    topics.set(queryType, getTopic(ofType, now))
  return {
    epoch,
    findLeaning(queryType) {
      const topic = topics.get(queryType)
      return topic === undefined ? null : model => topic.leans.get(model) ?? null
    },
    findUsualRatio: queryType => topics.get(queryType)?.usualRatio ?? null,
  }
}

function getTopic(known: readonly KnownCell[], now: number): Topic {
  const estimates = estimateBiases(known, now)
  const leans = known.map(({ name, cell }, index): [string, LearnedBias] => [
    name,
    { bias: estimates[index]?.bias ?? 0, entries: cell.entries, ratings: cell.ratings },
  ])
  return { leans: new Map(leans), usualRatio: usualRatio(known.map(({ cell }) => cell)) }
}

const leastForRatio = 10

function usualRatio(cells: readonly CandidateCell[]): LengthStatistics | null {
  const requests = cells.reduce((sum, cell) => sum + cell.requests, 0)
  if (requests < leastForRatio) return null
  const getMean = (value: (cell: CandidateCell) => number) =>
    cells.reduce((sum, cell) => sum + cell.requests * value(cell), 0) / requests
  const mean = getMean(cell => cell.ratio)
  return { mean, deviation: Math.sqrt(getMean(cell => cell.ratioVariance + (cell.ratio - mean) ** 2)) }
}
