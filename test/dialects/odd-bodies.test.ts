/**
 * Odd but legal bodies of real clients. Each is accepted, and every text and image in it reaches every provider family that serves the
 * request.
 */
import { describe, expect, test } from 'bun:test'
import type { ChatRequest } from '../../src/core/chat/chat.ts'
import type { Model } from '../../src/core/models/models.ts'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { modelNamed } from '../harness/model.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const headers = new Headers()
const access = { baseUrl: 'https://a.test/v1', apiKey: 'k' }

const upstreams: readonly (readonly [string, Provider, Model])[] = [
  ['OpenAI', openai({ official: true }), modelNamed('gpt-4.1')],
  ['a compatible server', openai({ official: false }), modelNamed('gpt-4.1')],
  ['OpenAI Responses', openaiResponses, modelNamed('gpt-5.5')],
  ['Anthropic', anthropic, modelNamed('claude-haiku-5-5')],
  ['Google', google, modelNamed('gemini-3.5-flash-lite')],
]

function expectToReachAll(request: ChatRequest, texts: readonly string[]): void {
  for (const [name, provider, model] of upstreams) {
    const asked = { request, model, outputCap: 1_000, stream: false }
    const { body } = (provider.formFor?.(asked) ?? provider).toRequest(asked, access)
    expect([name, texts.filter(text => !body.includes(text))]).toEqual([name, []])
  }
}

type Case = readonly [name: string, fields: object, texts: readonly string[]]

const image = 'iVBORw0KGgo'
const url = `data:image/png;base64,${image}=`
const nulls = (names: string) => Object.fromEntries(names.split(' ').map(name => [name, null]))

