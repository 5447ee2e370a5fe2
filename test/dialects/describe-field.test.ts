import { expect, test } from 'bun:test'
import { describeField } from '../../src/dialects/describe-field.ts'

test.each([
  ['native', 'temperature', 'a number from 0 to 2'],
  ['native', 'strategy', '"balanced", "quality", "cost" or "speed"'],
  ['messages', 'temperature', 'a number from 0 to 1'],
  ['chat_completions', 'n', 'an integer from 1 to 128'],
  ['responses', 'verbosity', null],
  ['embeddings', 'encoding_format', '"float" or "base64"'],
  ['native', 'constructor', null],
  [null, 'temperature', null],
] as const)('describeField: names the values that %s accepts for `%s`', (dialect, field, accepted) => {
  expect(describeField(dialect, field)).toBe(accepted)
})
