/** What meters accounts and brings their usage into the ledger: in this process, in Redis, or in the process that owns it. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createLocalRateLimiters, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Log } from '../core/ports/log.ts'
import type { UsageRecord } from '../core/usage/usage-record.ts'
import { type Channel, openChannel } from '../database/channel.ts'
import { holderOf } from '../database/data-folder.ts'
import type { Database } from '../database/database.ts'
import { socketPathIn } from '../database/embedded.ts'
import type { Redis } from '../database/redis.ts'
import { sharedLimits } from '../database/shared-limits.ts'
import { openCheckpoints } from '../ledger/checkpoints.ts'
import { type Journal, openJournal } from '../ledger/journal.ts'
import { createUsageSeed } from '../ledger/ledger.ts'
import { createShipper, type Shipper } from '../ledger/shipper.ts'
import type { RecordJournal } from '../limits/failover/durable-record.ts'
import type { Meter } from '../limits/meter.ts'
import { createOwnerClient, type OwnerClient } from '../limits/owner/client.ts'
import type { OwnerMessage, WorkerMessage } from '../limits/owner/messages.ts'
import { connectLocally } from './local-socket.ts'
import { openMeter } from './open-meter.ts'

export type Usage = {
  readonly meter: Meter
  /** Limits of who is no account. */
  readonly limits: RateLimiterFactory
  readonly redis: Redis | null
  readonly sharedRatio: () => number | null
  /** What an account has used of a UTC day (since the epoch): in the ledger, and on its way there. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  /** Usage records on their way into the ledger, as the gauges report them. */
  readonly records: Pick<Shipper, 'backlog' | 'lagMs'>
  /** Connects to the other gateways; `onHint` is called when one of them reports a change. Null = there are none. */
  channel(onHint: () => void): Channel | null
  /** Resolves when limits can be decided, at most after `waitMs`. */
  ready(waitMs: number): Promise<void>
  /** Brings what is left of usage to where it is safe. False where some is left. */
  drain(deadlineMs: number): Promise<boolean>
}

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly learn: (records: readonly UsageRecord[]) => Promise<void>
}

/** Whether the parent of this worker owns the limits: several processes on one machine without Redis. */
const isOwnedByParent = (config: Pick<Config, 'worker' | 'redisUrls'>) =>
  config.worker !== null && config.redisUrls.length === 0

/** Where the owner of a data folder's limits listens. */
export const ownerSocketPath = (dataDirectory: string) => socketPathIn(dataDirectory, 'limits.sock')

/** Opens it for this process. `undo` receives what closes it. */
export function openUsage(config: Config, parts: Parts, undo: (() => unknown)[]): Promise<Usage> {
  return isOwnedByParent(config) ? joinOwner(config, parts, undo) : Promise.resolve(openOwn(config, parts, undo))
}

function openOwn(config: Config, { database, clock, log, learn }: Parts, undo: (() => unknown)[]): Usage {
  const journal = openOwnJournal(config.ownDirectory, log)
  undo.push(() => journal.close())
  if (config.redisUrls.length === 0) takeOverJournals(config.dataDirectory, journal, log)
  const { meter, redis, sharedRatio, shipping, ready } = openMeter(config, { database, journal, clock, log }, undo)
  const shipper = createShipper({ journal, database, learn, clock, log, ...shipping })
  undo.push(() => shipper.close())
  return {
    meter,
    limits: redis === null ? createLocalRateLimiters(clock) : sharedLimits({ redis, clock }),
    redis,
    sharedRatio,
    spent: createUsageSeed(database, journal),
    records: shipper,
    channel: onHint => (redis === null ? null : openChannel({ urls: config.redisUrls, redis, onHint })),
    ready,
    drain: deadlineMs => shipper.drain(deadlineMs),
  }
}

const openOwnJournal = (directory: string, log: Log): Journal =>
  openJournal({
    directory: join(directory, 'journal'),
    onDamage: detail => log.error('journal_damaged', { detail }),
  })

async function joinOwner(config: Config, { clock, log }: Parts, undo: (() => unknown)[]): Promise<Usage> {
  let journal: Journal | null = null
  const ownJournal = (): RecordJournal => (journal ??= openOwnJournal(config.ownDirectory, log))
  undo.push(() => journal?.close())
  let onChanged = () => {}
  let isClosing = false
  const joined = Promise.withResolvers<OwnerClient>()
  const peer = await connectLocally<OwnerMessage, WorkerMessage>(ownerSocketPath(config.dataDirectory), owner => {
    const client = createOwnerClient({
      worker: config.worker ?? 0,
      clock,
      send: owner.send,
      journal: ownJournal,
      onChanged: () => onChanged(),
    })
    joined.resolve(client)
    return {
      receive: client.receive,
      closed() {
        if (!isClosing) log.warn('limit_owner_gone')
        client.lost()
      },
    }
  })
  undo.push(() => {
    isClosing = true
    peer.close()
  })
  const client = await joined.promise
  undo.push(() => client.meter.close())
  return {
    meter: client.meter,
    limits: client.limits,
    redis: null,
    sharedRatio: () => null,
    spent: client.spent,
    // All workers have one owner: the first speaks for it, so that a sum over workers is right.
    records: {
      backlog: () => (config.worker === 1 ? client.backlog().records : 0),
      lagMs: () => (config.worker === 1 ? client.backlog().lagMs : 0),
    },
    channel(onHint) {
      onChanged = onHint
      return { publish: client.changed, close() {} }
    },
    ready: () => Promise.resolve(),
    drain: deadlineMs => client.drained(deadlineMs),
  }
}

/**
 * Takes the usage records that workers of an earlier start have left in their folders into `journal`: a process that meters
 * alone must know them. A folder that a living process holds is left to a later start. Never throws.
 */
export function takeOverJournals(dataDirectory: string, journal: Pick<Journal, 'append'>, log: Log): void {
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  for (const name of names)
    if (/^worker-\d+$/.test(name) && holderOf(join(dataDirectory, name)) === null)
      takeOverJournal(join(dataDirectory, name), journal, log)
}

/** The same for one worker's folder, of which the caller knows that nobody writes to it. */
export function takeOverJournal(folder: string, journal: Pick<Journal, 'append'>, log: Log): void {
  if (!existsSync(join(folder, 'journal'))) return
  try {
    const left = openOwnJournal(folder, log)
    // The ledger takes each request once, so what is in both journals after a failure here does no harm.
    for (let batch = left.take(maximumTaken); batch !== null; batch = left.take(maximumTaken)) {
      for (const record of batch.records) journal.append(record)
      batch.release()
    }
    const checkpoints = openCheckpoints(join(folder, 'journal'))
    checkpoints.settleLeft(record => journal.append(record))
    checkpoints.close()
    void left.close()
  } catch (cause) {
    log.error('journal_not_taken_over', { detail: cause instanceof Error ? cause.message : 'unknown' })
  }
}

const maximumTaken = 500
