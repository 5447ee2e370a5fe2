/** Bounds of shadow evaluation in a process, and the interval of its report. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { getWilson, type ShadowVerdict } from '../../src/core/usage/shadow.ts'
import { ShadowJobs } from '../../src/request/shadow/compare.ts'
import { eventually } from '../harness/eventually.ts'

describe('ShadowJobs', () => {
  /** Jobs that end when told to, or when they are aborted. */
  function rig() {
    const results: (ShadowVerdict | 'skipped')[] = []
    const open: (() => void)[] = []
    let most = 0
    const jobs = new ShadowJobs(result => void results.push(result))
    const add = () =>
      jobs.add(signal => {
        const { promise, resolve } = Promise.withResolvers<ShadowVerdict>()
        open.push(() => resolve('tie'))
        most = Math.max(most, open.length)
        signal.addEventListener('abort', () => resolve('none'))
        return promise
      })
    return { jobs, add, open, results, most: () => most }
  }

  test('run: two at once, eight wait, others are skipped at once, none within the turn of its request', async () => {
    const { add, open, results, most } = rig()
    for (let count = 0; count < 13; count++) add()
    expect([open.length, results]).toEqual([0, ['skipped', 'skipped', 'skipped']])
    await eventually(() => open.length === 2)
    for (let ended = 0; ended < 10; ended++) {
      await eventually(() => open.length > 0)
      open.shift()?.()
    }
    await eventually(() => results.length === 13)
    expect(results.filter(result => result === 'tie')).toHaveLength(10)
    expect(most()).toBe(2)
    add()
    await eventually(() => open.length === 1)
  })

  test('close: ends what runs, drops what waits, and starts no other', async () => {
    const { jobs, add, open, results } = rig()
    for (let count = 0; count < 5; count++) add()
    await eventually(() => open.length === 2)
    await jobs.close()
    expect(results).toEqual(['none', 'none'])
    add()
    expect([open.length, results.at(-1)]).toEqual([2, 'skipped'])
  })
})

describe('getWilson', () => {
  test('interval: equals worked examples', () => {
    expect(getWilson(0, 0)).toBeNull()
    // Worked by hand: (0.81 + 1.96² / 200 ± 1.96 √(0.81 × 0.19 / 100 + 1.96² / 40,000)) / (1 + 1.96² / 100).
    const found = getWilson(81, 100)
    expect(found?.low).toBeCloseTo(0.7222, 4)
    expect(found?.high).toBeCloseTo(0.8749, 4)
    expect(getWilson(10, 10)).toMatchObject({ share: 1, high: 1 })
    expect(getWilson(10, 10)?.low).toBeCloseTo(0.7225, 4)
    expect(getWilson(0, 10)?.low).toBe(0)
  })

  test('interval: contains its share, stays within 0 and 1, and narrows with more trials', () => {
    fc.assert(
      fc.property(fc.nat({ max: 500 }), fc.nat({ max: 500 }), (hits, misses) => {
        const trials = hits + misses
        const few = getWilson(hits, trials)
        const many = getWilson(hits * 10, trials * 10)
        if (few === null || many === null) return trials === 0
        const isAround = 0 <= few.low && few.low <= few.share && few.share <= few.high && few.high <= 1
        return isAround && many.high - many.low < few.high - few.low
      }),
    )
  })
})
