/** What the shared meter needs of the two stores. */
import type { Sql } from 'postgres'
import type { Script } from '../core/limits/script.ts'

export type LimitRedis = {
  /** Runs a script. Throws `RedisAway`; it may have run all the same. All `keys` are in one slot. */
  evaluate(script: Script, keys: readonly string[], values: readonly string[], deadlineMs?: number): Promise<unknown>
  isReady(): boolean
  /** Connections that failed since the last one that served. */
  failedConnections(): number
  /** Calls `listener` when Redis answers again, and when it is left. */
  onChange(listener: (isReady: boolean) => void): void
}

export type LimitDatabase = {
  /** Runs SQL. Throws `GatewayError` `service_unavailable` if Postgres does not answer in time; it may have run all the same. */
  run<T>(work: (connected: { readonly sql: Sql }) => PromiseLike<T>, deadlineMs?: number): Promise<T>
}
