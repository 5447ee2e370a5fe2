import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { providers } from '../../src/console/status/routes.ts'
import type { Role } from '../../src/core/accounts/roles.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { createHealthTracker } from '../../src/models/health-tracker.ts'
import { openai } from '../../src/providers/openai.ts'
import { anyBodies } from '../harness/bodies.ts'

const now = Date.UTC(2026, 10, 23)
const limits = [{ model: 'openai/gpt-5.5', requests: { limit: 100, remaining: 40 }, tokens: null }]

function start(mode: 'open' | 'closed') {
  const health = createHealthTracker({ clock: { now: () => now, monotonic: () => 0 } })
  const access = { baseUrl: 'https://secret.example', apiKey: 'sk-secret' }
  const provider = { provider: openai({ official: true }), access, simulated: false }
  const keys = {
    claim: () => ({ key: null, reason: 'at_limit', waitMs: 0 }) as const,
    status: () => ({ keys: 3, rejectedKeys: 1, limits }),
  }
  const endpoints = new Map([
    ['openai', { ...provider, id: 'openai', keys }],
    ['google', { ...provider, id: 'google' }],
  ])
  const deps = { endpoints, catalog: { list: [] }, health, config: { registration: { mode } } }
  const app = new Elysia()
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      providers(deps, {
        bodies: anyBodies(),
        getAddress: () => '127.0.0.1',
        async principal({ headers }) {
          const role = (['member', 'admin'] as const).find((item: Role) => item === headers.get('x-test-as'))
          if (role === undefined) throw new GatewayError('invalid_token', 'Sign in.')
          return {
            accountId: 'acc',
            userId: 'usr',
            role,
            projects: new Map(),
            sessionId: 'ses',
            isUnverified: false,
            mustSetUpTwoFactor: false,
            isSingleSignOn: false,
            managementKey: null,
            email: 'a@example.test',
          }
        },
      }),
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
        models: 0,
        reachable: 'no',
        last_success_at: null,
        last_error: { code: 'connection_failed', at },
        pool: { keys: 3, rejected_keys: 1, limits },
      },
      {
        id: 'google',
        simulated: false,
        models: 0,
        reachable: 'unknown',
        last_success_at: null,
        last_error: null,
        pool: null,
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
