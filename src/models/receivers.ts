/** Who receives a prompt: guarantees of providers as their documentation states them, and as the operator declares them. */
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import {
  type DataPolicy,
  narrowedPolicy,
  noPolicy,
  type PolicyRow,
  policySchema,
  type Receiver,
  withPolicy,
} from '../core/policy/constraints.ts'
import { strictObject } from '../core/validation/validate.ts'
import file from './provider-policies.json'

const rowsSchema = Type.Array(
  strictObject({ hosts: Type.Array(Type.String()), policy: policySchema, source: Type.String(), date: Type.String() }),
)

/** A provider as a receiver. `documented`: without what the operator declares, for keys of others. */
export type ProviderReceiver = Receiver & { readonly documented: DataPolicy }

/** Names that OpenRouter gives to providers with a format of their own. */
const slugs: Readonly<Record<string, readonly string[]>> = {
  google: ['google-ai-studio'],
  azure: ['azure'],
  bedrock: ['bedrock', 'amazon-bedrock'],
  vertex: ['vertex', 'google-vertex'],
}

/**
 * Returns a configured provider as a receiver. The address decides which documentation counts: behind another address,
 * such as a proxy, nothing is known. A simulated provider is this process and keeps nothing.
 */
export function toReceiver({ id, format, baseUrl, policy }: ProviderFacts, simulated: boolean): ProviderReceiver {
  const documented = simulated ? ownProcess : documentedPolicy(baseUrl)
  const names = [...new Set([id, ...(slugs[format] ?? [])])]
  return { names, documented, policy: withPolicy(documented, policy) }
}

type ProviderFacts = {
  readonly id: string
  readonly format: string
  readonly baseUrl: string
  readonly policy?: PolicyRow
}

/** Of a simulated service, which is this process. */
export const ownProcess: DataPolicy = { zdr: true, noTraining: true, regions: [] }

function documentedPolicy(baseUrl: string): DataPolicy {
  if (!URL.canParse(baseUrl)) return noPolicy
  const { hostname } = new URL(baseUrl)
  const row = documented.find(({ hosts }) =>
    hosts.some(host => (/^[.-]/.test(host) ? hostname.endsWith(host) : hostname === host)),
  )
  return withPolicy(noPolicy, row?.policy)
}

const documented: Static<typeof rowsSchema> = Value.Parse(rowsSchema, file)

type Place = {
  readonly receiver: ProviderReceiver | null | undefined
  readonly id: string
  /** The operator's keys are called; otherwise those of an account, under its own contract. */
  readonly isOperator: boolean
  /** Exceptions of the model and of the host, the more specific one last. */
  readonly exceptions: readonly (PolicyRow | undefined)[]
}

/** Returns the receiver of an attempt. Without facts it guarantees nothing. */
export function receiverAt({ receiver, id, isOperator, exceptions }: Place): Receiver {
  if (receiver == null) return { names: [id], policy: noPolicy }
  const apply = isOperator ? withPolicy : narrowedPolicy
  const base = isOperator ? receiver.policy : receiver.documented
  return { names: receiver.names, policy: exceptions.reduce<DataPolicy>(apply, base) }
}
