import { expect, test } from 'bun:test'
import { setBounded } from '../../../src/core/text/recent-map.ts'

test('setBounded: keeps the newest entries and evicts the oldest', () => {
  const map = new Map<string, number>()
  for (const [key, value] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
    ['c', 4],
  ] as const)
    setBounded(map, key, value, 2)
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ])
})
