/** Key pools behind a whole gateway: the network records the keys of the calls, and reports a rate limit for some. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { readConfig } from '../../src/config/config.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { systemNetwork } from '../../src/web/network.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'key-pools-'))
let simulator: Simulator
let gateway: Gateway
/** API keys of the calls, in order. */
const calls: string[] = []
/** Requests per minute that the responses to these keys report, and how often each was used. */
const reported = { rpm: 2, uses: new Map(['key-told-a', 'key-told-b'].map(key => [key, 0])) }
const network = {
  ...systemNetwork,
  async fetch(url: string, init: RequestInit) {
    const headers = new Headers(init.headers)
    const [, bearer] = headers.get('authorization')?.split(' ') ?? []
    const key = bearer ?? headers.get('x-api-key') ?? headers.get('x-goog-api-key') ?? ''
    calls.push(key)
    const response = await systemNetwork.fetch(url, init)
    const uses = reported.uses.get(key)
    if (uses === undefined) return response
    reported.uses.set(key, uses + 1)
    response.headers.set('x-ratelimit-limit-requests', String(reported.rpm))
    response.headers.set('x-ratelimit-remaining-requests', String(reported.rpm - uses - 1))
    response.headers.set('x-ratelimit-reset-requests', `${(uses + 1) * 30_000}ms`)
    return response
  },
}

/** Path of a key's file. The simulator knows the key by its name. */
function keyFile(name: string, key = `key-${name}`): string {
  const path = join(folder, name)
  writeFileSync(path, `${key}\n`)
  return path
}

type KeyEntry = { readonly name: string; readonly [field: string]: unknown }

const pooled = (id: string, keys: readonly KeyEntry[]) => ({
  id,
  keys: keys.map(key => ({ api_key_file: keyFile(key.name), ...key })),
})

/** A provider for one test, so that one gateway serves all tests. */
const compatible = (id: string, keys: readonly KeyEntry[], fields: object = {}) => ({
  ...pooled(id, keys),
  base_url: simulator.urls.openai,
  models: ['one', 'two'].map(name => ({
    id: `${id}-${name}`,
    pricing: { input_per_mtok: 1, output_per_mtok: 1 },
    quality: 0.01,
  })),
  ...fields,
})

const rates = { a: 2, b: 3, c: 4 }
const ratedKeys = (provider: string) =>
  Object.entries(rates).map(([name, rpm]) => ({ name: `${provider}-${name}`, rpm }))

const providers = () => [
  ...['openai', 'anthropic', 'google'].map(id => pooled(id, ratedKeys(id))),
  compatible(
    'busy',
    ['a', 'b', 'c', 'd', 'e'].map(name => ({ name: `busy-${name}` })),
  ),
  compatible('spent', [{ name: 'spent-a' }, { name: 'spent-b' }]),
  compatible('brief', [{ name: 'brief-a' }, { name: 'brief-b' }]),
  compatible('told', [{ name: 'told-a' }, { name: 'told-b' }]),
  compatible('broke', [
    { name: 'broke-a', account: 'acme', weight: 1_000 },
    { name: 'broke-b', account: 'acme', weight: 1_000 },
    { name: 'broke-c' },
  ]),
  compatible('old', [{ name: 'old-a', weight: 1_000 }, { name: 'old-b' }]),
  compatible('kept', [{ name: 'kept-a' }]),
  compatible('split', [
    { name: 'split-a', models: ['split-two'], weight: 1_000 },
    { name: 'split-b', models: ['split/split-one'] },
  ]),
  compatible(
    'agent',
    ['a', 'b', 'c', 'd'].map(name => ({ name: `agent-${name}` })),
  ),
  compatible('small', [{ name: 'small-a', tpm: 100 }]),
  compatible('soon', [{ name: 'soon-a', rpm: 60 }]),
  compatible(
    'vectors',
    [
      { name: 'vectors-a', rpm: 1 },
      { name: 'vectors-b', rpm: 2 },
    ],
    {
      embedding_models: [{ id: 'text-embedding-3-small', input_per_mtok: 0.02 }],
    },
  ),
]

const configPath = join(folder, 'config.json')
const writeConfig = (list: readonly object[]) => writeFileSync(configPath, JSON.stringify({ providers: list }))
const environment = () => ({
  GATEWAY_CONFIG: configPath,
  OPENAI_BASE_URL: simulator.urls.openai,
  ANTHROPIC_BASE_URL: simulator.urls.anthropic,
  GEMINI_BASE_URL: simulator.urls.google,
})

