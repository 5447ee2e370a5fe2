/** Constraints behind a whole gateway: every demander, fallbacks, search, moderation, own forms, and the export. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import OpenAI from 'openai'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { startUpstream, type Upstream } from '../harness/upstream.ts'
import { owner, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

let simulator: Simulator
let search: Upstream
let gateway: Gateway

const file = () => ({
  plans: {
    evaluation: { requests_per_minute: 100_000, concurrent_requests: 100, daily_tokens: 1e9, daily_cost_usd: 1_000 },
  },
  providers: [
    {
      id: 'alpha',
      base_url: simulator.urls.openai,
      api_key_env: 'ALPHA_KEY',
      policy: { zdr: true, no_training: true, region: 'eu' },
      hosts: [
        { model: 'openai/gpt-5.5', id: 'alpha-gpt' },
        { model: 'openai/gpt-5.4-mini', id: 'alpha-mini', policy: { zdr: false } },
      ],
    },
    { id: 'openai', policy: { no_training: true } },
  ],
  rules: [{ name: 'no-opus', when: { model: 'anthropic/claude-opus*' }, deny: true }],
})

beforeAll(async () => {
  simulator = await startSimulator({ clock: systemClock, random: Math.random })
  search = startUpstream(() => ({ pieces: [JSON.stringify({ results: [] })] }))
  gateway = await startGateway(
    {
      ALPHA_KEY: 'k',
      OPENAI_API_KEY: 'k',
      OPENAI_BASE_URL: simulator.urls.openai,
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: simulator.urls.anthropic,
      SEARXNG_URL: search.url,
      TRUSTED_PROXIES: '127.0.0.1',
    },
    { file: file() },
  )
})
afterAll(async () => {
  await gateway.stop()
  search.stop()
  await simulator.stop()
})

const chat = (body: object, headers: Record<string, string> = {}) =>
  gateway.post('/api/v1/chat', { prompt: 'Say hello.', max_output_tokens: 20, ...body }, headers)

const errorSchema = Type.Object({ error: Type.Object({ code: Type.String(), message: Type.String() }) })
const refusal = async (response: Response) => {
  const { error } = Value.Parse(errorSchema, await response.json())
  return { status: response.status, ...error }
}

/** Constraints and receivers in the record of a response. */
async function recorded(response: Response) {
  const id = response.headers.get('x-request-id') ?? ''
  const find = () =>
    gateway.deps.database.run(
      ({ sql }) =>
        sql<{ g: [string[], string[]] | null }[]>`select trace->'g' as g from usage_records where request_id = ${id}`,
    )
  await eventually(async () => (await find()).length === 1, 20_000)
  return (await find())[0]?.g ?? null
}

