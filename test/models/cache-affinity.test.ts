import { expect, test } from 'bun:test'
import { fullName, type Model } from '../../src/core/models/models.ts'
import { shouldKeepModel } from '../../src/models/cache-affinity.ts'
import { modelNamed } from '../harness/model.ts'

const sol = modelNamed('gpt-6.1-sol')
const argon = modelNamed('gemini-4-argon')
const request = { inputTokens: 20_000, outputTokens: 500, costWeight: 0.3, terms: { at: 0, tier: null } }
const tie = (model: Model, tokens = 19_000) => ({ model: fullName(model), tokens })

test('shouldKeepModel: keeps a near tie with the cached beginning of a long conversation', () => {
  expect(shouldKeepModel({ model: sol, score: 0.6 }, { model: argon, score: 0.64 }, tie(sol), request)).toBe(true)
})

test('shouldKeepModel: keeps a larger deficit the more the cache saves and the more cost weighs', () => {
  const leader = { model: argon, score: 0.7 }
  expect(shouldKeepModel({ model: sol, score: 0.6 }, leader, tie(sol), request)).toBe(true)
  expect(shouldKeepModel({ model: sol, score: 0.6 }, leader, tie(sol, 6_000), request)).toBe(false)
  expect(shouldKeepModel({ model: sol, score: 0.6 }, leader, tie(sol), { ...request, costWeight: 0.05 })).toBe(false)
})

test('shouldKeepModel: switches when the other is clearly better, little is cached, or the other is cheaper anyway', () => {
  const leader = { model: argon, score: 0.64 }
  expect(shouldKeepModel({ model: sol, score: 0.4 }, leader, tie(sol), request)).toBe(false)
  expect(shouldKeepModel({ model: sol, score: 0.63 }, leader, tie(sol, 1_024), request)).toBe(false)
  const luna = { model: modelNamed('gpt-6-luna'), score: 0.64 }
  expect(shouldKeepModel({ model: sol, score: 0.63 }, luna, tie(sol), request)).toBe(false)
})
