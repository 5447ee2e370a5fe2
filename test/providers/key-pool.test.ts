import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type KeyClaim, KeyPool, type NoKey, type PoolKey } from '../../src/providers/keys/key-pool.ts'

const key = (name: string, fields: Partial<PoolKey> = {}): PoolKey => ({
  name,
  access: { baseUrl: 'http://127.0.0.1:1', apiKey: name },
  account: name,
  weight: 1,
  models: null,
  ...fields,
})

function rig(
  keys: readonly PoolKey[],
  quotas: ReadonlyMap<string, { requests: number | null; tokens: number | null }> = new Map(),
) {
  let now = 1_000
  const pool = new KeyPool({ keys, quotas }, { monotonic: () => now })
  const none: ReadonlySet<PoolKey> = new Set()
  return {
    pool,
    pass: (milliseconds: number) => {
      now += milliseconds
    },
    claim(model = 'p/m', tokens = 10, except = none): KeyClaim | NoKey {
      return pool.claim({ model, tokens, except })
    },
    claimed(model = 'p/m', tokens = 10): KeyClaim {
      const claim = pool.claim({ model, tokens, except: none })
      if (claim.key === null) throw new Error(`no key: ${claim.reason}`)
      return claim
    },
  }
}

const limited = { kind: 'rate_limited', retryAfterMs: 20_000, status: 429 } as const