describe('constraints of a request', () => {
  test('choose the host that meets them, by body and by header, and are recorded', async () => {
    for (const [body, headers] of [
      [{ constraints: { zdr: true, region: 'eu' } }, {}],
      [{}, { 'x-gateway-constraints': 'zdr, region=eu' }],
    ] as const) {
      const response = await chat({ model: 'openai/gpt-5.5', ...body }, { ...headers })
      expect(response.status).toBe(200)
      expect(await recorded(response)).toEqual([['zdr', 'region=eu'], ['alpha (zdr, no_training, region=eu)']])
    }
    expect(await recorded(await chat({ model: 'openai/gpt-5.5' }))).toBeNull()
  })

  test('hold in every API form, in the body and in the header', async () => {
    const messages = [{ role: 'user', content: 'Say hello.' }]
    const forms = [
      (model: string) => ['/api/v1/chat', { model, prompt: 'Say hello.' }],
      (model: string) => ['/v1/chat/completions', { model, messages }],
      (model: string) => ['/v1/messages', { model, messages, max_tokens: 50 }],
      (model: string) => ['/v1/responses', { model, input: 'Say hello.' }],
      (model: string) => [
        `/v1beta/models/${model}:generateContent`,
        { contents: [{ parts: [{ text: 'Say hello.' }] }] },
      ],
    ] as const satisfies readonly ((model: string) => readonly [string, object])[]
    for (const form of forms)
      for (const [more, headers] of [
        [{ constraints: { zdr: true } }, {}],
        [{}, { 'x-gateway-constraints': 'zdr' }],
      ] as const) {
        const send = (model: string) => {
          const [route, body] = form(model)
          return gateway.post(route, { ...body, ...more }, { ...headers })
        }
        const [route] = form('m')
        const refused = await send('anthropic/claude-haiku-4-5')
        expect([route, refused.status, await refused.text()]).toEqual([route, 400, expect.stringContaining('`zdr`')])
        const served = await send('openai/gpt-5.5')
        await served.text()
        expect([route, served.status, await recorded(served)]).toEqual([
          route,
          200,
          [['zdr'], ['alpha (zdr, no_training, region=eu)']],
        ])
      }
  })

  test('end in a 4xx that names the constraint and models that meet it', async () => {
    const refused = await refusal(await chat({ model: 'anthropic/claude-haiku-4-5', constraints: { zdr: true } }))
    expect([refused.status, refused.code]).toEqual([400, 'constraints_unmet'])
    expect(refused.message).toContain('`zdr` of this request')
    expect(refused.message).toContain('Models that do: openai/gpt-5.5.')
    const none = await refusal(await chat({ constraints: { region: 'mars' } }))
    expect([none.status, none.code]).toEqual([400, 'constraints_unmet'])
    expect(none.message).toContain('`policy` in GATEWAY_CONFIG')
  })

  test('obey the exception of a host and of a model', async () => {
    expect((await chat({ model: 'openai/gpt-5.4-mini', constraints: { zdr: true } })).status).toBe(400)
    expect((await chat({ model: 'openai/gpt-5.4-mini', constraints: { region: 'eu' } })).status).toBe(200)
  })

  test('bind fallback, hedge and the continuation of a cut stream', async () => {
    const constraints = { zdr: true }
    const failed = await chat({
      model: 'openai/gpt-5.5',
      prompt: '[[sim:only=alpha-gpt, status=503]] Hi.',
      constraints,
    })
    expect([failed.status >= 500, (await recorded(failed))?.[1]]).toEqual([
      true,
      ['alpha (zdr, no_training, region=eu)'],
    ])
    const cut = await chat(
      {
        model: 'openai/gpt-5.5',
        prompt: '[[sim:tokens=60, cut_after=20]] Tell a story.',
        constraints,
        stream: true,
        continue: 'any',
        max_output_tokens: 200,
      },
      { 'x-gateway-hedge': 'on' },
    )
    await cut.text()
    expect((await recorded(cut))?.[1]).toEqual(['alpha (zdr, no_training, region=eu)'])
  })

  test('choose among models in automatic routing and are named by the dry run', async () => {
    const response = await chat({ constraints: { zdr: true } })
    expect([response.status, response.headers.get('x-gateway-model')]).toEqual([200, 'openai/gpt-5.5'])
    const preview = await gateway.post('/api/v1/route', { prompt: 'Say hello.', constraints: { zdr: true } })
    const shape = Type.Object({
      constraints: Type.Array(Type.String()),
      dropped: Type.Array(Type.Object({ model: Type.String(), reason: Type.String() })),
    })
    const { constraints, dropped } = Value.Parse(shape, await preview.json())
    expect(constraints).toEqual(['zdr'])
    expect(dropped.find(({ model }) => model === 'anthropic/claude-haiku-4-5')?.reason).toBe('no host meets zdr')
  })

  test('stop a search at a service without the guarantee', async () => {
    const prompt = 'What is the weather in Vienna today? Search the web.'
    const searches = () => search.ledger().length
    const before = searches()
    expect((await chat({ model: 'openai/gpt-5.5', prompt })).status).toBe(200)
    expect(searches()).toBeGreaterThan(before)
    const after = searches()
    expect((await chat({ model: 'openai/gpt-5.5', prompt, constraints: { no_training: true } })).status).toBe(200)
    expect(searches()).toBe(after)
  })

  test('choose the host of an embedding model', async () => {
    const embed = (constraints: object) =>
      gateway.post('/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hello.', constraints })
    const refused = await refusal(await embed({ zdr: true }))
    expect([refused.status, refused.code]).toEqual([400, 'constraints_unmet'])
    const served = await embed({ no_training: true })
    expect([served.status, await recorded(served)]).toEqual([200, [['no_training'], ['openai (no_training)']]])
  })

  test('reject a request that the external moderation must not receive, before anything is sent or billed', async () => {
    const upstream = startUpstream(() => ({ status: 500 }))
    const moderation = startUpstream(() => ({ pieces: [JSON.stringify({ results: [{ flagged: false }] })] }))
    const own = {
      id: 'own',
      base_url: upstream.url,
      policy: { zdr: true, no_training: true },
      models: [{ id: 'm1', pricing: { input_per_mtok: 1, output_per_mtok: 1 } }],
    }
    const open = (policy: object) => {
      const url = `${moderation.url}/v1/moderations`
      return startGateway({}, { file: { providers: [own], safety: { moderation: { url, policy } } } })
    }
    const send = (other: Gateway) =>
      other.post('/api/v1/chat', { model: 'own/m1', prompt: 'Say hello.', constraints: { zdr: true } })
    const unknown = await open({ no_training: true })
    try {
      const response = await send(unknown)
      const id = response.headers.get('x-request-id')
      const { status, code, message } = await refusal(response)
      expect([status, code]).toEqual([400, 'constraints_unmet'])
      expect(message).toContain('external moderation')
      const bills = () =>
        unknown.deps.database.run(
          ({ sql }) =>
            sql<{ billed: number }[]>`
              select billed_microcents::int as billed from usage_records where request_id = ${id}`,
        )
      await eventually(async () => (await bills()).length === 1, 20_000)
      expect((await bills()).map(({ billed }) => billed)).toEqual([0])
      expect([upstream.ledger().length, moderation.ledger().length]).toEqual([0, 0])
    } finally {
      await unknown.stop()
    }
    const known = await open({ zdr: true })
    try {
      await (await send(known)).text()
      expect(moderation.ledger().length).toBeGreaterThan(0)
      expect(upstream.ledger().length).toBeGreaterThan(0)
    } finally {
      await known.stop()
      moderation.stop()
      upstream.stop()
    }
  })

  test('reject unknown constraints', async () => {
    expect((await chat({ constraints: { zrd: true } })).status).toBe(400)
    expect((await chat({}, { 'x-gateway-constraints': 'zrd' })).status).toBe(400)
  })
})

