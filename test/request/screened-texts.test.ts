/** A text that reaches a model is moderated, wherever a client writes it. */
import { describe, expect, test } from 'bun:test'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import { partTexts } from '../../src/core/chat/request-texts.ts'
import { collectDefinitions } from '../../src/core/chat/tool-definitions.ts'
import type { Model } from '../../src/core/models/models.ts'
import { createKeyedDigests } from '../../src/core/text/keyed-digests.ts'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { modelNamed } from '../harness/model.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const headers = new Headers()
const words = 'Zyzzyva words for a model'
const base64 = Buffer.from(words).toString('base64')
const access = { baseUrl: 'https://a.test/v1', apiKey: 'k' }

function screened(request: ChatRequest): readonly string[] {
  return [...request.messages.flatMap(partTexts), ...collectDefinitions(request).flatMap(({ texts }) => texts)]
}

function expectScreened(request: ChatRequest, provider: Provider, model: Model): void {
  const { body } = provider.toRequest({ request, model, outputCap: 100, stream: false }, access)
  expect([words, base64].some(text => body.includes(text))).toBe(true)
  expect(screened(request).some(text => text.includes(words))).toBe(true)
}

describe('Responses to OpenAI', () => {
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
  const f = { type: 'function', name: 'f', parameters: { type: 'object' } }
  const search = { type: 'tool_search', execution: 'client', description: 'x', parameters: {} }

  test.each<readonly [string, object]>([
    ['an input', { input: words }],
    ['instructions', { instructions: words }],
    [
      'instructions as items',
      { instructions: [{ role: 'developer', content: [{ type: 'input_text', text: words }] }] },
    ],
    ['a developer message', { input: [{ role: 'developer', content: words }] }],
    ['arguments', { input: [{ ...call, arguments: JSON.stringify({ a: words }) }] }],
    ['a name of a call', { input: [{ ...call, name: words }] }],
    ['a result', { input: [call, { type: 'function_call_output', call_id: 'c', output: words }] }],
    ['a message between agents', { input: [{ type: 'agent_message', content: 'a', message: words }] }],
    ['an item of OpenAI', { input: [{ type: 'mcp_call', id: 'm', output: words }] }],
    [
      'the name of a file',
      { input: [{ role: 'user', content: [{ type: 'input_file', filename: words, file_url: 'https://a.test/x' }] }] },
    ],
    [
      'a text file',
      {
        input: [
          {
            role: 'user',
            content: [{ type: 'input_file', filename: 'a', file_data: `data:text/plain;base64,${base64}` }],
          },
        ],
      },
    ],
    ['a function', { tools: [{ ...f, description: words }] }],
    ['a schema', { tools: [{ ...f, parameters: { description: words } }] }],
    ['an output schema', { tools: [{ ...f, output_schema: { description: words } }] }],
    [
      'a grammar',
      { tools: [{ type: 'custom', name: 'p', format: { type: 'grammar', syntax: 'lark', definition: words } }] },
    ],
    ['a namespace', { tools: [{ type: 'namespace', name: 'n', description: words, tools: [f] }] }],
    ['an empty namespace', { tools: [{ type: 'namespace', name: 'n', description: words, tools: [] }] }],
    ['a member', { tools: [{ type: 'namespace', name: 'n', tools: [f, { ...f, name: 'g', description: words }] }] }],
    ['a deferred tool', { tools: [search, { ...f, description: words, defer_loading: true }] }],
    ['a replaced tool', { tools: [{ ...f, description: words }, f] }],
    [
      'an excluded tool',
      {
        tools: [f, { ...f, name: 'g', description: words }],
        tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] },
      },
    ],
    [
      'a tool in the input',
      {
        input: [
          { type: 'additional_tools', role: 'developer', tools: [{ ...f, description: words }] },
          { role: 'user', content: 'a' },
        ],
      },
    ],
    [
      'a tool of OpenAI',
      { tools: [{ type: 'mcp', server_label: 'l', server_url: 'https://a.test', server_description: words }] },
    ],
    ['a format', { text: { format: { type: 'json_schema', name: 'n', schema: { description: words } } } }],
  ])('%s', (_name, fields) => {
    const body = { model: 'gpt-5.5', input: 'Hi', ...fields }
    const { request } = readResponses(body, { headers, text: JSON.stringify(body) }, { seal, accountId: 'a' })
    expectScreened(request, openaiResponses, modelNamed('gpt-5.5'))
  })

  test('sends the sealed summary of reasoning, whatever the client wrote', () => {
    const item = { family: 'openai', kind: 'encrypted', text: 'own', data: 'enc', id: null } as const
    const input = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: words }], encrypted_content: seal.seal('a', item) },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'b' },
    ]
    const { request } = readResponses({ model: 'm', input }, { headers, text: '' }, { seal, accountId: 'a' })
    const asked = { request, model: modelNamed('gpt-5.5'), outputCap: 100, stream: false }
    expect(JSON.parse(openaiResponses.toRequest(asked, access).body).input[0]).toEqual({
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'own' }],
      encrypted_content: 'enc',
    })
  })
})

