/** A client's own Messages body on its way to Anthropic: which of its bytes change, and which never do. */

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ChatRequest, withTurn } from '../../src/core/chat/chat.ts'
import type { ParameterRules } from '../../src/core/models/models.ts'
import { readMessages } from '../../src/dialects/messages/request.ts'
import { createReasoningSeal } from '../../src/dialects/reasoning-seal.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { edited, elementsAt, membersAt, removals } from '../../src/providers/json-spans.ts'
import { replaceUserText } from '../../src/text/enhancement/enhancement-plan.ts'
import { budgetRules, modelWith } from '../harness/model.ts'

const seal = createReasoningSeal('a secret of the tests', null)
const access = { baseUrl: 'https://a.test', apiKey: 'k' }

const newer: ParameterRules = {
  ...budgetRules,
  sampling: 'rejected',
  forcedToolChoice: 'rejected',
  efforts: ['low', 'medium', 'high'],
  reasoning: { kind: 'adaptive', off: 'lowest_effort' },
}

type Given = {
  readonly outputCap?: number
  readonly stream?: boolean
  readonly rules?: ParameterRules
  readonly headers?: Record<string, string>
  readonly changed?: (request: ChatRequest) => Partial<ChatRequest>
}

/** Returns the upstream request for a body; the serving model is `claude-a`. */
function sent(
  text: string,
  { outputCap = 100, stream = false, rules = budgetRules, headers = {}, changed }: Given = {},
) {
  const source = { headers: new Headers(headers), text, accountId: 'acc_1' }
  const { request } = readMessages(JSON.parse(text), source, seal)
  const model = modelWith({ id: 'claude-a', provider: 'anthropic', aliases: ['claude-a-2026'], parameters: rules })
  const asked = changed === undefined ? request : { ...request, ...changed(request) }
  return anthropic.toRequest({ request: asked, model, outputCap, stream }, access)
}

const body = (fields: object = {}) =>
  JSON.stringify({ model: 'claude-a', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], ...fields })

describe('source body', () => {
  test.each(['claude-a', 'CLAUDE-A', 'anthropic/claude-a', 'claude-a-2026', 'anthropic/claude-a-2026'])(
    'keeps its bytes for %s except for the model name',
    name => {
      const text = `\n{"messages" : [{"role":"user","content":"\\u0048i 1.0 \\"model\\":\\"x\\""}],"max_tokens":1e2,\t"temperature":0.50,"model":"${name}","context_management":{"model":"y","a":[1,{}]}}\n`
      expect(sent(text).body).toBe(text.replace(`"model":"${name}"`, '"model":"claude-a"'))
    },
  )

  test.each<readonly [string, string, Given, string]>([
    [
      'a lower cap',
      '{"model":"claude-a","max_tokens":100,"messages":M}',
      { outputCap: 64 },
      '{"model":"claude-a","max_tokens":64,"messages":M}',
    ],
    [
      'a stream that the gateway wants',
      '{"max_tokens":100,"messages":M,"model":"claude-a"}',
      { stream: true },
      '{"max_tokens":100,"messages":M,"model":"claude-a","stream":true}',
    ],
    [
      'a stream where one was denied',
      '{"stream":false,"model":"claude-a","max_tokens":100,"messages":M}',
      { stream: true },
      '{"stream":true,"model":"claude-a","max_tokens":100,"messages":M}',
    ],
    [
      'the gateway’s own fields',
      '{"web":"off","model":"claude-a","fallback":false,"strategy":null,"max_tokens":100,"messages":M , "test_mode":true}',
      {},
      '{"model":"claude-a","max_tokens":100,"messages":M}',
    ],
    [
      'a speed that no price is known for',
      '{"model":"claude-a","speed":"fast","max_tokens":100,"messages":M}',
      {},
      '{"model":"claude-a","max_tokens":100,"messages":M}',
    ],
    [
      'sampling fields that a client marks as not set',
      '{"top_p":-1,"model":"claude-a","top_k":-1,"max_tokens":100,"messages":M}',
      {},
      '{"model":"claude-a","max_tokens":100,"messages":M}',
    ],
    [
      'a stream beside a field of the gateway at the end',
      '{"model":"claude-a","max_tokens":100,"messages":M,"fallback":false}',
      { stream: true },
      '{"model":"claude-a","max_tokens":100,"messages":M,"stream":true}',
    ],
    [
      'a search without a limit',
      '{"model":"claude-a","tools":[{"name":"f","input_schema":{}},{"type":"web_search_20250305","name":"s" },{"type":"web_search_20260209","max_uses":null},{"type":"web_search_20260318","max_uses":2}],"max_tokens":100,"messages":M}',
      {},
      '{"model":"claude-a","tools":[{"name":"f","input_schema":{}},{"type":"web_search_20250305","name":"s","max_uses":10 },{"type":"web_search_20260209","max_uses":10},{"type":"web_search_20260318","max_uses":2}],"max_tokens":100,"messages":M}',
    ],
    [
      'an escaped key',
      '{"\\u006dodel":"anthropic/claude-a","max_tokens":100,"messages":M}',
      {},
      '{"\\u006dodel":"claude-a","max_tokens":100,"messages":M}',
    ],
  ])('changes in place for %s', (_name, text, given, expected) => {
    const messages = '[ {"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]} ]'
    expect(sent(text.replace('M', messages), given).body).toBe(expected.replace('M', messages))
  })

  test('loses unknown fields, other tiers and beta headers with other prices, and reports them', () => {
    const text = body({ zz: { a: 1 }, service_tier: 'priority', constructor: 1 })
    const headers = { 'anthropic-beta': 'context-1m-2025-08-07,effort-2027,output-300k-2026-01-01' }
    const request = sent(text, { headers })
    expect(request.body).toBe(body())
    expect(request.headers['anthropic-beta']).toBe('effort-2027')
    expect(request.droppedParameters).toEqual([
      'zz',
      'service_tier',
      'constructor',
      'anthropic-beta.context-1m-2025-08-07',
      'anthropic-beta.output-300k-2026-01-01',
    ])
  })

  test('does not go upstream after changed messages', () => {
    const added = sent(body({ context_management: {} }), {
      changed: () => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'More' }], name: null }] }),
      headers: { 'anthropic-beta': 'context-management-2025-06-27' },
    })
    expect(JSON.parse(added.body).messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'More' }] }])
    expect(added.headers['anthropic-beta']).toBeUndefined()
    expect(added.droppedParameters).toEqual(['context_management', 'anthropic-beta'])
  })
})

