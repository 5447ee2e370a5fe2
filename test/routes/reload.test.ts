/** A reload of the configuration behind a whole gateway: each section, and an invalid file that changes nothing. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { user } from '../harness/ask.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { owner, sendRequest } from '../harness/users.ts'

setDefaultTimeout(240_000)

const folder = mkdtempSync(join(tmpdir(), 'reload-'))
const path = join(folder, 'config.json')
const environment = { GATEWAY_CONFIG: path, RELOAD_KEY: 'simulated' }
let [near, far]: Simulator[] = []
let gateway: Gateway

const getUrl = (simulator: Simulator | undefined) => simulator?.urls.openai ?? ''
const provider = (id: string, base_url: string) => ({
  id,
  base_url,
  api_key_env: 'RELOAD_KEY',
  models: [{ id: `${id}-one`, pricing: { input_per_mtok: 1, output_per_mtok: 1 }, quality: 0.5 }],
})
const write = (file: object) => writeFileSync(path, JSON.stringify(file))
const reload = (file: object) => {
  write(file)
  return gateway.deps.reloadConfig(() => readConfig(environment))
}
const chat = async (model: string, prompt = 'Say hello.') =>
  (await gateway.post('/api/v1/chat', { model, prompt, max_output_tokens: 20, fallback: false })).status
const base = () => ({ providers: [provider('first', getUrl(near)), provider('second', getUrl(near))] })

beforeAll(async () => {
  ;[near, far] = await Promise.all([1, 2].map(() => startSimulator({ clock: systemClock, random: Math.random })))
  write(base())
  gateway = await startGateway(environment)
}, 240_000)
afterAll(async () => {
  await gateway.stop()
  await Promise.all([near?.stop(), far?.stop()])
  rmSync(folder, { recursive: true })
})

describe('reload', () => {
  test('adds, moves and removes providers with their models', async () => {
    expect(
      await Promise.all(['first/first-one', 'second/second-one', 'third/third-one'].map(text => chat(text))),
    ).toEqual([200, 200, 404])
    const moved = `${getUrl(far)}/`.replace(/\/$/, '')
    const result = reload({ providers: [provider('first', moved), provider('third', getUrl(near))] })
    expect(result).toEqual({ problems: [], restart: [] })
    expect(gateway.deps.endpoints.get('first')?.access.baseUrl).toBe(moved)
    expect(
      await Promise.all(['first/first-one', 'second/second-one', 'third/third-one'].map(text => chat(text))),
    ).toEqual([200, 404, 200])
    reload(base())
  })

  test('lets a request in progress finish at a provider that is removed', async () => {
    const running = gateway.post('/api/v1/chat', {
      model: 'second/second-one',
      prompt: '[[sim:tokens=40, chunk=8, pace_ms=50]] Say hello.',
      stream: true,
    })
    const response = await running
    reload({ providers: [provider('first', getUrl(near))] })
    expect(await response.text()).toContain('"type":"done"')
    expect(await chat('second/second-one')).toBe(404)
    reload(base())
  })

  test('replaces limits of plans, shares of routing, and rules of moderation', async () => {
    const person = await owner(gateway)
    const getLimit = async () => {
      const { body } = await sendRequest<{ limits: { requests_per_minute: number } }>(
        gateway,
        'GET',
        '/api/v1/account',
        {
          token: person.token,
        },
      )
      return body.limits.requests_per_minute
    }
    const before = await getLimit()
    const result = reload({
      ...base(),
      plans: { evaluation: { requests_per_minute: before + 7 } },
      routing: { strong_share: 0.1, middle_share: 0.2 },
      safety: { rules: [{ id: 'own', category: 'other', patterns: ['unusual marker text'] }] },
    })
    expect(result).toEqual({ problems: [], restart: [] })
    expect(await getLimit()).toBe(before + 7)
    expect(gateway.deps.shares).toEqual({ strong: 0.1, middle: 0.2, baselineModel: null, judgeModel: null })
    await eventually(
      () => gateway.deps.moderation.screenMessages([user('an unusual marker text')]).verdict === 'block',
      5_000,
    )
    reload(base())
    expect(await getLimit()).toBe(before)
    await eventually(
      () => gateway.deps.moderation.screenMessages([user('an unusual marker text')]).verdict === 'allow',
      5_000,
    )
  })

  test('changes nothing when the configuration is invalid, and lists every problem', async () => {
    const { problems } = reload({
      providers: [provider('third', 'no url'), { ...provider('third', getUrl(near)), color: 1 }],
      plans: { evaluation: { requests_per_minute: -1 } },
      routing: { strong_share: 0.9, middle_share: 0.9 },
    })
    expect(problems.length).toBeGreaterThanOrEqual(3)
    expect(problems.join('\n')).toContain('plans.evaluation.requests_per_minute')
    expect(
      await Promise.all(['first/first-one', 'second/second-one', 'third/third-one'].map(text => chat(text))),
    ).toEqual([200, 200, 404])
    expect(gateway.logLines.join('')).toContain('config_reload_failed')
  })

  test('names changes that need a restart', () => {
    expect(reload({ ...base(), web: { search_usd: 0.5 } })).toEqual({ problems: [], restart: ['web'] })
    reload(base())
  })

  test('removes the last provider, and simulates none in its place', async () => {
    expect(reload({})).toEqual({ problems: [], restart: [] })
    expect(gateway.deps.endpoints.size).toBe(0)
    expect(await chat('first/first-one')).toBe(404)
    expect(reload(base())).toEqual({ problems: [], restart: [] })
    expect(await chat('first/first-one')).toBe(200)
  })
})