describe('Messages to Anthropic', () => {
  const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
  const f = { name: 'f', input_schema: { type: 'object' } }

  test.each<readonly [string, object]>([
    ['a system text', { system: words }],
    [
      'a name of a call',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: words, input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
        ],
      },
    ],
    ['a title', user({ type: 'document', title: words, source: { type: 'text', data: 'x' } })],
    [
      'another field of a part of a document',
      user({ type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'x', say: words }] } }),
    ],
    [
      'another field of a block of a result',
      {
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'x', say: words }] }],
          },
        ],
      },
    ],
    ['a function', { tools: [{ ...f, description: words }] }],
    ['another field of a function', { tools: [{ ...f, hint: words }] }],
    ['a tool of Anthropic', { tools: [{ type: 'web_fetch_20250910', name: 'w', hint: words }] }],
    [
      'the first of two of a type',
      {
        tools: [
          { type: 'mcp_toolset', mcp_server_name: words },
          { type: 'mcp_toolset', mcp_server_name: 'b' },
        ],
      },
    ],
    ['a format', { output_config: { format: { type: 'json_schema', schema: { description: words } } } }],
    ['an unknown format', { output_config: { format: { type: 'grammar', grammar: words } } }],
    [
      'an old format beside a new one',
      {
        output_config: { format: { type: 'json_schema', schema: {} } },
        output_format: { type: 'json_schema', schema: { description: words } },
      },
    ],
    ['another setting of the output', { output_config: { style: words } }],
    ['a setting of the context', { context_management: { edits: [{ prompt: words }] } }],
  ])('%s', (_name, fields) => {
    const body = { model: 'claude-haiku-5-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...fields }
    const text = JSON.stringify(body)
    const { request } = readMessages(body, { headers, text, accountId: 'a' }, seal)
    expectScreened(request, anthropic, modelNamed('claude-haiku-5-5'))
  })
})

describe('Chat Completions', () => {
  test.each<readonly [string, object, boolean]>([
    ['a predicted output', { prediction: { type: 'content', content: words } }, true],
    ['a guided schema', { guided_json: { description: words } }, false],
    ['a field of a template', { prompt_mode: words }, false],
  ])('%s', (_name, fields, official) => {
    const body = { model: 'gpt-4.1', messages: [{ role: 'user', content: 'Hi' }], ...fields }
    const { request } = readCompatible(body, headers, 100)
    const model = modelNamed('gpt-4.1')
    const passing = official ? model : { ...model, parameters: { ...model.parameters, passExtras: true } }
    expectScreened(request, openai({ official }), passing)
  })
})

test('digests: differ for messages whose names differ', () => {
  const { of } = createKeyedDigests(new Uint8Array(32))
  const file = (name: string) =>
    ({ role: 'user', content: [{ type: 'file', url: 'data:application/pdf;base64,AA', name }], name: null }) as const
  const call = (name: string) =>
    ({
      role: 'assistant',
      text: null,
      reasoning: null,
      toolCalls: [{ id: 'c', name, arguments: '{}', signature: null }],
      name: null,
    }) as const
  const digests = [file('a'), file('b'), call('a'), call('b')].map(of)
  expect(new Set(digests).size).toBe(digests.length)
})

test('openai: drops `store`, which would keep the conversation at the provider', () => {
  const { request } = readCompatible(
    { model: 'gpt-4.1', messages: [{ role: 'user', content: 'Hi' }], store: true },
    headers,
    50,
  )
  const asked = { request, model: modelNamed('gpt-4.1'), outputCap: 100, stream: false }
  for (const provider of [openai({ official: true }), openaiResponses]) {
    const { body, droppedParameters } = provider.toRequest(asked, access)
    expect(JSON.parse(body).store ?? false).toBe(false)
    expect(droppedParameters).toEqual(['store'])
  }
})