describe('additions to the last turn', () => {
  const found = 'Found: "x"'
  const block = '{"type":"text","text":"Found: \\"x\\""}'
  const added = (request: ChatRequest) => withTurn(request, [...request.messages], { before: found })
  const both = (request: ChatRequest) => added(replaceUserText(request, 'Better'))
  const list = (content: string) =>
    `{"model":"claude-a", "max_tokens":100,"top_p":1.0,"messages":[{"role":"user","content":"A"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"Eq="}, {"type":"text","text":"B"}]},{"content":${content},"role":"user"}]}`

  test.each<readonly [string, (request: ChatRequest) => ChatRequest, string, string]>([
    ['a text before a string', added, '"\\u0048i"', `[${block},{"type":"text","text":"\\u0048i"}]`],
    ['another text for a string', request => replaceUserText(request, 'Better'), '"Hi"', '"Better"'],
    ['both for a string', both, '"Hi"', `[${block},{"type":"text","text":"Better"}]`],
    [
      'a text before the first text',
      added,
      '[{"type":"image","source":{"type":"url","url":"https://a.test/"}}, {"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"!"}]',
      `[{"type":"image","source":{"type":"url","url":"https://a.test/"}}, ${block},{"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"!"}]`,
    ],
    [
      'both for a list',
      both,
      '[{"text":"Hi","type":"text","cache_control":{"type":"ephemeral"}}]',
      `[${block},{"text":"Better","type":"text","cache_control":{"type":"ephemeral"}}]`,
    ],
  ])('inserts %s and keeps all other bytes', (_name, changed, content, expected) => {
    expect(sent(list(content), { changed }).body).toBe(list(expected))
  })

  test.each<readonly [string, object]>([
    ['a turn of tool results', { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] }],
    ['an image', { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://a.test/a.png' } }] }],
    ['a prefill', { role: 'assistant', content: 'I' }],
  ])('do not apply after %s, which has no text of the user', (_name, last) => {
    const messages = [
      { role: 'user', content: 'Look at https://a.test/' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      last,
    ]
    const text = body({ messages, web: 'auto', enhance_prompt: true })
    const { request } = readMessages(JSON.parse(text), { headers: new Headers(), text, accountId: 'acc_1' }, seal)
    expect([request.web, request.enhance]).toEqual(['off', false])
  })
})

test('source headers: go upstream unchanged if they belong to the API', () => {
  const headers = {
    'anthropic-beta': 'claude-code-2025, effort-2027',
    'anthropic-version': '2099-01-01',
    'x-other': 'no',
  }
  expect(sent(body(), { headers }).headers).toEqual({
    'content-type': 'application/json',
    'anthropic-beta': 'claude-code-2025, effort-2027',
    'anthropic-version': '2099-01-01',
    'x-api-key': 'k',
  })
})

describe('source body for another model', () => {
  test.each<readonly [string, object, ParameterRules, object, readonly string[]]>([
    [
      'supported fields stay',
      { temperature: 0.5, thinking: { type: 'disabled' } },
      budgetRules,
      { temperature: 0.5, thinking: { type: 'disabled' } },
      [],
    ],
    [
      'rejected sampling is dropped',
      { temperature: 0.5, top_k: 3 },
      newer,
      { thinking: undefined },
      ['temperature', 'top_k'],
    ],
    [
      'thinking becomes adaptive',
      { thinking: { type: 'enabled', budget_tokens: 5_000 }, max_tokens: 9_000 },
      newer,
      { thinking: { type: 'adaptive', display: 'summarized' } },
      [],
    ],
    [
      'adaptive thinking becomes a budget',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' }, max_tokens: 9_000 },
      budgetRules,
      { thinking: { type: 'enabled', budget_tokens: 6_300 } },
      ['output_config'],
    ],
  ])('gets the fields of the model: %s', (_name, fields, rules, expected, dropped) => {
    const text = body({ model: 'gateway-ai', cache_control: { type: 'ephemeral' }, ...fields })
    const request = sent(text, { rules, outputCap: 9_000 })
    const written = JSON.parse(request.body)
    expect(written).toMatchObject({
      model: 'claude-a',
      cache_control: { type: 'ephemeral' },
      messages: [{ role: 'user', content: 'Hi' }],
    })
    for (const [name, value] of Object.entries(expected)) expect(written[name]).toEqual(value)
    for (const name of dropped) expect(written[name]).toBeUndefined()
    expect(request.droppedParameters).toEqual(dropped)
  })

  test('goes through the translation for a tool choice that only a prompt can express', () => {
    const tools = [{ name: 'f', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } }]
    const request = sent(body({ model: 'claude-b', tools, tool_choice: { type: 'any' } }), { rules: newer })
    expect(JSON.parse(request.body)).toMatchObject({
      tool_choice: { type: 'auto' },
      system: [{ text: expect.stringContaining('calling one of the tools') }],
    })
  })
})

describe('source body of a named model that rejects a forced call', () => {
  const tools = [{ name: 'f', input_schema: { type: 'object' } }]
  const line = 'Answer by calling the tool `f`.'

  test.each([
    ['no', '', `,"system":"${line}"`],
    ['a', '"system":"Be\\u0020kind.",', `"system":"Be kind.\\n\\n${line}",`],
    ['an empty', '"system":[],', `"system":"${line}",`],
    [
      'a marked',
      '"system":[{"type":"text", "text":"A","cache_control":{"type":"ephemeral"}} ],',
      `"system":[{"type":"text", "text":"A","cache_control":{"type":"ephemeral"}},{"type":"text","text":"${line}"} ],`,
    ],
  ])('asks for the call behind %s system text, and changes nothing else', (_, written, expected) => {
    const rest = `"max_tokens":1e2,"messages":[{"role":"user","content":"\\u0048i"}],"tools":${JSON.stringify(tools)}`
    const text = `{"model":"claude-a",${written}"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},${rest}}`
    const request = sent(text, { rules: newer })
    const choice = '"tool_choice":{"type":"auto","disable_parallel_tool_use":true}'
    const isAdded = written === ''
    expect(request.body).toBe(
      `{"model":"claude-a",${isAdded ? '' : expected}${choice},${rest}${isAdded ? expected : ''}}`,
    )
    expect(request.droppedParameters).toEqual(['tool_choice'])
  })

  test('passes a choice that the model accepts', () => {
    const text = body({ tools, tool_choice: { type: 'any' } })
    expect(sent(text).body).toBe(text)
    const automatic = body({ tools, tool_choice: { type: 'auto' } })
    expect(sent(automatic, { rules: newer }).body).toBe(automatic)
  })
})

describe('sealed blocks', () => {
  const sealed = (id: string | null = null) =>
    seal.seal('acc_1', { family: 'google', kind: 'signature', text: '', data: 'c2ln', id })
  const thinking = (signature: string) => ({ type: 'thinking', thinking: 'Hm', signature })

  test('leave the body without a change to other blocks', () => {
    const own = thinking('EqQ')
    const text = body({
      messages: [
        { role: 'user', content: 'A' },
        {
          role: 'assistant',
          content: [thinking(sealed()), { type: 'text', text: 'B' }, { type: 'redacted_thinking', data: sealed('x') }],
        },
        { role: 'user', content: 'C' },
        { role: 'assistant', content: [thinking(sealed())] },
        { role: 'user', content: 'D' },
        { role: 'assistant', content: [own, thinking(sealed()), thinking(sealed()), { type: 'text', text: 'E' }] },
        { role: 'user', content: 'F' },
      ],
    })
    expect(JSON.parse(sent(text).body).messages).toEqual([
      { role: 'user', content: 'A' },
      { role: 'assistant', content: [{ type: 'text', text: 'B' }] },
      { role: 'user', content: 'C' },
      { role: 'user', content: 'D' },
      { role: 'assistant', content: [own, { type: 'text', text: 'E' }] },
      { role: 'user', content: 'F' },
    ])
  })

  test('leave the body if another account owns them', () => {
    const foreign = seal.seal('acc_2', { family: 'openai', kind: 'encrypted', text: '', data: 'x', id: null })
    const messages = [
      { role: 'user', content: 'A' },
      { role: 'assistant', content: [thinking(foreign), { type: 'text', text: 'B' }] },
      { role: 'user', content: 'C' },
    ]
    expect(sent(body({ messages })).body).not.toContain('gwr1.')
  })

  test('disable thinking before an open call, because a budget requires thinking there', () => {
    const call = { type: 'tool_use', id: 't', name: 'f', input: {} }
    const request = sent(
      body({
        max_tokens: 4_000,
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        tools: [{ name: 'f', input_schema: { type: 'object' } }],
        messages: [
          { role: 'user', content: 'A' },
          { role: 'assistant', content: [thinking(sealed()), call] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
        ],
      }),
      { outputCap: 4_000 },
    )
    expect(JSON.parse(request.body).thinking).toBeUndefined()
    expect(request.droppedParameters).toEqual(['thinking'])
  })
})

describe('translated thinking', () => {
  const messages = [
    { role: 'user', content: 'A' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 'EqQ+/=' },
        { type: 'thinking', thinking: '', signature: 'Zzz' },
        { type: 'redacted_thinking', data: 'red' },
        {
          type: 'thinking',
          thinking: 'G',
          signature: seal.seal('acc_1', { family: 'google', kind: 'signature', text: '', data: 'x', id: null }),
        },
        { type: 'text', text: 'B' },
        { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'no', is_error: true }] },
  ]
  const given = {
    max_tokens: 4_000,
    thinking: { type: 'enabled', budget_tokens: 2_000 },
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages,
  }

  test('starts its turn with equal bytes and keeps thinking enabled', () => {
    const request = sent(body(given), {
      outputCap: 4_000,
      changed: chatRequest => ({ messages: [...chatRequest.messages] }),
    })
    const written = JSON.parse(request.body)
    expect(written.messages[1].content).toEqual([
      { type: 'thinking', thinking: 'Hm', signature: 'EqQ+/=' },
      { type: 'thinking', thinking: '', signature: 'Zzz' },
      { type: 'redacted_thinking', data: 'red' },
      { type: 'text', text: 'B' },
      { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
    ])
    expect(written.messages[2].content).toEqual([
      { type: 'tool_result', tool_use_id: 't', content: 'Error: no', is_error: true },
    ])
    expect(written.thinking).toMatchObject({ type: 'enabled' })
  })
})

describe('JSON positions', () => {
  const spaced = fc.constantFrom('', ' ', '\n\t')

  test('match the parsed value for any JSON text', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), spaced, (value, space) => {
        const text = `${space}${JSON.stringify(value, null, space)}${space}`
        const members = membersAt(text, 0)
        expect(members.map(({ key }) => key)).toEqual(Object.keys(value))
        for (const {
          key,
          value: { from, to },
        } of members)
          expect(JSON.parse(text.slice(from, to))).toEqual(JSON.parse(JSON.stringify(value[key])))
      }),
    )
  })

  test('keep the other elements after a removal from a list', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.jsonValue(), fc.boolean())), spaced, (entries, space) => {
        const text = JSON.stringify(
          entries.map(([value]) => value),
          null,
          space,
        )
        const edits = removals(elementsAt(text, 0), index => entries[index]?.[1] ?? false)
        const kept = entries.filter(([, isOut]) => !isOut).map(([value]) => value)
        expect(JSON.parse(edited(text, edits))).toEqual(JSON.parse(JSON.stringify(kept)))
      }),
    )
  })
})

describe('Messages body with citations', () => {
  const own = '{"type":"web_search_result_location","url":"https://a.test","encrypted_index":"Eo8","cited_text":"c"}'
  const foreign = '{ "type": "web_search_result_location", "url": "https://b.test", "encrypted_index": "" }'
  const body = (citations: string) =>
    `{"model":"claude-a","max_tokens":100,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"text","text":"So.", "citations" : [${citations}]}]},{"role":"user","content":[{"type":"text","text":"On."}]}]}`

  test.each([
    ['one of the gateway', foreign, ''],
    ['one of each', `${own}, ${foreign}`, own],
    ['two of the gateway before another', `${foreign},${foreign},${own}`, own],
    ['only Anthropic’s own', own, own],
  ])('leaves out those that Anthropic did not write: %s', (_what, citations, expected) => {
    expect(sent(body(citations)).body.replaceAll(/(\[|\]|,) /g, '$1')).toBe(
      body(expected).replaceAll(/(\[|\]|,) /g, '$1'),
    )
  })
})
