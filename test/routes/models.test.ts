import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { catalog } from '../../src/core/models/catalog.ts'
import { toModel } from '../../src/core/models/configured-models.ts'
import { buildEmbeddingCatalog, publishedEmbeddingModels } from '../../src/core/models/embedding-models.ts'
import { buildCatalog } from '../../src/core/models/models.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { models } from '../../src/routes/models/routes.ts'

const own = toModel('ollama', { id: 'gpt-4.1', pricing: { input_per_mtok: 0, output_per_mtok: 0 } })

type Listed = Record<string, unknown> & { id: string; provider: string; quality_scores: { attribution: string }[] }
const read = async (answer: Response | Promise<Response>) =>
  (await (await answer).json()) as { object: string; id: string; data: Listed[]; error: Record<string, unknown> }

function start() {
  const clock = { time: Date.parse('2026-11-20T12:00:00Z'), now: () => clock.time }
  const report = [{ model: 'openai/gpt-5.5', state: 'unhealthy' as const, since: '2026-11-20T11:59:00.000Z' }]
  const app = new Elysia({ normalize: false })
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      models({
        catalogue: buildCatalog([...catalog, own]),
        embeddingCatalog: buildEmbeddingCatalog(publishedEmbeddingModels),
        newRequestId: () => 'req_test',
        simulatedProviders: new Set(['google']),
        health: { report: () => report },
        clock,
      }),
    )
  const get = (path: string, headers: Record<string, string> = {}) =>
    app.handle(new Request(`http://localhost${path}`, { headers }))
  return { clock, report, get }
}

describe('GET /api/v1/models', () => {
  test('200: a flat list with every field of the specification, simulated ones marked', async () => {
    const { data } = await read(start().get('/api/v1/models'))
    expect(data).toHaveLength(24)
    for (const field of [
      'id',
      'provider',
      'tier',
      'pricing',
      'capabilities',
      'aliases',
      'deprecated',
      'deprecation_date',
    ])
      for (const model of data) expect(model).toHaveProperty(field)
    for (const model of data) expect(model.simulated ?? false).toBe(model.provider === 'google')
    const scored = data.find(model => model.id === 'gpt-5.5')
    expect(scored?.quality_scores[0]?.attribution).toContain('Artificial Analysis')
  })

  test('304 while the client holds the page, 200 again once a model has reached its date', async () => {
    const { clock, get } = start()
    const first = await get('/api/v1/models')
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toBe('public, max-age=60')
    expect(first.headers.get('access-control-allow-origin')).toBe('*')
    for (const held of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await get('/api/v1/models', { 'if-none-match': held })
      expect([again.status, await again.text()]).toEqual([304, ''])
    }
    expect((await get('/api/v1/models', { 'if-none-match': '"other"' })).status).toBe(200)
    clock.time = Date.parse('2026-12-01T00:00:00Z')
    expect((await get('/api/v1/models', { 'if-none-match': etag })).status).toBe(200)
  })
})

describe('GET /v1/models', () => {
  test('200: the compatible shape, `gateway-ai` first, every id one that resolves', async () => {
    const { get } = start()
    const { object, data } = await read(get('/v1/models'))
    expect([object, data[0]?.id, data.length]).toEqual(['list', 'gateway-ai', 25])
    for (const { id } of data) {
      const one = await get(`/v1/models/${id}`)
      expect([one.status, (await read(one)).id]).toEqual([200, id])
    }
    expect(data.at(-1)?.id).toBe('ollama/gpt-4.1')
  })

  test('leaves out a model from its deprecation date on', async () => {
    const { clock, get } = start()
    clock.time = Date.parse('2026-12-01T00:00:00Z')
    const { data } = await read(get('/v1/models'))
    expect(data.map(model => model.id)).not.toContain('gemini-2.5-pro')
  })

  test.each([
    ['openai/gpt-5.5', 'gpt-5.5'],
    ['openai%2Fgpt-5.5', 'gpt-5.5'],
    ['OPENAI/gpt-5.5-2026-04-23?x=1', 'gpt-5.5'],
    ['Gateway-AI', 'gateway-ai'],
  ])('200: /v1/models/%s is %s', async (path, id) => {
    const answer = await start().get(`/v1/models/${path}`)
    expect([answer.status, (await read(answer)).id]).toEqual([200, id])
  })

  test.each(['nobody', 'openai', '%zz', '%00', '..%2f', 'openai%252Fgpt-5.5', 'a'.repeat(5_000)])(
    '404 model_not_found: /v1/models/%.20s',
    async path => {
      const answer = await start().get(`/v1/models/${path}`)
      expect(answer.status).toBe(404)
      expect((await read(answer)).error).toMatchObject({ type: 'not_found_error', code: 'model_not_found' })
    },
  )
})

test('GET /api/v1/models/health: 200, the report of this moment, kept by nobody', async () => {
  const { get, report } = start()
  const answer = await get('/api/v1/models/health')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect((await read(answer)).data as unknown).toEqual(report)
})
