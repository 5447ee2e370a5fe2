import { describe, expect, test } from 'bun:test'
import type { ChatRequest } from '../../../src/core/chat/chat.ts'
import { toModel } from '../../../src/core/models/configured-models.ts'
import {
  buildCatalog,
  fitsWindow,
  fullName,
  getDeprecation,
  getNeeds,
  leavingSoon,
  type Model,
  unmet,
  unmetInFull,
} from '../../../src/core/models/models.ts'
import { catalog } from '../../../src/models/catalog.ts'
import { askWith } from '../../harness/ask.ts'
import { modelNamed } from '../../harness/model.ts'

const pricing = { input_per_mtok: 0.5, output_per_mtok: 1 }
const openrouter = toModel('openrouter', { id: 'anthropic/claude-opus-5.5:free', pricing, aliases: ['opus-free'] })
const ollama = toModel('ollama', { id: 'GPT-4.1', pricing: { input_per_mtok: 0, output_per_mtok: 0 } })
const reseller = toModel('reseller', { id: 'anthropic/claude-opus-5.5', pricing })
const all = buildCatalog([...catalog, openrouter, ollama, reseller])

describe('catalog resolve', () => {
  test.each([
    ['gpt-5.5', 'openai/gpt-5.5'],
    ['openai/gpt-5.5', 'openai/gpt-5.5'],
    ['OpenAI/GPT-5.5', 'openai/gpt-5.5'],
    ['gpt-5.5-2026-04-23', 'openai/gpt-5.5'],
    ['openai/gpt-5.5-2026-04-23', 'openai/gpt-5.5'],
    ['anthropic/claude-haiku-4.5', 'anthropic/claude-haiku-4-5'],
    ['claude-haiku-4-5-20251001', 'anthropic/claude-haiku-4-5'],
    ['openrouter/anthropic/claude-opus-5.5:free', 'openrouter/anthropic/claude-opus-5.5:free'],
    ['anthropic/claude-opus-5.5:free', 'openrouter/anthropic/claude-opus-5.5:free'],
    ['opus-free', 'openrouter/anthropic/claude-opus-5.5:free'],
    ['ollama/gpt-4.1', 'ollama/GPT-4.1'],
  ])('%s resolves to %s', (name, model) => {
    const found = all.resolve(name)
    expect(found === null ? null : fullName(found)).toBe(model)
  })

  test.each([
    '',
    'gateway-ai',
    'gpt-5.5 ',
    'anthropic/gpt-5.5',
    'openai//gpt-5.5',
    '/gpt-5.5',
    '__proto__',
    'constructor',
    'a'.repeat(1e6),
  ])('%.20s resolves to null', name => {
    expect(all.resolve(name)).toBeNull()
  })

  test('prefers the model listed first, unless the provider is given', () => {
    expect(all.resolve('gpt-4.1')).toBe(modelNamed('gpt-4.1'))
    expect(all.resolve('ollama/gpt-4.1')).toBe(ollama)
    expect(all.resolve('anthropic/claude-opus-5.5')).toBe(modelNamed('claude-opus-5-5'))
    expect(all.resolve('reseller/anthropic/claude-opus-5.5')).toBe(reseller)
  })

  test('always finds a model by its full name', () => {
    for (const model of all.list) expect(all.resolve(fullName(model))).toBe(model)
  })
})

describe('deprecation', () => {
  const model = modelNamed('gemini-2.5-pro')

  test.each([
    ['2026-11-23', 'deprecated', false],
    ['2026-11-24', 'deprecated', true],
    ['2026-11-30T23:59:59.999Z', 'deprecated', true],
    ['2026-12-01', 'retired', true],
    ['2027-12-01T00:00:00.000Z', 'retired', true],
  ])(
    'on %s gives a model with date 2026-12-01 the state %s, with automatic routing excluding it: %p',
    (today, state, leaving) => {
      expect(getDeprecation(model, today)).toBe(state as ReturnType<typeof getDeprecation>)
      expect(leavingSoon(model, today)).toBe(leaving as boolean)
    },
  )

  test('ignores models without a date', () => {
    expect(getDeprecation(modelNamed('gpt-5.5'), '2099-01-01')).toBe('current')
    expect(leavingSoon(modelNamed('gpt-5.5'), '2099-01-01')).toBe(false)
  })
})

