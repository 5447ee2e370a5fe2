import { type Catalog, fullName, type Model } from '../../core/models/models.ts'
import type { HealthState } from '../../core/routing/circuit-breaker.ts'
import { healthKey } from './health-key.ts'

type HealthReportDeps = {
  readonly catalogue: Pick<Catalog, 'list'>
  readonly embeddingCatalog: { readonly list: readonly Pick<Model, 'id' | 'provider'>[] }
  /** `since` in epoch milliseconds; null = the state never changed. */
  readonly health: { entryOf(key: string): { readonly state: HealthState; readonly since: number | null } }
}

type ModelHealth = { readonly model: string; readonly state: HealthState; readonly since: string | null }

/** Reports the health of every offered model, embedding models last; a model without attempts counts as healthy. */
export function reportModelHealth({ catalogue, embeddingCatalog, health }: HealthReportDeps): readonly ModelHealth[] {
  return [...catalogue.list, ...embeddingCatalog.list].map(model => {
    const { state, since } = health.entryOf(healthKey({ model }))
    return { model: fullName(model), state, since: since === null ? null : new Date(since).toISOString() }
  })
}
