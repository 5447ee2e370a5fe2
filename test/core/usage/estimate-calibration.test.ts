import { expect, test } from 'bun:test'
import { type Foresight, foresee, nothingForeseen, type Outcome, takeOutcome } from '../../../src/core/usage/estimate-calibration.ts'

function after(count: number, outcome: Outcome): Foresight {
  const line = nothingForeseen(0)
  for (let one = 0; one < count; one++) takeOutcome(line, outcome, 0)
  return line
}
const longer: Outcome = { lengthRatio: 3, costRatio: 1.4 }

test('nothing measured leaves usual lengths as they are and tells no error', () => {
  expect(foresee(null, null)).toEqual({ factor: 1, source: 'table', typicalErrorPct: null })
})

test('lengths follow what was measured, the account’s own over everybody’s, each the more there is of it', () => {
  expect(foresee(after(20, longer), null).factor).toBeCloseTo(Math.sqrt(3), 6)
  expect(foresee(after(5_000, longer), null)).toMatchObject({ source: 'traffic' })
  expect(foresee(after(5_000, longer), null).factor).toBeCloseTo(3, 1)
  const shorter = after(2_000, { lengthRatio: 0.5, costRatio: 1 })
  const own = foresee(after(5_000, longer), shorter)
  expect(own.source).toBe('account')
  expect(own.factor).toBeCloseTo(0.5, 1)
})

test('the error told is by how much real costs were off, either way alike, and not before ten requests', () => {
  expect(foresee(after(9, longer), null).typicalErrorPct).toBeNull()
  expect(foresee(after(10, longer), null).typicalErrorPct).toBe(40)
  expect(foresee(after(10, { lengthRatio: null, costRatio: 1 / 1.4 }), null).typicalErrorPct).toBe(40)
  expect(foresee(after(10, longer), after(10, { lengthRatio: null, costRatio: 2 })).typicalErrorPct).toBe(100)
})

test('an answer that was cut off says nothing of lengths, and an absurd ratio no more than a large one', () => {
  expect(foresee(after(100, { lengthRatio: null, costRatio: 1 }), null)).toMatchObject({ factor: 1, source: 'table' })
  const absurd = after(10, { lengthRatio: Number.MAX_VALUE, costRatio: 0 })
  expect(Number.isFinite(foresee(absurd, null).factor)).toBe(true)
  expect(foresee(absurd, null).typicalErrorPct).toBe(4_900)
})

test('old outcomes fade', () => {
  const line = after(1_000, longer)
  for (let week = 1; week <= 12; week++)
    for (let one = 0; one < 20; one++) takeOutcome(line, { lengthRatio: 1, costRatio: 1 }, week * 7 * 86_400_000)
  expect(foresee(line, null).factor).toBeLessThan(1.05)
})
