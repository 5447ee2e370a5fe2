import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  applyLearnedBias,
  explorationShare,
  explore,
  getBias,
  type LearnedBias,
} from '../../src/learning/apply-bias.ts'
import { maximumBias } from '../../src/learning/learning-cell.ts'

type One = { readonly name: string; readonly score: number; readonly lean: LearnedBias | null }

const lean = fc.integer({ min: 0, max: 120 }).chain(entries => {
  const bound = maximumBias(entries)
  return fc.double({ min: -bound, max: bound, noNaN: true }).map(bias => ({ bias, entries }))
})
const lists = fc
  .array(fc.record({ score: fc.double({ min: 0, max: 1, noNaN: true }), lean: fc.option(lean) }), { maxLength: 30 })
  .map(list =>
    list.sort((left, right) => right.score - left.score).map((item, index): One => ({ name: `m${index}`, ...item })),
  )
const findLean = ({ lean: of }: One) => of
const bound = ({ lean: of }: One) => maximumBias(of?.entries ?? 0)

describe('applyLearnedBias', () => {
  test('never reverses a margin wider than the bound', () => {
    fc.assert(
      fc.property(lists, list => {
        const place = new Map(applyLearnedBias(list, findLean).map(({ name }, index) => [name, index]))
        for (const [index, above] of list.entries())
          for (const below of list.slice(index + 1)) {
            const isPassed = (place.get(below.name) ?? 0) < (place.get(above.name) ?? 0)
            if (isPassed)
              expect(above.score - below.score).toBeLessThanOrEqual(Math.max(bound(above), bound(below)) + 1e-12)
          }
      }),
      { numRuns: 500 },
    )
  })

  test('keeps all models, with descending scores within 0–1', () => {
    fc.assert(
      fc.property(lists, list => {
        const nudged = applyLearnedBias(list, findLean)
        expect(nudged.map(({ name }) => name).sort()).toEqual(list.map(({ name }) => name).sort())
        const scores = nudged.map(({ score }) => score)
        expect(scores).toEqual(scores.toSorted((left, right) => right - left))
        for (const score of scores) expect(score >= 0 && score <= 1).toBe(true)
      }),
    )
  })

  test('returns the list unchanged without learning data', () => {
    fc.assert(
      fc.property(lists, list => {
        expect(applyLearnedBias(list, () => null)).toEqual(list)
        expect(applyLearnedBias(list, () => ({ bias: 0, entries: 9 }))).toEqual(list)
      }),
    )
  })

  test('swaps a near tie when the evidence supports it', () => {
    const list: One[] = [
      { name: 'a', score: 0.7, lean: { bias: -0.1, entries: 60 } },
      { name: 'b', score: 0.65, lean: null },
      { name: 'c', score: 0.52, lean: { bias: 0.2, entries: 60 } },
    ]
    expect(applyLearnedBias(list, findLean).map(({ name }) => name)).toEqual(['c', 'b', 'a'])
    expect(getBias(model => (model === 'x' ? { bias: 0.1, entries: 60 } : null), 'x')).toBe(0.1)
    expect(getBias(null, 'x')).toBe(0)
  })
})

describe('explore', () => {
  const list: One[] = [
    { name: 'leader', score: 0.7, lean: { bias: 0, entries: 60 } },
    { name: 'known', score: 0.69, lean: { bias: 0, entries: 50 } },
    { name: 'near', score: 0.68, lean: { bias: 0, entries: 12 } },
    { name: 'nearest to unknown', score: 0.66, lean: null },
    { name: 'far', score: 0.6, lean: null },
  ]
  const first = (ordered: readonly One[]) => ordered[0]?.name

  test('explores the least-known near tie in at most 2% of requests', () => {
    expect(explorationShare).toBeLessThanOrEqual(0.02)
    const taken = explore(
      list,
      findLean,
      () => true,
      () => 0,
    )
    expect([first(taken.ordered), taken.probability]).toEqual(['nearest to unknown', explorationShare])
    expect(taken.ordered).toHaveLength(list.length)
    const left = explore(
      list,
      findLean,
      () => true,
      () => explorationShare,
    )
    expect([first(left.ordered), left.probability]).toEqual(['leader', 1 - explorationShare])
  })

  test('never explores an ineligible model, or while the leader is in its cold start', () => {
    const open = explore(
      list,
      findLean,
      ({ name }) => name === 'near',
      () => 0,
    )
    expect(first(open.ordered)).toBe('near')
    expect(
      explore(
        list,
        findLean,
        () => false,
        () => 0,
      ),
    ).toEqual({ ordered: list, probability: 1 })
    expect(
      explore(
        list,
        () => null,
        () => true,
        () => 0,
      ),
    ).toEqual({ ordered: list, probability: 1 })
    expect(
      explore(
        [],
        () => null,
        () => true,
        () => 0,
      ),
    ).toEqual({ ordered: [], probability: 1 })
  })
})
