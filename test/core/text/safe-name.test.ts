import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { modelNameSchema } from '../../../src/core/models/configured-models.ts'
import { asciiName, printableText } from '../../../src/core/text/safe-name.ts'

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string())

describe('asciiName', () => {
  test('keeps usual names', () => {
    for (const name of ['openai/gpt-5.5', 'a b', 'vendor/model:free', 'm@2026-01-01', "it's", '(x)[y]{z}', ''])
      expect(asciiName(name)).toBe(name)
  })

  test('encodes other names as UTF-8 in percent form', () => {
    expect(asciiName('uni/模型-1')).toBe('uni/%E6%A8%A1%E5%9E%8B-1')
    expect(asciiName('modèle 100%')).toBe('mod%C3%A8le 100%25')
    expect(asciiName(' a, "b"\\\r\n')).toBe('%20a%2C %22b%22%5C%0D%0A')
  })

  test('gives each text a header value that decodes to it', () => {
    fc.assert(
      fc.property(anyText, text => {
        const name = asciiName(text)
        expect(new Headers({ name }).get('name')).toBe(name)
        expect(name).toMatch(/^[ !#-+\--[\]-~]*$/)
        expect(decodeURIComponent(name)).toBe(text.toWellFormed())
      }),
    )
  })
})

describe('printableText', () => {
  test('escapes control characters, line breaks, marks of direction and half characters only', () => {
    expect(printableText('模型 é 😀 "x"')).toBe('模型 é 😀 "x"')
    expect(printableText('a\u001b[31m\nb\u2028\u202e\ud800')).toBe('a\\u001b[31m\\u000ab\\u2028\\u202e\\ud800')
    fc.assert(fc.property(anyText, text => expect(printableText(text)).toMatch(/^[^\p{Cc}\p{Cs}\u2028\u2029]*$/u)))
  })
})

describe('configured model name', () => {
  test.each(['模型-1', '😀', 'a b/c:free', 'é'])('accepts %s', name => {
    expect(Value.Check(modelNameSchema, name)).toBe(true)
  })

  test.each(['', 'a\nb', 'a\u0000', '\u0085', 'x\ud800', '\udc00y', 'x'.repeat(257)])('rejects %j', name => {
    expect(Value.Check(modelNameSchema, name)).toBe(false)
  })
})
