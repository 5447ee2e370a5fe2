/** The parser of `POST /v1/responses`: items, tools, reasoning and rejected fields. */
import { describe, expect, test } from 'bun:test'
import type { Message, ReasoningItem } from '../../src/core/chat/chat.ts'
import { flatToolName } from '../../src/core/chat/tool-definitions.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { findCarrier, refersToItems, withCarriedItems } from '../../src/dialects/responses/carried-items.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'
import { getRefusal } from '../harness/refusal.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const read = (fields: object, headers: Record<string, string> = {}) => {
  const body = { model: 'gpt-4.1', input: 'Hi', ...fields }
  const source = { headers: new Headers(headers), text: JSON.stringify(body) }
  return readResponses(body, source, { seal, accountId: 'acc_1' })
}
const send = (fields: object, headers: Record<string, string> = {}) => read(fields, headers).request
const messages = (...input: readonly object[]) => send({ input }).messages
const refusal = (fields: object) => getRefusal(() => read(fields))
const text = (said: string) => ({ type: 'text', text: said }) as const
const said = (fields: Partial<Extract<Message, { role: 'assistant' }>>): Message => ({
  role: 'assistant',
  text: null,
  reasoning: null,
  toolCalls: [],
  name: null,
  ...fields,
})
const call = (id: string, name: string, args = '{}', signature: string | null = null) => ({
  id,
  name,
  arguments: args,
  signature,
})
const sealed = (item: Partial<ReasoningItem>, account = 'acc_1') =>
  seal.seal(account, { family: 'anthropic', kind: 'signature', text: 'Hm.', data: 'sig', id: null, ...item })

