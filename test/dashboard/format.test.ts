import { describe, expect, test } from 'bun:test'
import {
  dateTime,
  exactTime,
  formatDate,
  formatUtcUnit,
  humanize,
  listTime,
  localTime,
  percent,
  usdColumn,
} from '../../src/dashboard/state/format.ts'

describe('Dashboard formats', () => {
  test('show times in UTC', () => {
    const time = '2026-11-23T23:05:09.500Z'
    expect([listTime(time), dateTime(time), exactTime(time), formatDate(time)]).toEqual([
      'Nov 23, 23:05:09',
      'Nov 23, 2026, 23:05',
      'Nov 23, 2026, 23:05:09 UTC',
      'Nov 23, 2026',
    ])
    expect(['2026-11-23', '2026-11-23T07', '2026-11-23T07:12'].map(formatUtcUnit)).toEqual([
      'Nov 23',
      'Nov 23, 07:00',
      'Nov 23, 07:12',
    ])
  })

  test('show a local time in the zone of the browser', () => {
    const time = '2026-11-23T23:05:09.500Z'
    const at = new Date(time)
    const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(part => String(part).padStart(2, '0')).join(':')
    expect(localTime(time)).toBe(`Nov ${at.getDate()}, ${clock}`)
  })

  test.each([
    [
      [0, 12.5],
      ['$0.00', '$12.50'],
    ],
    [
      [0.00123, 0.5, 0],
      ['$0.0012', '$0.5000', '$0.0000'],
    ],
    [
      [0.00000001, 2],
      ['<$0.000001', '$2.000000'],
    ],
  ])('show the amounts %j of a column with equal decimal places', (amounts, shown) => {
    expect(amounts.map(usdColumn(amounts))).toEqual(shown)
  })

  test('write percentages without a space', () => {
    expect([percent(0.02, 1), percent(1.3), percent(0.0215, 1)]).toEqual(['2%', '130%', '2.1%'])
  })

  test.each([
    ['json_schema', 'JSON schema'],
    ['warm_up', 'Warm-up'],
    ['served', 'Succeeded'],
    ['request_refused', '400 Invalid request'],
    ['rate_limited', 'Rate limited'],
  ])('name %s "%s"', (name, shown) => {
    expect(humanize(name)).toBe(shown)
  })
})
