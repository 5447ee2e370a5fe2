/** The peculiarities of each preset, as scripted responses and as the requests that the server gets. */
import { describe, expect, test } from 'bun:test'
import { discoveredModel, type Preset, presetModels, presets } from '../../src/config/presets.ts'
import { toModel } from '../../src/core/models/configured-models.ts'
import type { Model } from '../../src/core/models/models.ts'
import { openai } from '../../src/providers/openai.ts'
import type { Access } from '../../src/providers/provider.ts'
import { attemptAt } from '../harness/clouds.ts'

const provider = openai({ official: false })

function presetNamed(id: string): Preset {
  const preset = presets.find(item => item.id === id)
  if (preset === undefined) throw new Error(`no preset is named ${id}`)
  return preset
}

function getModel(preset: Preset): Model {
  const [row] = presetModels(preset)
  return toModel(preset.id, row ?? discoveredModel(preset, 'local-model', null))
}

const chunk = (fields: object) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', ...fields })}\n\n`
const delta = (content: object, finish_reason: string | null = null, more: object = {}) =>
  chunk({ choices: [{ index: 0, delta: content, finish_reason }], ...more })
const done = 'data: [DONE]\n\n'
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }

/** Sends one request to a preset that answers with `text`, and returns the answer and what was sent. */
async function answered(id: string, text: string, body: Record<string, unknown> = {}) {
  const preset = presetNamed(id)
  const sent: { url: string; body: Record<string, unknown>; headers: Record<string, string> }[] = []
  const network = {
    reaches: async () => true,
    async fetch(url: string, init: RequestInit) {
      sent.push({ url, body: JSON.parse(String(init.body)), headers: Object.fromEntries(new Headers(init.headers)) })
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    },
  }
  const access: Access = {
    baseUrl: preset.url ?? 'http://127.0.0.1:1234',
    apiKey: 'key',
    ...(preset.dialect !== undefined && { dialect: preset.dialect }),
  }
  const outcome = await attemptAt({ provider, access, model: getModel(preset), body, network })
  const [request] = sent
  if (request === undefined) throw new Error('nothing was sent')
  return { ...outcome, request, usage: outcome.parts.findLast(part => part.type === 'usage')?.usage }
}

const reasoningIn = (parts: Awaited<ReturnType<typeof answered>>['parts']) =>
  parts.map(part => (part.type === 'reasoning' ? part.text : '')).join('')

describe('response reader', () => {
  test('separates DeepSeek’s reasoning, and reads its cached tokens beside the details', async () => {
    const text = [
      delta({ role: 'assistant', content: null, reasoning_content: 'Let me see.' }, null, { usage: null }),
      delta({ content: 'Hello', reasoning_content: null }),
      delta({ content: '' }, 'stop', { usage: { ...usage, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 } }),
      done,
    ].join('')
    const answer = await answered('deepseek', text)
    expect(answer).toMatchObject({ failure: null, ended: true, text: 'Hello' })
    expect(reasoningIn(answer.parts)).toBe('Let me see.')
    expect(answer.usage).toMatchObject({ inputTokens: 10, cachedInputTokens: 8, outputTokens: 5 })
  })

  test('reads Mistral’s reasoning from a list, and its counts from the last chunk', async () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }
    const text = [delta({ role: 'assistant', content: [thinking] }), delta({ content: 'Hi' }, 'stop', { usage }), done]
    const answer = await answered('mistral', text.join(''))
    expect(answer).toMatchObject({ failure: null, ended: true, text: 'Hi' })
    expect(reasoningIn(answer.parts)).toBe('Hm.')
    expect(answer.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 })
  })

  test('adds xAI’s reasoning tokens to its completion tokens', async () => {
    const counts = { ...usage, total_tokens: 45, completion_tokens_details: { reasoning_tokens: 30 } }
    const text = [
      delta({ content: 'Hi', reasoning_content: 'Hm.' }),
      delta({}, 'stop'),
      chunk({ choices: [], usage: counts }),
      done,
    ]
    const answer = await answered('xai', text.join(''))
    expect(answer.usage).toMatchObject({ outputTokens: 35, reasoningTokens: 30 })
  })

  test('reads Groq’s counts in x_groq, its reasoning in `reasoning`, and its failures as events', async () => {
    const text = [
      delta({ role: 'assistant', content: '', reasoning: 'Hm.' }),
      delta({ content: 'Hi' }),
      delta({}, 'stop', { x_groq: { id: 'r', usage } }),
      done,
    ]
    const answer = await answered('groq', text.join(''))
    expect(answer).toMatchObject({ failure: null, ended: true, text: 'Hi' })
    expect(reasoningIn(answer.parts)).toBe('Hm.')
    expect(answer.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 })
    const failed = {
      error: { message: 'Failed to call a function.', type: 'invalid_request_error', code: 'tool_use_failed' },
    }
    const { failure } = await answered('groq', `event: error\ndata: ${JSON.stringify(failed)}\n\n`)
    expect(failure).toMatchObject({ kind: 'generation_failed', blame: 'upstream' })
  })

  test('skips OpenRouter’s comments before the first token, and reports its errors inside status 200', async () => {
    const comment = ': OPENROUTER PROCESSING\n\n'
    const served = { provider: 'Somebody', native_finish_reason: 'stop' }
    const text = [
      comment,
      comment,
      delta({ role: 'assistant', content: 'Hi' }, null, served),
      comment,
      delta({}, 'stop'),
      chunk({ choices: [], usage: { ...usage, cost: 0.1 } }),
      done,
    ]
    expect(await answered('openrouter', text.join(''))).toMatchObject({ failure: null, ended: true, text: 'Hi' })
    const failed = {
      error: { code: 502, message: 'Upstream error' },
      choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
    }
    const { failure, ended } = await answered(
      'openrouter',
      [comment, delta({ content: 'H' }), chunk(failed), done].join(''),
    )
    expect(ended).toBe(false)
    expect(failure).toMatchObject({ blame: 'upstream', retryable: true })
  })

  test('ends with `eos` at Together and Fireworks, and reads their counts in a chunk without choices', async () => {
    for (const id of ['together', 'fireworks']) {
      const text = [delta({ content: 'Hi' }), delta({ content: '' }, 'eos'), chunk({ choices: [], usage }), done].join(
        '',
      )
      const answer = await answered(id, text)
      expect(answer).toMatchObject({ failure: null, ended: true, text: 'Hi' })
      expect(answer.usage).toMatchObject({ outputTokens: 5 })
    }
  })

  test('separates reasoning that a local server writes into the text, and accepts a stream without counts', async () => {
    for (const id of ['ollama', 'vllm', 'lm-studio']) {
      const text = [
        delta({ role: 'assistant', content: '<thi' }),
        delta({ content: 'nk>\nHm.\n</think>\n\nHi' }),
        delta({}, 'stop'),
        done,
      ]
      const answer = await answered(id, text.join(''))
      expect(answer).toMatchObject({ failure: null, ended: true, text: 'Hi' })
      expect(reasoningIn(answer.parts).trim()).toBe('Hm.')
      expect(answer.usage).toBeUndefined()
    }
  })
})

