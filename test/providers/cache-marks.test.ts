import { expect, test } from 'bun:test'
import type { CacheMark, ContentPart, Message, Tool } from '../../src/core/chat/chat.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { withPromptMarks } from '../../src/providers/marked-prompt.ts'
import { askWith } from '../harness/ask.ts'
import { budgetRules, modelWith } from '../harness/model.ts'

const ephemeral = { type: 'ephemeral' }
const text = (name: string, cache?: CacheMark) => ({ type: 'text' as const, text: name, ...(cache && { cache }) })
const tool = (name: string, cache?: CacheMark): Tool => ({
  ...{ name, description: null, parameters: null, strict: null },
  ...(cache && { cache }),
})

function prompt(
  users: number,
  cache?: CacheMark,
): { readonly messages: readonly Message[]; readonly tools: readonly Tool[] } {
  const turns = Array.from({ length: 2 * users - 1 }, (_, at): Message => {
    if (at % 2 === 0) return { role: 'user', content: [text(`${at} a`, cache), text(`${at} b`, cache)], name: null }
    return { role: 'assistant', text: `${at}`, reasoning: null, toolCalls: [], name: null, ...(cache && { cache }) }
  })
  const system = ['rules', 'style'].map(name => ({ role: 'system' as const, text: name, ...(cache && { cache }) }))
  return { tools: [tool('read', cache), tool('write', cache)], messages: [...system, ...turns] }
}

/** Names of the marked blocks, in order. */
function marked({ tools, messages }: ReturnType<typeof prompt>): readonly unknown[] {
  const names = tools.map(({ name, cache }) => ({ name, cache }))
  const named = (part: Message | ContentPart) => ({
    name: 'text' in part ? part.text : null,
    cache: 'cache' in part ? part.cache : undefined,
  })
  const texts = messages.flatMap(message => (message.role === 'user' ? message.content.map(named) : [named(message)]))
  return [...names, ...texts].filter(({ cache }) => cache !== undefined).map(({ name }) => name)
}

test.each([
  [1, null, []],
  [1, 'system', ['style']],
  [1, 'conversation', ['style', '0 b']],
  [3, 'conversation', ['style', '2 b', '4 b']],
] as const)('withPromptMarks: marks %i user turns with %p', (users, automatic, expected) => {
  expect(marked(withPromptMarks(prompt(users), automatic))).toEqual([...expected])
})

test('withPromptMarks: marks the tools where there is no system text', () => {
  const { tools, messages } = prompt(1)
  expect(marked(withPromptMarks({ tools, messages: messages.slice(2) }, 'system'))).toEqual(['write'])
})

test('withPromptMarks: keeps the last four marks, the maximum of Anthropic', () => {
  const result = withPromptMarks(prompt(3, '5m'), null)
  expect(marked(result)).toEqual(['2 b', '3', '4 a', '4 b'])
  expect(result.droppedMarks).toEqual(['cache_control'])
})

test('anthropic: writes only the marks of the client, with their lifetime, if there are some', () => {
  const { messages } = prompt(2)
  const [, style, ...turns] = messages
  const rules: Message = { role: 'system', text: 'rules', cache: '1h' }
  const request = askWith({
    messages: [rules, ...(style ? [style] : []), ...turns],
    tools: [tool('read'), tool('write', '5m')],
  })
  const model = modelWith({ id: 'claude-a', provider: 'anthropic', parameters: budgetRules })
  const asked = { request, model, outputCap: 100, stream: false, cacheMarks: 'conversation' as const }
  const { body, droppedParameters } = anthropic.toRequest(asked, { baseUrl: 'https://a.test', apiKey: 'k' })
  const sent = JSON.parse(body)
  expect(sent.system[0]).toEqual({ type: 'text', text: 'rules', cache_control: { ...ephemeral, ttl: '1h' } })
  expect(sent.tools[1].cache_control).toEqual(ephemeral)
  expect(body.split('cache_control')).toHaveLength(3)
  expect(droppedParameters).toEqual([])
})
