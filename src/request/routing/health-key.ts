import { fullName, type Model, type ModelHost } from '../../core/models/models.ts'

type HealthSubject = { readonly model: Pick<Model, 'id' | 'provider'>; readonly host?: ModelHost }

/** Health is kept per host and model. Keys of one host share it: an exhausted key says nothing about the model. */
export function healthKey({ model, host }: HealthSubject): string {
  return host === undefined || host.host === model.provider ? fullName(model) : hostKey(host)
}

function hostKey(host: ModelHost): string {
  let key = keys.get(host)
  if (key === undefined) {
    key = `${host.host}/${host.upstreamId}`
    keys.set(host, key)
  }
  return key
}

/** Cached, since every attempt looks up its host. */
const keys = new WeakMap<ModelHost, string>()

/** Returns the key of a model's first host. */
export function firstHealthKey(model: Model): string {
  const host = model.hosts?.[0]
  return host === undefined ? fullName(model) : healthKey({ model, host })
}

/** Returns the keys of all hosts of a model, in the order of calls. */
export function healthKeysOf(model: Pick<Model, 'id' | 'provider'> & Partial<Pick<Model, 'hosts'>>): readonly string[] {
  return model.hosts?.map(host => healthKey({ model, host })) ?? [fullName(model)]
}

type ModelHealth = {
  mayTry(key: string): boolean
  stateOf(key: string): string
}

/** Returns the key by which routing judges a model: that of its first host in good health, else of its first host. */
export function routingHealthKey(health: ModelHealth, model: Pick<Model, 'id' | 'provider' | 'hosts'>): string {
  const { hosts } = model
  if (hosts === undefined) return fullName(model)
  const hostKeys = healthKeysOf(model)
  return (
    hostKeys.find(key => health.stateOf(key) === 'healthy' && health.mayTry(key)) ??
    hostKeys.find(key => health.mayTry(key)) ??
    hostKeys[0] ??
    fullName(model)
  )
}
