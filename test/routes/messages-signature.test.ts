/** Reasoning of earlier turns that Anthropic no longer accepts: expired, or of another model. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gateway, startGateway } from '../harness/gateway.ts'
import { jsonAnswer, startUpstream, type Upstream } from '../harness/upstream.ts'

setDefaultTimeout(240_000)

type Sent = { readonly messages: readonly unknown[]; readonly thinking?: unknown }

let upstream: Upstream
let gateway: Gateway
let sent: Sent[] = []
let rejectsAlways = false

const rejected = {
  type: 'error',
  error: { type: 'invalid_request_error', message: 'messages.1.content.0: Invalid `signature` in `thinking` block' },
}
const served = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-haiku-5-5',
  content: [{ type: 'text', text: 'Served.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 9, output_tokens: 3 },
}

beforeAll(async () => {
  upstream = startUpstream(({ body }) => {
    sent.push(JSON.parse(body))
    return rejectsAlways || body.includes('"signature"') ? jsonAnswer(rejected, 400) : jsonAnswer(served)
  })
  gateway = await startGateway({ ANTHROPIC_API_KEY: 'key', ANTHROPIC_BASE_URL: upstream.url })
})
beforeEach(() => {
  sent = []
  rejectsAlways = false
})
afterAll(async () => {
  await gateway.stop()
  upstream.stop()
})

const said = { type: 'text', text: 'Because.', cache_control: { type: 'ephemeral' } }
const send = (content: readonly object[]) =>
  gateway.post('/v1/messages', {
    model: 'claude-haiku-5-5',
    max_tokens: 100,
    fallback: false,
    messages: [
      { role: 'user', content: 'Why?' },
      { role: 'assistant', content },
      { role: 'user', content: 'And now?' },
    ],
  })
const thinking = { type: 'thinking', thinking: 'Hm', signature: 'expired' }

test('messages: repeats a request once without the reasoning that Anthropic rejects', async () => {
  const answer = await send([thinking, { type: 'redacted_thinking', data: 'x' }, said])
  expect(answer.status).toBe(200)
  expect(answer.headers.get('x-gateway-attempts')).toBe('2')
  expect(sent.map(({ messages }) => messages[1])).toEqual([
    { role: 'assistant', content: [thinking, { type: 'redacted_thinking', data: 'x' }, said] },
    { role: 'assistant', content: [said] },
  ])
})

test('messages: passes the rejection on if the request without reasoning fails too', async () => {
  rejectsAlways = true
  const answer = await send([thinking, said])
  expect([answer.status, await answer.json()]).toEqual([400, rejected])
  expect(sent).toHaveLength(2)
})

test('messages: does not repeat a request without reasoning', async () => {
  rejectsAlways = true
  expect((await send([said])).status).toBe(400)
  expect(sent).toHaveLength(1)
})
