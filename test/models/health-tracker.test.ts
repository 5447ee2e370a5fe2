import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { applyOutcome, type HealthOutcome, initialCircuit, stateAt } from '../../src/models/circuit-breaker.ts'
import { createHealthTracker } from '../../src/models/health-tracker.ts'
import { movableClock } from '../database/support.ts'

const key = 'openai/gpt-test'

function rig() {
  const clock = movableClock()
  const book = createHealthTracker({ clock })
  const report = (outcome: HealthOutcome, retryAfterMs?: number, of = key) =>
    book.report(of, { outcome, retryAfterMs: retryAfterMs ?? null })
  return { clock, book, report }
}

test('health tracker: reports unhealthy after one 503 and allows one probe after 2 s', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['unhealthy', false])
  clock.move(1999)
  expect(book.getStanding(key).mayTry).toBe(false)
  clock.move(1)
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['degraded', true])
  book.beginAttempt(key)
  expect(book.getStanding(key).mayTry).toBe(false)
  report('ok')
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['healthy', true])
})

test('health tracker: combines figures again after each report, and each second because measurements fade', () => {
  const { clock, book, report } = rig()
  const published = { quality: 0.5, tokensPerSecond: 50, firstTokenMs: 500, estimated: false }
  const getErrorRate = () => book.findFigures(key, published)?.errorRate ?? Number.NaN
  expect(book.findFigures(key, published)).toBeNull()
  report('soft_failure')
  const first = getErrorRate()
  report('soft_failure')
  const second = getErrorRate()
  expect(second).toBeGreaterThan(first)
  clock.move(999)
  expect(getErrorRate()).toBe(second)
  clock.move(1)
  expect(getErrorRate()).toBeLessThan(second)
  expect(book.findFigures(key, { ...published, quality: 0.9 })?.quality).toBe(0.9)
})

test('health tracker: doubles the wait after each failed probe up to 60 s', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  for (const rest of [2, 4, 8, 16, 32, 60, 60]) {
    clock.move(rest * 1000 - 1)
    expect(book.getStanding(key).mayTry).toBe(false)
    clock.move(1)
    expect(book.getStanding(key).mayTry).toBe(true)
    book.beginAttempt(key)
    report('soft_failure')
  }
})

test('health tracker: allows the next probe when one is lost', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  clock.move(2000)
  book.beginAttempt(key)
  clock.move(30_000)
  expect(book.getStanding(key).mayTry).toBe(true)
})

test('health tracker: opens the circuit after three consecutive failures, not two', () => {
  const { book, report } = rig()
  report('soft_failure')
  report('soft_failure')
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['degraded', true])
  report('soft_failure')
  expect(book.getStanding(key).state).toBe('unhealthy')
})

test('health tracker: opens the circuit when more than half of the last 20 attempts fail', () => {
  const { book, report } = rig()
  for (let round = 0; round < 5; round++) {
    report('soft_failure')
    report('ok')
  }
  expect(book.getStanding(key).mayTry).toBe(true)
  report('soft_failure')
  expect(book.getStanding(key).mayTry).toBe(false)
})

test('health tracker: pauses after a 429 as requested, at most 60 s, then allows all requests', () => {
  const { clock, book, report } = rig()
  report('cooling', 5000)
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['degraded', false])
  clock.move(5000)
  expect([book.getStanding(key).state, book.getStanding(key).mayTry]).toEqual(['healthy', true])
  report('cooling', 3_600_000)
  clock.move(60_000)
  expect(book.getStanding(key).mayTry).toBe(true)
})

test('health tracker: disables all models of a provider after a rejected credential until one responds', () => {
  const { clock, book, report } = rig()
  report('switched_off')
  expect(['openai/other', 'anthropic/other', 'openai/other#2'].map(text => book.getStanding(text).mayTry)).toEqual([
    false,
    true,
    true,
  ])
  expect(book.getStanding('openai/other').state).toBe('unhealthy')
  clock.move(60_000)
  expect(book.getStanding('openai/other').mayTry).toBe(true)
  book.beginAttempt('openai/other')
  expect(book.getStanding(key).mayTry).toBe(false)
  report('ok', undefined, 'openai/other')
  expect([book.getStanding(key).mayTry, book.getStanding(key).state]).toEqual([true, 'healthy'])
})

