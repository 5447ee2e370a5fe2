import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { providerRoutes } from '../../src/console/provider-keys/routes.ts'
import { createProviderKeySeal } from '../../src/console/provider-keys/store.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { systemClock } from '../../src/database/clock.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { createHealthTracker } from '../../src/models/health-tracker.ts'
import { openai } from '../../src/providers/openai.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { identified, principalIn } from '../harness/identified.ts'
import { patient } from '../harness/patience.ts'

const now = Date.UTC(2026, 10, 23)
const limits = [{ model: 'openai/gpt-5.5', requests: { limit: 100, remaining: 40 }, tokens: null }]

function start(mode: 'open' | 'closed') {
  const health = createHealthTracker({ clock: { now: () => now, monotonic: () => 0 } })
  const access = { baseUrl: 'https://secret.example', apiKey: 'sk-secret' }
  const provider = { provider: openai({ official: true }), access, simulated: false }
  const keys = {
    claim: () => ({ key: null, reason: 'at_limit', waitMs: 0 }) as const,
    status: () => ({
      keys: (['rejected', 'working', 'unused'] as const).map(state => ({ name: state, account: state, state })),
      limits,
    }),
    find: () => null,
  }
  const endpoints = new Map([
    ['openai', { ...provider, id: 'openai', keys }],
    ['google', { ...provider, id: 'google' }],
  ])
  const seal = createProviderKeySeal('a secret of the tests, long enough', null)
  const deps = {
    ...{ endpoints, catalog: { list: [] }, health, providerKeySeal: seal, ownKeys: { of: () => null } },
    ...{ clock: systemClock, network: systemNetwork, newId: (prefix: string) => prefix, announce() {} },
    storedSettings: { look: async () => {} },
    config: {
      registration: { mode },
      storedKeys: 'on' as const,
      knownProviders: [
        { id: 'openai', variable: 'OPENAI_API_KEY', baseVariable: 'OPENAI_BASE_URL', isLocal: false, url: null },
      ],
      serviceDeadlines: patient,
    },
  }
  const app = new Elysia()
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      providerRoutes(
        deps,
        identified(({ headers }) => {
          const role = (['member', 'admin'] as const).find(item => item === headers.get('x-test-as'))
          if (role === undefined) throw new GatewayError('invalid_token', 'Sign in.')
          return principalIn(role)
        }),
      ),
    )
  const get = (as: string) =>
    app.handle(new Request('http://localhost/api/v1/providers', { headers: { 'x-test-as': as } }))
  return { health, get }
}

describe('GET /api/v1/providers', () => {
  test('200: shows the last error, the pool and reported limits, and no secret', async () => {
    const { health, get } = start('closed')
    health.report('openai/gpt-5.5', { outcome: 'unhealthy', cause: 'connection_failed' })
    const text = await (await get('admin')).text()
    expect(text).not.toContain('secret')
    const at = new Date(now).toISOString()
    expect(JSON.parse(text).data).toEqual([
      {
        id: 'openai',
        simulated: false,
        state: 'unreachable',
        variable: 'OPENAI_API_KEY',
        base_url_variable: 'OPENAI_BASE_URL',
        local: false,
        takes_own_keys: false,
        models: 0,
        reachable: 'no',
        last_success_at: null,
        last_error: { code: 'connection_failed', at },
        pool: { keys: 3, rejected_keys: 1, limits },
        keys: null,
      },
      {
        id: 'google',
        simulated: false,
        state: 'unused',
        variable: null,
        base_url_variable: null,
        local: false,
        takes_own_keys: false,
        models: 0,
        reachable: 'unknown',
        last_success_at: null,
        last_error: null,
        pool: null,
        keys: null,
      },
    ])
  })

  test('200: counts a provider that rejects a request as reachable', async () => {
    const { health, get } = start('closed')
    health.report('google/gemini', { outcome: 'soft_failure', cause: 'overloaded' })
    health.report('openai/gpt-5.5', { outcome: 'ok' })
    const { data } = JSON.parse(await (await get('admin')).text())
    expect([data[0].reachable, data[1].reachable]).toEqual(['yes', 'yes'])
  })

  test('200: hides pools while anyone can register', async () => {
    expect(JSON.parse(await (await start('open').get('admin')).text()).data[0].pool).toBeNull()
  })

  test('403: a member', async () => {
    expect((await start('closed').get('member')).status).toBe(403)
  })
})
