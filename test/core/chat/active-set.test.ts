import { edenGC, fullGC, heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ActiveSetMember, createActiveSet } from '../../../src/core/chat/request-abort.ts'

test('createActiveSet: holds exactly the added and not deleted members in any order of operations', () => {
  const moves = fc.array(fc.record({ leaves: fc.boolean(), who: fc.nat(7) }), { maxLength: 60 })
  fc.assert(
    fc.property(moves, moves => {
      const people = Array.from({ length: 8 }, (): ActiveSetMember => ({ place: -1 }))
      const roster = createActiveSet()
      const expected = new Set<ActiveSetMember>()
      for (const { leaves, who } of moves) {
        const person = people[who]
        if (person === undefined) continue
        roster[leaves ? 'delete' : 'add'](person)
        expected[leaves ? 'delete' : 'add'](person)
      }
      const members = [...roster]
      expect(members.length).toBe(expected.size)
      expect(new Set(members)).toEqual(expected)
    }),
  )
})

test('createActiveSet: releases deleted members at the next young collection', () => {
  const roster = createActiveSet<ActiveSetMember & { readonly load: Float32Array }>()
  const present: (ActiveSetMember & { readonly load: Float32Array })[] = []
  const pass = (count: number) => {
    for (let index = 0; index < count; index++) {
      const item = { place: -1, load: new Float32Array(1) }
      roster.add(item)
      present.push(item)
      const first = present.length > 10 ? present.shift() : undefined
      if (first !== undefined) roster.delete(first)
    }
  }
  pass(1_000)
  fullGC()
  const before = heapStats().objectTypeCounts.Float32Array ?? 0
  pass(1_000)
  edenGC()
  // A set keeps all thousand.
  expect((heapStats().objectTypeCounts.Float32Array ?? 0) - before).toBeLessThan(200)
})
