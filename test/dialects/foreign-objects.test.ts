/** References in bodies that go to a provider of the same form: objects of its account, and addresses that it fetches. */
import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../src/core/validation/errors.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const headers = new Headers()
type Json = Record<string, unknown>

const forms = {
  responses(body: Json): void {
    readResponses({ model: 'm', ...body }, { headers, text: JSON.stringify(body) }, { seal, accountId: 'a' })
  },
  messages(body: Json): void {
    const source = { headers, text: JSON.stringify(body), accountId: 'a' }
    readMessages({ model: 'm', max_tokens: 9, ...body }, source, seal)
  },
}

/** Returns code and field of a refusal; null = the body is accepted. */
function findRefusal(form: keyof typeof forms, body: Json): readonly [code: string, param: string | null] | null {
  try {
    forms[form](body)
    return null
  } catch (thrown) {
    if (thrown instanceof GatewayError) return [thrown.code, thrown.param]
    throw thrown
  }
}

const schema = { type: 'object', properties: { file_id: { type: 'string' }, container: { enum: ['a'] } } }
const responses: Json = {
  instructions: 'i',
  input: [
    { role: 'developer', content: 'a' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"file_id":"x"}' },
    { type: 'function_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'x' }] },
    { type: 'mcp_list_tools', server_label: 's', tools: [{ name: 'f', input_schema: schema }] },
    { type: 'local_shell_call', call_id: 'c2', action: { type: 'exec', command: ['ls'], env: { container: 'x' } } },
    { type: 'shell_call', call_id: 'c4', action: { commands: ['ls'] }, environment: { type: 'local' } },
    { type: 'shell_call_output', call_id: 'c4', output: [{ stdout: 'a', outcome: { type: 'exit', exit_code: 0 } }] },
    { type: 'computer_call_output', call_id: 'c3', output: { type: 'computer_screenshot' } },
    { type: 'image_generation_call', id: 'ig_1', result: 'iVBORw0KGgo=' },
    { type: 'tool_search_call', call_id: 's', execution: 'client', arguments: { file_id: 'x' } },
    { role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [{ type: 'url_citation' }] }] },
    { role: 'user', content: [{ type: 'input_image', image_url: 'https://a.example/a.png' }] },
  ],
  tools: [
    { type: 'function', name: 'f', parameters: schema },
    { type: 'shell', environment: { type: 'local', skills: [{ name: 's', path: '/s' }] } },
    { type: 'namespace', name: 'n', tools: [{ type: 'function', name: 'm', parameters: schema }] },
    { type: 'mcp', server_label: 's', server_url: 'https://a.example/mcp', allowed_tools: { tool_names: ['f'] } },
  ],
  metadata: { file_id: 'x' },
  client_metadata: { container: 'x' },
}
const ran = { type: 'bash_code_execution_output', file_id: 'file_1' }
const messages: Json = {
  system: [{ type: 'text', text: 's' }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'a' }] },
    {
      role: 'assistant',
      content: [
        { type: 'server_tool_use', id: 's', name: 'bash_code_execution', input: { container: 'x' } },
        {
          type: 'bash_code_execution_tool_result',
          tool_use_id: 's',
          content: { type: 'bash_code_execution_result', stdout: 'o', content: [ran] },
        },
        {
          type: 'web_fetch_tool_result',
          tool_use_id: 'w',
          content: { type: 'web_fetch_result', url: 'a', content: { type: 'document', source: { type: 'text' } } },
        },
        { type: 'mcp_tool_result', tool_use_id: 'm', content: [{ type: 'text', text: 'x' }] },
        { type: 'text', text: 'x', citations: [{ type: 'char_location', file_id: null }] },
        { type: 'tool_use', id: 't', name: 'f', input: { file_id: 'x', nested: { container_id: 'y' } } },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'r' }] },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'd' }] } },
      ],
    },
  ],
  tools: [
    { name: 'f', input_schema: schema, input_examples: [{ file_id: 'x' }] },
    { type: 'code_execution_20250825', name: 'code_execution' },
  ],
  mcp_servers: [{ type: 'url', name: 's', url: 'https://a.example/mcp' }],
}

/** Names whose values are the client's own data. */
const ownData = /^(?:parameters|input_schema|schema|arguments|input_examples|env|metadata|client_metadata)$/
const isOwnInput = (value: object) => 'type' in value && /tool_use$/.test(String(value.type))

/** Returns the paths of all objects of a body that are not data of the client. */
function objectsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.entries(value).flatMap(([name, item]) =>
    ownData.test(name) || (name === 'input' && isOwnInput(value)) ? [] : objectsIn(item, [...path, name]),
  )
  return Array.isArray(value) ? inner : [path, ...inner]
}

