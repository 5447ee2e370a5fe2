/** Keys whose requests use more than their reservations. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createKey, resumeKeys } from '../../src/console/keys/stores/keys.ts'
import { mintApiKey } from '../../src/core/accounts/api-keys.ts'
import { newAccount, type TestAccount } from '../harness/account.ts'
import { eventually } from '../harness/eventually.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { jsonAnswer, startUpstream, type Upstream } from '../harness/upstream.ts'

let gateway: Gateway
let upstream: Upstream
/** Input tokens that the upstream counts for every prompt. */
let counted = 5

beforeAll(async () => {
  upstream = startUpstream(() =>
    jsonAnswer({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'gpt-5.5',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: counted, completion_tokens: 2, total_tokens: counted + 2 },
    }),
  )
  gateway = await startGateway({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: upstream.url, MAX_SHORTFALL_USD: '0.10' })
}, 240_000)
afterAll(async () => {
  await gateway?.stop()
  upstream?.stop()
})

const send = ({ headers }: Pick<TestAccount, 'headers'>) =>
  gateway.post(
    '/api/v1/chat',
    { prompt: 'Is it so?', model: 'gpt-5.5', max_output_tokens: 20, fallback: false },
    headers,
  )

/** Creates another key of the same member. */
async function secondKey({ id, userId }: TestAccount): Promise<Pick<TestAccount, 'headers'>> {
  const minted = mintApiKey(randomBytes)
  const key = { id: `key_2_${userId}`, accountId: id, userId, name: 'second', createdAt: new Date() }
  await createKey(gateway.deps.database, { ...key, publicId: minted.id, digest: minted.digest })
  return { headers: { authorization: `Bearer ${minted.key}` } }
}

// Each look is a request with a row in the ledger: too many would delay what is waited for.
const until = (holds: () => Promise<boolean>) => eventually(holds, 60_000, 200)

describe('account with upstream counts above its reservations', () => {
  test('chat: answers 402 account_paused to the one key of an evaluation account with a shortfall above the limit', async () => {
    const account = await newAccount(gateway, {}, 'evaluation')
    counted = 5
    for (let asked = 0; asked < 3; asked++) expect((await send(account)).status).toBe(200)
    counted = 200_000
    const costly = await send(account)
    expect(costly.status).toBe(200)
    counted = 5
    const requests = upstream.ledger().length
    await until(async () => (await send(account)).status === 402)
    const refused = await send(account)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(await refused.json()).toMatchObject({
      error: { type: 'billing_error', code: 'account_paused', param: null },
    })
    const told = await (await send(account)).text()
    expect(told).toContain(costly.headers.get('x-request-id') ?? 'no ID')
    expect(told).toContain(account.userId)
    expect(told).toContain('T00:00:00.000Z')
    expect((await send(await secondKey(account))).status).toBe(200)
    // Requests before the pause took effect: a rejection calls no model.
    expect(upstream.ledger().length - requests).toBeLessThan(500)
    const asked = upstream.ledger().length
    await send(account)
    expect(upstream.ledger().length).toBe(asked)
    expect(await resumeKeys(gateway.deps.database, account.id)).toBeGreaterThan(1e7)
    await until(async () => (await send(account)).status === 200)
  }, 240_000)

  test('daily token limit: counts what the upstream counted when that is more than was reserved', async () => {
    const account = await newAccount(gateway, { dailyTokens: 20_000 })
    counted = 19_900
    const reply = await send(account)
    expect(await reply.json()).toMatchObject({ usage: { input_tokens: 19_900, output_tokens: 2 } })
    expect(reply.headers.get('x-ratelimit-remaining-tokens') ?? '98').toBe('98')
    counted = 90_000
    // 98 tokens are left: enough for this prompt, and far less than it uses.
    expect((await send(account)).status).toBe(200)
    const refused = await send(account)
    expect([refused.status, await refused.json()]).toMatchObject([429, { error: { code: 'daily_tokens_exceeded' } }])
  }, 240_000)

  test('chat: bills all of it to an account on the usage plan, and never pauses it', async () => {
    const account = await newAccount(gateway)
    counted = 100_000
    const reply = await send(account)
    expect(await reply.json()).toMatchObject({ usage: { cost_usd: expect.closeTo(0.5, 1) } })
    // In the ledger, which the poll of changed accounts reads.
    await gateway.deps.database.run(
      ({ sql }) => sql`
        update api_keys set shortfall_day = '9999-01-01', shortfall_microcents = 1000000000000, shortfall_request_id = 'req_1',
          updated_at = clock_timestamp() where account_id = ${account.id}`,
    )
    counted = 5
    for (let asked = 0; asked < 5; asked++) expect((await send(account)).status).toBe(200)
  }, 60_000)

  test('metrics and log: report the usage that was not billed', async () => {
    const account = await newAccount(gateway, {}, 'evaluation')
    counted = 30_000
    expect((await send(account)).status).toBe(200)
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    const [, value = '0'] = /^gateway_shortfall_usd_total\{[^}]*model="gpt-5.5"[^}]*\} (\S+)$/m.exec(metrics) ?? []
    expect(Number(value)).toBeGreaterThan(0.1)
    const line = gateway.logLines.findLast(logLine => logLine.includes('bill_capped_at_reservation')) ?? '{}'
    const { account_id, owed, billed, shortfall } = JSON.parse(line)
    expect(account_id).toBe(account.id)
    expect(shortfall).toBe(owed - billed)
  }, 240_000)
})