describe('Responses', () => {
  const fc = (id: string, name = 'f') => ({ type: 'function_call', call_id: id, name, arguments: '{}' })
  const fo = (id: string, output: unknown) => ({ type: 'function_call_output', call_id: id, output })

  test.each<Case>([
    ['empty content', { input: [{ role: 'user', content: [] }] }, []],
    ['empty string', { input: [{ role: 'user', content: '' }] }, []],
    [
      'assistant null content',
      {
        input: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: null },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'assistant output_text empty',
      {
        input: [
          { role: 'user', content: 'M1' },
          {
            type: 'message',
            role: 'assistant',
            id: 'x',
            status: 'completed',
            content: [{ type: 'output_text', text: '', annotations: [] }],
          },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'nulls',
      {
        input: 'M1',
        ...nulls(
          'instructions reasoning text include metadata tools tool_choice temperature stream user parallel_tool_calls truncation max_output_tokens previous_response_id prompt service_tier top_logprobs stream_options conversation background store max_tool_calls safety_identifier prompt_cache_key client_metadata context_management',
        ),
      },
      ['M1'],
    ],
    ['empty instructions', { input: 'M1', instructions: '' }, ['M1']],
    ['outputs: null', { input: [{ role: 'user', content: 'M1' }, fc('a'), fo('a', null)] }, ['M1']],
    ['outputs: []', { input: [{ role: 'user', content: 'M1' }, fc('a'), fo('a', [])] }, ['M1']],
    [
      'outputs: image',
      {
        input: [
          { role: 'user', content: 'M1' },
          fc('a'),
          fo('a', [
            { type: 'input_text', text: 'M2' },
            { type: 'input_image', image_url: url },
          ]),
        ],
      },
      ['M1', 'M2', image],
    ],
    [
      'parallel out of order',
      {
        input: [
          { role: 'user', content: 'M1' },
          fc('a'),
          { type: 'reasoning', id: 'r', summary: [] },
          fc('b', 'g'),
          fo('b', 'MB'),
          fo('a', 'MA'),
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'MA', 'MB', 'M2'],
    ],
    [
      'msg between call and out',
      {
        input: [
          { role: 'user', content: 'M1' },
          fc('a'),
          { role: 'assistant', content: 'M3' },
          fo('a', 'MA'),
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'MA', 'M3', 'M2'],
    ],
    [
      'user between call and out',
      {
        input: [
          { role: 'user', content: 'M1' },
          fc('a'),
          { role: 'user', content: 'M3' },
          fo('a', 'MA'),
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'MA', 'M3', 'M2'],
    ],
    [
      'call without out',
      { input: [{ role: 'user', content: 'M1' }, fc('a'), { role: 'user', content: 'M2' }] },
      ['M1', 'M2'],
    ],
    [
      'two outputs of a call',
      { input: [{ role: 'user', content: 'M1' }, fc('a'), fo('a', 'MA'), fo('a', 'MB')] },
      ['MA', 'MB'],
    ],
    [
      'same call id twice',
      { input: [{ role: 'user', content: 'M1' }, fc('a'), fo('a', 'MA'), fc('a', 'g'), fo('a', 'MB')] },
      ['MA', 'MB'],
    ],
    ['empty args', { input: [{ role: 'user', content: 'M1' }, { ...fc('a'), arguments: '' }, fo('a', 'MA')] }, ['MA']],
    [
      'bad args',
      { input: [{ role: 'user', content: 'M1' }, { ...fc('a'), arguments: '{"a":' }, fo('a', 'MA')] },
      ['MA'],
    ],
    [
      'starts with assistant',
      {
        input: [
          { role: 'assistant', content: 'M0' },
          { role: 'user', content: 'M1' },
        ],
      },
      ['M0', 'M1'],
    ],
    ['only developer', { input: [{ role: 'developer', content: 'M0' }] }, ['M0']],
    ['only reasoning', { input: [{ type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'x' }] }] }, []],
    [
      'ends with assistant',
      {
        input: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: 'M0' },
        ],
      },
      ['M0', 'M1'],
    ],
    [
      'text part types',
      {
        input: [
          { role: 'user', content: [{ type: 'text', text: 'M1' }] },
          {
            role: 'assistant',
            content: [
              { type: 'input_text', text: 'M2' },
              { type: 'refusal', refusal: 'M3' },
            ],
          },
          { role: 'user', content: 'M4' },
        ],
      },
      ['M1', 'M2', 'M3', 'M4'],
    ],
    [
      'custom call',
      {
        input: [
          { role: 'user', content: 'M1' },
          { type: 'custom_tool_call', call_id: 'a', name: 'p', input: 'M2\n"q"' },
          { type: 'custom_tool_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'M3' }] },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
    ['ids null', { input: [{ id: null, status: null, type: 'message', role: 'user', content: 'M1' }] }, ['M1']],
    ['tool no params', { input: 'M1', tools: [{ type: 'function', name: 'f' }] }, ['M1']],
    [
      'tool null params',
      { input: 'M1', tools: [{ type: 'function', name: 'f', parameters: null, strict: null, description: null }] },
      ['M1'],
    ],
    [
      'a custom tool as the choice',
      { input: 'M1', tools: [{ type: 'custom', name: 'f' }], tool_choice: { type: 'custom', name: 'f' } },
      ['M1'],
    ],
    ['a choice without tools', { input: 'M1', tools: [], tool_choice: 'auto' }, ['M1']],
    [
      'image only',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url, detail: null }] }] },
      [image],
    ],
    [
      'annotations',
      {
        input: [
          { role: 'user', content: 'M1' },
          {
            role: 'assistant',
            type: 'message',
            content: [
              {
                type: 'output_text',
                text: 'M2',
                annotations: [{ type: 'url_citation', start_index: 0, end_index: 1, url: 'https://a', title: 't' }],
                logprobs: [],
              },
            ],
          },
          { role: 'user', content: 'M3' },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
    [
      'web_search_call',
      {
        input: [
          { role: 'user', content: 'M1' },
          { type: 'web_search_call', id: 'ws', status: 'completed', action: { type: 'search', query: 'q' } },
          { role: 'assistant', content: 'M2' },
          { role: 'user', content: 'M3' },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
    [
      'tool_search',
      {
        input: [
          { role: 'user', content: 'M1' },
          { type: 'tool_search_call', call_id: 'a', execution: 'client', arguments: { query: 'q' } },
          {
            type: 'tool_search_output',
            call_id: 'a',
            execution: 'client',
            tools: [{ type: 'function', name: 'late', description: 'M2' }],
          },
        ],
        tools: [{ type: 'tool_search', execution: 'client', description: 'd', parameters: {} }],
      },
      ['M1', 'M2'],
    ],
  ])('%s', (_name, fields, texts) => {
    const body = { model: 'm', ...fields }
    expectToReachAll(
      readResponses(body, { headers, text: JSON.stringify(body) }, { seal, accountId: 'a' }).request,
      texts,
    )
  })
})

describe('Messages', () => {
  test.each<Case>([
    ['empty content', { messages: [{ role: 'user', content: [] }] }, []],
    ['empty text', { messages: [{ role: 'user', content: '' }] }, []],
    [
      'empty lists and nulls',
      {
        system: [],
        tools: [],
        messages: [{ role: 'user', content: 'M1' }],
        ...nulls('stop_sequences metadata temperature thinking tool_choice output_config top_p top_k stream'),
      },
      ['M1'],
    ],
    [
      'tool_result missing',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] },
        ],
      },
      ['M1'],
    ],
    [
      'tool_result null',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: null, is_error: null }] },
        ],
      },
      ['M1'],
    ],
    [
      'tool_result image',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 't',
                content: [
                  { type: 'image', source: { type: 'base64', media_type: 'image/png', data: `${image}=` } },
                  { type: 'text', text: 'M2' },
                ],
              },
            ],
          },
        ],
      },
      ['M1', 'M2', image],
    ],
    [
      'no input',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f' }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'M2' }] },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'out of order + split',
      {
        messages: [
          { role: 'user', content: 'M1' },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'M2' },
              { type: 'tool_use', id: 'a', name: 'f', input: { q: 'M3' } },
              { type: 'text', text: 'M4' },
              { type: 'tool_use', id: 'b', name: 'g', input: {} },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b', content: 'MB' }] },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'M5' },
              { type: 'tool_result', tool_use_id: 'a', content: 'MA' },
              { type: 'text', text: 'M6' },
            ],
          },
        ],
      },
      ['M1', 'M2', 'M3', 'M4', 'MA', 'MB', 'M5', 'M6'],
    ],
    [
      'interleaved thinking',
      {
        thinking: { type: 'enabled', budget_tokens: 1024 },
        max_tokens: 4000,
        messages: [
          { role: 'user', content: 'M1' },
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'T1', signature: 's1' },
              { type: 'tool_use', id: 'a', name: 'f', input: {} },
              { type: 'thinking', thinking: 'T2', signature: 's2' },
              { type: 'tool_use', id: 'b', name: 'f', input: {} },
              { type: 'redacted_thinking', data: 'zz' },
              { type: 'text', text: 'M2' },
            ],
          },
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'a', content: 'MA' },
              { type: 'tool_result', tool_use_id: 'b', content: 'MB' },
            ],
          },
        ],
      },
      ['M1', 'M2', 'MA', 'MB'],
    ],
    [
      'system mid',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'system', content: 'M2' },
          { role: 'assistant', content: 'M3' },
          { role: 'user', content: [{ type: 'text', text: 'M4', cache_control: { type: 'ephemeral' } }] },
        ],
      },
      ['M1', 'M2', 'M3', 'M4'],
    ],
    [
      'assistant empty',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [] },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'assistant prefill',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: 'M2 ' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'two users two assistants',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'user', content: 'M2' },
          { role: 'assistant', content: 'M3' },
          { role: 'assistant', content: 'M4' },
          { role: 'user', content: 'M5' },
        ],
      },
      ['M1', 'M2', 'M3', 'M4', 'M5'],
    ],
    [
      'starts assistant',
      {
        messages: [
          { role: 'assistant', content: 'M0' },
          { role: 'user', content: 'M1' },
        ],
      },
      ['M0', 'M1'],
    ],
    [
      'any tool as the choice, nulls in it',
      {
        tools: [{ type: 'custom', name: 'f', description: null, input_schema: {} }],
        tool_choice: { type: 'any', disable_parallel_tool_use: null },
        messages: [{ role: 'user', content: 'M1' }],
      },
      ['M1'],
    ],
    [
      'a named tool as the choice, a type of null',
      {
        tools: [{ type: null, name: 'f', input_schema: { type: 'object' }, cache_control: null }],
        tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true },
        messages: [{ role: 'user', content: 'M1' }],
      },
      ['M1'],
    ],
    [
      'server tool replay',
      {
        messages: [
          { role: 'user', content: 'M1' },
          {
            role: 'assistant',
            content: [
              { type: 'server_tool_use', id: 'srv', name: 'web_search', input: { query: 'x' } },
              { type: 'web_search_tool_result', tool_use_id: 'srv', content: [] },
              { type: 'text', text: 'M2', citations: [{ type: 'x' }] },
            ],
          },
          { role: 'user', content: 'M3' },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
    [
      'document text',
      {
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'document',
                source: { type: 'text', media_type: 'text/plain', data: 'M1' },
                title: 'M2',
                context: 'M3',
                citations: { enabled: true },
              },
              { type: 'text', text: 'M4' },
            ],
          },
        ],
      },
      ['M1', 'M2', 'M3', 'M4'],
    ],
    [
      'search_result',
      {
        messages: [
          {
            role: 'user',
            content: [{ type: 'search_result', source: 'M1', title: 'M2', content: [{ type: 'text', text: 'M3' }] }],
          },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
  ])('%s', (_name, fields, texts) => {
    const body = { model: 'claude-haiku-5-5', max_tokens: 1_000, ...fields }
    expectToReachAll(readMessages(body, { headers, text: JSON.stringify(body), accountId: 'a' }, seal).request, texts)
  })
})