describe('Responses items', () => {
  test('become a user message for a text, and system messages for instructions and developer items', () => {
    expect(
      send({
        instructions: 'Be brief.',
        input: [
          { role: 'developer', content: 'In French.' },
          { role: 'user', content: 'Hi' },
        ],
      }).messages,
    ).toEqual([
      { role: 'system', text: 'Be brief.' },
      { role: 'system', text: 'In French.' },
      { role: 'user', content: [text('Hi')], name: null },
    ])
    expect(send({}).messages).toEqual([{ role: 'user', content: [text('Hi')], name: null }])
  })

  test('read messages in short, full and output form, images and documents', () => {
    const pdf = 'data:application/pdf;base64,JVBERi0x'
    expect(
      messages(
        {
          type: 'message',
          role: 'user',
          status: 'completed',
          content: [
            { type: 'input_text', text: 'Look', prompt_cache_breakpoint: { mode: 'explicit' } },
            { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
            { type: 'input_file', filename: 'a.pdf', file_data: pdf },
          ],
        },
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          phase: 'final_answer',
          content: [
            { type: 'output_text', text: 'I see. ', annotations: [] },
            { type: 'refusal', refusal: 'No.' },
          ],
        },
      ),
    ).toEqual([
      {
        role: 'user',
        content: [
          text('Look'),
          { type: 'image', url: 'https://example.com/a.png', detail: 'low' },
          { type: 'file', url: pdf, name: 'a.pdf' },
        ],
        name: null,
      },
      said({ text: 'I see. No.' }),
    ])
  })

  test('put parallel calls into one turn, followed by results in any order and their images', () => {
    expect(
      messages(
        { role: 'user', content: 'Go' },
        { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'one', arguments: '{"a":1}', status: 'completed' },
        { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c2', name: 'patch', input: 'say "x"\n' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: 'done' },
        {
          type: 'function_call_output',
          call_id: 'c1',
          output: [
            { type: 'input_text', text: 'shot' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'original' },
          ],
        },
      ),
    ).toEqual([
      { role: 'user', content: [text('Go')], name: null },
      said({ toolCalls: [call('c1', 'one', '{"a":1}'), call('c2', 'patch', '{"input":"say \\"x\\"\\n"}')] }),
      { role: 'tool', callId: 'c2', text: 'done' },
      { role: 'tool', callId: 'c1', text: 'shot' },
      {
        role: 'user',
        content: [
          text('Attached to the tool results:'),
          { type: 'image', url: 'data:image/png;base64,AA==', detail: 'original' },
        ],
        name: null,
      },
    ])
  })

  test('put a result after its own call if it follows a later call', () => {
    const roles = messages(
      { type: 'function_call', call_id: 'c1', name: 'one', arguments: '{}' },
      { type: 'function_call', call_id: 'c2', name: 'two', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: 'first' },
      { type: 'function_call', call_id: 'c3', name: 'three', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c2', output: 'second' },
      { type: 'function_call_output', call_id: 'c3', output: 'third' },
    ).map(message => (message.role === 'tool' ? message.callId : message.role))
    expect(roles).toEqual(['assistant', 'c1', 'c2', 'assistant', 'c3'])
  })

  test('become user messages for agent messages, and drop earlier searches', () => {
    expect(
      messages(
        { role: 'user', content: 'Go' },
        { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
        { type: 'agent_message', author: 'a', content: [{ type: 'input_text', text: 'Found it.' }] },
        { type: 'agent_reasoning', text: 'Thinking aloud.' },
      ),
    ).toEqual([
      { role: 'user', content: [text('Go')], name: null },
      { role: 'user', content: [text('Found it.')], name: null },
      { role: 'user', content: [text('Thinking aloud.')], name: null },
    ])
  })

  test.each([
    ['background', { background: true }, 'unsupported_parameter'],
    ['previous_response_id', { previous_response_id: 'resp_1' }, 'previous_response_not_found'],
    ['conversation', { conversation: 'conv_1' }, 'unsupported_parameter'],
    ['prompt', { prompt: { id: 'pmpt_1' } }, 'unsupported_parameter'],
    ['input', { input: [{ type: 'item_reference', id: 'msg_1' }] }, 'not_found'],
    ['input', { input: null }, 'invalid_request'],
    ['input.0.call_id', { input: [{ type: 'function_call_output', call_id: 'c1', output: '' }] }, 'invalid_request'],
    [
      'input.1.role',
      {
        input: [
          { role: 'user', content: 'a' },
          { role: 'robot', content: '' },
        ],
      },
      'invalid_request',
    ],
    [
      'input.0.content.0.type',
      { input: [{ role: 'user', content: [{ type: 'input_audio' }] }] },
      'unsupported_parameter',
    ],
    [
      'input.0.content.0.file_id',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] },
      'unsupported_parameter',
    ],
    [
      'input.0.content.0.image_url',
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'http://169.254.169.254/a' }] }] },
      'invalid_request',
    ],
    ['tools.0.name', { tools: [{ type: 'function' }] }, 'invalid_request'],
    [
      'tool_choice.name',
      { tools: [{ type: 'function', name: 'a' }], tool_choice: { type: 'function', name: 'b' } },
      'invalid_request',
    ],
    [
      'tool_choice.type',
      { tools: [{ type: 'file_search' }], tool_choice: { type: 'file_search' } },
      'unsupported_parameter',
    ],
    ['max_output_tokens', { max_output_tokens: 0 }, 'invalid_request'],
  ])('reject %s for %j', (param, fields, code) => {
    expect(refusal(fields)).toMatchObject({ param, code })
  })

  test('resolve references to items that another item of the input carries, for its account only', () => {
    const text = { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }
    const call = { id: 'fc_1', type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
    const carrier = findCarrier([text, call], item => seal.seal('acc_1', item))
    const reference = (id: unknown) => ({ type: 'item_reference', id })
    const input = [
      { role: 'user', content: 'Hi' },
      reference('msg_1'),
      reference(carrier?.id),
      { role: 'user', content: 'So' },
    ]
    const resolved = withCarriedItems(input, { seal, accountId: 'acc_1' })
    expect(resolved).toEqual([input[0], text, input[3]])
    expect(withCarriedItems(input, { seal, accountId: 'acc_2' })).toEqual(input)
    expect(withCarriedItems([...input, reference('fc_1')], { seal, accountId: 'acc_1' }).at(-1)).toEqual(
      reference('fc_1'),
    )
  })

  test('carry items only for a client that refers to them', () => {
    const agent = (name: string) => new Headers({ 'user-agent': name })
    const sdk = agent('ai/6.0.326 ai-sdk/openai/3.0.141 runtime/node.js/24')
    expect([refersToItems(null, sdk), refersToItems(true, sdk), refersToItems(false, sdk)]).toEqual([true, true, false])
    expect([refersToItems(null, agent('OpenAI/JS 7.55.0')), refersToItems(null, new Headers())]).toEqual([false, false])
    expect(findCarrier([{ type: 'function_call', id: 'fc_1' }], () => '')).toBeNull()
  })

  test('reject stored references with the fields to send instead', () => {
    for (const fields of [{ previous_response_id: 'resp_1' }, { conversation: { id: 'c' } }])
      expect(refusal(fields).message).toMatch(/store: false.*`input`/)
    expect(refusal({ input: [{ type: 'item_reference', id: 'rs_1' }] }).message).toMatch(
      /Item with id 'rs_1' not found.*store: false.*providerOptions\.openai\.store = false/,
    )
  })

  test('need OpenAI if only OpenAI can read them, and disable additions to the request', () => {
    const {
      source,
      web,
      enhance,
      messages: said,
    } = send(
      {
        input: [
          { role: 'user', content: 'Go' },
          { type: 'mcp_call', id: 'mcp_1', name: 'x', output: 'secret', image: 'data:AA' },
          { type: 'compaction', encrypted_content: 'x' },
        ],
      },
      { 'x-gateway-enhance': 'true' },
    )
    expect(source?.needs).toEqual(['input.1.type', 'input.2.type'])
    // Their texts are moderated, although the items go upstream unchanged.
    expect(said[1]).toEqual({ role: 'tool', callId: '', text: '' })
    expect(source?.unread.map(({ kind, texts }) => [kind, ...texts])).toEqual([
      ['data', 'mcp_call\nmcp_1\nx\nsecret\ndata:AA'],
      ['data', 'compaction'],
      ['opaque', 'x'],
    ])
    expect([web, enhance]).toEqual(['off', false])
    expect(
      send({ tools: [{ type: 'shell', environment: { type: 'local' } }], tool_choice: { type: 'shell' } }).source
        ?.needs,
    ).toEqual(['tool_choice'])
  })

  test('disable web search for a turn that has only results', () => {
    const turn = [
      { role: 'user', content: 'Go' },
      { type: 'function_call', call_id: 'c1', name: 'one', arguments: '{}' },
    ]
    expect(send({ input: turn.slice(0, 1) }).web).toBe('auto')
    expect(send({ input: [...turn, { type: 'function_call_output', call_id: 'c1', output: '' }] }).web).toBe('off')
  })
})

