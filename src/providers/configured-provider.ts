import type { ProviderReceiver } from '../models/receivers.ts'
import type { KeyPool } from './keys/key-pool.ts'
import type { Access, Provider } from './provider.ts'

/** Calls with own keys cost an account nothing here, and have a health of their own. */
type OwnCredential = {
  /** Name of their health. */
  readonly credential: string
  /** The provider with the operator's keys, which serve when the own ones fail; null = they do not. */
  readonly shared: ConfiguredProvider | null
}

/** Configured providers by their ID. */
export type Endpoints = ReadonlyMap<string, ConfiguredProvider>

/** A configured provider. `id` is the `provider` of its models. */
export type ConfiguredProvider = {
  readonly id: string
  readonly provider: Provider
  /** With its first key. Attempts of a provider with `keys` use the access of the key that they claim. */
  readonly access: Access
  /** Absent = `access` has the only credential, without figures: an attempt claims nothing. */
  readonly keys?: Pick<KeyPool, 'claim' | 'status' | 'find'>
  /** `keys` are a caller's own; absent = the operator's. */
  readonly own?: OwnCredential
  readonly simulated: boolean
  /** Its names and guarantees; absent = it guarantees nothing, null = this process answers and sends nothing. */
  readonly receiver?: ProviderReceiver | null
  /** A local server that loads a model before its first answer; absent = no. */
  readonly loadsModels?: boolean
}
