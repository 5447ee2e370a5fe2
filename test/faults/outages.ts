/**
 * Store outages under load that last longer than the suite allows: `bun test/faults/outages.ts [seconds] [schedule]`.
 * Postgres killed, frozen, and both stores killed or frozen, back in either order. While Redis can decide limits, no known
 * client notices; without it allowances decide, and other requests are rejected with 503. None is truncated or waits for 2 s,
 * the ledger matches the clients' view, and `usage reconcile` agrees.
 */
import { startPostgres } from '../harness/postgres.ts'
import { stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { type Schedule, throughOutage } from './outage.ts'

const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
const [seconds = '30', only] = process.argv.slice(2)
const awayMs = Number(seconds) * 1_000
const halfMs = awayMs / 2

let stopped: number[] = []
const freeze = () => {
  stopped = postgres.pids()
  for (const pid of stopped) process.kill(pid, 'SIGSTOP')
}
const thaw = () => {
  for (const pid of stopped) process.kill(pid, 'SIGCONT')
}

const schedules: Readonly<Record<string, Schedule>> = {
  'Postgres gone': [
    [0, postgres.crash],
    [awayMs, postgres.start],
  ],
  'Postgres gone, Redis made anew meanwhile': [
    [0, postgres.crash],
    [halfMs / 2, () => redis.command('FLUSHALL')],
    [halfMs, redis.freeze],
    [halfMs + 2_000, redis.thaw],
    [awayMs, postgres.start],
  ],
  'Postgres frozen': [
    [0, freeze],
    [halfMs, thaw],
  ],
  'both killed': [
    [0, postgres.crash],
    [0, redis.crash],
    [halfMs, redis.start],
    [halfMs + 2_000, postgres.start],
  ],
  'both frozen, Redis back first': [
    [0, freeze],
    [0, redis.freeze],
    [halfMs, redis.thaw],
    [halfMs + 5_000, thaw],
  ],
  'both frozen, Postgres back first, Redis while the callers go on': [
    [0, freeze],
    [0, redis.freeze],
    [halfMs, thaw],
    [halfMs + 5_000, redis.thaw],
  ],
}

/** Redis is emptied while Postgres is unavailable: nothing knows what accounts have used. */
const unknown = 'Postgres gone, Redis made anew meanwhile'
const longestWaitMs = 2_000

let failed = 0
for (const [name, schedule] of Object.entries(schedules)) {
  if (only !== undefined && only !== name) continue
  try {
    const served = name === unknown ? 'maybe none' : name.startsWith('both') ? 'some' : 'all'
    // The deadlines of service.
    const settings = { REDIS_URL: redis.url, MINIMUM_DEADLINE_MS: '0' }
    const slowestMs = await throughOutage(name, postgres, settings, schedule, served)
    if (slowestMs > longestWaitMs) throw new Error(`a client waited ${slowestMs.toFixed(0)} ms for a status`)
  } catch (cause) {
    failed++
    process.stdout.write(`${name}: ${cause instanceof Error ? cause.message : String(cause)}\n`)
  }
  await stopProcesses()
}
await Promise.all([postgres.stop(), redis.stop()])
process.exit(failed === 0 ? 0 : 1)
