import { expect, test } from 'bun:test'
import { catalog } from '../../../src/core/models/catalog.ts'
import { fullName, type Model } from '../../../src/core/models/models.ts'
import { hasAutomaticCache, shouldKeepModel } from '../../../src/core/routing/cache-affinity.ts'

function named(id: string): Model {
  const model = catalog.find(one => one.id === id)
  if (model === undefined) throw new Error(`${id} is not in the catalogue`)
  return model
}
const sol = named('gpt-6.1-sol')
const argon = named('gemini-4-argon')
const request = { inputTokens: 20_000, outputTokens: 500 }
const tie = (model: Model, tokens = 19_000) => ({ model: fullName(model), tokens })

test('a long conversation stays with a near-equal that holds its beginning', () => {
  expect(shouldKeepModel({ model: sol, score: 0.6 }, { model: argon, score: 0.64 }, tie(sol), request)).toBe(true)
})

test('not where the other is clearly better, where little is held, nor where the other is cheaper all the same', () => {
  const leader = { model: argon, score: 0.64 }
  expect(shouldKeepModel({ model: sol, score: 0.58 }, leader, tie(sol), request)).toBe(false)
  expect(shouldKeepModel({ model: sol, score: 0.63 }, leader, tie(sol, 1_024), request)).toBe(false)
  const luna = { model: named('gpt-6-luna'), score: 0.64 }
  expect(shouldKeepModel({ model: sol, score: 0.63 }, luna, tie(sol), request)).toBe(false)
})

test('nothing is expected of a provider that caches only what it is asked to', () => {
  const opus = named('claude-opus-5-5')
  expect(hasAutomaticCache(opus)).toBe(false)
  expect(shouldKeepModel({ model: opus, score: 0.63 }, { model: sol, score: 0.64 }, tie(opus), request)).toBe(false)
})