describe('KeyPool', () => {
  test('leaves out a key without a permission for one model, and keeps it for the others', () => {
    const { claim, claimed } = rig([key('a')])
    claimed('p/closed').settle(0, { kind: 'credential_refused', retryAfterMs: null, status: 403 })
    expect(claim('p/closed')).toMatchObject({ key: null, reason: 'refused' })
    expect(claimed('p/open').key.name).toBe('a')
  })

  test('reports its keys, the rejected ones, and what the upstream said remains', () => {
    const { pool, claimed } = rig([key('a'), key('b')])
    const claim = claimed()
    claim.answered(
      new Headers({
        'x-ratelimit-limit-requests': '100',
        'x-ratelimit-remaining-requests': '40',
        'x-ratelimit-reset-requests': '60s',
      }),
    )
    claimed('p/other').settle(0, { kind: 'credential_refused', retryAfterMs: null, status: 401 })
    expect(pool.status()).toEqual({
      keys: [
        { name: 'a', account: 'a', state: 'unused' },
        { name: 'b', account: 'b', state: 'rejected' },
      ],
      limits: [{ model: 'p/m', requests: { limit: 100, remaining: 40 }, tokens: null }],
    })
  })

  test('keeps a key in use after a 429 for a request above its whole limit', () => {
    const { claim, claimed } = rig([key('a')], new Map([['a', { requests: null, tokens: 100 }]]))
    const large = claimed('p/m', 500)
    large.settle(0, limited)
    expect(claim('p/m', 10).key).not.toBeNull()
  })

  test('gives the key of the preferred account while it has capacity, and then any', () => {
    const { pool } = rig([key('a', { weight: 1_000 }), key('b')], new Map([['b', { requests: 2, tokens: null }]]))
    const names: (string | undefined)[] = []
    for (let count = 0; count < 3; count++) {
      const claim = pool.claim({ model: 'p/m', tokens: 10, except: new Set(), preferred: 'b' })
      names.push(claim.key?.name)
    }
    expect(names).toEqual(['b', 'b', 'a'])
  })

  test('pauses a key after a 429 for the time that the upstream states, for this model only', () => {
    const { claim, claimed, pass } = rig([key('a')])
    claimed().settle(0, limited)
    expect(claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 20_000 })
    expect(claimed('p/other').key.name).toBe('a')
    pass(20_000)
    expect(claimed().key.name).toBe('a')
  })

  test('pauses keys of one account together', () => {
    const { claim, claimed } = rig([key('a', { account: 'x' }), key('b', { account: 'x' })])
    claimed().settle(0, limited)
    expect(claim().key).toBeNull()
  })

  test('takes the reset of an exhausted quota if a 429 states no time', () => {
    const { claim, claimed } = rig([key('a')])
    const first = claimed()
    first.answered(
      new Headers({
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '30s',
      }),
    )
    first.settle(0, { ...limited, retryAfterMs: null })
    // By the report only, one request of ten returns after 3 s; the 429 takes precedence.
    expect(claim('p/m')).toMatchObject({ reason: 'at_limit' })
  })

  test('counts claims against a reported quota until the next report', () => {
    const { claim, claimed, pass } = rig([key('a')])
    claimed().answered(
      new Headers({
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '5',
        'x-ratelimit-reset-requests': '30s',
      }),
    )
    for (let count = 0; count < 5; count++) claimed()
    expect(claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 6_000 })
    pass(6_000)
    expect(claimed().key.name).toBe('a')
  })

  test('uses the last rejected key again only after a minute, or after a reload', () => {
    const keys = [key('a')]
    const { pool, claim, claimed, pass } = rig(keys)
    claimed().settle(0, { kind: 'credential_refused', retryAfterMs: null, status: 401 })
    expect(claim()).toMatchObject({ key: null, reason: 'refused' })
    pass(60_000)
    expect(claimed().key.name).toBe('a')
    claimed().settle(0, { kind: 'credential_refused', retryAfterMs: null, status: 401 })
    pool.replace({ keys: [key('b')], quotas: new Map() })
    expect(claimed().key.name).toBe('b')
  })

  test('keeps the counted use over a reload', () => {
    const quotas = new Map([['a', { requests: 1, tokens: null }]])
    const { pool, claim, claimed } = rig([key('a')], quotas)
    claimed()
    pool.replace({ keys: [key('a')], quotas })
    expect(claim().key).toBeNull()
  })

  test.each([
    ['quota_exhausted', null],
    ['rate_limited', 3_600_000],
  ] as const)('lets a rotated key serve at once after `%s` of the old one, also if that comes late', (kind, wait) => {
    const failure = { kind, retryAfterMs: wait, status: 429 } as const
    const { pool, claim, claimed } = rig([key('a', { account: '=pvk_1' })])
    const late = claimed()
    claimed().settle(0, failure)
    expect(claim()).toMatchObject({ key: null, reason: 'at_limit' })
    pool.replace({ keys: [key('a', { account: '=pvk_1' }), key('b')], quotas: new Map() })
    // The same credential keeps its pause.
    expect(claimed().key.name).toBe('b')
    expect(claimed().key.name).toBe('b')
    const rotated = key('a', { account: '=pvk_1', access: { baseUrl: 'http://127.0.0.1:1', apiKey: 'another' } })
    pool.replace({ keys: [rotated], quotas: new Map() })
    expect(claimed().key.access.apiKey).toBe('another')
    late.answered(new Headers({ 'x-ratelimit-limit-requests': '9', 'x-ratelimit-remaining-requests': '0' }))
    late.settle(0, failure)
    expect(claimed().key.access.apiKey).toBe('another')
  })

  test('leaves out keys that may not call the model or failed the request', () => {
    const [a, b] = [key('a', { models: new Set(['p/m']) }), key('b', { models: new Set(['p/other']) })]
    const { claim, claimed } = rig([a, b])
    expect(claimed('p/other').key).toBe(b)
    expect(claim('p/m', 10, new Set([a]))).toMatchObject({ reason: 'not_permitted' })
  })

  test('corrects a claim once by the used tokens', () => {
    const { claim, claimed } = rig([key('a')], new Map([['a', { requests: null, tokens: 100 }]]))
    const first = claimed('p/m', 100)
    first.settle(40)
    first.settle(0)
    expect(claim('p/m', 61).key).toBeNull()
    expect(claimed('p/m', 60).key.name).toBe('a')
  })

  test('grants a quota once and reports when the next request has room', () => {
    const { claim, claimed, pass } = rig([key('a')], new Map([['a', { requests: 3, tokens: null }]]))
    for (let count = 0; count < 3; count++) claimed()
    expect(claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 20_000 })
    pass(20_000)
    claimed()
    expect(claim().key).toBeNull()
  })

  test('lets equal keys take turns by weight', () => {
    const { claimed } = rig([key('a', { weight: 3 }), key('b')])
    const names = Array.from({ length: 8 }, () => claimed().key.name)
    expect(names.join('')).toBe('aabaaaba')
  })

  test('prefers the key with most remaining capacity', () => {
    const keys = [key('small'), key('large')]
    const { claim } = rig(
      keys,
      new Map([
        ['small', { requests: 10, tokens: null }],
        ['large', { requests: 100, tokens: null }],
      ]),
    )
    const names = Array.from({ length: 111 }, () => claim().key?.name)
    expect([names.filter(name => name === 'small').length, names.at(-1)]).toEqual([10, undefined])
    expect(names.slice(0, 5)).not.toEqual(names.slice(0, 5).fill('small'))
  })

  test('grants a request above the whole quota only from a full bucket', () => {
    const { claim, claimed, pass } = rig([key('a')], new Map([['a', { requests: null, tokens: 1_000 }]]))
    claimed('p/m', 5_000)
    expect(claim('p/m', 100).key).toBeNull()
    pass(60_000)
    claimed('p/m', 5_000)
  })

  test('has an empty bucket after a 429, so that its pause does not end with a burst', () => {
    const { claim, claimed, pass } = rig([key('a')], new Map([['a', { requests: 6, tokens: null }]]))
    claimed().settle(0, { ...limited, retryAfterMs: 1_000 })
    pass(1_000)
    expect(claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 9_000 })
    pass(9_000)
    claimed()
    expect(claim().key).toBeNull()
  })

  test('pauses an account for all models after a quota error', () => {
    const { claim, claimed, pass } = rig([key('a')])
    claimed().settle(0, { kind: 'quota_exhausted', retryAfterMs: null, status: 429 })
    expect(claim('p/other')).toEqual({ key: null, reason: 'at_limit', waitMs: 60_000 })
    pass(60_000)
    claimed('p/other')
  })

  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ tokens: fc.integer({ min: 1, max: 60 }) }) },
    { weight: 1, arbitrary: fc.record({ ms: fc.integer({ min: 1, max: 30_000 }) }) },
  )

  test('neither exceeds a quota nor refuses a request that one has room for', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ requests: fc.integer({ min: 1, max: 6 }), tokens: fc.integer({ min: 60, max: 200 }) }), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.array(step, { maxLength: 40 }),
        (quotas, steps) => {
          const rooms = new Map(quotas.map((quota, at) => [`account-${at}`, { ...quota, left: { ...quota } }]))
          const { claim, pass } = rig(
            [...rooms.keys()].map(name => key(name)),
            rooms,
          )
          const slack = 1e-4
          for (const item of steps) {
            if ('ms' in item) {
              pass(item.ms)
              for (const { requests, tokens, left } of rooms.values()) {
                left.requests = Math.min(requests, left.requests + (requests * item.ms) / 60_000)
                left.tokens = Math.min(tokens, left.tokens + (tokens * item.ms) / 60_000)
              }
              continue
            }
            const left = rooms.get(claim('p/m', item.tokens).key?.account ?? '')?.left
            if (left === undefined)
              for (const room of rooms.values())
                expect(room.left.requests >= 1 + slack && room.left.tokens >= item.tokens + slack).toBe(false)
            else {
              left.requests -= 1
              left.tokens -= item.tokens
              expect([left.requests >= -slack, left.tokens >= -slack]).toEqual([true, true])
            }
          }
        },
      ),
      { numRuns: 100 },
    )
  })
})
