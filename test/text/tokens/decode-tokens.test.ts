import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import { decodeTokens, tokenIdLimit } from '../../../src/text/tokens/decode-tokens.ts'

const texts = [
  'Hello world',
  '',
  ' \n\t',
  'Grüße aus Köln',
  '猫が座った。',
  '👩‍👩‍👧 und 𝔘nicode',
  '\u0000\u0007',
  '﻿mark first',
  'a\uFFFDb',
]

test('decodeTokens: returns the text that the published tokenizer encoded', async () => {
  expect(await decodeTokens(texts.map(text => encode(text)))).toEqual(texts)
  const anyText = fc.string({ unit: 'binary', maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(anyText, async text => {
      const special = { disallowedSpecial: new Set<string>() }
      expect(await decodeTokens([encode(text, special)])).toEqual([text])
    }),
  )
})

test('decodeTokens: ends with U+FFFD where a list ends inside a character', async () => {
  const ids = encode('👩')
  expect(ids.length).toBeGreaterThan(1)
  expect(await decodeTokens([ids.slice(0, 1)])).toEqual(['\uFFFD'])
})

test('decodeTokens: has a text for every ID below the limit', async () => {
  const decoded = await decodeTokens(Array.from({ length: tokenIdLimit }, (_, id) => [id]))
  expect(decoded.filter(text => text === '')).toEqual([])
})