describe('Chat Completions', () => {
  const tc = (id: string, name = 'f', args = '{}') => ({ id, type: 'function', function: { name, arguments: args } })

  test.each<Case>([
    [
      'nulls',
      {
        messages: [{ role: 'user', content: 'M1', name: null }],
        ...nulls(
          'stop n logit_bias max_tokens max_completion_tokens seed user functions function_call tools tool_choice response_format stream stream_options metadata temperature top_p presence_penalty frequency_penalty logprobs top_logprobs parallel_tool_calls reasoning_effort service_tier store modalities audio prediction verbosity web_search_options',
        ),
      },
      ['M1'],
    ],
    [
      'assistant null',
      {
        messages: [
          { role: 'user', content: 'M1' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [tc('a')],
            refusal: null,
            audio: null,
            function_call: null,
            annotations: [],
          },
          { role: 'tool', tool_call_id: 'a', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'assistant [] content',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: [], tool_calls: [tc('a')] },
          { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'M2' }] },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'tool_calls []',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: 'M2', tool_calls: [] },
          { role: 'user', content: 'M3' },
        ],
      },
      ['M1', 'M2', 'M3'],
    ],
    [
      'tool empty',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: '', tool_calls: [tc('a')] },
          { role: 'tool', tool_call_id: 'a', content: '' },
        ],
      },
      ['M1'],
    ],
    [
      'out of order',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', tool_calls: [tc('a'), tc('b', 'g', '{"x":"M4"}')] },
          { role: 'tool', tool_call_id: 'b', content: 'MB' },
          { role: 'tool', tool_call_id: 'a', content: 'MA' },
          { role: 'developer', content: 'M3' },
        ],
      },
      ['M1', 'MA', 'MB', 'M3', 'M4'],
    ],
    [
      'missing result',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', tool_calls: [tc('a'), tc('b')] },
          { role: 'tool', tool_call_id: 'b', content: 'MB' },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'MB', 'M2'],
    ],
    [
      'two results of a call',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', tool_calls: [tc('a')] },
          { role: 'tool', tool_call_id: 'a', content: 'MA' },
          { role: 'tool', tool_call_id: 'a', content: 'MB' },
        ],
      },
      ['MA', 'MB'],
    ],
    [
      'same id twice',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', tool_calls: [tc('a'), tc('a', 'g')] },
          { role: 'tool', tool_call_id: 'a', content: 'MA' },
          { role: 'tool', tool_call_id: 'a', content: 'MB' },
        ],
      },
      ['MA', 'MB'],
    ],
    [
      'bad args',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', tool_calls: [tc('a', 'f', ''), tc('b', 'f', '{"a":'), tc('c', 'f', '[1]')] },
          { role: 'tool', tool_call_id: 'a', content: 'MA' },
          { role: 'tool', tool_call_id: 'b', content: 'MB' },
          { role: 'tool', tool_call_id: 'c', content: 'MC' },
        ],
      },
      ['MA', 'MB', 'MC'],
    ],
    [
      'assistant nothing',
      { messages: [{ role: 'user', content: 'M1' }, { role: 'assistant' }, { role: 'user', content: 'M2' }] },
      ['M1', 'M2'],
    ],
    ['only system', { messages: [{ role: 'system', content: 'M1' }] }, ['M1']],
    [
      'ends system',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'system', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'reasoning only',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', reasoning_content: 'x', content: null },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'M2'],
    ],
    [
      'refusal',
      {
        messages: [
          { role: 'user', content: 'M1' },
          { role: 'assistant', content: null, refusal: 'M3' },
          { role: 'user', content: 'M2' },
        ],
      },
      ['M1', 'M3', 'M2'],
    ],
    ['empty user', { messages: [{ role: 'user', content: '' }] }, []],
    [
      'empty tool args key',
      {
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: { type: 'function', function: { name: 'f' } },
        messages: [{ role: 'user', content: 'M1' }],
      },
      ['M1'],
    ],
    [
      'content_text with cache',
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'M0', cache_control: { type: 'ephemeral' } }] },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'M1', cache_control: { type: 'ephemeral' } },
              { type: 'image_url', image_url: { url, detail: null } },
            ],
          },
        ],
      },
      ['M0', 'M1', image],
    ],
  ])('%s', (_name, fields, texts) => {
    expectToReachAll(readCompatible({ model: 'm', ...fields }, headers, 100).request, texts)
  })
})
