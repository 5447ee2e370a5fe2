import { type Repeating, startRepeating } from '../../core/jobs/repeating.ts'
import { pruneAudit } from '../../database/repositories/audit.ts'
import { pruneRejections } from '../../ledger/find-request.ts'
import type { ConsoleDeps } from '../deps.ts'
import { pruneDeliveries } from '../webhooks/stores/webhook-log.ts'
import { eraseLate } from './store.ts'

type RetentionDeps = Pick<ConsoleDeps, 'database' | 'clock' | 'log' | 'newId' | 'forgetCounters' | 'timer'> & {
  /** Seals stored secrets under the current session secret; null = no former one is configured. */
  readonly reseal: (() => Promise<unknown>) | null
}

const everyMs = 3_600_000
const prunedAtOnce = 10_000

/**
 * Starts the worker that deletes old entries of the audit log, old deliveries, old rejections, and late data of deleted
 * accounts.
 */
export function startRetention(deps: RetentionDeps): Repeating {
  const { database, clock, log, newId, forgetCounters, reseal, timer } = deps
  return startRepeating(
    everyMs,
    async isClosed => {
      const jobs = [
        // All that is due: one part per hour would be less than a large installation adds.
        ...[pruneAudit, pruneDeliveries, pruneRejections].map(prune => async () => {
          while (!isClosed() && (await prune(database, prunedAtOnce)) === prunedAtOnce);
        }),
        () => eraseLate(database, { at: clock.now(), newId, forgetCounters, log }, isClosed),
        // Not at the start: instances that know only the former session secret may still run.
        () => reseal?.() ?? Promise.resolve(),
      ]
      // One that fails does not stop those after it.
      const failed: unknown[] = []
      for (const job of jobs) await job().catch(error => failed.push(error))
      if (failed.length > 0) throw failed[0]
    },
    failures => log.warn('retention_failed', { failures }),
    timer,
  )
}
