import type { EmbeddingsAdapter } from './embeddings.ts'
import type { Access, Provider } from './provider.ts'

/** A provider that is configured here. `id` is the `provider` of its models. */
export type ConfiguredProvider = {
  readonly id: string
  readonly provider: Provider
  readonly access: Access
  readonly simulated: boolean
  /** Absent = it serves no embeddings. */
  readonly embeddings?: EmbeddingsAdapter
}
