import { expect, test } from 'bun:test'
import { parseUntrustedJson } from '../../../src/core/validation/untrusted-json.ts'

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

test('the value of a JSON text, and nothing where there is none', () => {
  const rows: [string, unknown][] = [
    ['{"a":[1,null]}', { a: [1, null] }],
    ['"text"', 'text'],
    ['', undefined],
    ['{"a":', undefined],
  ]
  for (const [text, value] of rows) expect(parseUntrustedJson(text)).toEqual(value)
})

test('a text that nests deeper than anybody means is none; brackets in strings do not count', () => {
  expect(parseUntrustedJson(nested(512))).toBeArray()
  expect(parseUntrustedJson(nested(513))).toBeUndefined()
  expect(parseUntrustedJson(JSON.stringify({ text: nested(60_000) }))).toEqual({ text: nested(60_000) })
})
