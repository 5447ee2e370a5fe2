import { expect, test } from 'bun:test'
import {
  addCalibrationSample,
  type CalibrationSample,
  type CalibrationState,
  calibratedLength,
  emptyCalibration,
} from '../../src/learning/estimate-calibration.ts'

function after(count: number, outcome: CalibrationSample): CalibrationState {
  const line = emptyCalibration(0)
  for (let value = 0; value < count; value++) addCalibrationSample(line, outcome, 0)
  return line
}
const longer: CalibrationSample = { lengthRatio: 3, costRatio: 1.4 }

test('calibratedLength: keeps usual lengths and reports no error without samples', () => {
  expect(calibratedLength(null, null)).toEqual({ factor: 1, source: 'table', typicalErrorPct: null })
})

test("calibratedLength: follows the samples, the account's own first, by their number", () => {
  expect(calibratedLength(after(20, longer), null).factor).toBeCloseTo(Math.sqrt(3), 6)
  expect(calibratedLength(after(5_000, longer), null)).toMatchObject({ source: 'traffic' })
  expect(calibratedLength(after(5_000, longer), null).factor).toBeCloseTo(3, 1)
  const shorter = after(2_000, { lengthRatio: 0.5, costRatio: 1 })
  const own = calibratedLength(after(5_000, longer), shorter)
  expect(own.source).toBe('account')
  expect(own.factor).toBeCloseTo(0.5, 1)
})

test('calibratedLength: reports the typical error in either direction from ten requests on', () => {
  expect(calibratedLength(after(9, longer), null).typicalErrorPct).toBeNull()
  expect(calibratedLength(after(10, longer), null).typicalErrorPct).toBe(40)
  expect(calibratedLength(after(10, { lengthRatio: null, costRatio: 1 / 1.4 }), null).typicalErrorPct).toBe(40)
  expect(calibratedLength(after(10, longer), after(10, { lengthRatio: null, costRatio: 2 })).typicalErrorPct).toBe(100)
})

test('addCalibrationSample: ignores the length of truncated outputs and limits extreme ratios', () => {
  expect(calibratedLength(after(100, { lengthRatio: null, costRatio: 1 }), null)).toMatchObject({
    factor: 1,
    source: 'table',
  })
  const absurd = after(10, { lengthRatio: Number.MAX_VALUE, costRatio: 0 })
  expect(Number.isFinite(calibratedLength(absurd, null).factor)).toBe(true)
  expect(calibratedLength(absurd, null).typicalErrorPct).toBe(4_900)
})

test('addCalibrationSample: decays old samples', () => {
  const line = after(1_000, longer)
  for (let week = 1; week <= 12; week++)
    for (let value = 0; value < 20; value++)
      addCalibrationSample(line, { lengthRatio: 1, costRatio: 1 }, week * 7 * 86_400_000)
  expect(calibratedLength(line, null).factor).toBeLessThan(1.05)
})
