import { expect, test } from 'bun:test'
import { dayMs, timeIn, untilMidnight } from '../../../src/core/text/utc-days.ts'

test.each([
  ['2026-02-28', Date.UTC(2026, 1, 28)],
  ['2028-02-29T12:30Z', Date.UTC(2028, 1, 29, 12, 30)],
  ['2026-03-01T00:30:00+02:00', Date.UTC(2026, 1, 28, 22, 30)],
])('timeIn: returns the time of %s', (text, time) => {
  expect(timeIn(text)).toBe(time)
})

test.each([
  '2026-02-29',
  '2026-02-30T00:00:00Z',
  '2026-04-31T23:59:59.999+02:00',
  '2026-13-01',
  '2026-01-00',
  'soon',
  '',
])('timeIn: returns NaN for “%s”', text => {
  expect(timeIn(text)).toBeNaN()
})

test('untilMidnight: returns a whole day at midnight and 1 ms just before', () => {
  const midnight = Date.UTC(2026, 2, 1)
  expect([midnight, midnight + 1, midnight - 1].map(untilMidnight)).toEqual([dayMs, dayMs - 1, 1])
})
