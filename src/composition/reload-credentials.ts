import type { ProviderSettings } from '../config/providers.ts'
import { type Config, ConfigError, readConfig } from '../config.ts'
import type { Log } from '../core/ports/log.ts'
import { describeError } from './error-text.ts'
import type { CatalogConfig } from './open-catalogue.ts'

/** The part of the configuration that a reload replaces. */
type ReloadedConfig = Pick<Config, 'providers'> & CatalogConfig

type ReloadParts = {
  /** The configuration of the running process. */
  readonly config: Pick<Config, 'providers'>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  readonly replaceCredentials: (providers: readonly ProviderSettings[]) => void
  readonly replaceModels: (config: CatalogConfig) => void
}

/**
 * Creates the reload of credentials and models: it reads the configuration again, and replaces the keys and pools of
 * running providers and the catalog. An invalid configuration changes nothing, and the log lists its problems. Never
 * throws.
 */
export function createCredentialReload({ config, log, replaceCredentials, replaceModels }: ReloadParts) {
  return (read: () => ReloadedConfig = readConfig): void => {
    let next: ReloadedConfig
    try {
      next = read()
    } catch (cause) {
      const problems = cause instanceof ConfigError ? cause.problems : [describeError(cause)]
      log.error('credentials_reload_failed', { failures: problems.length, detail: problems.join('; ') })
      return
    }
    const isRunning = ({ id, format, baseUrl }: ProviderSettings) =>
      config.providers.some(own => own.id === id && own.format === format && own.baseUrl === baseUrl)
    const running = next.providers.filter(isRunning)
    const changed = [
      ...next.providers.filter(provider => !isRunning(provider)),
      ...config.providers.filter(({ id }) => next.providers.every(other => other.id !== id)),
    ]
    if (changed.length > 0) log.warn('config_change_needs_restart', { names: namesOf(changed) })
    replaceCredentials(running)
    replaceModels(next)
    log.info('credentials_reloaded', { names: namesOf(running) })
  }
}

function namesOf(providers: readonly ProviderSettings[]): string {
  return providers
    .map(({ id, pool }) => (pool === undefined ? id : `${id} (${pool.keys.map(({ name }) => name).join(', ')})`))
    .join(', ')
}
