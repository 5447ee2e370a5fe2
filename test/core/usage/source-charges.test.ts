import { expect, test } from 'bun:test'
import type { SourceBody } from '../../../src/core/chat/chat.ts'
import { highestSourceCharges } from '../../../src/core/usage/source-charges.ts'

const terms = { at: 0, tier: null }
const pricing = { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75, longContext: null }
const takesMessages: readonly SourceBody['dialect'][] = ['messages']

function charges(fields: object, text = JSON.stringify(fields), takesSource = takesMessages): number {
  const source: SourceBody = {
    dialect: 'messages',
    text,
    fields: JSON.parse(text),
    messages: [],
    headers: {},
    needs: [],
    sameFormOnly: [],
    refused: [],
    unread: [],
  }
  return highestSourceCharges(
    { source, messages: [], tools: [] },
    {
      model: { id: 'claude', provider: 'anthropic', pricing },
      endpoint: { provider: { takesSource: () => takesSource } },
    },
    1_000_000,
    terms,
  )
}

const search = (fields: object = {}) => ({ tools: [{ type: 'web_search_20250305', name: 'web_search', ...fields }] })
const cached = (cache_control: object) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control }] }],
})
const cent = 1_000_000

test.each<readonly [string, object, number]>([
  ['nothing for a plain request', { tools: [{ name: 'f', input_schema: {} }] }, 0],
  ['a cent for each search that the client allows', search({ max_uses: 3 }), 3 * cent],
  ['ten searches without a limit', search(), 10 * cent],
  ['ten searches for a limit of null', search({ max_uses: null }), 10 * cent],
  ['nothing for a fetch, which costs only tokens', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }, 0],
  ['nothing for a cache of five minutes', cached({ type: 'ephemeral', ttl: '5m' }), 0],
  [
    'the difference of 2.25 USD per million tokens for a cache of an hour',
    cached({ type: 'ephemeral', ttl: '1h' }),
    225 * cent,
  ],
  ['the same for the whole request', { cache_control: { type: 'ephemeral', ttl: '1h' } }, 225 * cent],
])('highestSourceCharges: returns %s', (_name, fields, expected) => {
  expect(charges(fields)).toBe(expected)
})

test('highestSourceCharges: reads an escaped lifetime', () => {
  expect(charges({}, '{"cache_control":{"ttl":"\\u0031h"}}')).toBe(225 * cent)
})

test('highestSourceCharges: returns nothing for a provider that receives a translation', () => {
  expect(charges(search(), undefined, [])).toBe(0)
})

test.each([
  ['a mark for an hour', '1h', true, true],
  ['a mark for five minutes', '5m', true, false],
  ['a provider without marks', '1h', false, false],
] as const)('highestSourceCharges: reserves %s of another API form', (_, cache, isMarking, isReserved) => {
  const provider = isMarking ? { cachesMarkedInput: () => true } : {}
  const model = { id: 'claude', provider: 'anthropic', pricing }
  const request = { source: null, messages: [{ role: 'system', text: 'Rules.', cache }], tools: [] } as const
  expect(highestSourceCharges(request, { model, endpoint: { provider } }, 1_000_000, terms) > 0).toBe(isReserved)
})
