import { randomBytes } from 'node:crypto'
import packageJson from '../../package.json'
import type { Config } from '../config.ts'
import type { EmbeddingCatalog } from '../core/models/embedding-models.ts'
import type { Catalog } from '../core/models/models.ts'
import type { Clock, Log, Network } from '../core/ports.ts'
import type { HealthTracker } from '../models/health-tracker.ts'
import { createObserve, type Telemetry } from '../observability/telemetry.ts'
import { routingHealthKey } from '../request/routing/health-key.ts'
import type { Moderation } from '../text/moderation/layers/moderation.ts'
import type { Usage } from './open-usage.ts'

type Parts = {
  readonly clock: Clock
  readonly network: Network
  readonly log: Log
  readonly catalogue: Catalog
  readonly embeddingCatalog: EmbeddingCatalog
  readonly health: HealthTracker
  readonly readiness: { readonly isReady: boolean }
  readonly usage: Pick<Usage, 'records' | 'sharedRatio'>
  readonly safety: Moderation
}

/**
 * Starts metrics, and traces with their export if a collector is configured. `undo` receives the functions that close
 * them.
 */
export function openTelemetry(config: Config, parts: Parts, undo: (() => unknown)[]): Telemetry {
  const { clock, network, log, catalogue, embeddingCatalog, health, readiness, usage, safety } = parts
  const observe = createObserve({
    state: {
      version: packageJson.version,
      get models() {
        return [...catalogue.list, ...embeddingCatalog.list]
      },
      healthOf: model => health.stateOf(routingHealthKey(health, model)),
      isReady: () => readiness.isReady,
      usage: usage.records,
      sharedLimits: usage.sharedRatio,
      safety: safety.figures,
    },
    log,
    clock,
    otlp: config.otlp === null ? null : { ...config.otlp, fetch: network.fetch },
    worker: config.worker,
    random: Math.random,
    randomBytes,
  })
  undo.push(() => observe.close())
  return observe
}
