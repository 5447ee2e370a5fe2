import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { afterOutcome, type HealthOutcome, stateAt, unknownHealth } from '../../src/core/health.ts'
import { createHealthBook } from '../../src/stores/health.ts'
import { movableClock } from './support.ts'

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
  expect(stateAt(afterOutcome(unknownHealth, 'ok', 0), 0)).toBe('healthy')
})
