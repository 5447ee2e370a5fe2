/** Prompt caches from the request of an agent to its bill, against simulated providers with caches of their own. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type Gateway, startGateway } from '../harness/gateway.ts'

setDefaultTimeout(240_000)

let gateway: Gateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const words = 'river stone ladder window market copper garden letter engine harbor'.split(' ')
/** Text that differs for each seed, about `characters` long. */
function prose(seed: number, characters: number): string {
  let text = ''
  for (let at = seed; text.length < characters; at += 7)
    text += `${words[at % 10]} ${words[(at * 3 + seed) % 10]} ${at}. `
  return text
}

const tools = ['read', 'write', 'search'].map((name, at) => ({
  type: 'function',
  function: {
    name,
    description: prose(at, 2_000),
    parameters: { type: 'object', properties: { path: { type: 'string' } } },
  },
}))

type Usage = {
  readonly prompt_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number; readonly cache_write_tokens: number }
  readonly cost_usd: number
  readonly cache_saved_usd?: number
}
type Completion = { readonly model: string; readonly usage: Usage }

/** Messages of an agent at its turn: a task, then a call and its result for each turn before. */
function messagesAt(turn: number, agent: string) {
  const calls = Array.from({ length: turn }, (_, at) => {
    const id = `call_${at}`
    const call = { id, type: 'function', function: { name: 'read', arguments: JSON.stringify({ path: `f${at}` }) } }
    return [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: id, content: prose(at + 100, 1_000) },
    ]
  })
  return [
    { role: 'system', content: `You are ${agent}. ${prose(1, 60_000)}` },
    { role: 'user', content: `Rename the function everywhere. ${prose(2, 12_000)} [[sim:tokens=40]]` },
    ...calls.flat(),
  ]
}

async function converse(model: string, turns: number, headers: Record<string, string> = {}) {
  const answers: Completion[] = []
  for (let turn = 0; turn < turns; turn++) {
    const body = { model, max_tokens: 100, tools, messages: messagesAt(turn, `${model} ${JSON.stringify(headers)}`) }
    const response = await gateway.post('/v1/chat/completions', body, headers)
    expect(response.status).toBe(200)
    answers.push((await response.json()) as Completion)
  }
  return answers
}

const turns = 10
const sum = (list: readonly number[]) => list.reduce((total, value) => total + value, 0)

test.each(['anthropic/claude-sonnet-5-5', 'openai/gpt-5.5', 'google/gemini-3.5-flash', 'gateway-ai'])(
  'prompt cache: reads what an agent sent before on %s',
  async model => {
    const answers = await converse(model, turns)
    const input = answers.map(({ usage }) => usage.prompt_tokens)
    const cached = answers.map(({ usage }) => usage.prompt_tokens_details.cached_tokens)
    // The most that can be cached is all input of the request before.
    expect(sum(cached)).toBeGreaterThan(0.97 * sum(input.slice(0, -1)))
    expect(new Set(answers.map(answer => answer.model)).size).toBe(1)
    expect(answers.at(-1)?.usage.cache_saved_usd).toBeGreaterThan(answers.at(-1)?.usage.cost_usd ?? 0)
  },
)

test('prompt cache: reports a negative saving if a write costs more than the reads saved', async () => {
  const [first] = await converse('anthropic/claude-haiku-4-5', 1)
  expect(first?.usage.prompt_tokens_details.cache_write_tokens).toBeGreaterThan(10_000)
  expect(first?.usage.cache_saved_usd).toBeLessThan(0)
})

test('prompt cache: marks no single question, and no request with `PROMPT_CACHE_MARKS=off`', async () => {
  const send = async (from: Gateway, body: object) => {
    const response = await from.post('/v1/chat/completions', { model: 'anthropic/claude-sonnet-5-5', ...body })
    expect(response.headers.get('x-gateway-cache-saved-usd')).toBeNull()
    const { usage } = (await response.json()) as Completion
    return usage.prompt_tokens_details.cache_write_tokens
  }
  expect(await send(gateway, { messages: [{ role: 'user', content: prose(5, 20_000) }] })).toBe(0)
  const off = await startGateway({ PROMPT_CACHE_MARKS: 'off' })
  try {
    expect(await send(off, { tools, messages: messagesAt(2, 'a clerk') })).toBe(0)
  } finally {
    await off.stop()
  }
})

test('prompt cache: writes the instructions that many questions share at the second question, and then reads them', async () => {
  const system = { role: 'system', content: `You answer for a library. ${prose(11, 20_000)}` }
  const used: Usage['prompt_tokens_details'][] = []
  for (const question of ['Are you open?', 'Where is the atlas?', 'Who wrote it?']) {
    const messages = [system, { role: 'user', content: question }]
    const response = await gateway.post('/v1/chat/completions', { model: 'anthropic/claude-sonnet-5-5', messages })
    used.push(((await response.json()) as Completion).usage.prompt_tokens_details)
  }
  const [first, second, third] = used
  expect(first).toMatchObject({ cached_tokens: 0, cache_write_tokens: 0 })
  expect(second?.cached_tokens).toBe(0)
  expect(second?.cache_write_tokens).toBeGreaterThan(3_000)
  expect(third?.cached_tokens).toBeGreaterThan(3_000)
  expect(third?.cache_write_tokens).toBe(0)
})

test('prompt cache: sends the marks of a Chat Completions client to Anthropic, and to others none', async () => {
  const content = [
    { type: 'text', text: `Our rules. ${prose(31, 20_000)}`, cache_control: { type: 'ephemeral', ttl: '1h' } },
    { type: 'text', text: 'Today is Monday.' },
  ]
  const send = async (model: string) => {
    const messages = [
      { role: 'system', content },
      { role: 'user', content: 'Which rule is first?' },
    ]
    const response = await gateway.post('/v1/chat/completions', { model, max_tokens: 50, messages })
    expect(response.status).toBe(200)
    return ((await response.json()) as Completion).usage
  }
  const written = await send('anthropic/claude-opus-5-5')
  expect(written.prompt_tokens_details.cache_write_tokens).toBeGreaterThan(3_000)
  expect((await send('anthropic/claude-opus-5-5')).prompt_tokens_details.cached_tokens).toBeGreaterThan(3_000)
  expect((await send('openai/gpt-5.5')).prompt_tokens_details.cache_write_tokens).toBe(0)
})

test('prompt cache: rejects an invalid mark with the name of its field', async () => {
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'forever' } }] }]
  const response = await gateway.post('/v1/chat/completions', { messages })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('cache_control')
})

test('prompt cache: marks an unmarked agent of the Messages API at the end of its body', async () => {
  const messages = [{ role: 'user', content: `Tidy up. ${prose(21, 20_000)}` }]
  const wire = tools.map(({ function: { name, description, parameters } }) => ({
    name,
    description,
    input_schema: parameters,
  }))
  const send = async () => {
    const body = { model: 'anthropic/claude-sonnet-5-5', max_tokens: 50, tools: wire, messages }
    const response = await gateway.post('/v1/messages', body)
    return response.headers.get('x-gateway-cache-saved-usd')
  }
  expect(Number(await send())).toBeLessThan(0)
  expect(Number(await send())).toBeGreaterThan(0)
})
