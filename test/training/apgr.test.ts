import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { areaRecovered } from '../../src/training/gain.ts'

const gains = (list: readonly (readonly [score: number, gain: number])[]) =>
  list.map(([score, gain]) => ({ score, weak: 0, strong: gain }))

describe('areaRecovered', () => {
  test.each([
    [
      'perfect: the only gain comes first',
      [
        [3, 1],
        [2, 0],
        [1, 0],
        [0, 0],
      ],
      7 / 8,
    ],
    [
      'worst: the only gain comes last',
      [
        [3, 0],
        [2, 0],
        [1, 0],
        [0, 1],
      ],
      1 / 8,
    ],
    [
      'one score for all is a straight line',
      [
        [1, 1],
        [1, 0],
        [1, 0],
        [1, 0],
      ],
      1 / 2,
    ],
    [
      'a loss sent last lifts the curve above the gap',
      [
        [3, 1],
        [2, 1],
        [1, -1],
      ],
      (1 / 2 + 3 / 2 + 3 / 2) / 3,
    ],
    [
      'ties are shared among those that tie',
      [
        [2, 1],
        [1, 1],
        [1, 0],
      ],
      (1 / 4 + (1 / 2 + 1)) / 3,
    ],
  ] as const)('%s', (_, list, area) => {
    expect(areaRecovered(gains(list))).toBeCloseTo(area, 12)
  })

  test('uses strong minus weak results, not only strong ones', () => {
    const outcomes = [
      { score: 2, weak: 1, strong: 1 },
      { score: 1, weak: 0, strong: 1 },
    ]
    expect(areaRecovered(outcomes)).toBeCloseTo(1 / 4, 12)
  })

  test('adds up to 1 for a ranking and its reverse, for any gains', () => {
    const outcome = fc.record({ score: fc.integer({ min: 0, max: 9 }), gain: fc.integer({ min: -1, max: 3 }) })
    fc.assert(
      fc.property(fc.array(outcome, { minLength: 1 }), list => {
        fc.pre(list.reduce((sum, { gain }) => sum + gain, 0) !== 0)
        const up = gains(list.map(({ score, gain }) => [score, gain]))
        const down = gains(list.map(({ score, gain }) => [-score, gain]))
        expect(areaRecovered(up) + areaRecovered(down)).toBeCloseTo(1, 9)
      }),
    )
  })
})
