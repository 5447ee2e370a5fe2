import { expect, test } from 'bun:test'
import { createNamedWindows } from '../../src/core/named-windows.ts'

test('a name has its fill in any window, however it is spread, and no other name has to wait for it', () => {
  const windows = createNamedWindows({ allowed: 2, windowMs: 1_000, names: 10 })
  expect([0, 900, 950].map(now => windows.waitMs('a', now))).toEqual([0, 0, 50])
  expect(windows.waitMs('b', 950)).toBe(0)
  // What was refused was not counted.
  expect([1_000, 1_001].map(now => windows.waitMs('a', now))).toEqual([0, 899])
})

test('who keeps coming is not forgotten in a flood of other names', () => {
  const windows = createNamedWindows({ allowed: 1, windowMs: 1_000, names: 100 })
  expect(windows.waitMs('a', 0)).toBe(0)
  for (let index = 0; index < 10_000; index++) {
    windows.waitMs(`other ${index}`, 1)
    if (index % 50 === 0) expect(windows.waitMs('a', 1)).toBe(999)
  }
})