test('health tracker: lists state and start time by the wall clock', () => {
  const { clock, book, report } = rig()
  report('ok')
  clock.move(1000)
  report('unhealthy')
  const since = clock.now()
  clock.move(500)
  expect(book.list()).toEqual([
    { key, state: 'unhealthy', since, cause: null, retryAt: since + 2_000, failureRate: 0.5, firstTokenMs: null },
  ])
})

describe('entryOf', () => {
  test('returns no time when the state never changed', () => {
    const { clock, book, report } = rig()
    expect(book.getEntry(key)).toMatchObject({ state: 'healthy', since: null })
    report('ok')
    clock.move(9_000)
    expect(book.getEntry(key)).toMatchObject({ state: 'healthy', since: null })
  })

  test('returns when a pause ended, however late it is read', () => {
    const { clock, book, report } = rig()
    report('unhealthy')
    const openedAt = clock.now()
    expect(book.getEntry(key)).toMatchObject({ state: 'unhealthy', since: openedAt })
    clock.move(1_999)
    expect(book.getEntry(key)).toMatchObject({ state: 'unhealthy', since: openedAt })
    clock.move(50_000)
    expect(book.getEntry(key)).toMatchObject({ state: 'degraded', since: openedAt + 2_000 })
    report('ok')
    expect(book.getEntry(key)).toMatchObject({ state: 'healthy', since: clock.now() })

    report('cooling', 5_000)
    const coolingAt = clock.now()
    clock.move(30_000)
    expect(book.getEntry(key)).toMatchObject({ state: 'healthy', since: coolingAt + 5_000 })
  })

  test('returns the time of the displayed state when the provider is disabled, also without attempts', () => {
    const { clock, book, report } = rig()
    const other = 'openai/other'
    report('soft_failure')
    const degradedAt = clock.now()
    expect(book.getEntry(key)).toMatchObject({ state: 'degraded', since: degradedAt })
    clock.move(1_000)
    report('switched_off')
    const disabledAt = clock.now()
    clock.move(700)
    for (const text of [key, other])
      expect(book.getEntry(text)).toMatchObject({ state: 'unhealthy', since: disabledAt })
    expect(book.getEntry('anthropic/other')).toMatchObject({ state: 'healthy', since: null })
    clock.move(90_000)
    expect(book.getEntry(other)).toMatchObject({ state: 'healthy', since: disabledAt + 60_000 })
    expect(book.getEntry(key)).toMatchObject({ state: 'degraded', since: disabledAt + 60_000 })
  })

  test('returns when requests may call a model again: after its pause, at once when it only fails sometimes', () => {
    const { clock, book, report } = rig()
    report('soft_failure')
    expect(book.getEntry(key)).toMatchObject({ state: 'degraded', retryAt: null })
    report('cooling', 5_000)
    const retryAt = clock.now() + 5_000
    clock.move(4_999)
    expect(book.getEntry(key)).toMatchObject({ state: 'degraded', retryAt })
    clock.move(1)
    expect(book.getEntry(key)).toMatchObject({ retryAt: null })
    report('switched_off')
    expect(book.getEntry('openai/other')).toMatchObject({ state: 'unhealthy', retryAt: clock.now() + 60_000 })
  })

  test('keeps the first time when another cause continues a state', () => {
    const { clock, book, report } = rig()
    report('unhealthy')
    const since = clock.now()
    clock.move(1_000)
    report('switched_off')
    clock.move(30_000)
    expect(book.getEntry(key)).toMatchObject({ state: 'unhealthy', since })
  })

  test('returns the exact millisecond of a change for any events and reads', () => {
    const outcome = fc.constantFrom<HealthOutcome>('ok', 'soft_failure', 'unhealthy', 'cooling', 'switched_off')
    const steps = fc.array(fc.tuple(outcome, fc.constantFrom(key, 'openai/other'), fc.nat(4_000), fc.boolean()), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(steps, events => {
        const { clock, book, report } = rig()
        let [state, since]: [string, number | null] = ['healthy', null]
        // Read every millisecond, each change is seen when it happens.
        const look = () => {
          const now = book.getStanding(key).state
          if (now !== state) [state, since] = [now, clock.now()]
        }
        for (const [healthOutcome, of, gapMs, isShown] of events) {
          report(healthOutcome, 1_500, of)
          look()
          for (let at = 0; at < gapMs; at++) {
            clock.move(1)
            look()
          }
          if (isShown) expect(book.getEntry(key)).toMatchObject({ state, since })
        }
        expect(book.getEntry(key)).toMatchObject({ state, since })
      }),
      { numRuns: 100 },
    )
  })
})

