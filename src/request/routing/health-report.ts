import { type HealthState, healthStates } from '../../core/chat/attempts.ts'
import { type Catalog, fullName, type Model } from '../../core/models/models.ts'
import { healthKeysOf } from './health-key.ts'

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
    const entries = healthKeysOf(model).map(health.entryOf)
    // A model is as healthy as its healthiest host.
    const [best] = healthStates.flatMap(one => entries.filter(entry => entry.state === one))
    const { state, since } = best ?? health.entryOf(fullName(model))
    return { model: fullName(model), state, since: since === null ? null : new Date(since).toISOString() }
  })
}