beforeAll(async () => {
  simulator = await startSimulator({ clock: systemClock, random: Math.random })
  writeConfig(providers())
  gateway = await startGateway(environment(), { network })
})
beforeEach(() => void calls.splice(0))
afterAll(async () => {
  await gateway.stop()
  await simulator.stop()
  rmSync(folder, { recursive: true, force: true })
})

const attempts = Type.Array(Type.Object({ outcome: Type.String() }))
const bodySchema = Type.Object({
  error: Type.Optional(Type.Object({ code: Type.String(), attempts: Type.Optional(attempts) })),
  routing: Type.Optional(Type.Object({ attempts })),
})
type Reply = { readonly status: number; readonly body: Static<typeof bodySchema>; readonly headers: Headers }

/** Asks a model of a provider, and no other. */
async function send(model: string, prompt = 'Say hello.', fields: object = {}): Promise<Reply> {
  const response = await gateway.post('/api/v1/chat', {
    prompt,
    model,
    fallback: false,
    max_output_tokens: 50,
    ...fields,
  })
  return { status: response.status, body: Value.Parse(bodySchema, await response.json()), headers: response.headers }
}

const getStatuses = (replies: readonly Reply[]) => replies.map(({ status }) => status).sort()
const allServed = (count: number) => Array.from({ length: count }, () => 200)
const logged = (event: string) => gateway.logLines.filter(line => JSON.parse(line).event === event)
const builtIn = {
  openai: 'openai/gpt-5.5',
  anthropic: 'anthropic/claude-haiku-4-5',
  google: 'google/gemini-2.5-flash',
}

