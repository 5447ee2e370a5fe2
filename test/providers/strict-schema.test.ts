import { describe, expect, test } from 'bun:test'
import { catalog } from '../../src/models/catalog.ts'
import { openai } from '../../src/providers/openai.ts'
import { openaiResponses } from '../../src/providers/openai-responses.ts'
import { isStrict } from '../../src/providers/schemas.ts'
import { askWith } from '../harness/ask.ts'

const text = { type: 'string' }
const closed = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
  ...more,
})

describe('isStrict', () => {
  test.each([
    ['no property', closed({})],
    ['nested objects', closed({ a: closed({ b: text }), c: { type: 'array', items: closed({ d: text }) } })],
    [
      'nullable values',
      closed({ a: { type: ['string', 'null'] }, b: { anyOf: [closed({ c: text }), { type: 'null' }] } }),
    ],
    ['references', closed({ a: { $ref: '#/$defs/b' } }, { $defs: { b: closed({ c: text }) } })],
    [
      'supported constraints',
      closed({ a: { type: 'string', format: 'date' }, b: { type: 'number', minimum: 1 }, c: { enum: ['x'] } }),
    ],
  ])('accepts a schema with %s', (_, schema) => {
    expect(isStrict(true, schema)).toBe(true)
    expect(isStrict(false, schema)).toBe(false)
    expect(isStrict(null, schema)).toBe(false)
  })

  test.each([
    ['an optional property', closed({ a: text, b: text }, { required: ['a'] })],
    ['open objects', { type: 'object', properties: { a: text }, required: ['a'] }],
    ['a nested optional property', closed({ a: closed({ b: text }, { required: [] }) })],
    ['an open object in a list', closed({ a: { type: 'array', items: { type: 'object', properties: {} } } })],
    ['an optional property in a definition', closed({}, { $defs: { a: closed({ b: text }, { required: [] }) } })],
    ['an open object in an alternative', closed({ a: { anyOf: [text, { type: 'object' }] } })],
    ['allOf', closed({ a: { allOf: [text] } })],
    ['oneOf', closed({ a: { oneOf: [text] } })],
    ['a length', closed({ a: { type: 'string', maxLength: 3 } })],
    ['an unknown format', closed({ a: { type: 'string', format: 'uri' } })],
    ['a value of any type', closed({ a: {} })],
    ['a list of any values', closed({ a: { type: 'array' } })],
    ['a map', closed({ a: { type: 'object', additionalProperties: text } })],
    ['another root', { type: 'array', items: text }],
    ['alternatives at the root', closed({}, { anyOf: [closed({})] })],
    ['deep nesting', Array.from({ length: 12 }).reduce<object>(inner => closed({ a: inner }), text)],
  ])('rejects a schema with %s', (_, schema) => {
    expect(isStrict(true, schema as Record<string, unknown>)).toBe(false)
  })
})

test.each([
  ['chat completions', openai({ official: true }), 'gpt-5.5'],
  ['a compatible server', openai({ official: false }), 'gpt-5.5'],
  ['Responses', openaiResponses, 'gpt-5.5'],
])(
  'OpenAI request: has strict for %s when the whole schema qualifies, and else reports that it is dropped',
  (_, provider, id) => {
    const model = catalog.find(known => known.id === id)
    if (model === undefined) throw new Error('the catalog has no such model')
    const sent = (schema: Record<string, unknown>) =>
      provider.toRequest(
        {
          request: askWith({
            tools: [{ name: 'f', description: null, parameters: schema, strict: true }],
            responseFormat: { type: 'json_schema', name: 'r', description: null, schema, strict: true },
          }),
          model,
          outputCap: 99,
          stream: true,
        },
        { baseUrl: 'https://upstream.test', apiKey: 'k' },
      )
    const whole = sent(closed({ a: text }))
    expect(whole.body.split('"strict":true')).toHaveLength(3)
    expect(whole.droppedParameters).not.toContain('tools.strict')
    const optional = sent(closed({ a: text, b: text }, { required: ['a'] }))
    expect(optional.body).not.toContain('"strict":true')
    expect(optional.droppedParameters).toEqual(expect.arrayContaining(['response_format', 'tools.strict']))
  },
)
