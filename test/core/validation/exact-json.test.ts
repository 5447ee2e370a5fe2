import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExactJson, parseOwnText } from '../../../src/core/validation/untrusted-json.ts'

/** JSON texts of numbers, many of which a double or `String` would write differently. */
const numberText = fc.oneof(
  fc
    .tuple(fc.boolean(), fc.bigInt({ min: 0n, max: 10n ** 40n }))
    .map(([minus, whole]) => `${minus ? '-' : ''}${whole}`),
  fc.tuple(fc.nat(), fc.stringMatching(/^\d{1,30}$/)).map(([whole, digits]) => `${whole}.${digits}`),
  fc
    .tuple(fc.nat(9), fc.constantFrom('e', 'E'), fc.integer({ min: -400, max: 400 }))
    .map(([n, e, power]) => `${n}${e}${power}`),
  fc.constantFrom('0', '-0', '1.0', '1e400', '9007199254740993', '0.1', '100'),
)
const valueText: fc.Arbitrary<string> = fc.letrec<{ value: string }>(tie => ({
  value: fc.oneof(
    { depthSize: 'small' },
    numberText,
    fc.string({ unit: 'binary' }).map(text => JSON.stringify(text)),
    fc.constantFrom('true', 'false', 'null', '{}', '[]', '"12345678901234567890"'),
    fc.array(tie('value'), { maxLength: 4 }).map(items => `[${items.join(',')}]`),
    fc
      .uniqueArray(
        fc.tuple(fc.constantFrom('a', 'id', 'input', 'arguments', 'schema', 'x y', '__proto__'), tie('value')),
        {
          maxLength: 4,
          selector: ([name]) => name,
        },
      )
      .map(members => `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`),
  ),
})).value

describe('exact JSON', () => {
  test('keeps the text of every number when a text belongs to a model', () => {
    fc.assert(
      fc.property(valueText, text => {
        expect(JSON.stringify(parseOwnText(text))).toBe(text)
      }),
    )
  })

  test('keeps the text of every number inside of arguments and schemas when they are part of a body', () => {
    const holder = fc.constantFrom('arguments', 'args', 'input', 'parameters', 'input_schema', 'schema')
    fc.assert(
      fc.property(holder, valueText, numberText, (name, inner, number) => {
        const body = `{"list":[{"${name}":{"x":${inner}}}],"beside":${number}}`
        const parsed = parseExactJson(body)
        expect(parsed).toHaveProperty('beside', Number(number))
        expect(JSON.stringify(parsed)).toContain(`{"${name}":{"x":${inner}}}`)
      }),
    )
  })

  test('returns the same as JSON.parse when no member belongs to a model', () => {
    const plain = valueText.filter(text => !/"(?:input|arguments|schema)"/.test(text))
    fc.assert(fc.property(plain, text => void expect(parseExactJson(text)).toEqual(JSON.parse(text))))
  })

  test('rejects the same texts as JSON.parse when they are invalid', () => {
    for (const text of ['', '{', '[1e]', '{"a":01}', '{"arguments":{"a":1234567890123456789}', '[1.0,]'])
      for (const parse of [parseExactJson, parseOwnText]) expect(() => parse(text)).toThrow(SyntaxError)
  })
})