/** Returns the body with more fields in the object at a path. */
function withFields(value: unknown, path: readonly string[], fields: Json): Json {
  const copy = structuredClone(value) as Json
  let at: Json = copy
  for (const name of path) at = at[name] as Json
  Object.assign(at, fields)
  return copy
}

const bodies = { responses, messages } as const

describe.each(['responses', 'messages'] as const)('objects of the account at the provider in %s', form => {
  const body = bodies[form]
  const places = objectsIn(body).filter(path => path.length > 1)

  test('accepts fields of these names in data of the client, and in results of code execution', () => {
    expect(findRefusal(form, body)).toBeNull()
    expect(places.length).toBeGreaterThan(15)
  })

  test.each(['file_id', 'file_ids', 'container', 'container_id', 'vector_store_id', 'vector_store_ids', 'skill_id'])(
    'refuses `%s` in every object that leaves',
    name => {
      for (const path of places) {
        if (name === 'file_id' && path.join('.') === writtenFile) continue
        const refusal = findRefusal(form, withFields(body, path, { [name]: 'x_1' }))
        expect([path.join('.'), refusal?.[0]]).toEqual([path.join('.'), 'unsupported_parameter'])
      }
    },
  )

  test('accepts null', () => {
    for (const path of places)
      expect([path, findRefusal(form, withFields(body, path, { container_id: null }))]).toEqual([path, null])
  })
})

/** The file that code execution wrote. */
const writtenFile = 'messages.1.content.1.content.content.0'

test('image_generation_call: fails without its data, which OpenAI would look up by ID', () => {
  const input = [
    { type: 'image_generation_call', id: 'ig_of_the_operator' },
    { role: 'user', content: 'x' },
  ]
  expect(findRefusal('responses', { input })).toEqual(['unsupported_parameter', 'input.id'])
})

describe('addresses that a provider fetches', () => {
  const inside = [
    'http://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/',
    'https://[::ffff:127.0.0.1]/',
    'https://localhost/',
    'https://mcp.internal/',
    'https://user:secret@a.example/',
    'https://a.example:8443/',
    'file:///etc/passwd',
    'not a URL',
  ]
  const nested = (tool: Json) => [
    { input: 'x', tools: [tool] },
    {
      input: [
        { type: 'additional_tools', tools: [tool] },
        { role: 'user', content: 'x' },
      ],
    },
    { input: 'x', tools: [{ type: 'namespace', name: 'n', tools: [tool] }] },
    {
      input: [
        { type: 'tool_search_output', call_id: null, tools: [tool] },
        { role: 'user', content: 'x' },
      ],
    },
  ]

  test.each(inside)('refuses a tool server at %s at any depth', url => {
    for (const body of nested({ type: 'mcp', server_label: 's', server_url: url }))
      expect([body, findRefusal('responses', body)?.[0]]).toEqual([body, 'invalid_request'])
    expect(
      findRefusal('messages', { messages: [{ role: 'user', content: 'x' }], mcp_servers: [{ type: 'url', url }] })?.[0],
    ).toBe('invalid_request')
  })

  test.each(inside)('refuses an image and a document at %s within items that only the provider reads', url => {
    const shot = (output: Json) => ({
      input: [
        { type: 'computer_call_output', call_id: 'c', output },
        { role: 'user', content: 'x' },
      ],
    })
    for (const output of [
      { type: 'computer_screenshot', image_url: url },
      { type: 'x', parts: [{ file_url: url }] },
    ])
      expect(findRefusal('responses', shot(output))?.[0]).toBe('invalid_request')
    const content = { type: 'web_fetch_result', content: { type: 'document', source: { type: 'url', url } } }
    const block = { type: 'web_fetch_tool_result', tool_use_id: 'w', content }
    const turns = [
      { role: 'assistant', content: [block] },
      { role: 'user', content: 'x' },
    ]
    expect(findRefusal('messages', { messages: turns })?.[0]).toBe('invalid_request')
  })

  test('refuses a tool server in a `data:` URL, and accepts public ones and tools without an address', () => {
    const [body] = nested({ type: 'mcp', server_label: 's', server_url: 'data:text/plain,x' })
    expect(findRefusal('responses', body ?? {})?.[0]).toBe('invalid_request')
    for (const tool of [
      { type: 'mcp', server_label: 's', server_url: 'https://a.example/mcp' },
      { type: 'mcp', server_label: 's', connector_id: 'connector_dropbox', authorization: 't' },
    ])
      for (const accepted of nested(tool))
        expect([accepted, findRefusal('responses', accepted)]).toEqual([accepted, null])
  })
})