describe('Responses tools', () => {
  const member = {
    type: 'function',
    name: 'search',
    description: 'Finds',
    parameters: { type: 'object' },
    strict: false,
  }
  const grammar = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' }

  test('become functions with their origin for functions, free-text tools and namespaces', () => {
    const { request: asked, origins } = read({
      tools: [
        { type: 'function', name: 'one', parameters: null, strict: null },
        { type: 'custom', name: 'patch', description: 'Edits.', format: grammar },
        { type: 'namespace', name: 'mcp__docs', description: 'Docs', tools: [member, { type: 'custom', name: 'raw' }] },
        { type: 'namespace', name: 'functions', description: '', tools: [{ ...member, name: 'bare' }] },
      ],
    })
    expect(asked.tools.map(({ name, strict }) => [name, strict])).toEqual([
      ['one', null],
      ['patch', null],
      ['mcp__docs__search', false],
      ['mcp__docs__raw', null],
      ['bare', false],
    ])
    expect(asked.tools[1]).toMatchObject({
      description: 'Edits.\n\n`input` must match this Lark grammar:\nstart: "x"',
      parameters: { required: ['input'] },
    })
    expect(asked.tools[2]?.description).toBe('Docs\n\nFinds')
    expect(Object.fromEntries(origins)).toEqual({
      one: { kind: 'function', name: 'one', namespace: null },
      patch: { kind: 'custom', name: 'patch', namespace: null },
      mcp__docs__search: { kind: 'function', name: 'search', namespace: 'mcp__docs' },
      mcp__docs__raw: { kind: 'custom', name: 'raw', namespace: 'mcp__docs' },
      bare: { kind: 'function', name: 'bare', namespace: null },
    })
  })

  test('have the same names in earlier calls and in declarations', () => {
    const tools = [{ type: 'namespace', name: 'a'.repeat(60), tools: [member] }]
    const item = { type: 'function_call', call_id: 'c1', name: 'search', namespace: 'a'.repeat(60), arguments: '{}' }
    const asked = send({ tools, input: [item] })
    const [message] = asked.messages
    const [tool] = asked.tools
    expect(tool?.name).toHaveLength(64)
    expect(message?.role === 'assistant' && message.toolCalls[0]?.name).toBe(tool?.name ?? '')
    expect(flatToolName('ns', 'a b')).toMatch(/^ns__a_b_[0-9a-f]{8}$/)
  })

  test('come from the input too, and a later declaration replaces an earlier one', () => {
    const again = { type: 'namespace', name: 'ns', tools: [{ ...member, description: 'Newer' }] }
    const asked = send({
      input: [
        { type: 'additional_tools', role: 'developer', tools: [{ type: 'namespace', name: 'ns', tools: [member] }] },
        { role: 'user', content: 'Go' },
        { type: 'additional_tools', role: 'developer', tools: [again, { type: 'web_search' }] },
      ],
      tool_choice: 'auto',
    })
    expect(asked.tools.map(({ name, description }) => [name, description])).toEqual([['ns__search', 'Newer']])
    expect(asked.messages).toHaveLength(1)
  })

  test('reject two tools with one function name, with both names in the message', () => {
    const tools = [
      { type: 'function', name: 'ns__search' },
      { type: 'namespace', name: 'ns', tools: [member] },
    ]
    expect(refusal({ tools })).toMatchObject({
      param: 'tools.1',
      message: expect.stringMatching(/"search" of the namespace "ns".*"ns__search"/),
    })
  })

  test('omit deferred tools until a search of the client has found them', () => {
    const search = {
      type: 'tool_search',
      execution: 'client',
      description: 'Finds tools',
      parameters: { type: 'object' },
    }
    const deferred = { ...member, defer_loading: true }
    expect(send({ tools: [search, deferred] }).tools.map(({ name }) => name)).toEqual(['tool_search'])
    const found = send({
      tools: [search, deferred],
      input: [
        { type: 'tool_search_call', call_id: 'c1', execution: 'client', arguments: { query: 'x' } },
        { type: 'tool_search_output', call_id: 'c1', tools: [deferred] },
      ],
    })
    expect(found.tools.map(({ name }) => name)).toEqual(['tool_search', 'search'])
    expect(found.messages[1]).toEqual({ role: 'tool', callId: 'c1', text: '{"tools":["search"]}' })
    // If the search would run at OpenAI, all tools are declared.
    expect(send({ tools: [{ type: 'tool_search' }, deferred] }).tools.map(({ name }) => name)).toEqual(['search'])
  })

  test('report OpenAI’s own tools for other providers, and drop tools with a separate price', () => {
    const { source } = send({
      tools: [
        { type: 'mcp', server_url: 'https://x.example' },
        { type: 'file_search' },
        { type: 'web_search' },
        { type: 'shell', environment: { type: 'container_reference', container_id: 'of the operator' } },
        { type: 'newer_than_this' },
      ],
    })
    expect(source?.sameFormOnly).toEqual(['tools.mcp', 'tools.file_search', 'tools.shell', 'tools.newer_than_this'])
  })

  test.each([
    ['none', 'none'],
    ['required', 'required'],
    [{ type: 'function', name: 'one' }, { name: 'one' }],
    [{ type: 'custom', name: 'patch' }, { name: 'patch' }],
    [{ type: 'function', name: 'search', namespace: 'ns' }, { name: 'ns__search' }],
    [{ type: 'web_search' }, 'auto'],
  ])('translate the choice %j to %j', (tool_choice, expected) => {
    const tools = [
      { type: 'function', name: 'one' },
      { type: 'custom', name: 'patch' },
      { type: 'namespace', name: 'ns', tools: [member] },
    ]
    expect<unknown>(send({ tools, tool_choice }).toolChoice).toEqual(expected)
  })

  test('exclude tools that are not allowed', () => {
    const tools = [
      { type: 'function', name: 'one' },
      { type: 'custom', name: 'patch' },
    ]
    const tool_choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'patch' }] }
    const asked = send({ tools, tool_choice })
    expect([asked.tools.map(({ name }) => name), asked.toolChoice]).toEqual([['patch'], 'required'])
  })
})

