/** What a provider may add to the input is reserved, up to the context window or to all that the account has left. */
import { expect, test } from 'bun:test'
import { highestAddedInput } from '../../src/core/chat/provider-features.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { readResponses } from '../../src/dialects/responses/request.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const window = 200_000

function added(fields: object, headers: Record<string, string> = {}): number {
  const body = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }], ...fields }
  const source = { headers: new Headers(headers), text: JSON.stringify(body), accountId: 'a' }
  return highestAddedInput(readMessages(body, source, seal).request, window)
}

function addedHere(fields: object): number {
  const body = { model: 'm', input: 'Hi', ...fields }
  const source = { headers: new Headers(), text: JSON.stringify(body) }
  return highestAddedInput(readResponses(body, source, { seal, accountId: 'a' }).request, window)
}

const fetching = (fields: object) => ({ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', ...fields }] })
const document = (source: object) => ({ messages: [{ role: 'user', content: [{ type: 'document', source }] }] })

test.each<readonly [string, number, object]>([
  ['a plain request', 0, {}],
  ['a function', 0, { tools: [{ name: 'f', input_schema: { type: 'object' } }] }],
  ['tools that the client runs', 0, { tools: [{ type: 'bash_20250124', name: 'bash' }] }],
  ['an empty list of edits', 0, { context_management: { edits: [] } }],
  ['a text document', 0, document({ type: 'text', media_type: 'text/plain', data: 'x' })],
  ['a bounded page fetch', 40_000, fetching({ max_uses: 2, max_content_tokens: 10_000 })],
  ['a page fetch without a bound', window, fetching({ max_uses: 2 })],
  ['a search', window, { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }] }],
  ['code', window, { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
  ['a server of the client', window, { mcp_servers: [{ type: 'url', url: 'https://a.test/mcp', name: 'a' }] }],
  ['a summary of the conversation', window, { context_management: { edits: [{ type: 'compact_20260112' }] } }],
  ['a document by URL', window, document({ type: 'url', url: 'https://a.test/a.pdf' })],
  ['a PDF', window, document({ type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' })],
])('highestAddedInput: Messages with %s can add %d tokens', (_name, most, fields) => {
  expect(added(fields)).toBe(most)
})

test('highestAddedInput: a beta that summarizes can add the window', () => {
  expect(added({}, { 'anthropic-beta': 'compact-2026-01-12' })).toBe(window)
})

test.each<readonly [string, number, object]>([
  ['a plain request', 0, {}],
  ['tools that the client runs', 0, { tools: [{ type: 'local_shell' }] }],
  ['a server of the client', window, { tools: [{ type: 'mcp', server_label: 'x', server_url: 'https://a.test' }] }],
  ['a summary of the conversation', window, { context_management: [{ type: 'compaction' }] }],
  [
    'an item that asks for a summary',
    window,
    { input: [{ role: 'user', content: 'Hi' }, { type: 'compaction_trigger' }] },
  ],
  [
    'a file by URL',
    window,
    { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://a.test/a.pdf' }] }] },
  ],
])('highestAddedInput: Responses with %s can add %d tokens', (_name, most, fields) => {
  expect(addedHere(fields)).toBe(most)
})

const unknown = { code: 'unsupported_parameter' }
const said = { type: 'text', text: 'Hi' }

test.each<readonly [string, string, object]>([
  ['a block', 'messages.0.content.1.type', { messages: [{ role: 'user', content: [said, { type: 'hologram' }] }] }],
  [
    'a block that declares a tool',
    'messages.1.content.0.type',
    {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'system', content: [{ type: 'tool_addition', text: 'x', tool: { type: 'web_search_20250305' } }] },
      ],
    },
  ],
  [
    'a block of an answer',
    'messages.1.content.0.type',
    {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_addition', tool: {} }] },
      ],
    },
  ],
  [
    'a block of a document',
    'messages.0.content.0.source.content.0.type',
    {
      messages: [
        { role: 'user', content: [{ type: 'document', source: { type: 'content', content: [{ type: 'new' }] } }] },
      ],
    },
  ],
  [
    'a block of a result',
    'messages.1.content.0.content.0.type',
    {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'container_upload' }] }] },
      ],
    },
  ],
])('readMessages: refuses %s of an unknown type by name', (_name, param, fields) => {
  expect(() => added(fields)).toThrow(expect.objectContaining({ ...unknown, param }))
})

test.each(['program', 'code_interpreter_call', 'configuration_update', 'hologram', 7])(
  'readResponses: refuses an item of type %p by name',
  type => {
    const refused = { ...unknown, param: 'input.0.type' }
    expect(() => addedHere({ input: [{ type }] })).toThrow(expect.objectContaining(refused))
  },
)
