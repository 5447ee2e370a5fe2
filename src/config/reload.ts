import type { Log } from '../core/ports.ts'
import { describeError } from '../core/validation/operator-errors.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import type { ProviderSettings } from './providers.ts'

/** The parts of a running gateway that a reload replaces, in this order. */
type ReloadParts = {
  /** The configuration of the running process. */
  readonly config: Config
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
  /** Returns false if the change needs a restart. */
  readonly replaceProviders: (providers: readonly ProviderSettings[]) => boolean
  readonly replaceModels: (config: Config) => void
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
 * An invalid configuration changes nothing; log and result list its problems. Never throws.
 */
export function createConfigReload(parts: ReloadParts) {
  const { config, log } = parts
  return (read: () => Config = readConfig): ReloadResult => {
    let next: Config
    try {
      next = read()
    } catch (cause) {
      const problems = cause instanceof ConfigError ? cause.problems : [describeError(cause)]
      log.error('config_reload_failed', { failures: problems.length, detail: problems.join('; ') })
      return { problems, restart: [] }
    }
    const restart = changedBeyondReload(config, next)
    if (!parts.replaceProviders(next.providers)) restart.push('providers')
    parts.replaceModels(next)
    parts.replacePlans(next)
    parts.replaceRouting(next)
    parts.replaceModeration(next)
    if (restart.length > 0) log.warn('config_change_needs_restart', { names: restart.join(', ') })
    log.info('config_reloaded', { names: namesOf(next.providers) })
    return { problems: [], restart }
  }
}

/** Sections of the configuration file that are read only at the start. */
function changedBeyondReload(before: Config, after: Config): string[] {
  return [
    ...(Bun.deepEquals(before.web.prices, after.web.prices) ? [] : ['web']),
    ...(before.rewriter === after.rewriter ? [] : ['enhancement']),
  ]
}

function namesOf(providers: readonly ProviderSettings[]): string {
  return providers
    .map(({ id, pool }) => (pool === undefined ? id : `${id} (${pool.keys.map(({ name }) => name).join(', ')})`))
    .join(', ')
}
