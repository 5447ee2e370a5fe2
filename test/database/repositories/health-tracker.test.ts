import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { applyOutcome, type HealthOutcome, initialCircuit, stateAt } from '../../../src/core/routing/circuit-breaker.ts'
import { createHealthBook } from '../../../src/database/repositories/health-tracker.ts'
import { movableClock } from '../support.ts'

const key = 'openai/gpt-test'

function rig() {
  const clock = movableClock()
  const book = createHealthBook({ clock })
  const report = (outcome: HealthOutcome, retryAfterMs?: number, of = key) =>
    book.report(of, { outcome, retryAfterMs: retryAfterMs ?? null })
  return { clock, book, report }
}

test('a 503 marks a model unhealthy at once, and 2 s later one probe is let through', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['unhealthy', false])
  clock.move(1999)
  expect(book.mayTry(key)).toBe(false)
  clock.move(1)
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['degraded', true])
  book.beginAttempt(key)
  expect(book.mayTry(key)).toBe(false)
  report('ok')
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['healthy', true])
})

test('each failed probe doubles the rest, up to a minute', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  for (const rest of [2, 4, 8, 16, 32, 60, 60]) {
    clock.move(rest * 1000 - 1)
    expect(book.mayTry(key)).toBe(false)
    clock.move(1)
    expect(book.mayTry(key)).toBe(true)
    book.beginAttempt(key)
    report('soft_failure')
  }
})

test('a probe that is never heard of again does not bar the next one', () => {
  const { clock, book, report } = rig()
  report('unhealthy')
  clock.move(2000)
  book.beginAttempt(key)
  clock.move(30_000)
  expect(book.mayTry(key)).toBe(true)
})

test('three failures in a row close the door, two do not', () => {
  const { book, report } = rig()
  report('soft_failure')
  report('soft_failure')
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['degraded', true])
  report('soft_failure')
  expect(book.stateOf(key)).toBe('unhealthy')
})

test('more than half of the last twenty failing closes it, also with answers between', () => {
  const { book, report } = rig()
  for (let round = 0; round < 5; round++) {
    report('soft_failure')
    report('ok')
  }
  expect(book.mayTry(key)).toBe(true)
  report('soft_failure')
  expect(book.mayTry(key)).toBe(false)
})

test('a 429 rests for as long as asked, a minute at most, and is then open to all', () => {
  const { clock, book, report } = rig()
  report('cooling', 5000)
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['degraded', false])
  clock.move(5000)
  expect([book.stateOf(key), book.mayTry(key)]).toEqual(['healthy', true])
  report('cooling', 3_600_000)
  clock.move(60_000)
  expect(book.mayTry(key)).toBe(true)
})

test('a refused credential switches off all models of the provider, and no other, until one of them answers', () => {
  const { clock, book, report } = rig()
  report('switched_off')
  expect(['openai/other', 'anthropic/other', 'openai/other#2'].map(one => book.mayTry(one))).toEqual([
    false,
    true,
    true,
  ])
  expect(book.stateOf('openai/other')).toBe('unhealthy')
  clock.move(60_000)
  expect(book.mayTry('openai/other')).toBe(true)
  book.beginAttempt('openai/other')
  expect(book.mayTry(key)).toBe(false)
  report('ok', undefined, 'openai/other')
  expect([book.mayTry(key), book.stateOf(key)]).toEqual([true, 'healthy'])
})

test('the list tells the state and since when, by the wall clock', () => {
  const { clock, book, report } = rig()
  report('ok')
  clock.move(1000)
  report('unhealthy')
  const since = clock.now()
  clock.move(500)
  expect(book.list()).toEqual([{ key, state: 'unhealthy', since, firstTokenMs: null }])
})

