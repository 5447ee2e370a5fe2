import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { headerChoice, headerFlag, oneOf, parseJson, validate } from '../../../src/core/validation/validate.ts'
import { cpuMs } from '../../harness/cpu.ts'
import { getRefusal } from '../../harness/refusal.ts'

const part = Type.Union([
  Type.Object({ type: oneOf(['text'], 'unsupported_parameter'), text: Type.String({ maxLength: 5 }) }),
  Type.Object({
    type: Type.Literal('image_url'),
    image_url: Type.Object({ url: Type.String({ pattern: '^https:' }) }),
  }),
])
const schema = Type.Object(
  {
    messages: Type.Array(
      Type.Union([
        Type.Object({ role: oneOf(['system', 'developer']), content: Type.String() }),
        Type.Object({ role: Type.Literal('user'), content: Type.Union([Type.String(), Type.Array(part)]) }),
      ]),
      { minItems: 1, maxItems: 3 },
    ),
    temperature: Type.Optional(Type.Union([Type.Number({ minimum: 0, maximum: 2 }), Type.Null()])),
    choice: Type.Optional(Type.Union([oneOf(['a', 'b']), Type.Object({ type: Type.Literal('f') }), Type.Null()])),
    labels: Type.Optional(
      Type.Record(Type.String({ pattern: '^[\\s\\S]{1,4}$' }), Type.String({ maxLength: 2 }), {
        additionalProperties: false,
        maxProperties: 2,
      }),
    ),
    flags: Type.Optional(Type.Object({ on: Type.Boolean() }, { additionalProperties: false })),
    note: Type.Optional(Type.String({ minLength: 1 })),
  },
  { additionalProperties: false },
)
const check = (value: unknown) => validate(schema, value)

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })

describe('validate', () => {
  test.each([
    [{}, 'messages', '`messages` is missing: it must be an array of 1 to 3 items.'],
    [{ messages: [] }, 'messages', '`messages` must be an array of 1 to 3 items.'],
    [{ messages: [1] }, 'messages.0', '`messages.0` must be an object.'],
    [
      { messages: [{}] },
      'messages.0.role',
      '`messages.0.role` is missing: it must be "system", "developer" or "user".',
    ],
    [{ messages: [{ role: 'x' }] }, 'messages.0.role', '`messages.0.role` must be "system", "developer" or "user".'],
    [
      { messages: [{ role: 'user' }] },
      'messages.0.content',
      '`messages.0.content` is missing: it must be a string or an array.',
    ],
    [user(4), 'messages.0.content', '`messages.0.content` must be a string or an array.'],
    [
      user([
        { type: 'text', text: 'x' },
        { type: 'image_url', image_url: {} },
      ]),
      'messages.0.content.1.image_url.url',
      null,
    ],
    [user([{ type: 'image_url', image_url: { url: 'ftp:' } }]), 'messages.0.content.0.image_url.url', null],
    [
      user([{ type: 'text', text: 'longer' }]),
      'messages.0.content.0.text',
      '`messages.0.content.0.text` must be a string of at most 5 characters.',
    ],
    [user([{ type: 7 }]), 'messages.0.content.0.type', '`messages.0.content.0.type` must be "text" or "image_url".'],
    [{ ...user('x'), temperature: '0.7' }, 'temperature', '`temperature` must be a number from 0 to 2.'],
    [{ ...user('x'), temperature: 2.1 }, 'temperature', '`temperature` must be a number from 0 to 2.'],
    [{ ...user('x'), choice: 'q' }, 'choice', '`choice` must be "a", "b" or an object.'],
    [{ ...user('x'), choice: {} }, 'choice.type', '`choice.type` is missing: it must be "f".'],
    [{ ...user('x'), labels: { abcde: '' } }, 'labels.abcde', null],
    [{ ...user('x'), labels: { a: '1', b: '2', c: '3' } }, 'labels', '`labels` must be an object of at most 2 fields.'],
    [{ ...user('x'), labels: { a: '123' } }, 'labels.a', null],
    [{ ...user('x'), flags: { on: 1 } }, 'flags.on', '`flags.on` must be true or false.'],
    [{ ...user('x'), flags: { on: true, of: 1 } }, 'flags.of', null],
    [{ ...user('x'), note: '' }, 'note', '`note` must be a string of at least 1 character.'],
    [{ ...user('x'), extra: 1 }, 'extra', '`extra` is not a known field here: remove it or correct its name.'],
    [7, null, 'The body must be an object.'],
  ])('reports %j as %s', (value, param, message) => {
    const error = getRefusal(() => check(value))
    expect(error.code).toBe('invalid_request')
    expect(error.param).toBe(param)
    if (message !== null) expect(error.message).toBe(message)
  })

  test("validate: uses the schema's own code for a value outside of a closed set", () => {
    const error = getRefusal(() => check(user([{ type: 'input_audio' }])))
    expect([error.code, error.param]).toEqual(['unsupported_parameter', 'messages.0.content.0.type'])
  })
})

