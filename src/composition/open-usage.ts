/**
 * Opens the meter of accounts and the path of usage records to the ledger: in this process, in Redis, or in the process
 * that owns the limits.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createLocalRateLimiters, type RateLimiterFactory } from '../core/limits/rate-limits.ts'
import type { DailyUsage } from '../core/limits/spent.ts'
import type { Clock, Log } from '../core/ports.ts'
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
import type { RecordJournal } from '../limits/durable-record.ts'
import type { Meter } from '../limits/meter.ts'
import { createOwnerClient, type OwnerClient } from '../limits/owner/client.ts'
import type { OwnerMessage, WorkerMessage } from '../limits/owner/messages.ts'
import { connectLocally } from './local-socket.ts'
import { openMeter } from './open-meter.ts'

export type Usage = {
  readonly meter: Meter
  /** Limits for clients without an account. */
  readonly limits: RateLimiterFactory
  readonly redis: Redis | null
  readonly sharedRatio: () => number | null
  /** Daily usage of an account on a UTC day (days since the epoch): shipped and unshipped records. */
  readonly spent: (accountId: string, day: number) => Promise<DailyUsage>
  /** Unshipped usage records, as the gauges report them. */
  readonly records: Pick<Shipper, 'backlog' | 'aside' | 'lagMs'>
  /**
   * Connects to the other gateway instances; `onHint` is called when one of them reports a change. Null = there are no
   * others.
   */
  channel(onHint: () => void): Channel | null
  /** Resolves when limits can be decided, at the latest after `waitMs`. */
  ready(waitMs: number): Promise<void>
  /** Ships the unshipped records. Returns false if some remain. */
  drain(deadlineMs: number): Promise<boolean>
}

type Parts = {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly learn: (records: readonly UsageRecord[]) => Promise<void>
}

/** Whether the supervisor of this worker owns the limits: several processes on one machine without Redis. */
const isOwnedByParent = (config: Pick<Config, 'worker' | 'redisUrls'>) =>
  config.worker !== null && config.redisUrls.length === 0

/** Socket of the process that owns the limits of a data folder. */
export const ownerSocketPath = (dataDirectory: string) => socketPathIn(dataDirectory, 'limits.sock')

/** Opens usage for this process. `undo` receives the functions that close it. */
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
    onDamage: detail => log.error('journal_corrupted', { detail }),
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
      deadlineMs: config.serviceDeadlines.limitOwnerMs,
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
    // All workers share one owner of the limits. Only the first worker reports it, so that a sum over workers is
    // correct.
    records: {
      backlog: () => (config.worker === 1 ? client.backlog().records : 0),
      aside: () => (config.worker === 1 ? client.backlog().aside : 0),
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
 * Moves the usage records of earlier workers from their folders into `journal`: a process that decides limits by its
 * own counters must know them. Skips a folder that a running process holds. Never throws.
 */
export function takeOverJournals(dataDirectory: string, journal: Pick<Journal, 'append'>, log: Log): void {
  const names = existsSync(dataDirectory) ? readdirSync(dataDirectory) : []
  for (const name of names)
    if (/^worker-\d+$/.test(name) && holderOf(join(dataDirectory, name)) === null)
      takeOverJournal(join(dataDirectory, name), journal, log)
}

/** Moves the records of one worker's folder. The caller guarantees that no process writes to it. */
export function takeOverJournal(folder: string, journal: Pick<Journal, 'append'>, log: Log): void {
  if (!existsSync(join(folder, 'journal'))) return
  try {
    const left = openOwnJournal(folder, log)
    // After a failure here a record can be in both journals. The ledger accepts each request once, so this is harmless.
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
