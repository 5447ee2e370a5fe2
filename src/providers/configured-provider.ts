import type { KeyPool } from './keys/key-pool.ts'
import type { Access, Provider } from './provider.ts'

/** A configured provider. `id` is the `provider` of its models. */
export type ConfiguredProvider = {
  readonly id: string
  readonly provider: Provider
  /** With its first key. Attempts of a provider with `keys` use the access of the key that they claim. */
  readonly access: Access
  /** Absent = `access` has the only credential, without figures: an attempt claims nothing. */
  readonly keys?: Pick<KeyPool, 'claim' | 'status' | 'find'>
  readonly simulated: boolean
  /** A local server that loads a model before its first answer; absent = no. */
  readonly loadsModels?: boolean
}
