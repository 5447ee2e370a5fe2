/**
 * Hosts of a model: the providers that serve it. For clients a model on several hosts is one model; only the URL, the
 * credentials, the upstream's name for it and the prices differ.
 */

import { type Static, Type } from '@sinclair/typebox'
import { configuredModelSchema, getPricing, modelNameSchema } from '../core/models/configured-models.ts'
import { buildCatalog, fullName, type Model, type ModelHost } from '../core/models/models.ts'
import type { HostChoice, SwitchesByModel } from '../core/models/switches.ts'
import { strictObject } from '../core/validation/validate.ts'

/** A model of another provider that a configured provider serves too (`GATEWAY_CONFIG`, `providers[].hosts[]`). */
export const modelHostSchema = strictObject({
  /** `provider/model`. */
  model: modelNameSchema,
  /** Its name in the host's API; absent = the model's own. */
  id: Type.Optional(modelNameSchema),
  /** Absent = the model's own prices. */
  pricing: Type.Optional(configuredModelSchema.properties.pricing),
  /** Guarantees in which it differs from the provider. */
  policy: configuredModelSchema.properties.policy,
})

export type ConfiguredHost = { readonly host: string; readonly row: Static<typeof modelHostSchema> }

/**
 * Returns the models that a configured provider serves. A model with hosts other than its own provider lists them, its
 * own provider first. If that one is not configured, the prices of the first configured host become the model's.
 */
export function withHosts(
  models: readonly Model[],
  configured: readonly ConfiguredHost[],
  isConfigured: (provider: string) => boolean,
): readonly Model[] {
  const others = hostsByModel(models, configured)
  return models.flatMap((model): Model[] => {
    const own = isConfigured(model.provider)
      ? [{ host: model.provider, upstreamId: model.id, pricing: model.pricing }]
      : []
    const [first, ...rest] = [...own, ...(others.get(model) ?? []).filter(({ host }) => isConfigured(host))]
    if (first === undefined) return []
    if (own.length > 0 && rest.length === 0) return [model]
    return [{ ...model, pricing: first.pricing, hosts: [first, ...rest] }]
  })
}

/**
 * Returns the models with their hosts in the order that the operator switched to. Hosts that it does not name come last:
 * a switch never adds or removes what the configuration decides.
 */
export function withHostChoices(models: readonly Model[], switches: SwitchesByModel): readonly Model[] {
  return models.map(model => {
    const choices = switches.get(fullName(model))?.hosts ?? null
    if (choices === null || model.hosts === undefined) return model
    const hosts = chosenHosts(model.hosts, choices)
    // As for configured hosts, the prices are those of the first one.
    return { ...model, pricing: hosts[0]?.pricing ?? model.pricing, hosts }
  })
}

function chosenHosts(configured: readonly ModelHost[], choices: readonly HostChoice[]): readonly ModelHost[] {
  const isWeighted = choices.some(({ weight }) => weight !== undefined)
  const named = choices.flatMap(({ host, weight = 1 }) => {
    const found = configured.find(other => other.host === host)
    return found === undefined ? [] : [{ ...found, ...(isWeighted ? { weight } : null) }]
  })
  const others = configured.filter(({ host }) => choices.every(choice => choice.host !== host))
  return [...named, ...others.map(host => ({ ...host, ...(isWeighted ? { weight: 0 } : null) }))]
}

function hostsByModel(models: readonly Model[], configured: readonly ConfiguredHost[]): Map<Model, ModelHost[]> {
  const { resolve } = buildCatalog(models)
  const others = new Map<Model, ModelHost[]>()
  for (const { host, row } of configured) {
    const model = resolve(row.model)
    if (model === null) continue
    const pricing = row.pricing === undefined ? model.pricing : getPricing(row.pricing)
    const policy = row.policy === undefined ? null : { policy: row.policy }
    others.set(model, [...(others.get(model) ?? []), { host, upstreamId: row.id ?? model.id, pricing, ...policy }])
  }
  return others
}

/** Returns the problems of configured hosts, one line each. */
export function hostProblems(models: readonly Model[], configured: readonly ConfiguredHost[]): readonly string[] {
  const { resolve } = buildCatalog(models)
  const seen = new Set<string>()
  return configured.flatMap(({ host, row }) => {
    const model = resolve(row.model)
    const place = `provider "${host}": hosts: "${row.model}"`
    if (model === null) return [`${place} is no model of the catalog or of a configured provider`]
    if (model.provider === host) return [`${place} is a model of this provider itself; remove it`]
    const key = `${host} ${fullName(model)}`
    if (seen.has(key)) return [`${place} is listed twice; remove one`]
    seen.add(key)
    return []
  })
}

/** The model as one host serves it: with its prices for the account, and with its name for the adapter. */
type HostedModel = { readonly model: Model; readonly wire: Model }

/** Cached: a copy per request would compute the cached names again. */
const hosted = new WeakMap<ModelHost, HostedModel>()

/** Returns the model as `host` serves it. */
export function modelAt(model: Model, host: ModelHost): HostedModel {
  let known = hosted.get(host)
  if (known === undefined) {
    const priced = host.pricing === model.pricing ? model : { ...model, pricing: host.pricing, pricingSource: 'config' }
    const wire = host.upstreamId === model.id ? priced : { ...priced, id: host.upstreamId }
    known = { model: priced, wire }
    hosted.set(host, known)
  }
  return known
}