const plain = askWith({ temperature: 0.5, presencePenalty: 1, seed: 1, stop: ['a', 'b', 'c', 'd'] })
const tool = { name: 'look', description: null, parameters: null, strict: null }
const image = { type: 'image', url: 'https://example.org/a.png', detail: null } as const

describe('needsOf and unmet', () => {
  test('accept every catalog model for parameters that can be dropped', () => {
    for (const model of catalog) expect(unmet(model, getNeeds(plain))).toBeNull()
  })

  const local = toModel('ollama', { id: 'llama', pricing })
  const schema = { type: 'json_schema', name: 'x', description: null, schema: {}, strict: null } as const
  test.each<[string, Model, Partial<ChatRequest>, string | null]>([
    ['an image', local, { messages: [{ role: 'user', content: [image], name: null }] }, 'messages'],
    ['a JSON schema', local, { responseFormat: schema }, 'response_format'],
    ['a JSON object', local, { responseFormat: { type: 'json_object' } }, 'response_format'],
    ['tools', { ...local, capabilities: { ...local.capabilities, tools: false } }, { tools: [tool] }, 'tools'],
    [
      'a stream',
      { ...local, capabilities: { ...local.capabilities, streaming: false } },
      { stream: 'buffered' },
      'stream',
    ],
    ['two choices', modelNamed('claude-opus-5-5'), { choices: 2 }, 'n'],
    ['eight choices', modelNamed('gemini-3.8-flash'), { choices: 8 }, null],
    ['nine choices', modelNamed('gemini-3.8-flash'), { choices: 9 }, 'n'],
    ['log probabilities', modelNamed('gemini-3.8-flash'), { logprobs: true }, 'logprobs'],
    // Without a requested effort the model reasons, and then returns no log probabilities.
    ['log probabilities', modelNamed('gpt-5.5'), { logprobs: true }, 'logprobs'],
    ['log probabilities without reasoning', modelNamed('gpt-5.5'), { logprobs: true, reasoningEffort: 'none' }, null],
    [
      'log probabilities beside reasoning',
      modelNamed('gpt-5.5'),
      { logprobs: true, reasoningEffort: 'low' },
      'logprobs',
    ],
    [
      'top log probabilities',
      modelNamed('gpt-5.5'),
      { logprobs: true, topLogprobs: 2, reasoningEffort: 'none' },
      'top_logprobs',
    ],
    ['top log probabilities', modelNamed('gpt-4.1'), { logprobs: true, topLogprobs: 20 }, null],
  ])('report %s as unmet by $id', (_, model, asked, param) => {
    expect(unmet(model, getNeeds({ ...plain, ...asked }))?.param ?? null).toBe(param)
  })

  const forced: Partial<ChatRequest> = { tools: [tool], toolChoice: 'required' }
  const thoughtful = { ...local, parameters: { ...local.parameters, toolsNeedEffortNone: true } }
  test.each<[string, Model, Partial<ChatRequest>, string | null]>([
    ['a forced tool', modelNamed('claude-opus-5-5'), forced, 'tool_choice'],
    ['a named tool', modelNamed('claude-fable-5-2'), { tools: [tool], toolChoice: { name: 'look' } }, 'tool_choice'],
    ['a tool by choice', modelNamed('claude-opus-5-5'), { tools: [tool], toolChoice: 'auto' }, null],
    ['a forced tool', modelNamed('claude-haiku-5-5'), forced, null],
    ['a forced tool beside reasoning', modelNamed('claude-haiku-5-5'), { ...forced, reasoningEffort: 'high' }, null],
    ['reasoning beside tools', thoughtful, { tools: [tool], reasoningEffort: 'high' }, 'reasoning_effort'],
    ['no reasoning beside tools', thoughtful, { tools: [tool], reasoningEffort: 'none' }, null],
  ])('report %s as met only approximately by $id', (_, model, asked, param) => {
    const needs = getNeeds({ ...plain, ...asked })
    expect([unmetInFull(model, needs)?.param ?? null, unmet(model, needs)]).toEqual([param, null])
  })

  test('count the context window up to its last token', () => {
    const model = modelNamed('gpt-5.5')
    expect(fitsWindow(model, 922_000, 128_000)).toBe(true)
    expect(fitsWindow(model, 922_001, 1)).toBe(false)
    expect(fitsWindow(modelNamed('claude-haiku-4-5'), 199_000, 1_001)).toBe(false)
  })
})