describe('preferences of OpenRouter', () => {
  const client = () => new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
  const send = (model: string, provider: object) => {
    const body = { model, messages: [{ role: 'user' as const, content: 'Say hello.' }], max_tokens: 20, provider }
    return client().chat.completions.create(body).asResponse()
  }

  test('become constraints', async () => {
    for (const [provider, receivers] of [
      [{ zdr: true }, ['alpha (zdr, no_training, region=eu)']],
      [{ data_collection: 'deny', ignore: ['openai'] }, ['alpha (zdr, no_training, region=eu)']],
      [{ only: ['openai'] }, ['openai (no_training)']],
      [{ order: ['alpha'], allow_fallbacks: false }, ['alpha (zdr, no_training, region=eu)']],
    ] as const)
      expect((await recorded(await send('openai/gpt-5.5', provider)))?.[1], JSON.stringify(provider)).toEqual([
        ...receivers,
      ])
  })

  test('end in 400 that names the client’s own field where nothing meets them', async () => {
    for (const [model, provider, param] of [
      ['openai/gpt-5.5', { only: ['deepinfra/turbo'] }, 'provider.only'],
      ['openai/gpt-5.5', { ignore: ['openai', 'alpha'] }, 'provider.ignore'],
      ['openai/gpt-5.5', { order: ['deepinfra'], allow_fallbacks: false }, 'provider.order'],
      ['openai/gpt-5.5', { enforce_distillable_text: true }, 'provider.enforce_distillable_text'],
      ['openai/gpt-5.4-mini', { zdr: true }, 'provider.zdr'],
    ] as const) {
      const error = await send(model, provider).catch((thrown: unknown) => thrown)
      if (!(error instanceof OpenAI.APIError)) throw new Error(`${param}: it was served`)
      expect([error.status, error.param]).toEqual([400, param])
      expect(error.message).toContain(`\`${param}\``)
    }
  })
})