describe('request writer', () => {
  const plain = [delta({ content: 'Hi' }, 'stop', { usage }), done].join('')
  const asked = async (id: string, body: Record<string, unknown> = {}) => {
    const { request, droppedParameters } = await answered(id, plain, body)
    return { ...request, droppedParameters }
  }

  test.each([
    ['mistral', 'https://api.mistral.ai/v1', 'max_tokens', undefined],
    ['deepseek', 'https://api.deepseek.com/v1', 'max_tokens', { include_usage: true }],
    ['xai', 'https://api.x.ai/v1', 'max_tokens', { include_usage: true }],
    ['groq', 'https://api.groq.com/openai/v1', 'max_completion_tokens', { include_usage: true }],
    ['openrouter', 'https://openrouter.ai/api/v1', 'max_tokens', { include_usage: true }],
    ['together', 'https://api.together.xyz/v1', 'max_tokens', { include_usage: true }],
    ['fireworks', 'https://api.fireworks.ai/inference/v1', 'max_tokens', { include_usage: true }],
    ['cerebras', 'https://api.cerebras.ai/v1', 'max_completion_tokens', { include_usage: true }],
    ['ollama', 'http://127.0.0.1:1234/v1', 'max_tokens', { include_usage: true }],
    ['vllm', 'http://127.0.0.1:1234/v1', 'max_tokens', { include_usage: true }],
    ['lm-studio', 'http://127.0.0.1:1234/v1', 'max_tokens', { include_usage: true }],
  ] as const)('%s goes to %s with %s', async (id, base, capField, options) => {
    const { url, body, headers } = await asked(id)
    expect(url).toBe(`${base}/chat/completions`)
    expect(headers.authorization).toBe('Bearer key')
    expect(body[capField]).toBe(2_000)
    expect(body.stream_options).toEqual(options)
  })

  test('writes the seed by Mistral’s name, short IDs of calls, and no unknown field', async () => {
    const messages = [
      { role: 'user', content: 'Hi', name: 'ada' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_abc|1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_abc|1', content: '1' },
    ]
    const { body } = await asked('mistral', { prompt: undefined, messages, seed: 7, user: 'ada', top_k: 3 })
    expect(body).toMatchObject({ random_seed: 7 })
    expect(body).not.toHaveProperty('seed')
    expect(body).not.toHaveProperty('user')
    expect(body).not.toHaveProperty('top_k')
    expect(JSON.stringify(body.messages)).not.toContain('"name":"ada"')
    expect(JSON.stringify(body.messages)).toContain('"tool_call_id":"call00001"')
  })

  test('omits `stop` and penalties for xAI, and reports them', async () => {
    const { body, droppedParameters } = await asked('xai', {
      stop: ['x'],
      presence_penalty: 1,
      reasoning_effort: 'max',
    })
    expect(body).not.toHaveProperty('stop')
    expect(body).toMatchObject({ reasoning_effort: 'xhigh' })
    expect(droppedParameters).toContain('stop')
  })

  test('requests JSON from DeepSeek without a schema, which the prompt states', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } }
    const { body, droppedParameters } = await asked('deepseek', { response_format })
    expect(body.response_format).toEqual({ type: 'json_object' })
    expect(JSON.stringify(body.messages)).toContain('JSON schema')
    expect(droppedParameters).toEqual(['response_format'])
  })
})
