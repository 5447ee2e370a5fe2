/**
 * Without Redis, the supervisor of several workers owns their limits and usage: it meters all accounts, keeps the one
 * journal, and ships its records to the ledger. Workers connect to it through a socket in the data folder.
 */
import { join } from 'node:path'
import { openLocalUsage, ownerSocketPath } from '../compose/usage.ts'
import type { Config } from '../config/config.ts'
import { intervalTimer } from '../core/jobs/repeating.ts'
import { createLocalRateLimiters } from '../core/limits/rate-limits.ts'
import type { Log } from '../core/ports.ts'
import { createSharedClock } from '../database/clock.ts'
import { openStores } from '../database/open-stores.ts'
import { applyLearningEntries } from '../learning/learning.ts'
import { createUsageSeed } from '../ledger/ledger.ts'
import { takeOverJournal } from '../ledger/take-over.ts'
import { listenLocally } from '../limits/owner/local-socket.ts'
import type { OwnerMessage, WorkerMessage } from '../limits/owner/messages.ts'
import { createOwnerService } from '../limits/owner/service.ts'

const reportMs = 1_000
const shippingDeadlineMs = 5_000

/**
 * Opens the stores and starts to serve workers. Returns a function that ships the remaining usage and closes. Throws as
 * `createDeps`.
 */
export async function openLimitOwner(config: Config, log: Log): Promise<() => Promise<void>> {
  const undo = new AsyncDisposableStack()
  try {
    const shared = createSharedClock()
    const { clock } = shared
    const { database, isEmbedded, migrated } = await openStores(config, { log, clock }, undo)
    const timekeeper = isEmbedded ? null : shared.follow(database, log)
    undo.defer(() => timekeeper?.stop())
    await timekeeper?.measure()
    void migrated.then(() => timekeeper?.measure())
    const learn = async (records: Parameters<typeof applyLearningEntries>[1]) =>
      void (await applyLearningEntries(database, records))
    const { journal, meter, shipper } = openLocalUsage(config, { database, clock, log, learn }, undo)
    const service = createOwnerService({
      meter,
      limits: createLocalRateLimiters(clock),
      spent: createUsageSeed(database, journal),
      onJoined: worker => takeOverJournal(join(config.dataDirectory, `worker-${worker}`), journal, log),
      onEvent: (event, detail) => log.error(event, { detail }),
    })
    const stopListening = listenLocally<WorkerMessage, OwnerMessage>(ownerSocketPath(config.dataDirectory), peer => {
      const connection = service.connect(peer.send)
      return { receive: connection.receive, closed: () => void connection.close() }
    })
    undo.defer(stopListening)
    const report = () =>
      service.broadcast({
        type: 'backlog',
        records: shipper.backlog(),
        aside: shipper.aside(),
        lagMs: Math.round(shipper.lagMs()),
      })
    undo.defer(intervalTimer(reportMs, report))
    return async () => {
      if (!(await shipper.drain(shippingDeadlineMs)))
        log.warn('usage_unshipped_at_exit', { records: journal.backlog() })
      await undo.disposeAsync()
    }
  } catch (cause) {
    // The cause of the failed start matters more than a failure during cleanup.
    await undo.disposeAsync().catch(() => {})
    throw cause
  }
}
