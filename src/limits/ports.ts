/** What the shared meter needs of the two stores. */
import type { Sql } from 'postgres'
import type { Script } from '../core/limits/redis.ts'

export type LimitRedis = {
  /** Runs a script. Throws `RedisUnavailableError`, although the script may have run. All `keys` are in one slot. */
  evaluate(script: Script, keys: readonly string[], values: readonly string[], deadlineMs?: number): Promise<unknown>
  isReady(): boolean
  /** Connections that failed since the last successful one. */
  failedConnections(): number
  /** Calls `listener` when Redis becomes available or unavailable. */
  onChange(listener: (isReady: boolean) => void): void
}

export type LimitDatabase = {
  /**
   * Runs SQL. Throws `GatewayError` `service_unavailable` if Postgres does not answer in time, although it may have
   * run. An urgent query starts before those that wait.
   */
  run<T>(
    work: (connected: { readonly sql: Sql }) => PromiseLike<T>,
    deadlineMs?: number,
    isUrgent?: boolean,
  ): Promise<T>
}