describe('Responses reasoning', () => {
  const turn = (...encrypted: readonly (string | null)[]) => [
    { role: 'user', content: 'Go' },
    ...encrypted.map((encrypted_content, index) => ({
      type: 'reasoning',
      id: `rs_${index}`,
      summary: [],
      encrypted_content,
    })),
    { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'one', arguments: '{}' },
  ]
  const assistant = (...encrypted: readonly (string | null)[]) => messages(...turn(...encrypted))[1]

  test('returns sealed items of the account with their turn, in order', () => {
    expect(assistant(sealed({}), sealed({ kind: 'redacted', text: '', data: 'r' }))).toEqual(
      said({
        toolCalls: [call('c1', 'one')],
        reasoningItems: [
          { family: 'anthropic', kind: 'signature', text: 'Hm.', data: 'sig', id: null },
          { family: 'anthropic', kind: 'redacted', text: '', data: 'r', id: null },
        ],
      }),
    )
  })

  test('becomes the signature of a call for Google, and text for plain reasoning', () => {
    expect(assistant(sealed({ family: 'google', text: '', data: 'Z2', id: 'c1' }))).toEqual(
      said({ toolCalls: [call('c1', 'one', '{}', 'Z2')] }),
    )
    expect(assistant(sealed({ family: 'compatible', text: 'Aloud.', data: '' }))).toEqual(
      said({ reasoning: 'Aloud.', toolCalls: [call('c1', 'one')] }),
    )
  })

  test.each([
    ['an item of OpenAI', 'gAAAAABo'],
    ['an item of another account', sealed({}, 'acc_2')],
    ['a changed item', `${sealed({}).slice(0, -2)}AA`],
    ['a missing item', null],
  ])('drops %s without an error', (_, encrypted) => {
    expect(assistant(encrypted)).toEqual(said({ toolCalls: [call('c1', 'one')] }))
  })

  test('goes to OpenAI unchanged if it is OpenAI’s, without IDs of items that are not stored', () => {
    const own = sealed({ family: 'openai', kind: 'encrypted', text: 'Sum', data: 'gAAAA', id: 'rs_real' })
    expect(send({ input: turn(own, sealed({}), 'gAAAAABo') }).source?.fields.input).toEqual([
      { role: 'user', content: 'Go' },
      { type: 'reasoning', id: 'rs_real', summary: [], encrypted_content: 'gAAAA' },
      { type: 'function_call', call_id: 'c1', name: 'one', arguments: '{}' },
    ])
  })
})

