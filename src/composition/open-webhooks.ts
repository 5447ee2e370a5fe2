import packageJson from '../../package.json'
import type { Config } from '../config.ts'
import { eraseLate } from '../console/account/store.ts'
import { pruneDeliveries } from '../console/webhooks/stores/webhook-log.ts'
import { claimDeliveries, resealSecrets, settleDelivery } from '../console/webhooks/stores/webhooks.ts'
import { createSecretSeal, deliverDue, newSigningSecret } from '../console/webhooks/worker.ts'
import { type RepeatTimer, startRepeating } from '../core/jobs/repeating.ts'
import type { Clock, Log } from '../core/ports.ts'
import type { Database } from '../database/database.ts'
import { pruneAudit } from '../database/repositories/audit.ts'
import { pruneRejections } from '../ledger/find-request.ts'
import { createHttpPost } from '../web/http-post.ts'
import { createResolver } from '../web/resolve.ts'
import type { PageOptions } from './open-web.ts'

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly newId: (prefix: string) => string
  readonly forgetCounters: (accountId: string) => Promise<void>
  readonly sessionSecret: string
  readonly pages: PageOptions
  readonly timer: RepeatTimer
}

const everyMs = 5_000
const pruneEveryMs = 3_600_000
const prunedAtOnce = 10_000

/**
 * Opens webhooks: the workers that deliver events and delete old ones, with old entries of the audit log, old rejections and late
 * data of deleted accounts. `undo` receives the functions that close them.
 */
export function openWebhooks(config: Config, parts: Parts, undo: (() => unknown)[]) {
  const { database, clock, log, newId, forgetCounters, sessionSecret, pages, timer } = parts
  const { resolve = createResolver(config.serviceDeadlines.nameResolutionMs), dial } = pages
  const seal = createSecretSeal(sessionSecret, config.jwtSecretPrevious)
  const deps = {
    claim: (at: number, options: Parameters<typeof claimDeliveries>[2]) => claimDeliveries(database, at, options),
    settle: (...[delivery, result, at]: Parameters<typeof settleDelivery> extends [unknown, ...infer R] ? R : never) =>
      settleDelivery(database, delivery, result, at),
    post: createHttpPost({
      resolve,
      privateAllowed: config.privateWebhooks,
      ...(dial === undefined ? {} : { dial }),
    }),
    seal,
    clock,
    log,
    version: packageJson.version,
  }
  const worker = startRepeating(
    everyMs,
    isClosed => deliverDue(deps, isClosed),
    failures => {
      // Once per minute: other components report an unreachable database too.
      if (failures % 12 === 1) log.warn('webhook_deliveries_failed', { failures })
    },
    timer,
  )
  undo.push(() => worker.close())
  const pruning = startRepeating(
    pruneEveryMs,
    async isClosed => {
      const jobs = [
        // All that is due: one part per hour would be less than a large installation adds.
        ...[pruneAudit, pruneDeliveries, pruneRejections].map(prune => async () => {
          while (!isClosed() && (await prune(database, prunedAtOnce)) === prunedAtOnce);
        }),
        () => eraseLate(database, { at: clock.now(), newId, forgetCounters, log }, isClosed),
        async () => {
          // Not at the start: instances that know only the former session secret may still run.
          if (config.jwtSecretPrevious !== null) await resealSecrets(database, seal.reseal)
        },
      ]
      // One that fails does not stop those after it.
      const failed: unknown[] = []
      for (const job of jobs) await job().catch(error => failed.push(error))
      if (failed.length > 0) throw failed[0]
    },
    failures => log.warn('retention_failed', { failures }),
    timer,
  )
  undo.push(() => pruning.close())
  return {
    seal,
    newSecret: newSigningSecret,
    /** Sends what is due now; a failure is repeated by the next run. */
    wake: () => void worker.run().catch(() => {}),
    worker,
  }
}
