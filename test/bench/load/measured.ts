/** The measured gateway of a load test: a process on real stores, with one upstream and one key without limits. */
import { join } from 'node:path'
import { freshKey } from '../../faults/accounts.ts'
import { startPostgres } from '../../harness/postgres.ts'
import {
  dataFolder,
  type Environment,
  type GatewayProcess,
  startProcess,
  stopProcesses,
} from '../../harness/processes.ts'
import { startRedis } from '../../harness/redis.ts'
import { type Child, startChild, stopChildren } from './child.ts'

/** Starts a program of `test/bench`. */
export function startScript(name: string, ...words: readonly string[]): Promise<Child> {
  return startChild([process.execPath, join(import.meta.dir, '..', name), ...words])
}

/** Runs `work` with a gateway in front of the upstream of this script, and ends all of it. */
export async function withMeasured(
  [name, ...words]: readonly [script: string, ...words: string[]],
  { hasRedis = false, environment = {} }: { readonly hasRedis?: boolean; readonly environment?: Environment },
  work: (rig: Measured) => Promise<void>,
): Promise<void> {
  const [postgres, redis] = await Promise.all([startPostgres(), hasRedis ? startRedis() : null])
  if (postgres === null) throw new Error('a real Postgres is needed')
  try {
    const upstream = await startScript(name, ...words)
    const gateway = await startProcess(dataFolder(), {
      DATABASE_URL: postgres.url,
      JWT_SECRET: 'bench'.repeat(8),
      OPENAI_API_KEY: 'bench',
      OPENAI_BASE_URL: `http://127.0.0.1:${upstream.line}/v1`,
      ...(redis === null ? {} : { REDIS_URL: redis.url }),
      ...environment,
    })
    const key = await freshKey(postgres.url, { concurrent: 100_000 })
    await work({ gateway, key, port: Number(new URL(gateway.url).port), upstreamPort: upstream.line })
  } finally {
    await stopProcesses()
    await stopChildren()
    await Promise.all([postgres.stop(), redis?.stop()])
  }
}

export type Measured = {
  readonly gateway: GatewayProcess
  readonly key: string
  readonly port: number
  readonly upstreamPort: string
}
