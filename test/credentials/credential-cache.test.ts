import { describe, expect, test } from 'bun:test'
import { credentialCache, type Fetched, postForm } from '../../src/credentials/credential-cache.ts'
import type { ProviderFailure } from '../../src/providers/provider.ts'

const failure: ProviderFailure = {
  kind: 'unavailable',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: null,
  detail: 'token endpoint: no connection',
}

/** A cache over fetches that a test ends by hand, and its clock. */
function rig(lifetimeMs = 3_600_000) {
  let now = 0
  const open: ((result: Fetched<string> | { failure: ProviderFailure }) => void)[] = []
  let fetched = 0
  const cache = credentialCache<string>({ monotonic: () => now }, () => {
    fetched++
    return new Promise(resolve => open.push(resolve))
  })
  return {
    cache,
    fetched: () => fetched,
    move: (milliseconds: number) => {
      now += milliseconds
    },
    async end(value: string | null) {
      open.shift()?.(value === null ? { failure } : { value, lifetimeMs })
      for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    },
  }
}

describe('credential cache', () => {
  test('fetches once for concurrent requests', async () => {
    const { cache, end, fetched } = rig()
    const waiting = [cache.get(), cache.get(), cache.get()]
    await end('a')
    expect(await Promise.all(waiting)).toMatchObject([{ value: 'a' }, { value: 'a' }, { value: 'a' }])
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(1)
  })

  test('renews early in the background, and serves the old credential to its end', async () => {
    const { cache, end, fetched, move } = rig()
    void cache.get()
    await end('a')
    move(3_300_001)
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(2)
    await end(null)
    // A failure does not take the old one away, and the next fetch waits for 2 s.
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(2)
    move(2_000)
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(3)
    await end('b')
    expect(cache.get()).toMatchObject({ value: 'b' })
  })

  test('renews a short-lived credential after four fifths of its life', async () => {
    const { cache, end, fetched, move } = rig(10_000)
    void cache.get()
    await end('a')
    move(7_999)
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(1)
    move(1)
    expect(cache.get()).toMatchObject({ value: 'a' })
    expect(fetched()).toBe(2)
    move(2_000)
    expect(cache.get()).toBeInstanceOf(Promise)
  })

  test('answers with the failure for 2 s without another fetch', async () => {
    const { cache, end, fetched, move } = rig()
    const first = cache.get()
    await end(null)
    expect(await first).toEqual({ failure })
    expect(cache.get()).toMatchObject({ failure })
    expect(fetched()).toBe(1)
    move(2_000)
    void cache.get()
    expect(fetched()).toBe(2)
  })

  test('replaces a refused credential only if it is old, or was replaced meanwhile', async () => {
    const { cache, end, move } = rig()
    void cache.get()
    await end('a')
    expect(cache.isReplaceable('a')).toBe(false)
    expect(cache.isReplaceable('older')).toBe(true)
    move(30_000)
    expect(cache.isReplaceable('a')).toBe(true)
    expect(cache.get()).toBeInstanceOf(Promise)
    // The requests that were refused beside it wait for the same one.
    expect(cache.isReplaceable('a')).toBe(true)
  })
})

describe('token request', () => {
  const deps = (reply: () => Promise<Response>, timers: (() => void)[] = []) => ({
    clock: {
      now: () => 0,
      monotonic: () => 0,
      after: (_: number, action: () => void) => {
        timers.push(action)
        return () => {}
      },
    },
    network: {
      fetch: (_: string, { signal }: RequestInit) =>
        Promise.race([
          reply(),
          new Promise<Response>((_resolve, reject) =>
            signal?.addEventListener('abort', () => reject(new Error('aborted'))),
          ),
        ]),
    },
  })
  const send = (reply: () => Promise<Response>) => postForm(deps(reply), 'token', 'https://login', { secret: 's3cret' })

  test.each([
    [400, '{"error":"invalid_grant","error_description":"s3cret"}', 'credential_refused', 'token: 400 invalid_grant'],
    [
      403,
      '<Error><Code>AccessDenied</Code><Message>s3cret</Message></Error>',
      'credential_refused',
      'token: 403 AccessDenied',
    ],
    [401, 's3cret', 'credential_refused', 'token: 401'],
    [429, '{"error":"slow_down"}', 'unavailable', 'token: 429 slow_down'],
    [407, '', 'unavailable', 'token: 407'],
    [418, '', 'unavailable', 'token: 418'],
    [503, '', 'unavailable', 'token: 503'],
  ] as const)('reads %i as a failure without the secret', async (status, body, kind, detail) => {
    const result = await send(async () => new Response(body, { status }))
    expect(result).toMatchObject({ failure: { kind, detail } })
    expect(JSON.stringify(result)).not.toContain('s3cret')
  })

  test('ends after its bound', async () => {
    const timers: (() => void)[] = []
    const asking = postForm(
      deps(() => new Promise(() => {}), timers),
      'token',
      'https://login',
      {},
    )
    for (const fire of timers) fire()
    expect(await asking).toMatchObject({ failure: { kind: 'unavailable', detail: 'token: no response in time' } })
  })
})
