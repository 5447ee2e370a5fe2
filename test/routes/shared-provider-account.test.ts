/** All accounts share the operator's account at a provider: fields that leave must not connect or store what they send. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { newAccount, type TestAccount } from '../harness/account.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { jsonAnswer, startUpstream, type Upstream } from '../harness/upstream.ts'

setDefaultTimeout(240_000)

const completion = {
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
}
const response = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'm',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 5, output_tokens: 2, total_tokens: 7 },
}

let upstream: Upstream
let gateway: Gateway
let accounts: readonly TestAccount[]
const settings = () => ({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${upstream.url}/openai/v1` })
beforeAll(async () => {
  upstream = startUpstream(({ path }) => jsonAnswer(path.endsWith('/responses') ? response : completion))
  gateway = await startGateway(settings())
  accounts = [await newAccount(gateway), await newAccount(gateway)]
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const forms = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hello' }] },
  '/v1/responses': { input: 'Hello' },
  '/v1/messages': { messages: [{ role: 'user', content: 'Hello' }] },
} as const

/** Sends a request of an account and returns the body that the provider received. */
async function sentFor(path: keyof typeof forms, account: TestAccount | undefined, fields: object, from = gateway) {
  const body = { model: 'gpt-4.1', web: 'off', fallback: false, max_tokens: 20, ...forms[path], ...fields }
  const answer = await from.post(path, body, account?.headers)
  expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
  return JSON.parse(upstream.ledger().at(-1)?.body ?? '{}') as Record<string, unknown>
}

const paths = ['/v1/chat/completions', '/v1/responses', '/v1/messages'] as const

test.each(paths)(
  'prompt_cache_key at %s: leaves as one key per account, which contains nothing of the client',
  async path => {
    const name = 'support-bot'
    const [first, second] = accounts
    const keys: unknown[] = []
    for (const [account, own] of [
      [first, name],
      [first, name],
      [second, name],
      [first, 'another'],
    ] as const)
      keys.push((await sentFor(path, account, { prompt_cache_key: own })).prompt_cache_key)
    expect(keys[0]).toMatch(/^[0-9a-f]{64}$/)
    expect(keys[1]).toBe(keys[0])
    expect(new Set(keys).size).toBe(3)
    expect((await sentFor(path, first, {})).prompt_cache_key).toBeUndefined()
  },
)

test.each(paths)('prompt_cache_key at %s: rejects by name a value that is no string, or too long', async path => {
  const before = upstream.ledger().length
  for (const value of [42, true, 0, false, [7], { a: 1 }, 'k'.repeat(1_025)]) {
    const body = { model: 'gpt-4.1', web: 'off', max_tokens: 20, ...forms[path], prompt_cache_key: value }
    const answer = await gateway.post(path, body, accounts[0]?.headers)
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('prompt_cache_key')])
  }
  expect(upstream.ledger().length).toBe(before)
})

test('prompt_cache_key: leaves under one key from both API forms and every instance, and returns as sent', async () => {
  const [account] = accounts
  const fields = { prompt_cache_key: 'thread' }
  const chat = await sentFor('/v1/chat/completions', account, fields)
  expect((await sentFor('/v1/responses', account, fields)).prompt_cache_key).toBe(chat.prompt_cache_key)
  const { getPromptCacheKey } = gateway.deps
  expect(chat.prompt_cache_key).toBe(getPromptCacheKey(account?.id ?? '', 'thread'))
  const answer = await gateway.post('/v1/responses', { model: 'gpt-4.1', input: 'Hello', web: 'off', ...fields })
  expect(((await answer.json()) as typeof fields).prompt_cache_key).toBe('thread')
})

test.each(['/v1/chat/completions', '/v1/responses'] as const)('store at %s: never leaves as true', async path => {
  for (const store of [true, false, null, undefined])
    expect((await sentFor(path, accounts[0], { store, metadata: { a: 'b' } })).store ?? false).toBe(false)
})
