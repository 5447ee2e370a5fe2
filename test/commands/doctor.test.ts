/** `doctor`: how it judges what it finds, and the providers that it calls. */
import { afterAll, describe, expect, test } from 'bun:test'
import {
  bunCheck,
  clockCheck,
  diskCheck,
  providerFailureCheck,
  redisMemoryCheck,
  setAsideCheck,
  storeVersionCheck,
} from '../../src/commands/checks.ts'
import { providerChecks } from '../../src/commands/provider-checks.ts'
import { postgresChecks } from '../../src/commands/store-checks.ts'
import { readConfig } from '../../src/config/config.ts'
import { patient } from '../harness/patience.ts'
import { startUpstream } from '../harness/upstream.ts'

const mebibyte = 1_048_576

describe('doctor checks', () => {
  test.each([
    [diskCheck('/data', 2_000 * mebibyte), 'ok', '2000 MiB free in /data'],
    [setAsideCheck(0), 'ok', 'none set aside'],
    [setAsideCheck(3), 'error', '3 set aside'],
    [diskCheck('/data', 500 * mebibyte), 'warning', 'Free disk space'],
    [diskCheck('/data', 50 * mebibyte), 'error', 'Free disk space'],
    [clockCheck('postgres', -900, 2), 'ok', '900 ms behind this machine'],
    [clockCheck('postgres', 1_400, 1_000), 'ok', '1400 ms ahead'],
    [clockCheck('redis', 1_400, 2), 'warning', 'NTP'],
    [storeVersionCheck('postgres', '17.2 (Debian 17.2-1)', '15'), 'ok', '17.2'],
    [storeVersionCheck('redis', '6.2.14', '7.0'), 'warning', 'Upgrade to 7.0'],
    [bunCheck('1.4.5', '>=1.4.5'), 'ok', '1.4.5'],
    [bunCheck('1.3.14', '>=1.4.5'), 'error', 'bun upgrade'],
    [redisMemoryCheck('maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n'), 'ok', 'unlimited'],
    [
      redisMemoryCheck('maxmemory:9\r\nmaxmemory_human:9B\r\nmaxmemory_policy:allkeys-lru\r\n'),
      'warning',
      'noeviction',
    ],
    [providerFailureCheck('p', 'rate_limited', '429'), 'warning', 'rate_limited: 429'],
    [providerFailureCheck('p', 'credential_refused', '401'), 'error', 'Replace the API key'],
    [providerFailureCheck('p', 'quota_exhausted', ''), 'error', 'Add credit'],
    [providerFailureCheck('p', 'empty_answer', ''), 'ok', 'answered'],
    [providerFailureCheck('p', 'connection_failed', ''), 'error', 'base URL'],
  ] as const)('judge %o as %s with `%s`', (check, state, words) => {
    expect(check.state).toBe(state)
    expect(`${check.detail} ${check.action}`).toContain(words)
    expect(check.action === null).toBe(state === 'ok')
  })
})

describe('providerChecks', () => {
  const models: string[] = []
  const upstream = startUpstream(({ headers, body }) => {
    models.push(String(JSON.parse(body).model))
    if (headers.authorization !== 'Bearer good')
      return { status: 401, pieces: [JSON.stringify({ error: { message: 'canary', code: 'invalid_api_key' } })] }
    const answer = {
      id: 'x',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ready' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 1, total_tokens: 10 },
    }
    return { headers: { 'content-type': 'application/json' }, pieces: [JSON.stringify(answer)] }
  })
  afterAll(() => upstream.stop())
  const config = (key: string) =>
    readConfig({ MISTRAL_API_KEY: key, MISTRAL_BASE_URL: `${upstream.url}/v1`, BUN_CONFIG_MAX_HTTP_REQUESTS: '8192' })

  test('call no provider unless asked', async () => {
    expect(await providerChecks(config('good'), false)).toMatchObject([{ name: 'provider mistral', state: 'ok' }])
    expect(await providerChecks(readConfig({}), true)).toMatchObject([{ name: 'providers', state: 'warning' }])
    expect(models).toEqual([])
  })

  test('send one request to the cheapest model of a provider', async () => {
    const [good, bad] = [await providerChecks(config('good'), true), await providerChecks(config('bad'), true)]
    expect(good).toMatchObject([{ name: 'provider mistral', state: 'ok', action: null }])
    expect(good[0]?.detail).toContain('mistral/codestral-latest answered in')
    expect(bad).toMatchObject([{ state: 'error', action: 'Replace the API key, or allow it to use the model.' }])
    expect(JSON.stringify(bad)).not.toContain('canary')
    expect(models).toEqual(['codestral-latest', 'codestral-latest'])
  })
})

test('postgresChecks: report an unreachable database with the action', async () => {
  expect(await postgresChecks('postgres://127.0.0.1:1/x', patient)).toMatchObject([
    { name: 'database', state: 'error', action: expect.stringContaining('DATABASE_URL') },
  ])
})
