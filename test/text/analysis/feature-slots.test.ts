import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { addFeature, createSlots, deduplicate, getSalt, weightedSum } from '../../../src/text/analysis/feature-slots.ts'
import { getSlot } from '../../../src/text/analysis/features.ts'

const bits = 6

test('deduplicate: keeps the first feature of each slot in order, independent of the previous text', () => {
  const feature = fc.record({ hash: fc.integer(), salt: fc.nat({ max: 3 }), value: fc.integer({ min: 1, max: 9 }) })
  const slots = createSlots(bits)
  const weights = Int8Array.from({ length: 2 ** bits }, (_, place) => place - 30)
  fc.assert(
    fc.property(fc.array(feature, { maxLength: 200 }), features => {
      slots.count = 0
      for (const { hash, salt, value } of features) addFeature(slots, hash, salt, value)
      deduplicate(slots)
      const first = new Map<number, number>()
      for (const { hash, salt, value } of features) {
        const place = getSlot(hash, salt, bits)
        if (!first.has(place)) first.set(place, value)
      }
      const kept = Array.from(
        { length: slots.count },
        (_, at) => [slots.places[at] ?? 0, slots.values[at] ?? 0] as const,
      )
      expect(kept).toEqual([...first])
      expect(weightedSum(slots, weights)).toBe(kept.reduce((sum, [place, value]) => sum + value * (place - 30), 0))
    }),
  )
})

test('getSalt: keeps kinds of features apart when they number their features', () => {
  const places = Array.from({ length: 20 * 1000 }, (_, at) => (at % 1000) ^ getSalt(1 + Math.floor(at / 1000)))
  expect(new Set(places).size).toBe(places.length)
})
