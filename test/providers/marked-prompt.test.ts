import { expect, test } from 'bun:test'
import type { ChatRequest, Message } from '../../src/core/chat/chat.ts'
import type { ParameterRules } from '../../src/core/models/models.ts'
import { openai } from '../../src/providers/openai.ts'
import type { AdapterRequest } from '../../src/providers/provider.ts'
import { askWith } from '../harness/ask.ts'
import { generousRules, modelWith } from '../harness/model.ts'

const compatible = openai({ official: false })
const parameters: ParameterRules = { ...generousRules, outputCapField: 'max_tokens', efforts: [] }
const ephemeral = { type: 'ephemeral' }

type Situation = {
  readonly request: Partial<ChatRequest>
  readonly id?: string
  readonly baseUrl?: string
  readonly official?: boolean
  readonly cacheMarks?: NonNullable<AdapterRequest['cacheMarks']>
}

function requestFor({ request, id = 'moonshotai/kimi-k3', baseUrl, official = false, cacheMarks }: Situation) {
  const asked = {
    request: askWith(request),
    model: modelWith({ id, provider: 'openai', parameters }),
    outputCap: 100,
    stream: false,
  }
  const { body, droppedParameters } = openai({ official }).toRequest(
    { ...asked, ...(cacheMarks && { cacheMarks }) },
    { baseUrl: baseUrl ?? 'https://openrouter.ai/api/v1', apiKey: 'k' },
  )
  return { ...JSON.parse(body), droppedParameters }
}

const call = { id: 'call_1', name: 'read', arguments: '{}', signature: null }
const read = { name: 'read', description: null, parameters: null, strict: null }

/** One mark per kind of message. */
const marked: readonly Message[] = [
  { role: 'system', text: 'rules', cache: '1h' },
  { role: 'system', text: 'style' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'context', cache: '5m' },
      { type: 'text', text: 'question' },
    ],
    name: null,
  },
  { role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null },
  { role: 'tool', callId: 'call_1', text: 'result', cache: '5m' },
]

test.each([
  ['OpenRouter', {}],
  ['a host of Claude', { id: 'databricks-claude-sonnet-4-6', baseUrl: 'https://models.example/v1' }],
] as const)('openai: writes each mark of the client at its part for %s', (_, server) => {
  const { messages, tools } = requestFor({
    ...server,
    request: { messages: marked, tools: [{ ...read, cache: '5m' }] },
  })
  expect(messages.map(({ content }: { readonly content: unknown }) => content)).toEqual([
    [{ type: 'text', text: 'rules', cache_control: { ...ephemeral, ttl: '1h' } }],
    'style',
    [
      { type: 'text', text: 'context', cache_control: ephemeral },
      { type: 'text', text: 'question' },
    ],
    null,
    [{ type: 'text', text: 'result', cache_control: ephemeral }],
  ])
  expect(tools[0].cache_control).toEqual(ephemeral)
})

test.each([
  ['another compatible server', { baseUrl: 'https://models.example/v1' }],
  ['a model whose ID only contains the letters', { baseUrl: 'https://models.example/v1', id: 'claudette-7b' }],
  ['OpenAI', { official: true, id: 'gpt-5.5', baseUrl: 'https://api.openai.com/v1' }],
] as const)('openai: sends no marks and one system message to %s', (_, server) => {
  const request = requestFor({
    ...server,
    request: { messages: marked, tools: [{ ...read, cache: '5m' }] },
    cacheMarks: 'conversation',
  })
  expect(JSON.stringify(request)).not.toContain('cache_control')
  expect(request.messages[0].content).toBe('rules\n\nstyle')
  expect(request.messages[1].role).toBe('user')
})

test('openai: keeps the system messages of a client apart when none is marked', () => {
  const messages: readonly Message[] = [
    { role: 'system', text: 'rules' },
    { role: 'system', text: 'style' },
  ]
  expect(requestFor({ request: { messages }, baseUrl: 'https://models.example/v1' }).messages).toHaveLength(2)
})

test('openai: sets the marks of the gateway at the end of the rules and of the last two user turns', () => {
  const turns: readonly Message[] = [
    { role: 'system', text: 'rules' },
    { role: 'user', content: [{ type: 'text', text: 'one' }], name: null },
    { role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null },
    { role: 'tool', callId: 'call_1', text: 'result' },
    { role: 'user', content: [{ type: 'text', text: 'two' }], name: null },
  ]
  const { messages } = requestFor({
    request: { messages: turns },
    id: 'anthropic/claude-sonnet-4.6',
    cacheMarks: 'conversation',
  })
  const marks = messages.map((message: unknown) => JSON.stringify(message).includes('cache_control'))
  expect(marks).toEqual([true, true, false, false, true])
})

test('openai: sends the last four marks and reports the others', () => {
  const content = ['a', 'b', 'c', 'd', 'e'].map(text => ({ type: 'text' as const, text, cache: '5m' as const }))
  const { messages, droppedParameters } = requestFor({ request: { messages: [{ role: 'user', content, name: null }] } })
  const sent: readonly { readonly text: string; readonly cache_control?: unknown }[] = messages[0].content
  expect(sent.filter(part => part.cache_control !== undefined).map(({ text }) => text)).toEqual(['b', 'c', 'd', 'e'])
  expect(droppedParameters).toContain('cache_control')
})

test('openai: adds the instruction for JSON beside a marked system text', () => {
  const { messages } = requestFor({
    request: { messages: [{ role: 'system', text: 'rules', cache: '5m' }], responseFormat: { type: 'json_object' } },
  })
  expect(messages[0].content[0]).toEqual({ type: 'text', text: 'rules', cache_control: ephemeral })
})

test('openai: caches marked input only for Claude at a compatible server', () => {
  expect(compatible.cachesMarkedInput?.({ id: 'anthropic/claude-opus-4.6', provider: 'openrouter' })).toBe(true)
  expect(compatible.cachesMarkedInput?.({ id: 'moonshotai/kimi-k3', provider: 'openrouter' })).toBe(false)
  expect(openai({ official: true }).cachesMarkedInput).toBeUndefined()
})
