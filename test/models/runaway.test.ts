import { describe, expect, test } from 'bun:test'
import { findRunaway } from '../../src/models/runaway.ts'

const calm = { stalled: 0, spentMicrocents: 0, spentAt: 0 }

describe('findRunaway', () => {
  test.each([
    [9, null],
    [10, 'warn'],
    [20, 'lower'],
    [29, 'lower'],
    [30, 'stop'],
  ] as const)('takes the step of %d turns without progress', (stalled, step) => {
    expect(findRunaway({ ...calm, stalled }, { stalled_turns: 10 }, 0)?.step ?? null).toBe(step)
  })

  test('measures spending per minute, which fades', () => {
    // A dollar every minute for an hour: with a half-life of 5 minutes about 7.7 dollars remain.
    const spent = { ...calm, spentMicrocents: 7.7e8 }
    const at = (now: number) => findRunaway(spent, { usd_per_minute: 0.5, stop_factor: 10 }, now)
    expect(at(0)).toMatchObject({ step: 'lower', cause: '1.07 USD per minute in this conversation' })
    expect(at(300_000)?.step).toBe('warn')
    expect(at(900_000)).toBeNull()
  })

  test('follows the factors of the operator, and does nothing without a bound', () => {
    const stalled = { ...calm, stalled: 10, spentMicrocents: 1e12 }
    expect(findRunaway(stalled, {}, 0)).toBeNull()
    expect(findRunaway(stalled, { stalled_turns: 10, stop_factor: 1 }, 0)?.step).toBe('stop')
    expect(findRunaway(stalled, { stalled_turns: 5, lower_factor: 3, stop_factor: 4 }, 0)?.step).toBe('warn')
  })
})
