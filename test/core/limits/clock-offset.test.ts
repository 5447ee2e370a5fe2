import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createClockOffset } from '../../../src/database/clock.ts'

/** Creates a sample with a round trip of `out` and `back` milliseconds to a clock that is `ahead`. */
const answer = (askedAt: number, ahead: number, out: number, back: number) => ({
  askedAt,
  told: askedAt + out + ahead,
  answeredAt: askedAt + out + back,
})

const offsetAfter = (answers: readonly ReturnType<typeof answer>[]) => {
  const offset = createClockOffset()
  for (const item of answers) offset.take(item)
  return offset.milliseconds()
}

test('createClockOffset: returns 0 before the first sample', () => {
  expect(offsetAfter([])).toBe(0)
})

test.each([
  ['clocks that differ by less than a second are not told apart', [answer(0, 900, 1, 1), answer(9, -900, 1, 1)], 0],
  ['a clock that is ahead', [answer(0, 90_000, 2, 2)], 90_000],
  ['a clock that is behind', [answer(0, -90_000, 2, 2)], -90_000],
  [
    'the quickest of the latest counts',
    [answer(0, 50_000, 4_000, 0), answer(9_000, 50_000, 2, 2), answer(18_000, 50_000, 0, 7_000)],
    50_000,
  ],
  ['an answer that only came late says nothing', [answer(0, 0, 0, 8_000)], 0],
  ['a clock that was set is followed at once', [answer(0, 90_000, 1, 1), answer(9, 0, 2, 2)], 0],
  ['time does not stir for less than a second', [answer(0, 90_000, 1, 1), answer(9, 90_400, 0, 0)], 90_000],
  ['our own clock set back while it was asked', [{ askedAt: 10_000, told: 90_000, answeredAt: 9_000 }], 0],
])('createClockOffset: %s', (_, answers, offset) => {
  expect(offsetAfter(answers)).toBe(offset)
})

test('createClockOffset: errs by at most the fastest round trip, or half of it plus 1 s', () => {
  const trip = fc.record({ out: fc.nat(3_000), back: fc.nat(3_000) })
  fc.assert(
    fc.property(
      fc.integer({ min: -200_000, max: 200_000 }),
      fc.array(trip, { minLength: 1, maxLength: 8 }),
      (ahead, trips) => {
        const answers = trips.map(({ out, back }, index) => answer(index * 10_000, ahead, out, back))
        const margin = Math.min(...trips.map(({ out, back }) => (out + back) / 2))
        expect(Math.abs(offsetAfter(answers) - ahead)).toBeLessThanOrEqual(margin + Math.max(1_000, margin) + 1)
      },
    ),
  )
})
