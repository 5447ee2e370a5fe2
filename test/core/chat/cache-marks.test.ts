import { expect, test } from 'bun:test'
import type { ChatRequest, Message, Tool } from '../../../src/core/chat/chat.ts'
import { automaticCacheMarks } from '../../../src/core/chat/provider-features.ts'
import { askWith } from '../../harness/ask.ts'

const user: Message = { role: 'user', content: [{ type: 'text', text: 'Which files are here?' }], name: null }
const call: Message = {
  role: 'assistant',
  text: null,
  reasoning: null,
  toolCalls: [{ id: 'call_1', name: 'list', arguments: '{}', signature: null }],
  name: null,
}
const result: Message = { role: 'tool', callId: 'call_1', text: 'a.ts' }
const tool: Tool = { name: 'list', description: null, parameters: null, strict: null }
const asking = (fields: Partial<ChatRequest> = {}) => askWith({ messages: [user], bodyCharacters: 20_000, ...fields })

test.each([
  ['a first question without tools', asking(), null, null],
  ['a question whose instructions were seen', asking(), 'system', 'system'],
  ['a conversation that goes on within minutes', asking(), 'conversation', 'conversation'],
  ['the first question of an agent', asking({ tools: [tool] }), null, 'conversation'],
  ['a forced call', asking({ tools: [tool], toolChoice: { name: 'list' } }), null, null],
  ['a tool result', asking({ messages: [user, call, result] }), null, 'conversation'],
  ['a short request', asking({ tools: [tool], bodyCharacters: 900 }), 'conversation', null],
  ['marks of the client at a tool', asking({ tools: [{ ...tool, cache: '5m' }] }), 'conversation', null],
  [
    'marks of the client at a part',
    asking({ messages: [{ ...user, content: [{ type: 'text', text: 'Hi', cache: '1h' }] }] }),
    'conversation',
    null,
  ],
] as const)('automaticCacheMarks: decides for %s', (_, request, seen, expected) => {
  expect(automaticCacheMarks(request, seen)).toBe(expected)
})
