/** Google Vertex AI against its simulated form: Gemini and Claude, and the service account's tokens. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Clock, Network } from '../../src/core/ports.ts'
import { serviceAccountAuthorizer } from '../../src/credentials/credential-cache.ts'
import { systemClock } from '../../src/database/clock.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import type { Access } from '../../src/providers/provider.ts'
import { vertex } from '../../src/providers/vertex.ts'
import { countInput } from '../../src/request/internal-completion.ts'
import { systemNetwork } from '../../src/web/network.ts'
import {
  accounts,
  attemptAt,
  type Clouds,
  hostedAs,
  movableClock,
  privateKeyPem,
  startClouds,
} from '../harness/clouds.ts'
import { countedNetwork } from '../harness/counted-network.ts'
import { eventually } from '../harness/eventually.ts'
import { oneTurn } from '../harness/moved-clock.ts'
import { patient } from '../harness/patience.ts'

const gemini = hostedAs('google', 'gemini-simulated')
const claude = hostedAs('anthropic', 'claude-simulated@20260101')

let simulator: Clouds
beforeAll(async () => {
  simulator = startClouds()
})
afterAll(() => simulator.stop())

function accessTo(
  clouds: Clouds,
  clock: Clock = systemClock,
  given: { key?: string; email?: string; network?: Network } = {},
): Access {
  const account = {
    clientEmail: given.email ?? accounts.google.clientEmail,
    privateKey: given.key ?? privateKeyPem,
    privateKeyId: 'k1',
    tokenUrl: `${clouds.url}/google/token`,
  }
  const authorizer = serviceAccountAuthorizer({ clock, network: given.network ?? systemNetwork }, account)
  return { baseUrl: clouds.urls.vertex, apiKey: null, authorizer }
}

describe('Vertex', () => {
  test.each([gemini, claude])('serves $id streamed and whole with counts', async model => {
    const access = accessTo(simulator)
    for (const stream of [true, false]) {
      const { failure, ended, text, parts } = await attemptAt({ provider: vertex, access, model, body: { stream } })
      expect(failure).toBeNull()
      expect(ended).toBe(true)
      expect(text.length).toBeGreaterThan(20)
      expect(parts.findLast(part => part.type === 'usage')?.usage.outputTokens).toBeGreaterThan(0)
    }
  })

  test('reads the errors of Google and those of the model behind it', async () => {
    const access = accessTo(simulator)
    for (const model of [gemini, claude]) {
      const body = { prompt: 'Hi [[sim:status=429]]' }
      const { failure } = await attemptAt({ provider: vertex, access, model, body })
      expect(failure).toMatchObject({ kind: 'rate_limited', blame: 'upstream' })
    }
    const google = JSON.stringify([{ error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED' } }])
    const form = vertex.formFor?.({ request: readRequest().request, model: claude, outputCap: 1, stream: false })
    expect(form?.readFailure(429, new Headers(), google).kind).toBe('rate_limited')
    expect(form?.readFailure(429, new Headers(), google).detail).toBe('429 RESOURCE_EXHAUSTED')
  })

  test('counts the input of Claude only', async () => {
    const endpoint = { id: 'anthropic', provider: vertex, access: accessTo(simulator), simulated: true }
    const config = { serviceDeadlines: patient }
    const deps = { config, endpoints: new Map([['anthropic', endpoint]]), network: systemNetwork, clock: systemClock }
    const { source } = readRequest().request
    if (source === null) throw new Error('a Messages request has a source')
    expect(await countInput(deps, claude, source, undefined)).toBeGreaterThan(0)
    expect(vertex.count?.toRequest(source, gemini, endpoint.access)).toBeNull()
  })

  test('refuses a wrong account or key as the gateway’s own failure, without the key in the detail', async () => {
    const wrong = await attemptAt({
      provider: vertex,
      access: accessTo(simulator, systemClock, { email: 'x@y' }),
      model: gemini,
    })
    expect(wrong.failure).toMatchObject({
      kind: 'credential_refused',
      blame: 'us',
      detail: 'Google token: 400 invalid_grant',
    })
    const broken = await attemptAt({
      provider: vertex,
      access: accessTo(simulator, systemClock, { key: 'no key' }),
      model: gemini,
    })
    expect(broken.failure?.detail).toBe('Google token: the private key of the service account is invalid')
  })

  test('renews the token early and fetches another when it is revoked', async () => {
    const { clock, move } = movableClock()
    const clouds = startClouds(clock)
    try {
      const { network, arrived } = countedNetwork()
      const access = accessTo(clouds, clock, { network })
      const send = async () => (await attemptAt({ provider: vertex, access, model: gemini, clock })).failure
      expect([await send(), await send()]).toEqual([null, null])
      expect(clouds.issued()).toBe(1)
      move(56 * 60_000)
      expect([await send(), await send()]).toEqual([null, null])
      // The renewal runs in the background.
      await eventually(() => arrived.complete === 2)
      await oneTurn()
      expect(clouds.issued()).toBe(2)
      move(60_000)
      clouds.revokeTokens()
      expect(await send()).toBeNull()
      expect(clouds.issued()).toBe(3)
    } finally {
      clouds.stop()
    }
  })
})

describe('Messages body of a client', () => {
  const messages = '[ {"role":"user",  "content":"Hi"} ]'
  const headers = {
    'anthropic-beta': 'interleaved-thinking-2025-05-14, claude-code-20250219',
    'anthropic-version': '2023-06-01',
  }

  test.each([
    [
      'Bedrock',
      bedrock,
      '"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["interleaved-thinking-2025-05-14"]',
    ],
    ['Vertex', vertex, '"anthropic_version":"vertex-2023-10-16"'],
  ] as const)(
    'reaches Claude on %s with its bytes, the model in the URL and the version in the body',
    (host, provider, added) => {
      const { request: question } = readRequest(headers, messages)
      const form = provider.formFor?.({ request: question, model: claude, outputCap: 50, stream: true })
      const request = form?.toRequest(
        { request: question, model: claude, outputCap: 50, stream: true },
        { baseUrl: 'https://h', apiKey: null },
      )
      const stream = host === 'Vertex' ? ',"stream":true' : ''
      expect(request?.body).toBe(`{"max_tokens":50,"messages":${messages}${stream},${added}}`)
      expect(request?.headers['anthropic-beta']).toBe(host === 'Vertex' ? headers['anthropic-beta'] : undefined)
      expect(request?.headers['anthropic-version']).toBeUndefined()
    },
  )
})

function readRequest(headers: Record<string, string> = {}, messages = '[{"role":"user","content":"Hi"}]') {
  const text = `{"model":"${claude.provider}/${claude.id}","max_tokens":50,"messages":${messages}}`
  const seal = createReasoningSeal('a secret of the tests', null)
  return readMessages(JSON.parse(text), { headers: new Headers(headers), text, accountId: 'acc_1' }, seal)
}
