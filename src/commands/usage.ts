/** `usage …`: ships the journal's records and reconciles billing. */
import { resolve } from 'node:path'
import { readConfig, readStoreConfig } from '../config.ts'
import type { Redis } from '../database/redis.ts'
import type { UsageSource } from '../ledger/reconcile.ts'
import { CommandFailure, command, json, print, printJson, UsageError } from './command.ts'
import { withDatabase } from './open-database.ts'
import type { UsageReport } from './usage-reports.ts'

// These two need more modules than all other commands together, so they are loaded on use.
const auditing = async () => ({
  ...(await import('./usage-reports.ts')),
  ...(await import('../ledger/reconcile/journal-source.ts')),
  ...(await import('../ledger/reconcile/redis-source.ts')),
  ...(await import('../database/redis.ts')),
})
const dataDirectory = () => resolve(readStoreConfig().dataDirectory)

const replay = command({
  name: 'usage replay',
  about: 'Ship unshipped journal records to the ledger (idempotent)',
  operands: {},
  options: {
    journal: { type: 'string', value: 'FOLDER', about: 'default: those of GATEWAY_DATA_DIR and its workers' },
    json,
  },
  async run({ options }) {
    const { journalFolders, replayFolders } = await auditing()
    const directories = options.journal === undefined ? journalFolders(dataDirectory()) : [resolve(options.journal)]
    tell(await withDatabase(database => replayFolders(database, directories)), options.json)
  },
})

const reconcile = command({
  name: 'usage reconcile',
  about: 'Check that ledger, daily totals and counters agree (exit code 1 if not)',
  operands: {},
  options: {
    from: { type: 'string', value: 'YYYY-MM-DD', about: 'first UTC day; default: all' },
    to: { type: 'string', value: 'YYYY-MM-DD', about: 'last UTC day; default: today' },
    account: { type: 'string', value: 'ID', about: 'only this account' },
    json,
  },
  async run({ options }) {
    const scope = {
      ...(options.from === undefined ? {} : { from: day('--from', options.from) }),
      ...(options.to === undefined ? {} : { to: day('--to', options.to) }),
      ...(options.account === undefined ? {} : { accountId: options.account }),
    }
    const { journalFolders, journalSource, openRedis, reconcileUsage, redisSource } = await auditing()
    const { redisUrls, serviceDeadlines } = readConfig()
    const { redisMs: deadlineMs, commandConnectMs } = serviceDeadlines
    const redis = redisUrls.length === 0 ? null : openRedis({ urls: redisUrls, deadlineMs })
    try {
      const sources: UsageSource[] = journalFolders(dataDirectory()).map(journalSource)
      if (redis !== null) sources.push(redisSource(await connected(redis, commandConnectMs)))
      tell(await withDatabase(database => reconcileUsage(database, sources, scope)), options.json)
    } finally {
      redis?.close()
    }
  },
})

/** Waits for the connection, which is opened in the background. */
async function connected(redis: Redis, patienceMs: number): Promise<Redis> {
  for (const until = Date.now() + patienceMs; !redis.isReady(); await Bun.sleep(20))
    if (Date.now() > until) throw new CommandFailure('Redis is unreachable; counters cannot be compared.')
  return redis
}

export const usageCommands = [replay, reconcile]

function tell(report: UsageReport, asJson = false): void {
  if (asJson) printJson(report.json)
  else print(...report.lines)
  if (!report.isWell) throw new CommandFailure('Check failed; see above.')
}

function day(name: string, value: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value))) return value
  throw new UsageError(`${name} must be a UTC day: YYYY-MM-DD.`)
}