describe('key pool', () => {
  for (const [provider, model] of Object.entries(builtIn))
    test(`serves each request while a key of ${provider} has capacity, and sends none that would be rejected`, async () => {
      const replies = await Promise.all(Array.from({ length: 9 }, () => send(model)))
      expect(getStatuses(replies)).toEqual(allServed(9))
      const each = ratedKeys(provider).flatMap(({ name, rpm }) => Array.from({ length: rpm }, () => `key-${name}`))
      expect(calls.toSorted()).toEqual(each)
      const refused = await send(model)
      expect([refused.status, refused.body.error?.code]).toEqual([429, 'upstream_rate_limited'])
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(refused.body.error?.attempts?.map(({ outcome }) => outcome)).toEqual(['skipped_rate_limit'])
      expect(calls).toHaveLength(9)
    })

  test('stays with the key whose account has the conversation cached, until that key is paused', async () => {
    const messages: object[] = [
      { role: 'user', content: `Read this. ${'The river runs past the old mill. '.repeat(400)}` },
    ]
    const turn = async (prefix = '') => {
      const next = { role: 'user', content: `${prefix}And then?` }
      const reply = await send('agent/agent-one', '', { prompt: undefined, messages: [...messages, next] })
      messages.push(next, { role: 'assistant', content: 'It runs on.' })
      return reply.status
    }
    for (let count = 0; count < 6; count++) expect(await turn()).toBe(200)
    const [kept = ''] = calls
    expect(new Set(calls)).toEqual(new Set([kept]))
    expect(await turn(`[[sim:only=${kept}, status=429, retry_after=30]] `)).toBe(200)
    const moved = calls.at(-1)
    expect(moved).not.toBe(kept)
    calls.length = 0
    for (let count = 0; count < 3; count++) expect(await turn()).toBe(200)
    expect(new Set(calls)).toEqual(new Set([moved ?? '']))
  })

  test('replaces a key that answers 429 at once, without a change of health', async () => {
    const limits = ['a', 'b', 'c', 'd'].map(name => `[[sim:only=key-busy-${name}, status=429, retry_after=30]]`)
    const first = await send('busy/busy-one', `${limits.join(' ')} Say hello.`)
    expect([first.status, first.body.routing?.attempts.at(-1)?.outcome]).toEqual([200, 'served'])
    expect(gateway.deps.health.getStanding('busy/busy-one').state).toBe('healthy')
    const paused = new Set(calls.splice(0).slice(0, -1))
    for (let count = 0; count < 3; count++) expect((await send('busy/busy-one')).status).toBe(200)
    expect(calls.filter(key => paused.has(key))).toEqual([])
  })

  test('answers 429 with the wait of the upstream when every key answers 429', async () => {
    const reply = await send('spent/spent-one', '[[sim:status=429, retry_after=30]] Say hello.')
    expect([reply.status, reply.body.error?.code]).toEqual([429, 'upstream_rate_limited'])
    expect(Number(reply.headers.get('retry-after'))).toBe(30)
    expect(calls).toHaveLength(2)
    expect(gateway.deps.health.getStanding('spent/spent-one').state).toBe('healthy')
  })

  test('waits for keys that all ask for a short wait', async () => {
    const prompt = '[[sim:times=2, key=brief, status=429, retry_after=1]] Say hello.'
    expect((await send('brief/brief-one', prompt)).status).toBe(200)
    expect(calls).toHaveLength(3)
  })

  test('learns a quota from the headers of responses', async () => {
    const replies = []
    for (let count = 0; count < 5; count++) replies.push(await send('told/told-one'))
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 429])
    expect(calls).toHaveLength(4)
  })

  test('pauses the whole account after a quota error', async () => {
    const prompt = '[[sim:only=key-broke-a|key-broke-b, quota]] Say hello.'
    const replies = await Promise.all([send('broke/broke-one', prompt), send('broke/broke-one', prompt)])
    expect(getStatuses(replies)).toEqual([200, 200])
    calls.length = 0
    expect((await send('broke/broke-one')).status).toBe(200)
    expect(calls).toEqual(['key-broke-c'])
  })

  test('uses a rejected key only after the credentials are reloaded', async () => {
    const prompt = '[[sim:only=key-old-a, status=401]] Say hello.'
    while (!calls.includes('key-old-a')) expect((await send('old/old-one', prompt)).status).toBe(200)
    expect(logged('key_rejected')).toHaveLength(1)
    expect(gateway.logLines.join('')).not.toContain('key-old-a')
    calls.length = 0
    for (let count = 0; count < 3; count++) expect((await send('old/old-one', prompt)).status).toBe(200)
    expect(new Set(calls)).toEqual(new Set(['key-old-b']))
    keyFile('old-a', 'key-renewed')
    gateway.deps.reloadConfig(() => readConfig(environment()))
    expect(logged('config_reloaded')).toHaveLength(1)
    while (!calls.includes('key-renewed')) expect((await send('old/old-one', prompt)).status).toBe(200)
  })

  test('keeps the running keys when a reload is invalid, and lists its problems', async () => {
    const keys = [
      { name: 'kept-a', api_key_file: join(folder, 'missing') },
      { name: 'kept-a', api_key_env: 'NOT_SET' },
    ]
    writeConfig([{ ...compatible('kept', []), keys }])
    gateway.deps.reloadConfig(() => readConfig(environment()))
    const [line = '{}'] = logged('config_reload_failed')
    expect(JSON.parse(line).failures).toBe(3)
    expect(JSON.parse(line).detail).toContain('two keys are named "kept-a"')
    expect((await send('kept/kept-one')).status).toBe(200)
    expect(calls).toEqual(['key-kept-a'])
  })

  test('leaves a model to the keys that list it', async () => {
    for (const model of ['split/split-one', 'split/split-two']) expect((await send(model)).status).toBe(200)
    expect(calls).toEqual(['key-split-b', 'key-split-a'])
  })

  test('tries the next candidate before it sends a request above the token quota', async () => {
    const fields = { fallback: true, max_output_tokens: 80, fallback_max_cost_factor: 1000 }
    expect((await send('small/small-one', 'Say hello.', fields)).body.routing?.attempts).toHaveLength(1)
    // The correction by the used tokens is not enough for a second request of this size.
    const second = await send('small/small-one', `Say hello. ${'More words. '.repeat(40)}`, fields)
    const outcomes = second.body.routing?.attempts.map(({ outcome }) => outcome) ?? []
    expect([outcomes[0], outcomes.at(-1)]).toEqual(['skipped_rate_limit', 'served'])
    expect(calls.filter(key => key === 'key-small-a')).toHaveLength(1)
  })

  test('waits briefly for capacity that returns soon', async () => {
    // One request returns each 1 s.
    const replies = await Promise.all(Array.from({ length: 61 }, () => send('soon/soon-one')))
    expect(getStatuses(replies)).toEqual(allServed(61))
  })

  test('serves embeddings too', async () => {
    const statuses = []
    for (let count = 0; count < 4; count++) {
      const body = { model: 'vectors/text-embedding-3-small', input: 'hello' }
      statuses.push((await gateway.post('/v1/embeddings', body)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 429])
    expect(calls.toSorted()).toEqual(['key-vectors-a', 'key-vectors-b', 'key-vectors-b'])
  })
})
