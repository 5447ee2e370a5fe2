import { afterAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { encode } from 'gpt-tokenizer/encoding/cl100k_base'
import { GatewayError } from '../../../src/core/validation/errors.ts'
import { systemClock } from '../../../src/database/clock.ts'
import { createTokenizer, tokenIdLimit } from '../../../src/text/tokens/tokenizer.ts'
import { patient } from '../../harness/patience.ts'

const tokenizer = createTokenizer(patient.tokenizerMs, systemClock)
afterAll(() => tokenizer.close())

const getOutcome = (texts: Promise<readonly string[]>) =>
  texts.catch((cause: unknown) => (cause instanceof GatewayError ? cause.code : String(cause)))

test('tokenizer: rejects waiting lists when it is closed, and starts again at the next list', async () => {
  const closed = createTokenizer(patient.tokenizerMs, systemClock)
  const waiting = [closed.decode([encode('hello')]), closed.decode([encode('hello world')])].map(getOutcome)
  closed.close()
  expect(await Promise.all(waiting)).toEqual(['service_unavailable', 'service_unavailable'])
  expect(await getOutcome(closed.decode([encode('hello world')]))).toEqual(['hello world'])
  closed.close()
})

const texts = [
  'Hello world',
  '',
  ' \n\t',
  'Grüße aus Köln',
  '猫が座った。',
  '👩‍👩‍👧 und 𝔘nicode',
  '\u0000\u0007',
  '\ufeffmark first',
  'a\uFFFDb',
]

test('tokenizer: returns the text that the published tokenizer encoded', async () => {
  expect(await tokenizer.decode(texts.map(text => encode(text)))).toEqual(texts)
  const anyText = fc.string({ unit: 'binary', maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(anyText, async text => {
      const special = { disallowedSpecial: new Set<string>() }
      expect(await tokenizer.decode([encode(text, special)])).toEqual([text])
    }),
  )
})

test('tokenizer: ends with U+FFFD where a list ends inside a character', async () => {
  const ids = encode('👩')
  expect(ids.length).toBeGreaterThan(1)
  expect(await tokenizer.decode([ids.slice(0, 1)])).toEqual(['\uFFFD'])
})

test('tokenizer: has a text for every ID below the limit', async () => {
  const decoded = await tokenizer.decode(Array.from({ length: tokenIdLimit }, (_, id) => [id]))
  expect(decoded.filter(text => text === '')).toEqual([])
})
