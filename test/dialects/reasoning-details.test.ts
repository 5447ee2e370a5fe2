import { describe, expect, test } from 'bun:test'
import { readCompatible } from '../../src/dialects/chat-completions/request.ts'
import { createReasoningSeal, detailReader, sealedDetail } from '../../src/dialects/reasoning-seal.ts'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { openai } from '../../src/providers/openai.ts'
import { type AnswerPart, recorded } from '../harness/answer-parts.ts'

const seal = createReasoningSeal('a secret of at least 32 characters', null)
const compatible = openai({ official: false })
const read = (account: string, details: readonly object[]) =>
  readCompatible(
    {
      messages: [
        { role: 'user', content: 'q' },
        { role: 'assistant', content: 'a', reasoning_content: 'hm', reasoning_details: details },
        { role: 'user', content: 'on' },
      ],
    },
    new Headers(),
    100,
    detailReader(seal, account),
  ).request
const sent = (request: ReturnType<typeof read>, provider = compatible, dialect = 'openrouter') => {
  const model = catalog.find(known => known.provider === (provider === anthropic ? 'anthropic' : 'openai'))
  if (model === undefined) throw new Error('the catalog has no such model')
  const parameters = { ...model.parameters, passExtras: true }
  const access = { baseUrl: 'https://upstream.test/v1', apiKey: 'k', ...(dialect === '' ? {} : { dialect }) }
  return provider.toRequest({ request, model: { ...model, parameters }, outputCap: 9, stream: true }, access).body
}

describe('reasoning details', () => {
  const stream = [
    { reasoning: 'h', reasoning_details: [{ type: 'reasoning.text', text: 'h', index: 0 }] },
    { reasoning: 'm', reasoning_details: [{ type: 'reasoning.text', text: 'm', signature: 'SIG', index: 0 }] },
    {
      reasoning_details: [{ type: 'reasoning.encrypted', data: 'ENC', id: 'a', index: 1 }],
      tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }],
    },
  ]
  const parts = (deltas: readonly object[]): readonly AnswerPart[] => {
    const reader = recorded(compatible.streamReader())
    const frames = [
      ...deltas.map(delta => JSON.stringify({ choices: [{ index: 0, delta }] })),
      JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      '[DONE]',
    ]
    return frames.flatMap(data => reader.read({ name: '', data }))
  }

  test('reach OpenRouter whole and unchanged when the client sends the sealed ones back', () => {
    const found = parts(stream)
    const end = found.find(part => part.type === 'reasoning_end')
    if (end === undefined) throw new Error('no reasoning ended')
    expect(found.indexOf(end)).toBeLessThan(found.findIndex(({ type }) => type === 'tool_call'))
    const { family, kind, data, id } = end
    const detail = sealedDetail({ family, kind, text: 'hm', data, id }, 0, item => seal.seal('acc', item))
    const { messages } = JSON.parse(sent(read('acc', [detail])))
    expect(messages[1]).toMatchObject({
      reasoning: 'hm',
      reasoning_details: [
        { type: 'reasoning.text', text: 'hm', signature: 'SIG', index: 0 },
        { type: 'reasoning.encrypted', data: 'ENC', id: 'a', index: 1 },
      ],
    })
    expect(sent(read('other', [detail]))).not.toContain('ENC')
    expect(sent(read('acc', [detail]), compatible, '')).not.toContain('reasoning_details')
  })

  test('end nothing when the upstream proves nothing', () => {
    expect(parts(stream.slice(0, 1)).some(({ type }) => type === 'reasoning_end')).toBe(false)
  })

  test('restore the signed thinking of Claude when the conversation returns to it', () => {
    const item = { family: 'anthropic', kind: 'signature', text: 'thought', data: 'SIGNATURE', id: null } as const
    const request = read('acc', [sealedDetail(item, 0, entry => seal.seal('acc', entry))])
    expect(sent(request, anthropic)).toContain('{"type":"thinking","thinking":"thought","signature":"SIGNATURE"}')
  })

  test('go to OpenRouter when OpenRouter itself wrote them', () => {
    const own = { type: 'reasoning.text', text: 'x', signature: 's', index: 0 }
    expect(sent(read('acc', [own]))).toContain(`"reasoning_details":[${JSON.stringify(own)}]`)
  })
})

test.each([
  ['', ['reasoning_content']],
  ['groq', ['reasoning']],
  ['ollama', ['reasoning']],
  ['vllm', ['reasoning', 'reasoning_content']],
])('compatible request: writes reasoning for the server %j in the fields that it reads', (dialect, fields) => {
  const { messages } = JSON.parse(sent(read('acc', []), compatible, dialect))
  expect(Object.keys(messages[1]).filter(name => name.startsWith('reasoning'))).toEqual(fields)
})