describe('constraints of key, project and account', () => {
  test('bind requests beside their own, and no request can drop them', async () => {
    const person = await owner(gateway)
    const { token } = person
    const call = <T>(method: string, path: string, body: object) =>
      sendRequest<T>(gateway, method, path, { token, body })
    const project = await call<{ id: string }>('POST', '/api/v1/projects', { name: 'law' })
    const made = await call<{ key: string; id: string }>('POST', '/api/v1/keys', {
      name: 'one',
      project_id: project.body.id,
    })
    const send = (body: object = {}) =>
      chat({ model: 'anthropic/claude-haiku-4-5', ...body }, { authorization: `Bearer ${made.body.key}` })
    expect((await send()).status).toBe(200)
    const message = async () => (await refusal(await send({ constraints: { zdr: false } }))).message
    const key = `/api/v1/keys/${made.body.id}`
    for (const [whose, path] of [
      ['the API key', key],
      ['the project of the key', `/api/v1/projects/${project.body.id}`],
      ['the account of the key', '/api/v1/account'],
    ] as const) {
      const changed = await call<{ constraints: unknown }>('PATCH', path, { constraints: { zdr: true } })
      expect([path, changed.status, changed.body.constraints]).toEqual([path, 200, { zdr: true }])
      await eventually(async () => (await send()).status === 400, 20_000)
      expect(await message()).toContain(`\`zdr\` of ${whose}`)
      expect((await call('PATCH', path, { constraints: null })).status).toBe(200)
      await eventually(async () => (await send()).status === 200, 20_000)
    }
  })

  test('account rules act before those of the operator and are checked', async () => {
    const { token } = await owner(gateway)
    const call = <T>(method: string, path: string, body: object) =>
      sendRequest<T>(gateway, method, path, { token, body })
    const made = await call<{ key: string }>('POST', '/api/v1/keys', { name: 'one' })
    const send = () => chat({ model: 'my-model' }, { authorization: `Bearer ${made.body.key}` })
    expect((await send()).status).toBe(404)
    const rules = [{ name: 'mine', when: { model: 'my-model' }, rewrite: 'openai/gpt-5.4-mini' }]
    expect((await call('PATCH', '/api/v1/account', { rules: [{ ...rules[0], rewrite: 'none/such' }] })).status).toBe(
      400,
    )
    const changed = await call<{ rules: unknown }>('PATCH', '/api/v1/account', { rules })
    expect([changed.status, changed.body.rules]).toEqual([200, rules])
    await eventually(async () => (await send()).status === 200, 20_000)
    expect((await send()).headers.get('x-gateway-rules')).toBe('mine')
    // Another account is not affected.
    expect((await chat({ model: 'my-model' })).status).toBe(404)
  })

  test('a deny rule of the operator wins against every rule of the account', async () => {
    const { token } = await owner(gateway)
    const call = <T>(method: string, path: string, body: object) =>
      sendRequest<T>(gateway, method, path, { token, body })
    const made = await call<{ key: string }>('POST', '/api/v1/keys', { name: 'one' })
    const authorization = `Bearer ${made.body.key}`
    const opus = 'anthropic/claude-opus-5-5'
    const rules = [
      { name: 'rewritten', when: { model: 'my-model' }, rewrite: opus },
      { name: 'drawn', when: { model: 'my-split' }, split: [{ model: opus, percent: 100 }] },
      { name: 'harmless', when: { model: 'my-mini' }, rewrite: 'openai/gpt-5.4-mini' },
    ]
    expect((await call('PATCH', '/api/v1/account', { rules })).status).toBe(200)
    await eventually(async () => (await chat({ model: 'my-mini' }, { authorization })).status === 200, 20_000)
    for (const model of ['my-model', 'my-split', opus]) {
      const refused = await refusal(await chat({ model }, { authorization }))
      expect([model, refused.status, refused.code]).toEqual([model, 403, 'forbidden'])
      expect(refused.message).toContain('"no-opus"')
    }
  })

  test('appear in the log and its CSV', async () => {
    const { token } = await owner(gateway)
    const made = await sendRequest<{ key: string }>(gateway, 'POST', '/api/v1/keys', { token, body: { name: 'one' } })
    const authorization = `Bearer ${made.body.key}`
    expect((await chat({ model: 'openai/gpt-5.5', constraints: { zdr: true } }, { authorization })).status).toBe(200)
    const list = () =>
      sendRequest<{ data: { constraints: string[]; receivers: string[] }[] }>(gateway, 'GET', '/api/v1/requests', {
        token,
      })
    await eventually(async () => (await list()).body.data.length === 1, 20_000)
    const [request] = (await list()).body.data
    expect([request?.constraints, request?.receivers]).toEqual([['zdr'], ['alpha (zdr, no_training, region=eu)']])
    const csv = await fetch(`${gateway.url}/api/v1/requests/export?format=csv`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const text = await csv.text()
    expect(text.split('\n')[0]).toContain('"constraints","receivers"')
    expect(text).toContain('alpha (zdr, no_training, region=eu)')
  })
})
