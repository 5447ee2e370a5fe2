import type { EmbeddingsAdapter } from './embeddings.ts'
import type { Access, Provider } from './provider.ts'

/** A configured provider. `id` is the `provider` of its models. */
export type ConfiguredProvider = {
  readonly id: string
  readonly provider: Provider
  readonly access: Access
  readonly simulated: boolean
  /** Absent = no embeddings. */
  readonly embeddings?: EmbeddingsAdapter
}
