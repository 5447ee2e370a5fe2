import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { catalog } from '../../src/models/catalog.ts'
import { anthropic } from '../../src/providers/anthropic.ts'
import { bedrock } from '../../src/providers/bedrock.ts'
import { google } from '../../src/providers/google.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import type { Provider } from '../../src/providers/provider.ts'
import { wireToolNames } from '../../src/providers/tool-names.ts'
import { recordedAnswer } from '../harness/answer-parts.ts'
import { askWith } from '../harness/ask.ts'

const compatible = openai({ official: false })
const wires: readonly (readonly [string, Provider, string, RegExp])[] = [
  ['OpenAI', openai({ official: true }), 'openai', /^[A-Za-z0-9_-]{1,64}$/],
  ['compatible', compatible, 'openai', /^[A-Za-z0-9_-]{1,64}$/],
  ['Responses', openaiResponses, 'openai', /^[A-Za-z0-9_-]{1,64}$/],
  ['Gemini', google, 'google', /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/],
  ['Claude', anthropic, 'anthropic', /^[A-Za-z0-9_-]{1,128}$/],
  ['Bedrock', bedrock, 'anthropic', /^[A-Za-z0-9_-]{1,64}$/],
]
const toolNamed = (name: string) => ({ name, description: null, parameters: null, strict: null })
const called = (name: string) =>
  [
    { role: 'user', content: [{ type: 'text', text: 'q' }], name: null },
    {
      role: 'assistant',
      text: null,
      reasoning: null,
      name: null,
      toolCalls: [{ id: 'a', name, arguments: '{}', signature: null }],
    },
    { role: 'tool', callId: 'a', text: 'r' },
  ] as const
const long = `mcp__${'server'.repeat(12)}__search`

describe.each(wires)('%s tool names', (_, provider, maker, accepted) => {
  const namesSent = (names: readonly string[], chosen: string) => {
    const request = askWith({ tools: names.map(toolNamed), toolChoice: { name: chosen }, messages: called(chosen) })
    return wireToolNames(request, provider) ?? { request, own: new Map<string, string>() }
  }

  test('match the rule, differ and return to the client when it uses any others', () => {
    const anyName = fc.oneof(
      fc.stringMatching(/^[A-Za-z0-9_-]{1,200}$/),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 80 }),
      fc.nat(3).map(last => `${long}_${last}`),
      fc.constantFrom('1st', '_1st', '-', 'a.b', 'a_b', 'a:b'),
    )
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { minLength: 1, maxLength: 8 }), names => {
        const { request, own } = namesSent(names, names[0] ?? '')
        const sent = request.tools.map(({ name }) => name)
        for (const name of sent) expect(name).toMatch(accepted)
        expect(new Set(sent).size).toBe(names.length)
        const { answer: response, drain } = recordedAnswer()
        response.clientNames = own
        for (const [index, name] of sent.entries()) response.openCall(0, index, { id: 'a', name, signature: null })
        expect(drain()).toMatchObject(names.map(name => ({ name })))
        for (const [at, name] of names.entries()) if (accepted.test(name)) expect(sent[at]).toBe(name)
      }),
    )
  })

  test('agree in declarations, choice and history when they are shortened', () => {
    const name = `${long.repeat(2)}.x`
    const { request } = namesSent([name, 'other'], name)
    const model = catalog.find(known => known.provider === maker)
    if (model === undefined) throw new Error('the catalog has no such model')
    const access = { baseUrl: 'https://upstream.test', apiKey: 'k' }
    const { body } = provider.toRequest({ request, model, outputCap: 9, stream: true }, access)
    const short = request.tools[0]?.name ?? ''
    expect(body).not.toContain(name)
    expect(body.split(`"${short}"`).length - 1).toBeGreaterThanOrEqual(2)
  })

  test('stay the same object when the upstream accepts all of them', () => {
    expect(wireToolNames(askWith({ tools: [toolNamed('look')], messages: called('look') }), provider)).toBeNull()
  })
})
