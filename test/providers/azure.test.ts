/** Azure OpenAI against its simulated form: both APIs, both kinds of credentials, and the content filter's forms. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { toEmbeddingModel } from '../../src/core/models/embedding-models.ts'
import type { Clock } from '../../src/core/ports.ts'
import { entraAuthorizer } from '../../src/credentials/credential-cache.ts'
import { systemClock } from '../../src/database/clock.ts'
import { azure } from '../../src/providers/azure.ts'
import type { Access } from '../../src/providers/provider.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { askWith } from '../harness/ask.ts'
import { accounts, attemptAt, type Clouds, hostedAs, movableClock, ownModel, startClouds } from '../harness/clouds.ts'

const deployment = hostedAs('openai', 'our gpt')
const foreign = ownModel('azure-east', 'DeepSeek-V4')
const { apiKey, tenantId, clientId, clientSecret } = accounts.azure

let simulator: Clouds
beforeAll(async () => {
  simulator = startClouds()
})
afterAll(() => simulator.stop())

const withKey = (key: string): Access => ({ baseUrl: simulator.urls.azure, apiKey: key })

function withEntra(clouds: Clouds, clock: Clock = systemClock, secret = clientSecret): Access {
  const credentials = {
    authority: clouds.url,
    tenantId,
    clientId,
    clientSecret: secret,
    scope: 'https://cognitiveservices.azure.com/.default',
  }
  const authorizer = entraAuthorizer({ clock, network: systemNetwork }, credentials)
  return { baseUrl: clouds.urls.azure, apiKey: null, authorizer }
}

describe.each([
  ['v1', azure({ apiVersion: null })],
  ['deployments', azure({ apiVersion: '2024-10-21' })],
] as const)('Azure OpenAI %s', (_, provider) => {
  test.each([deployment, foreign])('serves $id by key and by token, streamed and whole', async model => {
    for (const access of [withKey(apiKey), withEntra(simulator)])
      for (const stream of [true, false]) {
        const { failure, ended, text } = await attemptAt({ provider, access, model, body: { stream } })
        expect(failure).toBeNull()
        expect(ended).toBe(true)
        expect(text.length).toBeGreaterThan(20)
      }
  })

  test('refuses a wrong key or secret as the gateway’s own failure', async () => {
    const byKey = await attemptAt({ provider, access: withKey('wrong'), model: deployment })
    expect(byKey.failure).toMatchObject({ kind: 'credential_refused', blame: 'us', detail: '401' })
    const access = withEntra(simulator, systemClock, 'wrong')
    const byToken = await attemptAt({ provider, access, model: deployment })
    expect(byToken.failure).toMatchObject({ kind: 'credential_refused', blame: 'us' })
    expect(byToken.failure?.detail).toBe('Entra ID token: 401 invalid_client')
  })

  test('reports a prompt that the content filter blocks as the caller’s', async () => {
    const body = { prompt: 'Hi [[sim:content_block]]' }
    const { failure } = await attemptAt({ provider, access: withKey(apiKey), model: deployment, body })
    expect(failure).toMatchObject({ kind: 'content_filtered', blame: 'caller', retryable: false })
  })

  test('reports a throttled request with its wait', async () => {
    const body = { prompt: 'Hi [[sim:status=429, retry_after=7]]' }
    const { failure } = await attemptAt({ provider, access: withKey(apiKey), model: deployment, body })
    expect(failure).toMatchObject({ kind: 'rate_limited', blame: 'upstream', retryAfterMs: 7_000 })
  })
})

describe('Azure OpenAI requests', () => {
  const access = { baseUrl: 'https://r.openai.azure.com', apiKey: 'k' }
  const model = toEmbeddingModel('azure-east', { id: 'e', input_per_mtok: 0 })
  const call = { request: askWith(), model, inputs: ['a'], outputCap: 1, stream: false }

  test('name the deployment in the URL only for an API version', () => {
    const url = (apiVersion: string | null) => azure({ apiVersion }).embeddings?.toRequest(call, access).url
    expect(url(null)).toBe('https://r.openai.azure.com/openai/v1/embeddings')
    expect(url('2024-10-21')).toBe('https://r.openai.azure.com/openai/deployments/e/embeddings?api-version=2024-10-21')
  })

  test('take the Responses form only for OpenAI’s models on v1', () => {
    expect(azure({ apiVersion: null }).takesSource?.(deployment)).toEqual(['responses'])
    expect(azure({ apiVersion: null }).takesSource?.(foreign)).toEqual([])
    expect(azure({ apiVersion: '2024-10-21' }).takesSource).toBeUndefined()
  })
})

describe('Entra ID tokens', () => {
  test('serve concurrent requests, renew early, and are replaced when revoked', async () => {
    const { clock, move } = movableClock()
    const clouds = startClouds(clock)
    try {
      const provider = azure({ apiVersion: null })
      const access = withEntra(clouds, clock)
      const send = async () => (await attemptAt({ provider, access, model: deployment, clock })).failure
      expect(await Promise.all(Array.from({ length: 8 }, send))).toEqual(Array.from({ length: 8 }, () => null))
      expect(clouds.issued()).toBe(1)
      move(56 * 60_000)
      expect([await send(), await send()]).toEqual([null, null])
      expect(clouds.issued()).toBe(2)
      move(60_000)
      clouds.revokeTokens()
      expect(await Promise.all([send(), send(), send()])).toEqual([null, null, null])
      expect(clouds.issued()).toBe(3)
      // A new token that is refused at once is not replaced again and again.
      clouds.revokeTokens()
      expect(await send()).toMatchObject({ kind: 'credential_refused' })
      expect(clouds.issued()).toBe(3)
    } finally {
      clouds.stop()
    }
  })

  test('fail as an outage when their endpoint is not reachable', async () => {
    const access = withEntra(simulator)
    const authorizer = entraAuthorizer(
      { clock: systemClock, network: systemNetwork },
      { authority: 'http://127.0.0.1:1', tenantId, clientId, clientSecret, scope: 's' },
    )
    const provider = azure({ apiVersion: null })
    const { failure } = await attemptAt({ provider, access: { ...access, authorizer }, model: deployment })
    expect(failure).toMatchObject({ kind: 'unavailable', blame: 'upstream', detail: 'Entra ID token: no connection' })
  })
})
