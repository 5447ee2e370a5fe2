import { describe, expect, test } from 'bun:test'
import { readRateHeaders } from '../../src/providers/keys/rate-limits.ts'

const read = (pairs: Record<string, string>) => readRateHeaders(new Headers(pairs))

describe('readRateHeaders', () => {
  test('reads the headers of OpenAI and compatible servers', () => {
    expect(
      read({
        'x-ratelimit-limit-requests': '500',
        'x-ratelimit-remaining-requests': '499',
        'x-ratelimit-reset-requests': '120ms',
        'x-ratelimit-limit-tokens': '30000',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '1m2.5s',
      }),
    ).toEqual({
      requests: { limit: 500, remaining: 499, resetMs: 120 },
      tokens: { limit: 30_000, remaining: 0, resetMs: 62_500 },
    })
  })

  test('reads the headers of Anthropic relative to the date of the response', () => {
    expect(
      read({
        date: 'Mon, 23 Nov 2026 10:00:00 GMT',
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': '0',
        'anthropic-ratelimit-requests-reset': '2026-11-23T10:00:30Z',
      }),
    ).toEqual({ requests: { limit: 50, remaining: 0, resetMs: 30_000 }, tokens: null })
  })

  test('bounds a reset, and replaces an unreadable one by 1 minute', () => {
    const findReset = (reset: string) =>
      read({
        'x-ratelimit-remaining-requests': '1',
        'x-ratelimit-limit-requests': '2',
        'x-ratelimit-reset-requests': reset,
      })?.requests?.resetMs
    expect([findReset('24h'), findReset('tomorrow'), findReset('17.4'), findReset('6m0s')]).toEqual([
      600_000, 60_000, 17_400, 360_000,
    ])
  })

  test('ignores responses without counts', () => {
    for (const pairs of [{}, { 'x-ratelimit-remaining-requests': 'many' }, { 'x-ratelimit-limit-tokens': '5' }])
      expect(read(pairs)).toBeNull()
  })
})
