/** The measured gateway of a load test: a process on real stores, with one upstream and one key without limits. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
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
import { type LoadResult, load } from '../load.ts'
import { type Child, startChild, stopChildren } from './child.ts'
import { placeholder } from './open-load.ts'

/** Starts a program of `test/bench`. */
export function startScript(name: string, ...words: readonly string[]): Promise<Child> {
  return startChild([process.execPath, join(import.meta.dir, '..', name), ...words])
}

type MeasuredOptions = {
  readonly hasRedis?: boolean
  readonly environment?: Environment
  /** CPU time of the gateway per second; unlimited unless given. */
  readonly cpu?: string | undefined
}

/** Runs `work` with a gateway in front of the upstream of this script, and ends all of it. */
export async function withMeasured(
  [name, ...words]: readonly [script: string, ...words: string[]],
  { hasRedis = false, environment = {}, cpu }: MeasuredOptions,
  work: (rig: Measured) => Promise<void>,
): Promise<void> {
  const [postgres, redis] = await Promise.all([startPostgres(), hasRedis ? startRedis() : null])
  if (postgres === null) throw new Error('a real Postgres is needed')
  let endLimit = () => {}
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
    if (cpu !== undefined) endLimit = limitCpu(gateway.pid, Number(cpu))
    await work({ gateway, key, port: Number(new URL(gateway.url).port), upstreamPort: upstream.line })
  } finally {
    await stopProcesses()
    endLimit()
    await stopChildren()
    await Promise.all([postgres.stop(), redis?.stop()])
  }
}

/**
 * Limits the CPU time of a process like the quota of a container, with a control group of its own (as root). Returns how
 * to remove the group after the end of the process.
 */
function limitCpu(pid: number, cores: number): () => void {
  const root = '/sys/fs/cgroup'
  const isUnified = existsSync(`${root}/cgroup.controllers`)
  const group = `${isUnified ? root : `${root}/cpu`}/gateway-ai-${pid}`
  mkdirSync(group)
  const quota = Math.round(cores * 100_000)
  writeFileSync(`${group}/${isUnified ? 'cpu.max' : 'cpu.cfs_quota_us'}`, isUnified ? `${quota} 100000` : String(quota))
  writeFileSync(`${group}/cgroup.procs`, String(pid))
  return () => rmdirSync(group)
}

const path = '/v1/chat/completions'
const words = 'Say in a few plain sentences what a gateway in front of several model providers is good for. '
/** A request of about 1 KB, with a place for a number. */
const body = JSON.stringify({
  model: 'openai/gpt-4.1',
  max_tokens: 512,
  messages: [{ role: 'user', content: `${placeholder} ${words.repeat(9).slice(0, 800)}` }],
})
let texts = 0

/** The measured request. Each text is new: a repeated one is analyzed once, so that the capacity would be too high. */
export const measuredRequest = {
  path,
  template: body,
  body: () => body.replace(placeholder, String(texts++).padStart(placeholder.length, '0')),
}

/** Sends requests over 32 connections, which is the capacity. */
export function atCapacity({ port, key }: Measured, total: number): Promise<LoadResult> {
  const headers = { authorization: `Bearer ${key}` }
  return load({ port, path, headers, body: measuredRequest.body, connections: 32, total })
}

export type Measured = {
  readonly gateway: GatewayProcess
  readonly key: string
  readonly port: number
  readonly upstreamPort: string
}