test('validate: explains every value that TypeBox rejects and returns accepted ones unchanged', () => {
  const leaf = fc.oneof(
    fc.constantFrom('user', 'system', 'text', 'image_url', 'a', 'f', '', 'https:x', 'longer'),
    fc.integer({ min: -1, max: 3 }),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
  )
  const key = fc.constantFrom(
    'messages',
    'role',
    'content',
    'type',
    'text',
    'image_url',
    'url',
    'temperature',
    'choice',
    'labels',
    'flags',
    'on',
  )
  const { value } = fc.letrec(tie => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      leaf,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 5 }),
    ),
  }))
  const messages = fc.array(fc.record({ role: fc.constantFrom('user', 'system', 'x'), content: value }), {
    maxLength: 4,
  })
  const body = fc.oneof(
    value,
    fc.record({ messages, temperature: leaf, labels: value }, { requiredKeys: ['messages'] }),
  )
  fc.assert(
    fc.property(body, sample => {
      if (Value.Check(schema, sample)) expect(check(sample)).toBe(sample as never)
      else expect(getRefusal(() => check(sample)).message).not.toContain('is not valid')
    }),
    { numRuns: 1000 },
  )
})

test('validate: stops at the first fault of a large invalid body', () => {
  const wide = { messages: new Array(1_000_000).fill(7) }
  const nested = user(new Array(200_000).fill({ type: 'image_url', image_url: 7 }))
  const late = user([...new Array(50_000).fill({ type: 'text', text: 'x' }), { type: 'text', text: 7 }])
  const start = cpuMs()
  getRefusal(() => check(wide))
  getRefusal(() => check(nested))
  expect(getRefusal(() => check(late)).param).toBe('messages.0.content.50000.text')
  expect(cpuMs() - start).toBeLessThan(1_000)
})

describe('parseJson', () => {
  test.each(['', '{', 'nope', '{"a":1,}', "{'a':1}", '{"a":"\\x"}'])('throws invalid_json for %j', text => {
    expect(getRefusal(() => parseJson(text)).code).toBe('invalid_json')
  })

  test.each(['[]', '7', '"text"', 'null'])('rejects %s', text => {
    expect(getRefusal(() => parseJson(text)).code).toBe('invalid_request')
  })

  test('accepts 64 levels of nesting and rejects 65', () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`
    expect(() => parseJson(nested(64))).not.toThrow()
    expect(getRefusal(() => parseJson(nested(65))).code).toBe('invalid_json')
    expect(getRefusal(() => parseJson('['.repeat(1_000_000))).code).toBe('invalid_json')
  })

  test('counts depth only outside of strings', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('[', '{', '"', '\\', '}', 'é'), maxLength: 80 }), text => {
        const body = { text, [text]: [text] }
        expect(parseJson(JSON.stringify(body))).toEqual(body)
      }),
    )
  })

  test('never quotes the body in its error', () => {
    expect(getRefusal(() => parseJson('{"a": canary}')).message).not.toContain('canary')
  })
})

describe('headerChoice and headerFlag', () => {
  test('accept any case and spacing, and return null when absent', () => {
    expect(headerChoice(new Headers({ 'x-gateway-web': ' OFF ' }), 'X-Gateway-Web', ['auto', 'off'])).toBe('off')
    expect(headerChoice(new Headers(), 'X-Gateway-Web', ['auto', 'off'])).toBeNull()
    expect(headerFlag(new Headers({ 'x-gateway-enhance': '1' }), 'X-Gateway-Enhance')).toBe(true)
    expect(headerFlag(new Headers({ 'x-gateway-enhance': 'false' }), 'X-Gateway-Enhance')).toBe(false)
  })

  test("reject other values under the header's name", () => {
    const error = getRefusal(() =>
      headerChoice(new Headers({ 'x-gateway-web': 'canary' }), 'X-Gateway-Web', ['auto', 'off']),
    )
    expect([error.code, error.param]).toEqual(['invalid_request', 'X-Gateway-Web'])
    expect(error.message).toBe('`X-Gateway-Web` must be "auto" or "off", or not be sent.')
  })
})
