import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Log } from '../core/ports.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import type { ProviderSettings } from './providers.ts'
import { type StoredKey, withStoredKeys } from './stored-keys.ts'

/** The parts of a running gateway that a reload replaces, in this order. */
type ReloadParts = {
  /** The configuration of the running process. */
  readonly config: Config
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly replaceProviders: (providers: readonly ProviderSettings[]) => void
  readonly replaceModels: (config: Config) => void
  /** Called after providers were replaced, perhaps with other credentials. */
  readonly retryCredentials: () => void
  readonly replacePlans: (config: Config) => void
  readonly replaceRouting: (config: Config) => void
  readonly replaceModeration: (config: Config) => void
}

export type ReloadResult = {
  /** Problems of the configuration, one line each; with any of them nothing was replaced. */
  readonly problems: readonly string[]
  /** Changed sections that only a restart applies. */
  readonly restart: readonly string[]
}

/**
 * Creates the reload: it reads the configuration again, and replaces providers, models, plans, routing and moderation.
 * An invalid configuration changes nothing; log and result list its problems. Stored keys join the configuration that was
 * read last, so that a file in the middle of a change cannot delay them. Neither function throws.
 */
export function createConfigReload(parts: ReloadParts) {
  const { config, log } = parts
  let current = config
  let stored: readonly StoredKey[] = []
  const replace = () => {
    const next = withStoredKeys(current, stored)
    parts.replaceProviders(next.providers)
    parts.replaceModels(next)
    parts.retryCredentials()
    return next
  }
  const useStoredKeys = (keys: readonly StoredKey[]) => {
    if (Bun.deepEquals(stored, keys)) return
    stored = keys
    log.info('provider_keys_changed', { names: getNames(replace().providers) })
  }
  const reloadConfig = (read: () => Config = readConfig): ReloadResult => {
    let next: Config
    try {
      next = read()
    } catch (cause) {
      const problems = cause instanceof ConfigError ? cause.problems : [describeError(cause)]
      log.error('config_reload_failed', { failures: problems.length, detail: problems.join('; ') })
      return { problems, restart: [] }
    }
    const restart = changedBeyondReload(config, next)
    current = next
    const { providers } = replace()
    parts.replacePlans(next)
    parts.replaceRouting(next)
    parts.replaceModeration(next)
    if (restart.length > 0) log.warn('config_change_needs_restart', { names: restart.join(', ') })
    log.info('config_reloaded', { names: getNames(providers) })
    return { problems: [], restart }
  }
  return { reloadConfig, useStoredKeys }
}

/** Sections of the configuration file that are read only at the start. */
function changedBeyondReload(before: Config, after: Config): string[] {
  return [
    ...(Bun.deepEquals([before.web.prices, before.web.policy], [after.web.prices, after.web.policy]) ? [] : ['web']),
    ...(before.rewriter === after.rewriter ? [] : ['enhancement']),
  ]
}

function getNames(providers: readonly ProviderSettings[]): string {
  return providers
    .map(({ id, pool }) => (pool === undefined ? id : `${id} (${pool.keys.map(({ name }) => name).join(', ')})`))
    .join(', ')
}

const resultSchema = Type.Object({
  /** Epoch milliseconds. */
  at: Type.Number(),
  pid: Type.Integer(),
  problems: Type.Array(Type.String()),
  restart: Type.Array(Type.String()),
})
export type StoredReload = Static<typeof resultSchema>

const fileName = 'reload.json'

/**
 * Writes the result of a process to its own folder: a signal has no answer, so the command that sent it reads the file.
 * A full disk must not stop the gateway: the log has the result too.
 */
export function storeReload(directory: string, result: ReloadResult): void {
  const path = join(directory, fileName)
  try {
    writeFileSync(`${path}.unfinished`, JSON.stringify({ ...result, at: Date.now(), pid: process.pid }), {
      mode: 0o600,
    })
    renameSync(`${path}.unfinished`, path)
  } catch {}
}

/** Returns the results of all processes of a data folder. */
export function readReloads(dataDirectory: string): StoredReload[] {
  const folders = readdirSync(dataDirectory).filter(name => /^worker-\d+$/.test(name))
  return [dataDirectory, ...folders.map(name => join(dataDirectory, name))].flatMap(folder => {
    try {
      const value: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
      return Value.Check(resultSchema, value) ? [value] : []
    } catch {
      return []
    }
  })
}
