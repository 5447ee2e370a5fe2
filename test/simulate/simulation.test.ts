/** Measurements of `bun run simulate` on a reduced run: with generated accounts, and with `../shared` if present. */
import { describe, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { testNeeding } from '../harness/needs.ts'
import {
  attainable,
  gains,
  getLeader,
  getRandom,
  getTask,
  getWorld,
  leaving,
  newAccount,
  nothingToLearn,
  readWorld,
  settings,
  type World,
} from './simulation.ts'

/** Creates three models with tasks that suit them differently; `means[task][model]`. */
function madeWorld(means: readonly (readonly number[])[]): World {
  const random = getRandom(7)
  const tasks = means.map((ofTask, index) =>
    getTask(
      `task ${index}`,
      Array.from({ length: 500 }, () => ofTask.map(share => (random() < share ? 1 : 0))),
    ),
  )
  return getWorld(['a', 'b', 'c'], tasks)
}

const world = madeWorld([
  [0.8, 0.5, 0.4],
  [0.4, 0.75, 0.4],
  [0.7, 0.7, 0.3],
])
const few = { ...settings, accounts: 4 }

describe('simulated accounts', () => {
  test('behave the same in every run', () => {
    expect(gains(world, few)).toEqual(gains(world, few))
  })

  test('gain more than half of the possible quality from learning, and nothing without exploration', () => {
    const most = attainable(world)
    expect(most).toBeGreaterThan(0.08)
    expect((gains(world, few)[3] ?? 0) / most).toBeGreaterThan(0.5)
    const [first] = gains(world, { ...few, namedShare: 0, requests: 9 })
    expect(first).toBe(0)
  })

  test('lose almost nothing when there is nothing to learn', () => {
    for (const gain of gains(nothingToLearn(world), { ...settings, accounts: 20 })) expect(gain).toBeGreaterThan(-0.01)
  })

  test('keep every bias within its bound', () => {
    const account = newAccount(world, few, 1)
    for (let request = 0; request < 300; request++) {
      const { model } = account.choose()
      account.hear(model, account.pick([0, 1, 1]))
      for (const { bias, entries } of account.leans())
        expect(Math.abs(bias)).toBeLessThanOrEqual(entries < 10 ? 0 : entries < 50 ? 0.05 : 0.2)
    }
  })
})

const path = resolve(import.meta.dir, '../../../shared/data/llmrouter-9models/data.jsonl')

testNeeding(
  'data',
  'learning: routes nine models on fourteen tasks',
  () => {
    const shared = readWorld(path)
    const most = attainable(shared)
    expect([shared.models[getLeader(shared)], most.toFixed(3)]).toEqual(['llama-3.1-nemotron-51b-instruct', '0.051'])
    const shares = gains(shared, { ...settings, accounts: 6 }).map(gain => gain / most)
    expect(shares[1]).toBeGreaterThan(0.2)
    expect(shares[3]).toBeGreaterThan(0.5)
    const loss = gains(nothingToLearn(shared), { ...settings, accounts: 60 })
    expect(-(loss[3] ?? 0)).toBeLessThan(0.002)
    expect(leaving(shared, { ...settings, accounts: 4 }).within60).toBeGreaterThan(0.9)
  },
  240_000,
)