describe('skipReason', () => {
  const of = (book: ReturnType<typeof rig>['book']) => [book.skipReason(key, true), book.skipReason(key, false)]

  test('keeps a requested model in use after one or two failures and returns `circuit_open` from the third', () => {
    for (const outcome of ['unhealthy', 'soft_failure'] as const) {
      const { book, report } = rig()
      report(outcome)
      expect(book.skipReason(key, true)).toBeNull()
      report(outcome)
      expect(book.skipReason(key, true)).toBeNull()
      report(outcome)
      expect(of(book)).toEqual(['circuit_open', 'circuit_open'])
    }
    const { book, report } = rig()
    report('unhealthy')
    expect([...of(book), book.getStanding(key).state]).toEqual([null, 'circuit_open', 'unhealthy'])
  })

  test('lets one request probe a requested model after the wait', () => {
    const { clock, book, report } = rig()
    for (let failure = 0; failure < 3; failure++) report('unhealthy')
    clock.move(2_000)
    expect(of(book)).toEqual([null, null])
    book.beginAttempt(key)
    expect(of(book)).toEqual(['circuit_open', 'circuit_open'])
    report('ok')
    expect(of(book)).toEqual([null, null])
  })

  test('does not extend the wait for failures of running requests', () => {
    const { clock, book, report } = rig()
    for (let failure = 0; failure < 20; failure++) report('unhealthy')
    clock.move(1_999)
    expect(book.getStanding(key).mayTry).toBe(false)
    clock.move(1)
    expect(book.getStanding(key).mayTry).toBe(true)
  })

  test("returns `cooldown` for a requested model only during the upstream's own pause", () => {
    const asked = rig()
    asked.report('cooling', 5_000)
    expect(of(asked.book)).toEqual(['cooldown', 'cooldown'])
    asked.clock.move(5_000)
    expect(of(asked.book)).toEqual([null, null])
    const silent = rig()
    silent.report('cooling')
    expect(of(silent.book)).toEqual([null, 'cooldown'])
  })

  test('returns `provider_disabled` for every model of a provider that rejected the credential', () => {
    const { book, report } = rig()
    report('switched_off')
    expect(of(book)).toEqual(['provider_disabled', 'provider_disabled'])
    expect(book.skipReason('openai/other', true)).toBe('provider_disabled')
  })
})

test('health tracker: averages first-token times', () => {
  const { book } = rig()
  expect(book.firstTokenMs(key)).toBeNull()
  book.report(key, { outcome: 'ok', firstTokenMs: 100 })
  book.report(key, { outcome: 'ok', firstTokenMs: 200 })
  expect(book.firstTokenMs(key)).toBe(120)
})

test('health tracker: limits retries to a fifth of active requests, at least three, each released once', () => {
  const { book } = rig()
  const retries = [1, 2, 3].map(() => book.beginRetry(key))
  expect(retries.every(retry => retry !== null)).toBe(true)
  expect(book.beginRetry(key)).toBeNull()
  retries[0]?.end()
  retries[0]?.end()
  expect(book.beginRetry(key)).not.toBeNull()
  expect(book.beginRetry(key)).toBeNull()
  for (let request = 0; request < 20; request++) book.beginRequest()
  expect(book.beginRetry(key)).not.toBeNull()
  expect(book.beginRetry(key)).toBeNull()
})

test('health tracker: allows a new attempt on any model after one minute for any events', () => {
  const outcome = fc.constantFrom<HealthOutcome>('ok', 'soft_failure', 'unhealthy', 'cooling', 'switched_off')
  fc.assert(
    fc.property(fc.array(fc.tuple(outcome, fc.nat(100_000), fc.boolean())), events => {
      const { clock, book, report } = rig()
      for (const [healthOutcome, after, attempt] of events) {
        if (attempt) book.beginAttempt(key)
        report(healthOutcome, after)
        clock.move(after)
      }
      clock.move(60_000)
      expect(book.getStanding(key).mayTry).toBe(true)
      expect(book.getStanding(key).state).not.toBe('unhealthy')
    }),
  )
  expect(stateAt(applyOutcome(initialCircuit, 'ok', 0), 0)).toBe('healthy')
})
