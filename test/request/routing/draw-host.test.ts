/** Weights of hosts, and the candidates at hosts. */
import { expect, test } from 'bun:test'
import { fullName } from '../../../src/core/models/models.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { withHostChoices } from '../../../src/models/model-hosts.ts'
import { candidatesAtHosts, drawHost } from '../../../src/request/routing/hosts.ts'
import { RankedCandidate } from '../../../src/request/routing/score-candidates.ts'
import { getProvider } from '../support.ts'

const [model] = catalog
if (model === undefined) throw new Error('the catalog is empty')
const dear = { ...model.pricing, input: 1_000 }
const hosts = ['own', 'mirror', 'late'].map(host => ({ host, upstreamId: model.id, pricing: model.pricing }))
const hosted = { ...model, hosts: hosts.map(item => (item.host === 'mirror' ? { ...item, pricing: dear } : item)) }
const switched = (choices: { host: string; weight?: number }[]) => {
  const name = fullName(model)
  const [result] = withHostChoices([hosted], new Map([[name, { model: name, enabled: true, hosts: choices }]]))
  if (result === undefined) throw new Error('a switch removed the model')
  return result
}
const order = (choices: { host: string; weight?: number }[]) => switched(choices).hosts?.map(({ host }) => host)

test('host choices: order the hosts, add none, and put those without a name last', () => {
  expect(order([{ host: 'mirror' }, { host: 'gone' }])).toEqual(['mirror', 'own', 'late'])
  expect(switched([{ host: 'mirror' }]).pricing).toEqual(dear)
})

test('host weights: share the first calls, with 1 where another host has a weight, and 0 without a name', () => {
  const drawn = (choices: { host: string; weight?: number }[]) =>
    Array.from({ length: 8 }, (_, at) => drawHost(switched(choices), () => at / 8) ?? null)
  const mirror = (count: number) => Array<string>(count).fill('mirror')
  expect(drawn([{ host: 'mirror', weight: 3 }, { host: 'own' }])).toEqual([...mirror(6), 'own', 'own'])
  expect(
    drawn([
      { host: 'own', weight: 0 },
      { host: 'mirror', weight: 5 },
    ]),
  ).toEqual(mirror(8))
  expect(new Set(drawn([{ host: 'mirror' }, { host: 'own' }]))).toEqual(new Set([null]))
})

test('candidates at hosts: have the effort that the choice was ranked at', () => {
  const endpoints = new Map(hosts.map(({ host }) => [host, getProvider('openai')]))
  const own = getProvider('openai')
  const chosen = new RankedCandidate({ model: hosted, score: 1, effort: 'high' }, own, 'chosen')
  const candidates = candidatesAtHosts(endpoints, chosen, { source: null }, () => 'mirror')
  expect(candidates.map(({ host, effort }) => [host?.host, effort])).toEqual([
    ['mirror', 'high'],
    ['own', 'high'],
    ['late', 'high'],
  ])
})