describe('entryOf', () => {
  test('tells no time when the state never changed', () => {
    const { clock, book, report } = rig()
    expect(book.entryOf(key)).toMatchObject({ state: 'healthy', since: null })
    report('ok')
    clock.move(9_000)
    expect(book.entryOf(key)).toMatchObject({ state: 'healthy', since: null })
  })

  test('tells when a closure ended, however late somebody looks', () => {
    const { clock, book, report } = rig()
    report('unhealthy')
    const openedAt = clock.now()
    expect(book.entryOf(key)).toMatchObject({ state: 'unhealthy', since: openedAt })
    clock.move(1_999)
    expect(book.entryOf(key)).toMatchObject({ state: 'unhealthy', since: openedAt })
    clock.move(50_000)
    expect(book.entryOf(key)).toMatchObject({ state: 'degraded', since: openedAt + 2_000 })
    report('ok')
    expect(book.entryOf(key)).toMatchObject({ state: 'healthy', since: clock.now() })

    report('cooling', 5_000)
    const coolingAt = clock.now()
    clock.move(30_000)
    expect(book.entryOf(key)).toMatchObject({ state: 'healthy', since: coolingAt + 5_000 })
  })

  test('tells the time of the shown state when the provider is disabled, for models without attempts too', () => {
    const { clock, book, report } = rig()
    const other = 'openai/other'
    report('soft_failure')
    const degradedAt = clock.now()
    expect(book.entryOf(key)).toMatchObject({ state: 'degraded', since: degradedAt })
    clock.move(1_000)
    report('switched_off')
    const disabledAt = clock.now()
    clock.move(700)
    for (const one of [key, other]) expect(book.entryOf(one)).toMatchObject({ state: 'unhealthy', since: disabledAt })
    expect(book.entryOf('anthropic/other')).toMatchObject({ state: 'healthy', since: null })
    clock.move(90_000)
    expect(book.entryOf(other)).toMatchObject({ state: 'healthy', since: disabledAt + 60_000 })
    expect(book.entryOf(key)).toMatchObject({ state: 'degraded', since: disabledAt + 60_000 })
  })

  test('goes on telling the first time when one cause of a state takes over from another', () => {
    const { clock, book, report } = rig()
    report('unhealthy')
    const since = clock.now()
    clock.move(1_000)
    report('switched_off')
    clock.move(30_000)
    expect(book.entryOf(key)).toMatchObject({ state: 'unhealthy', since })
  })

  test('tells the moment of the change, to the millisecond, whatever happens and whenever somebody looks', () => {
    const outcome = fc.constantFrom<HealthOutcome>('ok', 'soft_failure', 'unhealthy', 'cooling', 'switched_off')
    const steps = fc.array(fc.tuple(outcome, fc.constantFrom(key, 'openai/other'), fc.nat(4_000), fc.boolean()), {
      maxLength: 12,
    })
    fc.assert(
      fc.property(steps, events => {
        const { clock, book, report } = rig()
        let [state, since]: [string, number | null] = ['healthy', null]
        // Somebody who looks in every millisecond sees each change when it happens.
        const look = () => {
          const now = book.stateOf(key)
          if (now !== state) [state, since] = [now, clock.now()]
        }
        for (const [one, of, gapMs, isShown] of events) {
          report(one, 1_500, of)
          look()
          for (let at = 0; at < gapMs; at++) {
            clock.move(1)
            look()
          }
          if (isShown) expect(book.entryOf(key)).toMatchObject({ state, since })
        }
        expect(book.entryOf(key)).toMatchObject({ state, since })
      }),
      { numRuns: 100 },
    )
  })
})

describe('skipReason', () => {
  const of = (book: ReturnType<typeof rig>['book']) => [book.skipReason(key, true), book.skipReason(key, false)]

  test('keeps a named model in use after one failure or two, and gives `circuit_open` from the third', () => {
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
    expect([...of(book), book.stateOf(key)]).toEqual([null, 'circuit_open', 'unhealthy'])
  })

  test('lets one request probe a named model when the open circuit has waited', () => {
    const { clock, book, report } = rig()
    for (let failure = 0; failure < 3; failure++) report('unhealthy')
    clock.move(2_000)
    expect(of(book)).toEqual([null, null])
    book.beginAttempt(key)
    expect(of(book)).toEqual(['circuit_open', 'circuit_open'])
    report('ok')
    expect(of(book)).toEqual([null, null])
  })

  test('does not lengthen the wait for failures of requests that were under way', () => {
    const { clock, book, report } = rig()
    for (let failure = 0; failure < 20; failure++) report('unhealthy')
    clock.move(1_999)
    expect(book.mayTry(key)).toBe(false)
    clock.move(1)
    expect(book.mayTry(key)).toBe(true)
  })

  test('gives `cooldown` to a named model only while the wait lasts that it asked for itself', () => {
    const asked = rig()
    asked.report('cooling', 5_000)
    expect(of(asked.book)).toEqual(['cooldown', 'cooldown'])
    asked.clock.move(5_000)
    expect(of(asked.book)).toEqual([null, null])
    const silent = rig()
    silent.report('cooling')
    expect(of(silent.book)).toEqual([null, 'cooldown'])
  })

  test('gives `provider_disabled` to every model of a provider that refused the credential', () => {
    const { book, report } = rig()
    report('switched_off')
    expect(of(book)).toEqual(['provider_disabled', 'provider_disabled'])
    expect(book.skipReason('openai/other', true)).toBe('provider_disabled')
  })
})

test('first-token times are a moving average', () => {
  const { book } = rig()
  expect(book.firstTokenMs(key)).toBeNull()
  book.report(key, { outcome: 'ok', firstTokenMs: 100 })
  book.report(key, { outcome: 'ok', firstTokenMs: 200 })
  expect(book.firstTokenMs(key)).toBe(120)
})

test('second tries are a fifth of the active requests, three at least, and given back once', () => {
  const { book } = rig()
  const retries = [1, 2, 3].map(() => book.beginRetry(key))
  expect(retries.every(one => one !== null)).toBe(true)
  expect(book.beginRetry(key)).toBeNull()
  retries[0]?.end()
  retries[0]?.end()
  expect(book.beginRetry(key)).not.toBeNull()
  expect(book.beginRetry(key)).toBeNull()
  for (let request = 0; request < 20; request++) book.beginRequest()
  expect(book.beginRetry(key)).not.toBeNull()
  expect(book.beginRetry(key)).toBeNull()
})

test('whatever happened, everyone may be tried again after a minute', () => {
  const outcome = fc.constantFrom<HealthOutcome>('ok', 'soft_failure', 'unhealthy', 'cooling', 'switched_off')
  fc.assert(
    fc.property(fc.array(fc.tuple(outcome, fc.nat(100_000), fc.boolean())), events => {
      const { clock, book, report } = rig()
      for (const [one, after, attempt] of events) {
        if (attempt) book.beginAttempt(key)
        report(one, after)
        clock.move(after)
      }
      clock.move(60_000)
      expect(book.mayTry(key)).toBe(true)
      expect(book.stateOf(key)).not.toBe('unhealthy')
    }),
  )
  expect(stateAt(applyOutcome(initialCircuit, 'ok', 0), 0)).toBe('healthy')
})
