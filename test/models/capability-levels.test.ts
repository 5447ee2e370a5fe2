import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { defaultLevelShares, getLevel, levels, parseLevelShares } from '../../src/models/capability-levels.ts'

const share = fc.double({ min: 0, max: 1, noNaN: true })

test('levelOf: gives each level exactly its share of the reference distribution', () => {
  fc.assert(
    fc.property(share, share, (value, other) => {
      const shares = { strong: value, middle: (1 - value) * other }
      const prompts = 2_000
      const counted = { light: 0, middle: 0, strong: 0 }
      for (let rank = 0; rank < prompts; rank++) counted[getLevel((rank + 0.5) / prompts, shares)]++
      expect(Math.abs(counted.strong / prompts - shares.strong)).toBeLessThan(0.002)
      expect(Math.abs(counted.middle / prompts - shares.middle)).toBeLessThan(0.002)
    }),
    { numRuns: 50 },
  )
})

test('levelOf: never decreases with the gain, and a share of 0 receives nothing', () => {
  fc.assert(
    fc.property(share, share, (value, other) => {
      const [low, high] = [Math.min(value, other), Math.max(value, other)]
      expect(levels.indexOf(getLevel(low, defaultLevelShares))).toBeLessThanOrEqual(
        levels.indexOf(getLevel(high, defaultLevelShares)),
      )
      expect(getLevel(high, { strong: 0, middle: 0 })).toBe('light')
      expect(getLevel(low, { strong: 1, middle: 0 })).toBe('strong')
    }),
  )
})

test('parseLevelShares: shrinks the middle share to the available room and rejects a sum above 1', () => {
  expect(parseLevelShares({})).toEqual(defaultLevelShares)
  expect(parseLevelShares({ strong_share: 0.1 })).toEqual({ strong: 0.1, middle: 0.3 })
  expect(parseLevelShares({ strong_share: 0.9 })?.middle).toBeCloseTo(0.1, 9)
  expect(parseLevelShares({ strong_share: 0.7, middle_share: 0.4 })).toBeNull()
})
