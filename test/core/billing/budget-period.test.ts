/** Which period a soft cap counts: the billing cycle for billed accounts, otherwise the UTC calendar month. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { cycleMs } from '../../../src/core/billing/billing.ts'
import { budgetPeriod, periodKey } from '../../../src/core/billing/grace.ts'

const upgrade = Date.UTC(2026, 0, 20, 9, 30, 15, 250)

describe('budgetPeriod', () => {
  test('returns the cycle that holds the moment when usage is billed', () => {
    const cycle = (nth: number) => ({
      kind: 'billing_cycle',
      startsAt: upgrade + nth * cycleMs,
      endsAt: upgrade + (nth + 1) * cycleMs,
    })
    expect(budgetPeriod(upgrade, upgrade)).toEqual({ ...cycle(0), kind: 'billing_cycle' })
    // The first of a month is not a boundary of a cycle.
    expect(budgetPeriod(upgrade, Date.UTC(2026, 1, 1))).toMatchObject(cycle(0))
    expect(budgetPeriod(upgrade, upgrade + cycleMs - 1)).toMatchObject(cycle(0))
    expect(budgetPeriod(upgrade, upgrade + cycleMs)).toMatchObject(cycle(1))
    expect(budgetPeriod(upgrade, upgrade + 7 * cycleMs + 5)).toMatchObject(cycle(7))
  })

  test('returns the UTC calendar month when nothing is billed', () => {
    const january = { kind: 'calendar_month', startsAt: Date.UTC(2026, 0), endsAt: Date.UTC(2026, 1) }
    expect(budgetPeriod(null, Date.UTC(2026, 0))).toMatchObject(january)
    expect(budgetPeriod(null, Date.UTC(2026, 1) - 1)).toMatchObject(january)
    expect(budgetPeriod(null, Date.UTC(2026, 1)).startsAt).toBe(january.endsAt)
    expect(budgetPeriod(null, Date.UTC(2026, 11, 31, 23)).endsAt).toBe(Date.UTC(2027, 0))
  })

  test('returns periods that hold their moment and follow one another', () => {
    const moment = fc.integer({ min: upgrade, max: upgrade + 50 * cycleMs })
    fc.assert(
      fc.property(fc.option(fc.constant(upgrade)), moment, (start, at) => {
        const { startsAt, endsAt } = budgetPeriod(start, at)
        expect(startsAt <= at && at < endsAt).toBe(true)
        expect(budgetPeriod(start, endsAt).startsAt).toBe(endsAt)
        expect(budgetPeriod(start, startsAt - 1).endsAt).toBe(
          start === null ? startsAt : Math.max(startsAt, start + cycleMs),
        )
      }),
    )
  })
})

test('periodKey: differs between a month and a cycle that starts with it', () => {
  const first = Date.UTC(2026, 0)
  expect(periodKey(budgetPeriod(null, first))).toBe('2026-01')
  expect(periodKey(budgetPeriod(first, first))).toBe('2026-01-01T00:00:00.000Z')
})
