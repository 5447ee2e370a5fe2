/** Rules of the configuration behind a whole gateway: every API form, fallbacks, dry run, record and reload. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import OpenAI from 'openai'
import { readConfig } from '../../src/config/config.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'rules-'))
const path = join(folder, 'config.json')
let simulator: Simulator
let gateway: Gateway
let environment: Record<string, string>

const rules = [
  { name: 'old-name', when: { model: 'gpt-4*' }, rewrite: 'openai/gpt-5.5' },
  { name: 'no-opus', when: { model: 'anthropic/claude-opus*' }, deny: true },
  { name: 'interns', when: { tag: { team: 'interns' }, model: 'google/*' }, deny: true },
  { name: 'no-auto', when: { model: 'gateway-ai', header: { 'x-stage': 'strict' } }, deny: true },
  {
    name: 'canary',
    when: { tag: { ab: 'yes' }, model: 'openai/gpt-5.5' },
    split: [{ model: 'anthropic/claude-haiku-4-5', percent: 40 }],
  },
]

const reload = (given: readonly object[]) => {
  writeFileSync(path, JSON.stringify({ rules: given }))
  return gateway.deps.reloadConfig(() => readConfig(environment))
}

beforeAll(async () => {
  simulator = await startSimulator({ clock: systemClock, random: Math.random })
  environment = {
    GATEWAY_CONFIG: path,
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: simulator.urls.openai,
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: simulator.urls.anthropic,
    GEMINI_API_KEY: 'k',
    GEMINI_BASE_URL: simulator.urls.google,
  }
  writeFileSync(path, JSON.stringify({ rules }))
  gateway = await startGateway(environment)
})
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
  rmSync(folder, { recursive: true })
})

const chat = (body: object, headers: Record<string, string> = {}) =>
  gateway.post('/api/v1/chat', { prompt: 'Say hello.', max_output_tokens: 20, ...body }, headers)
const served = ({ headers }: Response) => headers.get('x-gateway-model')

const errorSchema = Type.Object({
  error: Type.Object({ code: Type.String(), message: Type.String(), layer: Type.String(), category: Type.String() }),
})
async function refusal(response: Response) {
  const { error } = Value.Parse(errorSchema, await response.json())
  return { status: response.status, ...error }
}

describe('rewrite', () => {
  test('serves the new model in every API form and names the rule', async () => {
    const message = { model: 'gpt-4o', max_tokens: 50, messages: [{ role: 'user', content: 'Say hello.' }] }
    for (const [route, body] of [
      ['/api/v1/chat', { model: 'gpt-4o', prompt: 'Say hello.' }],
      ['/v1/chat/completions', message],
      ['/v1/messages', message],
      ['/v1/responses', { model: 'gpt-4o', input: 'Say hello.' }],
    ] as const) {
      const response = await gateway.post(route, body)
      await response.text()
      expect([route, response.status, served(response)]).toEqual([route, 200, 'openai/gpt-5.5'])
      expect(response.headers.get('x-gateway-rules')).toBe('old-name')
    }
  })

  test('names the rule in the dry run and in the record of the request', async () => {
    const preview = await gateway.post('/api/v1/route', { model: 'gpt-4o', prompt: 'Say hello.' })
    const { rules: previewed, candidates } = Value.Parse(
      Type.Object({ rules: Type.Array(Type.Unknown()), candidates: Type.Array(Type.Object({ model: Type.String() })) }),
      await preview.json(),
    )
    const acted = { rule: 'old-name', owner: 'operator', kind: 'rewrite', model: 'openai/gpt-5.5' }
    expect([previewed, candidates[0]?.model]).toEqual([[acted], 'openai/gpt-5.5'])
    const id = (await chat({ model: 'gpt-4o' })).headers.get('x-request-id') ?? ''
    const record = async () =>
      gateway.deps.database.run(
        ({ sql }) => sql<{ rules: unknown }[]>`select trace->'u' as rules from usage_records where request_id = ${id}`,
      )
    await eventually(async () => (await record()).length === 1, 20_000)
    expect((await record())[0]?.rules).toEqual([
      { name: 'old-name', owner: 'operator', kind: 'rewrite', model: 'openai/gpt-5.5' },
    ])
  })

  test('leaves other requests without a header', async () => {
    const response = await chat({ model: 'openai/gpt-5.5' })
    expect([response.status, response.headers.get('x-gateway-rules')]).toEqual([200, null])
  })
})

describe('deny', () => {
  test('rejects by the name, with an error that names the rule, before any call', async () => {
    for (const model of ['claude-opus-5-5', 'anthropic/claude-opus-5-5', 'CLAUDE-OPUS-5-5'])
      expect(await refusal(await chat({ model }))).toMatchObject({
        ...{ status: 403, code: 'forbidden', layer: 'rules', category: 'no-opus' },
        message: expect.stringContaining('"no-opus"'),
      })
  })

  test('reaches the official client as a permission error that is not retried', async () => {
    const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` })
    const send = client.chat.completions.create({
      model: 'claude-opus-5-5',
      messages: [{ role: 'user', content: 'Say hello.' }],
    })
    const error = await send.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError)
    expect(String(error)).toContain('no-opus')
  })

  test('binds fallbacks of a named model', async () => {
    const failing = {
      model: 'openai/gpt-5.5',
      prompt: '[[sim:only=gpt-5.5|claude-haiku-4-5|claude-sonnet-5, status=503]] Hi.',
    }
    const tagged = { 'x-gateway-tags': 'team=interns' }
    const preview = async (headers: Record<string, string>) => {
      const response = await gateway.post('/api/v1/route', { ...failing, fallback_max_cost_factor: 1000 }, headers)
      const parsed = Value.Parse(
        Type.Object({
          candidates: Type.Array(Type.Object({ model: Type.String() })),
          dropped: Type.Array(Type.Object({ model: Type.String(), reason: Type.String() })),
        }),
        await response.json(),
      )
      return { models: parsed.candidates.map(({ model }) => model), dropped: parsed.dropped }
    }
    const free = await preview({})
    expect(free.models.some(model => model.startsWith('google/'))).toBe(true)
    expect(free.models.some(model => model.includes('opus'))).toBe(false)
    const bound = await preview(tagged)
    expect(bound.models.some(model => model.startsWith('google/'))).toBe(false)
    expect(bound.dropped.filter(({ reason }) => reason === 'denied by the rule interns').length).toBeGreaterThan(0)
    const response = await chat({ ...failing, fallback_max_cost_factor: 1000 }, tagged)
    expect(served(response) ?? '').not.toStartWith('google/')
  })

  test('binds automatic routing, by model and as a whole', async () => {
    for (const strategy of ['quality', 'cost', 'speed']) {
      const response = await chat({ strategy }, { 'x-gateway-tags': 'team=interns' })
      expect([response.status, (served(response) ?? '').split('/')[0]]).toEqual([
        200,
        expect.not.stringMatching('google'),
      ])
    }
    expect((await refusal(await chat({}, { 'x-stage': 'strict' }))).category).toBe('no-auto')
    expect((await chat({}, { 'x-stage': 'loose' })).status).toBe(200)
  })

  test('names the rule when it leaves no model', async () => {
    reload([{ name: 'nothing', when: { model: ['openai/*', 'anthropic/*', 'google/*'] }, deny: true }])
    expect((await refusal(await chat({}))).category).toBe('nothing')
    reload(rules)
  })

  test('rejects embeddings too', async () => {
    reload([{ name: 'no-vectors', when: { model: 'openai/text-embedding-3-small' }, deny: true }])
    const response = await gateway.post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'hello' })
    expect((await refusal(response)).category).toBe('no-vectors')
    reload(rules)
  })

  test('appears in the record of the rejected request', async () => {
    const response = await chat({ model: 'claude-opus-5-5' })
    const id = response.headers.get('x-request-id') ?? ''
    const find = () =>
      gateway.deps.database.run(
        ({ sql }) =>
          sql<{ layer: string; category: string }[]>`
            select layer, category from rejected_requests where request_id = ${id}`,
      )
    await eventually(async () => (await find()).length === 1, 20_000)
    expect({ ...(await find())[0] }).toEqual({ layer: 'rules', category: 'no-opus' })
  })
})

describe('split', () => {
  const tags = { 'x-gateway-tags': 'ab=yes' }
  const conversation = (text: string, turns: number) => [
    { role: 'user', content: text },
    ...Array.from({ length: turns }, (_, at) => [
      { role: 'assistant', content: `Answer ${at}` },
      { role: 'user', content: `And then ${at}?` },
    ]).flat(),
  ]
  const route = async (body: object, headers: Record<string, string> = {}) => {
    const given = { model: 'openai/gpt-5.5', ...body, max_output_tokens: 20 }
    const response = await gateway.post('/api/v1/chat', given, { ...tags, ...headers })
    expect([response.status, response.headers.get('x-gateway-rules')]).toEqual([200, 'canary'])
    return served(response)
  }

  test('keeps a conversation on its side', async () => {
    const sides = new Set<string | null>()
    for (let at = 0; at < 12; at++) {
      const first = await route({ messages: conversation(`Question ${at}`, 0) })
      sides.add(first)
      expect(await route({ messages: conversation(`Question ${at}`, 1) })).toBe(first)
      expect(await route({ messages: conversation(`Question ${at}`, 3) })).toBe(first)
    }
    expect(sides.size).toBe(2)
  })

  test('keeps a session on its side whatever its requests say', async () => {
    const sides = new Set<string | null>()
    for (let at = 0; at < 4; at++)
      sides.add(await route({ prompt: `Another task ${at}` }, { 'x-session-id': 'session-1' }))
    expect(sides.size).toBe(1)
  })
})

describe('reload', () => {
  test('replaces the rules at once, and keeps them if the file is invalid', async () => {
    expect(reload([{ name: 'bad', rewrite: 'openai/none' }]).problems.join()).toContain('rules.0 ("bad")')
    expect((await chat({ model: 'gpt-4o' })).status).toBe(200)
    expect(reload([]).problems).toEqual([])
    expect((await chat({ model: 'gpt-4o' })).status).toBe(404)
    expect((await chat({ model: 'claude-opus-5-5' })).status).toBe(200)
    expect(reload(rules).problems).toEqual([])
    expect((await chat({ model: 'gpt-4o' })).status).toBe(200)
  })
})
