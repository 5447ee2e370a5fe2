import { describe, expect, test } from 'bun:test'
import type { Authorization, Authorizer, ProviderFailure } from '../../src/providers/provider.ts'
import { authorizedFetch, CredentialsMissingError } from '../../src/request/authorized-fetch.ts'

const request = { url: 'https://host/v1', headers: { 'x-own': '1' }, body: '{}' }
const failure: ProviderFailure = {
  kind: 'credential_refused',
  blame: 'us',
  retryable: true,
  retryAfterMs: null,
  detail: 'no token',
}

/** A network that answers with these statuses in turn, and what it was sent. */
function getNetwork(...statuses: readonly number[]) {
  const sent: RequestInit[] = []
  const fetch = async (_: string, init: RequestInit) => {
    sent.push(init)
    return new Response('{}', { status: statuses[sent.length - 1] ?? 200 })
  }
  return { fetch, sent }
}

const createInit = (signal = new AbortController().signal) => ({
  method: 'POST',
  headers: { 'x-own': '1' },
  body: '{}',
  signal,
})
const accessWith = (authorizer: Authorizer) => ({ baseUrl: 'https://host', apiKey: null, authorizer })
const tokens = (isRenewable: boolean): Authorizer => {
  let count = 0
  return {
    authorize: ({ headers }) => ({ headers: { ...headers, authorization: `Bearer ${++count}` } }),
    isRenewable: () => isRenewable,
  }
}

describe('authorized fetch', () => {
  test('sends the same request where there is no authorizer', async () => {
    const network = getNetwork(401)
    const init = createInit()
    const response = await authorizedFetch(network, { baseUrl: 'https://host', apiKey: 'k' }, request, init)
    expect(response.status).toBe(401)
    expect(network.sent).toEqual([init])
    expect(network.sent[0]).toBe(init)
  })

  test('sends a refused request once more with renewed credentials, and never a third time', async () => {
    const network = getNetwork(401, 401, 200)
    expect((await authorizedFetch(network, accessWith(tokens(true)), request, createInit())).status).toBe(401)
    expect(network.sent.map(({ headers }) => new Headers(headers).get('authorization'))).toEqual([
      'Bearer 1',
      'Bearer 2',
    ])
    expect(new Headers(network.sent[1]?.headers).get('x-own')).toBe('1')
  })

  test.each([
    [401, false],
    [500, true],
    [429, true],
  ] as const)('returns a status of %i if renewable is %s', async (status, isRenewable) => {
    const network = getNetwork(status)
    expect((await authorizedFetch(network, accessWith(tokens(isRenewable)), request, createInit())).status).toBe(status)
    expect(network.sent.length).toBe(1)
  })

  test('sends nothing without credentials', async () => {
    const network = getNetwork()
    const authorizer: Authorizer = { authorize: async () => ({ failure }), isRenewable: () => true }
    const sending = authorizedFetch(network, accessWith(authorizer), request, createInit())
    await expect(sending).rejects.toMatchObject({ failure })
    await expect(sending).rejects.toBeInstanceOf(CredentialsMissingError)
    expect(network.sent).toEqual([])
  })

  test('stops waiting for credentials when the request ends', async () => {
    const network = getNetwork()
    const pending: Promise<Authorization> = new Promise(() => {})
    const authorizer: Authorizer = { authorize: () => pending, isRenewable: () => true }
    const abort = new AbortController()
    const sending = authorizedFetch(network, accessWith(authorizer), request, createInit(abort.signal))
    abort.abort()
    await expect(sending).rejects.toMatchObject({ name: 'AbortError' })
    await expect(authorizedFetch(network, accessWith(authorizer), request, createInit(abort.signal))).rejects.toThrow()
    expect(network.sent).toEqual([])
  })
})
