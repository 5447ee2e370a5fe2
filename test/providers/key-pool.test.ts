import { describe, expect, test } from 'bun:test'
import type { CapacityStore } from '../../src/providers/keys/capacity.ts'
import type { KeyClaim, NoKey, PoolKey } from '../../src/providers/keys/key-pool.ts'
import { LocalCapacity } from '../../src/providers/keys/local-capacity.ts'
import { OwnKeyPool } from '../../src/providers/keys/own-key-pool.ts'

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
  const clock = { monotonic: () => now }
  const capacity: CapacityStore = new LocalCapacity({ clock, random: () => 0 })
  const pool = new OwnKeyPool({ keys, quotas }, { clock, capacity })
  const none: ReadonlySet<PoolKey> = new Set()
  return {
    pool,
    pass: (milliseconds: number) => {
      now += milliseconds
    },
    async claim(model = 'p/m', tokens = 10, except = none): Promise<KeyClaim | NoKey> {
      return pool.claim({ model, tokens, except })
    },
    async claimed(model = 'p/m', tokens = 10): Promise<KeyClaim> {
      const claim = await pool.claim({ model, tokens, except: none })
      if (claim.key === null) throw new Error(`no key: ${claim.reason}`)
      return claim
    },
  }
}

const limited = { kind: 'rate_limited', retryAfterMs: 20_000 } as const

describe('OwnKeyPool', () => {
  test('leaves out a key without a permission for one model, and keeps it for the others', async () => {
    const { claim, claimed } = rig([key('a')])
    ;(await claimed('p/closed')).failed({ kind: 'credential_refused', retryAfterMs: null }, 403)
    expect(await claim('p/closed')).toMatchObject({ key: null, reason: 'refused' })
    expect((await claimed('p/open')).key.name).toBe('a')
  })

  test('reports its keys, the rejected ones, and what the upstream said remains', async () => {
    const { pool, claimed } = rig([key('a'), key('b')])
    const claim = await claimed()
    claim.answered(
      new Headers({
        'x-ratelimit-limit-requests': '100',
        'x-ratelimit-remaining-requests': '40',
        'x-ratelimit-reset-requests': '60s',
      }),
    )
    ;(await claimed('p/other')).failed({ kind: 'credential_refused', retryAfterMs: null }, 401)
    expect(pool.status()).toEqual({
      keys: 2,
      rejectedKeys: 1,
      limits: [{ model: 'p/m', requests: { limit: 100, remaining: 40 }, tokens: null }],
    })
  })

  test('keeps a key in use after a 429 for a request above its whole limit', async () => {
    const { claim, claimed } = rig([key('a')], new Map([['a', { requests: null, tokens: 100 }]]))
    const large = await claimed('p/m', 500)
    large.settle(0)
    large.failed(limited, 429)
    expect((await claim('p/m', 10)).key).not.toBeNull()
  })

  test('gives the key of the preferred account while it has capacity, and then any', async () => {
    const { pool } = rig([key('a', { weight: 1_000 }), key('b')], new Map([['b', { requests: 2, tokens: null }]]))
    const names: (string | undefined)[] = []
    for (let count = 0; count < 3; count++) {
      const claim = await pool.claim({ model: 'p/m', tokens: 10, except: new Set(), preferred: 'b' })
      names.push(claim.key?.name)
    }
    expect(names).toEqual(['b', 'b', 'a'])
  })

  test('pauses a key after a 429 for the time that the upstream states, for this model only', async () => {
    const { claim, claimed, pass } = rig([key('a')])
    ;(await claimed()).failed(limited, 429)
    expect(await claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 20_000 })
    expect((await claimed('p/other')).key.name).toBe('a')
    pass(20_000)
    expect((await claimed()).key.name).toBe('a')
  })

  test('pauses keys of one account together', async () => {
    const { claim, claimed } = rig([key('a', { account: 'x' }), key('b', { account: 'x' })])
    ;(await claimed()).failed(limited, 429)
    expect((await claim()).key).toBeNull()
  })

  test('takes the reset of an exhausted quota if a 429 states no time', async () => {
    const { claim, claimed } = rig([key('a')])
    const first = await claimed()
    first.answered(
      new Headers({
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '30s',
      }),
    )
    first.failed({ kind: 'rate_limited', retryAfterMs: null }, 401)
    // By the report only, one request of ten returns after 3 s; the 429 takes precedence.
    expect(await claim('p/m')).toMatchObject({ reason: 'at_limit' })
  })

  test('counts claims against a reported quota until the next report', async () => {
    const { claim, claimed, pass } = rig([key('a')])
    ;(await claimed()).answered(
      new Headers({
        'x-ratelimit-limit-requests': '10',
        'x-ratelimit-remaining-requests': '5',
        'x-ratelimit-reset-requests': '30s',
      }),
    )
    for (let count = 0; count < 5; count++) await claimed()
    expect(await claim()).toEqual({ key: null, reason: 'at_limit', waitMs: 6_000 })
    pass(6_000)
    expect((await claimed()).key.name).toBe('a')
  })

  test('uses the last rejected key again only after a minute, or after a reload', async () => {
    const keys = [key('a')]
    const { pool, claim, claimed, pass } = rig(keys)
    ;(await claimed()).failed({ kind: 'credential_refused', retryAfterMs: null }, 401)
    expect(await claim()).toMatchObject({ key: null, reason: 'refused' })
    pass(60_000)
    expect((await claimed()).key.name).toBe('a')
    ;(await claimed()).failed({ kind: 'credential_refused', retryAfterMs: null }, 401)
    pool.replace({ keys: [key('b')], quotas: new Map() })
    expect((await claimed()).key.name).toBe('b')
  })

  test('keeps the counted use over a reload', async () => {
    const quotas = new Map([['a', { requests: 1, tokens: null }]])
    const { pool, claim, claimed } = rig([key('a')], quotas)
    await claimed()
    pool.replace({ keys: [key('a')], quotas })
    expect((await claim()).key).toBeNull()
  })

  test('leaves out keys that may not call the model or failed the request', async () => {
    const [a, b] = [key('a', { models: new Set(['p/m']) }), key('b', { models: new Set(['p/other']) })]
    const { claim, claimed } = rig([a, b])
    expect((await claimed('p/other')).key).toBe(b)
    expect(await claim('p/m', 10, new Set([a]))).toMatchObject({ reason: 'not_permitted' })
  })

  test('corrects a claim once by the used tokens', async () => {
    const { claim, claimed } = rig([key('a')], new Map([['a', { requests: null, tokens: 100 }]]))
    const first = await claimed('p/m', 100)
    first.settle(40)
    first.settle(0)
    expect((await claim('p/m', 61)).key).toBeNull()
    expect((await claimed('p/m', 60)).key.name).toBe('a')
  })
})
