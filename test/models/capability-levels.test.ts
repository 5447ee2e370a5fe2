import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { defaultLevelShares, levelOf, levels, parseLevelShares } from '../../src/models/capability-levels.ts'

const share = fc.double({ min: 0, max: 1, noNaN: true })

test('levelOf: gives each level exactly its share of the reference distribution', () => {
  fc.assert(
    fc.property(share, share, (one, other) => {
      const shares = { strong: one, middle: (1 - one) * other }
      const prompts = 2_000
      const counted = { light: 0, middle: 0, strong: 0 }
      for (let rank = 0; rank < prompts; rank++) counted[levelOf((rank + 0.5) / prompts, shares)]++
      expect(Math.abs(counted.strong / prompts - shares.strong)).toBeLessThan(0.002)
      expect(Math.abs(counted.middle / prompts - shares.middle)).toBeLessThan(0.002)
    }),
    { numRuns: 50 },
  )
})

test('levelOf: never decreases with the gain, and a share of 0 receives nothing', () => {
  fc.assert(
    fc.property(share, share, (one, other) => {
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      expect(levels.indexOf(levelOf(low, defaultLevelShares))).toBeLessThanOrEqual(
        levels.indexOf(levelOf(high, defaultLevelShares)),
      )
      expect(levelOf(high, { strong: 0, middle: 0 })).toBe('light')
      expect(levelOf(low, { strong: 1, middle: 0 })).toBe('strong')
    }),
  )
})

test('parseLevelShares: shrinks the middle share to the available room and rejects a sum above 1', () => {
  expect(parseLevelShares({})).toEqual(defaultLevelShares)
  expect(parseLevelShares({ strong_share: 0.1 })).toEqual({ strong: 0.1, middle: 0.3 })
  expect(parseLevelShares({ strong_share: 0.9 })?.middle).toBeCloseTo(0.1, 9)
  expect(parseLevelShares({ strong_share: 0.7, middle_share: 0.4 })).toBeNull()
})
