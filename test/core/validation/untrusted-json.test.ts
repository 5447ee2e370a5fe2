import { expect, test } from 'bun:test'
import { parseUntrustedJson } from '../../../src/core/validation/untrusted-json.ts'

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

test('parseUntrustedJson: returns the value of valid JSON, otherwise undefined', () => {
  const rows: [string, unknown][] = [
    ['{"a":[1,null]}', { a: [1, null] }],
    ['"text"', 'text'],
    ['', undefined],
    ['{"a":', undefined],
  ]
  for (const [text, value] of rows) expect(parseUntrustedJson(text)).toEqual(value)
})

test('parseUntrustedJson: rejects excessive nesting, ignoring brackets in strings', () => {
  expect(parseUntrustedJson(nested(512))).toBeArray()
  expect(parseUntrustedJson(nested(513))).toBeUndefined()
  expect(parseUntrustedJson(JSON.stringify({ text: nested(60_000) }))).toEqual({ text: nested(60_000) })
})