test('readResponses: reads settings, prefers headers and keeps unknown fields', () => {
  const asked = send(
    {
      max_output_tokens: 50,
      temperature: 0.5,
      top_p: 0.9,
      top_logprobs: 3,
      include: ['message.output_text.logprobs', 'not.known.yet'],
      reasoning: { effort: 'high', summary: 'auto', context: 'auto' },
      text: {
        format: { type: 'json_schema', name: 'out', schema: { type: 'object' }, strict: true },
        verbosity: 'low',
      },
      parallel_tool_calls: false,
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'thread',
      service_tier: 'flex',
      truncation: 'auto',
      store: true,
      client_metadata: { x: 'y' },
      brand_new: 1,
      strategy: 'quality',
      stream: true,
    },
    { 'x-gateway-strategy': 'cost' },
  )
  expect(asked).toMatchObject({
    dialect: 'responses',
    strategy: 'cost',
    stream: 'buffered',
    maxOutputTokens: 50,
    temperature: 0.5,
    topP: 0.9,
    logprobs: true,
    topLogprobs: 3,
    reasoningEffort: 'high',
    responseFormat: { type: 'json_schema', name: 'out', description: null, schema: { type: 'object' }, strict: true },
    parallelToolCalls: false,
    metadata: { a: 'b' },
    endUser: 's',
    choices: 1,
  })
  expect(asked.extras).toEqual({
    prompt_cache_key: 'thread',
    service_tier: 'flex',
    client_metadata: { x: 'y' },
    brand_new: 1,
    verbosity: 'low',
  })
  expect(asked.source?.sameFormOnly).toEqual(['truncation'])
})
