import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { status } from '../../src/console/status/routes.ts'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { identified, principalIn } from '../harness/identified.ts'

const external = { asked: 5, blocked: 1, failed: 2, passedOver: 3 }
const well: Parameters<typeof status>[0] = {
  version: '1.5.0',
  readiness: { isReady: true },
  isSimulated: () => false,
  pingDatabase: async () => [],
  isEmbedded: true,
  redis: null,
  sharedLimits: () => null,
  moderation: { figures: () => ({ blockedHosts: 7, moderation: null }) },
  config: { registration: { mode: 'closed' } },
}

async function send(deps: Parameters<typeof status>[0], role: 'viewer' | 'member' | 'admin' | 'owner' = 'admin') {
  const app = new Elysia()
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      status(
        deps,
        identified(() => principalIn(role)),
      ),
    )
  const answer = await app.handle(new Request('http://localhost/api/v1/status'))
  return { status: answer.status, body: JSON.parse(await answer.text()) }
}

describe('GET /api/v1/status', () => {
  test('200: shows version, stores and moderation', async () => {
    expect(await send(well)).toEqual({
      status: 200,
      body: {
        version: '1.5.0',
        ready: true,
        simulated: false,
        database: { kind: 'embedded', state: 'ok' },
        redis: null,
        limits_decided_by: 'gateway',
        moderation: { blocked_hosts: 7, external: null },
      },
    })
  })

  test('200: reports stores that do not answer, and calls of external moderation', async () => {
    const { body } = await send({
      ...well,
      readiness: { isReady: false },
      pingDatabase: () => Promise.reject(new GatewayError('service_unavailable', 'Database unavailable.')),
      isEmbedded: false,
      redis: { isReady: () => false },
      sharedLimits: () => 0,
      moderation: { figures: () => ({ blockedHosts: 0, moderation: external }) },
    })
    expect(body).toMatchObject({
      ready: false,
      database: { kind: 'postgres', state: 'unreachable' },
      redis: { state: 'unreachable' },
      limits_decided_by: 'postgres',
      moderation: { external: { calls: 5, blocked: 1, failed: 2, skipped: 3 } },
    })
  })

  test('200: shows no figures of all accounts while anyone can register', async () => {
    const moderation = { figures: () => ({ blockedHosts: 7, moderation: external }) }
    const { body } = await send({ ...well, moderation, config: { registration: { mode: 'open' } } })
    expect(body.moderation).toEqual({ blocked_hosts: 7, external: null })
  })

  test('200: names Redis while it counts the limits', async () => {
    const { body } = await send({ ...well, redis: { isReady: () => true }, sharedLimits: () => 1 })
    expect([body.redis, body.limits_decided_by]).toEqual([{ state: 'ok' }, 'redis'])
  })

  test.each(['viewer', 'member'] as const)('403: a %s', async role => {
    expect((await send(well, role)).status).toBe(403)
  })
})
