import { expect, test } from 'bun:test'
import { countIfAllowed, createSlidingWindows } from '../../../src/core/limits/rate-limits.ts'

test('createSlidingWindows: allows the limit in any window, per name', () => {
  const windows = createSlidingWindows({ allowed: 2, windowMs: 1_000, names: 10 })
  expect([0, 900, 950].map(now => countIfAllowed(windows, 'a', now))).toEqual([0, 0, 50])
  expect(countIfAllowed(windows, 'b', 950)).toBe(0)
  // Rejected requests are not counted.
  expect([1_000, 1_001].map(now => countIfAllowed(windows, 'a', now))).toEqual([0, 899])
})

test('createSlidingWindows: keeps an active name when many other names arrive', () => {
  const windows = createSlidingWindows({ allowed: 1, windowMs: 1_000, names: 100 })
  expect(countIfAllowed(windows, 'a', 0)).toBe(0)
  for (let index = 0; index < 10_000; index++) {
    countIfAllowed(windows, `other ${index}`, 1)
    if (index % 50 === 0) expect(countIfAllowed(windows, 'a', 1)).toBe(999)
  }
})
