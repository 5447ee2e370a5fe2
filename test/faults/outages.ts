/**
 * Store outages under load that last longer than the suite allows: `bun test/faults/outages.ts [seconds] [schedule]`.
 * Postgres killed, frozen, and both stores frozen, back in either order. While one store can decide limits, no known
 * client notices; if none can, requests are rejected with 503 and none is truncated. The ledger matches the clients'
 * view.
 */
import { startPostgres } from '../harness/postgres.ts'
import { stopProcesses } from '../harness/processes.ts'
import { startRedis } from '../harness/redis.ts'
import { type Schedule, throughOutage } from './outage.ts'

const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
if (postgres === null || redis === null) throw new Error('needs Postgres and Redis')
const [seconds = '60', only] = process.argv.slice(2)
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

/** Both stores are unavailable, or Redis was emptied while Postgres is unavailable: nothing can decide limits then. */
const undecided = new Set([
  'Postgres gone, Redis made anew meanwhile',
  'both frozen, Redis back first',
  'both frozen, Postgres back first, Redis while the callers go on',
])

let failed = 0
for (const [name, schedule] of Object.entries(schedules)) {
  if (only !== undefined && only !== name) continue
  try {
    await throughOutage(name, postgres, { REDIS_URL: redis.url }, schedule, undecided.has(name))
  } catch (cause) {
    failed++
    process.stdout.write(`${name}: ${cause instanceof Error ? cause.message : String(cause)}\n`)
  }
  await stopProcesses()
}
await Promise.all([postgres.stop(), redis.stop()])
process.exit(failed === 0 ? 0 : 1)
