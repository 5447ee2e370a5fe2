import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { insertSorted } from '../../src/models/insert-sorted.ts'

test('insertSorted: builds the same list as a stable sort', () => {
  const entries = fc
    .array(fc.nat({ max: 6 }), { maxLength: 20 })
    .map(ranks => ranks.map((rank, came) => ({ rank, came })))
  type Entry = { readonly rank: number; readonly came: number }
  const byRank = (item: Entry, other: Entry) => item.rank - other.rank
  fc.assert(
    fc.property(entries, list => {
      const ordered: Entry[] = []
      for (const entry of list) insertSorted(ordered, entry, byRank)
      expect(ordered).toEqual(list.toSorted(byRank))
    }),
  )
})
