import { describe, expect, test } from 'bun:test'
import { Elysia } from 'elysia'
import { toModel } from '../../src/core/models/configured-models.ts'
import { publishedEmbeddingModels } from '../../src/core/models/embedding-models.ts'
import { buildCatalog } from '../../src/core/models/models.ts'
import { models } from '../../src/dialects/models/routes.ts'
import type { ModelHealth } from '../../src/dialects/models/schemas.ts'
import { errorResponse, toGatewayError } from '../../src/http/error-response.ts'
import { catalog } from '../../src/models/catalog.ts'

const own = toModel('ollama', {
  id: 'gpt-4.1',
  pricing: { input_per_mtok: 0, output_per_mtok: 0 },
  capabilities: { tools: false },
})

type Listed = Record<string, unknown> & { id: string; provider: string; quality_scores: { attribution: string }[] }
const read = async (answer: Response | Promise<Response>) =>
  (await (await answer).json()) as { object: string; id: string; data: Listed[]; error: Record<string, unknown> }

function start() {
  const clock = { time: Date.parse('2026-11-20T12:00:00Z'), now: () => clock.time }
  const at = '2026-11-20T11:59:00.000Z'
  const report = [
    { model: 'openai/gpt-5.5', state: 'unhealthy', since: at, cause: 'timeout', retry_at: at },
  ] satisfies ModelHealth[]
  const app = new Elysia({ normalize: false })
    .onError(({ error }) => errorResponse(toGatewayError(error), 'req_test'))
    .use(
      models({
        catalog: buildCatalog([...catalog, own]),
        embeddingCatalog: buildCatalog(publishedEmbeddingModels),
        recall: () => null,
        newRequestId: () => 'req_test',
        isSimulated: () => true,
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
    for (const model of data) expect(model.simulated).toBe(true)
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
  test('200: the compatible form, `gateway-ai` first, every ID resolvable', async () => {
    const { get } = start()
    const { object, data } = await read(get('/v1/models'))
    expect([object, data[0]?.id, data.length]).toEqual(['list', 'gateway-ai', 30])
    expect(Object.keys(data[0] ?? {})).toEqual(['id', 'object', 'created', 'owned_by', 'shutdown_date'])
    for (const { id } of data) {
      const response = await get(`/v1/models/${id}`)
      expect([response.status, (await read(response)).id]).toEqual([200, id])
    }
    expect(data[24]?.id).toBe('ollama/gpt-4.1')
    expect(data.slice(25).map(({ id }) => id)).toEqual(publishedEmbeddingModels.map(({ id }) => id))
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

describe('GET /v1/models in the form of the client', () => {
  type Page = {
    readonly data: readonly Record<string, unknown>[]
    readonly has_more: boolean
    readonly first_id: string | null
    readonly last_id: string | null
    readonly models?: readonly Record<string, unknown>[]
    readonly error: Record<string, unknown>
  }
  const read = async (answer: Response | Promise<Response>) => (await (await answer).json()) as Page

  test.each([
    ['anthropic-version', '', { 'anthropic-version': '2023-06-01' }],
    ['x-api-key', '', { 'x-api-key': 'gw_live_x' }],
    ['limit', '?limit=1000', {}],
  ])('200: Anthropic keys beside those of OpenAI when the client sends %s', async (_, query, headers) => {
    const answer = await start().get(`/v1/models${query}`, headers)
    expect(answer.headers.get('vary')).toBe('anthropic-version, x-api-key, x-goog-api-key')
    const { data, has_more, first_id, last_id } = await read(answer)
    expect({ has_more, first_id, last_id, count: data.length }).toEqual({
      has_more: false,
      first_id: 'gateway-ai',
      last_id: 'gemini-embedding-001',
      count: 30,
    })
    expect(data.find(({ id }) => id === 'claude-haiku-5-5')).toMatchObject({
      type: 'model',
      object: 'model',
      display_name: expect.any(String),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00Z$/),
      max_input_tokens: expect.any(Number),
      max_tokens: expect.any(Number),
      capabilities: null,
    })
  })

  test('200: pages forward by after_id and backward by before_id until has_more is false', async () => {
    const { get } = start()
    const all = (await read(get('/v1/models?limit=1000'))).data.map(({ id }) => id)
    const forward: unknown[] = []
    for (let query = 'limit=7'; ; ) {
      const page = await read(get(`/v1/models?${query}`))
      forward.push(...page.data.map(({ id }) => id))
      if (!page.has_more) break
      query = `limit=7&after_id=${page.last_id}`
    }
    expect(forward).toEqual(all)
    const back = await read(get(`/v1/models?limit=7&before_id=${all[10]}`))
    expect([back.data.map(({ id }) => id), back.has_more]).toEqual([all.slice(3, 10), true])
  })

  test.each(['limit=0', 'limit=1001', 'limit=x', 'after_id=nobody', `after_id=gpt-5.5&before_id=gpt-5.5`])(
    '400 in Anthropic form: %s',
    async query => {
      const answer = await start().get(`/v1/models?${query}`)
      const body = await read(answer)
      expect(answer.status).toBe(400)
      expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' }, request_id: 'req_test' })
    },
  )

  test('404 in Anthropic form for an unknown model', async () => {
    const answer = await start().get('/v1/models/nobody', { 'anthropic-version': '2023-06-01' })
    expect([answer.status, answer.headers.get('request-id')]).toEqual([404, 'req_test'])
    expect(await read(answer)).toMatchObject({ type: 'error', error: { type: 'not_found_error' } })
  })

  test('200: the catalog of Codex beside the list, and 304 for a current ETag', async () => {
    const { get } = start()
    const answer = await get('/v1/models?client_version=0.169.0')
    const etag = answer.headers.get('etag') ?? ''
    const { data, models = [] } = await read(answer)
    expect([data.length, models[0]?.slug, models.length]).toEqual([30, 'gateway-ai', 24])
    expect((await get('/v1/models?client_version=0.169.0', { 'if-none-match': etag })).status).toBe(304)
    expect((await get('/v1/models', { 'if-none-match': etag })).status).toBe(200)
  })

  // Releases 0.144.6, 0.150.0 and 0.169.0 reject the whole catalog if one entry lacks one of these.
  test('every entry for Codex has the fields and values that its releases require', async () => {
    const { models = [] } = await read(start().get('/v1/models?client_version=0.169.0'))
    for (const [priority, entry] of models.entries())
      expect(entry).toMatchObject({
        slug: expect.any(String),
        display_name: expect.any(String),
        supported_reasoning_levels: expect.any(Array),
        shell_type: 'unified_exec',
        visibility: 'list',
        supported_in_api: true,
        priority,
        base_instructions: expect.stringContaining('*** Begin Patch'),
        supports_reasoning_summaries: expect.any(Boolean),
        support_verbosity: false,
        truncation_policy: { mode: 'tokens', limit: 10_000 },
        supports_parallel_tool_calls: true,
        experimental_supported_tools: [],
      })
  })

  test.each([
    ['gateway-ai', 1_000_000, ['low', 'medium', 'high'], 'medium'],
    ['openai/gpt-5.5', 922_000, ['none', 'low', 'medium', 'high', 'xhigh'], 'medium'],
    ['anthropic/claude-sonnet-5-5', 1_000_000, ['low', 'medium', 'high', 'xhigh', 'max'], 'medium'],
    ['anthropic/claude-haiku-4-5', 200_000, ['low', 'medium', 'high'], 'medium'],
    ['google/gemini-3.5-flash', 1_048_576, ['minimal', 'low', 'medium', 'high'], 'medium'],
    ['openai/gpt-4.1', 1_047_576, [], null],
  ])('Codex: %s has a window of %i tokens and its reasoning levels', async (slug, window, efforts, normal) => {
    const { models = [] } = await read(start().get('/v1/models?client_version=0.169.0'))
    const entry = models.find(model => model.slug === slug)
    expect(entry).toMatchObject({ context_window: window, max_context_window: window, default_reasoning_level: normal })
    expect(entry?.supported_reasoning_levels).toEqual(
      efforts.map(effort => ({ effort, description: expect.any(String) })),
    )
  })

  test('Codex catalog: omits a model without tools', async () => {
    const { models = [] } = await read(start().get('/v1/models?client_version=0.169.0'))
    expect(own.capabilities.tools).toBe(false)
    expect(models.map(({ slug }) => slug)).not.toContain('ollama/gpt-4.1')
  })
})

test('GET /api/v1/models: 200, embedding models in a list of their own with their capability', async () => {
  const body = (await (await start().get('/api/v1/models')).json()) as {
    readonly data: readonly { readonly id: string }[]
    readonly embedding_models: readonly Record<string, unknown>[]
  }
  expect(body.data.some(({ id }) => id.includes('embedding'))).toBe(false)
  expect(body.embedding_models).toHaveLength(5)
  expect(body.embedding_models[0]).toMatchObject({
    name: 'openai/text-embedding-3-small',
    pricing: { currency: 'USD', input_per_mtok: 0.02 },
    dimensions: 1536,
    capabilities: { embeddings: true, dimensions: true },
  })
})

test('200: the current report, never cached', async () => {
  const { get, report } = start()
  const answer = await get('/api/v1/models/health')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect((await read(answer)).data as unknown).toEqual(report)
})
