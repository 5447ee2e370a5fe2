/**
 * The reservation of a prompt is never below a tokenizer's count for any text. The reference is the published
 * tokenizers in the package; texts are generated.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base'
import type { Message } from '../../src/core/chat/chat.ts'
import { createDraws, measureText } from '../../src/text/tokens/pieces-of-text.ts'
import { estimateInputTokens, estimateTokens, getUpperBound, likelyInputTokens } from '../../src/text/tokens/tokens.ts'
import file from '../../src/text/weights/vocabulary.json' with { type: 'json' }
import { getClass, publishedTokens, weightElsewhere } from '../../src/training/vocabulary.ts'
import { user } from '../harness/ask.ts'
import { cpuMs } from '../harness/cpu.ts'

/** Deterministic, 0 ≤ x < 1. */
let state = 20_261_123
const random = () => {
  state = (state * 48_271) % 2_147_483_647
  return state / 2_147_483_647
}

const asText = { disallowedSpecial: new Set<string>() }

/** Where a space follows a letter, the tokenizer always splits. Its time is quadratic in the length of an unbroken run. */
const parts = /.{1,510}[a-z\u0400-\u04ff](?= [a-z\u0400-\u04ff])|.{1,512}/gis
const o200kInParts = (text: string) => (text.match(parts) ?? []).reduce((sum, part) => sum + o200k(part, asText), 0)
const asking = (text: string) => ({ messages: [user(text)], tools: [], responseFormat: { type: 'text' } as const })
/** Tokens that a message adds to its text. */
const flat = 8
const bound = (text: string, provider?: string) => estimateInputTokens(asking(text), provider) - flat

const range = (from: number, to: number) =>
  fc
    .integer({ min: from, max: to })
    .map(code => (code >= 0xd800 && code < 0xe000 ? '\ufffd' : String.fromCodePoint(code)))
const among = (characters: string) => fc.constantFrom(...characters)

/** Alphabets whose random texts have far more tokens than prose of the same length. */
const alphabets: Readonly<Record<string, fc.Arbitrary<string>>> = {
  'control characters': range(0, 0x1f),
  'C1 control characters': range(0x7f, 0x9f),
  'small letters': among('abcdefghijklmnopqrstuvwxyz'),
  'rare letters': among('qxzjvkwQXZJVKW'),
  'letters of both cases': among('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'),
  DNA: among('ACGT'),
  'small DNA': among('acgtn'),
  punctuation: among('!@#$%^&*()_+-=[]{}|;:,.<>?/~`\'"\\'),
  'two marks': among('{;'),
  digits: among('0123456789'),
  hexadecimal: among('0123456789abcdef'),
  base64: among('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/='),
  'accented letters': range(0xc0, 0x24f),
  'combining marks': range(0x300, 0x36f),
  'stacked accents': fc.constantFrom('e', '\u0301', '\u0323', '\u0330', 'Z', '\u036f'),
  Greek: range(0x370, 0x3ff),
  Cyrillic: range(0x400, 0x52f),
  Hebrew: range(0x5b0, 0x5f4),
  Arabic: range(0x600, 0x6ff),
  Devanagari: range(0x900, 0x97f),
  Tamil: range(0xb80, 0xbff),
  Thai: range(0xe00, 0xe5b),
  'rare scripts': range(0x1200, 0x1fff),
  'symbols of the base plane': range(0x2000, 0x2fff),
  kana: range(0x3040, 0x30ff),
  ideographs: range(0x4e00, 0x9fff),
  'rare ideographs': range(0x3400, 0x4dbf),
  Hangul: range(0xac00, 0xd7a3),
  'private use': range(0xe000, 0xf8ff),
  'mathematical letters': range(0x1d400, 0x1d7ff),
  emoji: range(0x1f300, 0x1faff),
  'emoji joined to sequences': fc.constantFrom('👩', '👨', '👧', '\u200d', '❤️', '🏽', '🇩', '🇪', '\ufe0f'),
  'tag characters': range(0xe0000, 0xe007f),
  'rare planes': range(0x10000, 0x3ffff),
  blanks: fc.constantFrom(' ', '\t', '\n', '\r', '\u00a0', '\u2003', '\u3000', '\v'),
  'blanks and letters': fc.constantFrom(' ', ' ', '\n', 'a', "'", 'S'),
  'zero width': fc.constantFrom('\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', 'a'),
  'all of the base plane': range(0, 0xffff),
  'everything mixed': fc.constantFrom(
    'a',
    'A',
    '1',
    ' ',
    '!',
    'é',
    '中',
    '\u0007',
    '😀',
    '\n',
    '\u0301',
    'ß',
    'ï',
    "'s",
    '𝒜',
  ),
  'unassigned characters, marks and contractions': fc.constantFrom(
    '\u0b80',
    '\u0bbe',
    '\u0b88',
    '🇩',
    "'S",
    "'ll",
    '\r',
    '\ufeff',
  ),
  'special tokens': fc.constantFrom('<|endoftext|>', '<|', '|>', 'endoftext', '<|im_start|>'),
}

const getText = (alphabet: fc.Arbitrary<string>) =>
  fc.oneof(
    fc.array(alphabet, { maxLength: 400, size: 'max' }).map(characters => characters.join('')),
    // Repeated runs of a few characters: cuts fall in the worst places.
    fc
      .tuple(fc.array(alphabet, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 60 }))
      .map(([unit, times]) => unit.join('').repeat(times)),
  )

describe('estimateInputTokens', () => {
  test.each(Object.entries(alphabets))('returns at least the count when the text is %s', (_, alphabet) => {
    fc.assert(
      fc.property(getText(alphabet), text => {
        const own = o200k(text, asText)
        expect(bound(text, 'openai')).toBeGreaterThanOrEqual(own)
        const most = Math.max(own, cl100k(text, asText))
        for (const provider of ['anthropic', 'google', 'somebody', undefined])
          expect(bound(text, provider)).toBeGreaterThanOrEqual(most)
      }),
      { numRuns: 60 },
    )
  })

  test('returns at least the count for text in several alphabets', () => {
    const mixed = fc
      .array(fc.oneof(...Object.values(alphabets).map(getText)), { maxLength: 8 })
      .map(all => all.join(''))
    fc.assert(
      fc.property(mixed, text => {
        expect(bound(text, 'openai')).toBeGreaterThanOrEqual(o200k(text, asText))
        expect(bound(text)).toBeGreaterThanOrEqual(cl100k(text, asText))
      }),
      { numRuns: 200 },
    )
  })

  test('returns at most one token per byte', () => {
    fc.assert(
      fc.property(getText(alphabets['everything mixed'] ?? among('a')), text => {
        for (const provider of ['openai', 'anthropic', 'google', 'somebody', undefined])
          expect(bound(text, provider)).toBeLessThanOrEqual(Buffer.byteLength(text))
      }),
    )
  })

  const seeds = Array.from({ length: 20 }, (_, index) => 7_919 * (index + 1))
  const cheap = 'The quick brown fox jumps over the lazy dog while nobody is looking at it. '
  const dense = (length: number) =>
    Array.from({ length }, () => String.fromCharCode(Math.floor(random() * 32))).join('')

  test.each([
    ['at the end', (part: string) => cheap.repeat(4_000) + part],
    ['in the middle', (part: string) => cheap.repeat(2_000) + part + cheap.repeat(2_000)],
    ['at the beginning', (part: string) => part + cheap.repeat(4_000)],
    [
      'scattered one by one',
      (part: string) =>
        [...part]
          .map(text => cheap.repeat(2) + text)
          .join('')
          .slice(0, 400_000),
    ],
    [
      'in many short runs',
      (part: string) =>
        part
          .match(/.{1,64}/gs)
          ?.map(run => cheap.repeat(30) + run)
          .join('') ?? '',
    ],
    ['behind 300,000 blanks in lines', (part: string) => `${' '.repeat(29)}\n`.repeat(10_000) + part],
  ])('returns at least the count when a long cheap text hides expensive text %s', (_, hide) => {
    for (const length of [3_000, 12_000]) {
      const text = hide(dense(length))
      const count = o200kInParts(text)
      // A few samples exceed four standard deviations, so the samples are the same in each run.
      for (const seed of seeds) {
        const measure = measureText(text, 32_768, createDraws(seed))
        expect(getUpperBound(measure, 'openai')).toBeGreaterThanOrEqual(count)
      }
    }
  })

  test('samples a long text differently each time, so that clients cannot predict it', () => {
    const text = Array.from({ length: 9_000 }, (_, index) => (index % 7 === 0 ? 'zxqj' : ` word${index % 13}`)).join('')
    const counts = new Set(Array.from({ length: 8 }, () => bound(text, 'openai')))
    expect(counts.size).toBeGreaterThan(1)
  })

  test.each([
    ['English', readFileSync(join(import.meta.dir, '../../LICENSE'), 'utf8')],
    ['English prose', cheap.repeat(20)],
    ['code', readFileSync(join(import.meta.dir, '../../src/request/answer.ts'), 'utf8')],
    ['JSON', readFileSync(join(import.meta.dir, '../../package.json'), 'utf8')],
    ['Chinese', '请解释一下为什么冬天白天短而夏天白天长，并举一个日常生活中的例子来说明这个道理。'.repeat(20)],
    ['Russian', 'Объясните, пожалуйста, почему зимой птицы не мёрзнут на проводах. '.repeat(20)],
  ])("returns at most 10% above OpenAI's count for ordinary text %s", (_, text) => {
    expect(bound(text, 'openai') / o200k(text, asText)).toBeLessThan(1.1)
  })

  test("returns at most 1.6 times OpenAI's count for any provider for English text", () => {
    expect(bound(cheap.repeat(20)) / o200k(cheap.repeat(20), asText)).toBeLessThan(1.6)
  })

  test('covers tools, schemas, calls, names and IDs in any notation', () => {
    const awkward = getText(alphabets['everything mixed'] ?? among('a'))
    const shape = fc.letrec(tie => ({
      value: fc.oneof(
        { maxDepth: 4 },
        awkward,
        fc.double({ noNaN: true }),
        fc.boolean(),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(awkward, tie('value'), { maxKeys: 4 }),
      ),
    }))
    fc.assert(
      fc.property(fc.dictionary(awkward, shape.value, { maxKeys: 5 }), awkward, awkward, (parameters, text, id) => {
        const tool = { name: id, description: text, parameters, strict: true }
        const call = { id, name: id, arguments: text, signature: null }
        const messages: Message[] = [
          { role: 'user', content: [{ type: 'text', text }], name: id },
          { role: 'assistant', text, reasoning: text, toolCalls: [call], name: id },
          { role: 'tool', callId: id, text },
        ]
        const request = { messages, tools: [tool], responseFormat: { type: 'text' } as const }
        const { name, description, strict } = tool
        const written = JSON.stringify({ type: 'function', function: { name, description, parameters, strict } })
        const told = [written, text, id, text, text, id, id, id, text].reduce(
          (sum, item) => sum + o200k(item, asText),
          0,
        )
        expect(estimateInputTokens(request, 'openai')).toBeGreaterThanOrEqual(told * 0.99)
      }),
      { numRuns: 60 },
    )
  })

  test('covers passed-on fields', () => {
    const bare = asking('Hi')
    const extras = { documents: [{ text: 'A long text that a server puts in front of the prompt. '.repeat(50) }] }
    const more = estimateInputTokens({ ...bare, extras }, 'somebody') - estimateInputTokens(bare, 'somebody')
    expect(more).toBeGreaterThan(o200k(extras.documents[0]?.text ?? '', asText))
  })
})

describe('likelyInputTokens', () => {
  test.each(Object.entries(alphabets))(
    'differs by at most 6 % from the tokenizer over 40 short texts of %s',
    (_, alphabet) => {
      let counted = 0
      let estimated = 0
      const texts = fc.sample(getText(alphabet), { numRuns: 40 })
      for (const text of texts) {
        counted += o200kInParts(text)
        estimated += estimateTokens(text)
        expect(likelyInputTokens(asking(text), 'anthropic')).toBeLessThanOrEqual(
          estimateInputTokens(asking(text), 'anthropic'),
        )
      }
      // A single text of repeated characters may be further away: pieces are cut where the tokenizer cuts elsewhere.
      expect(Math.abs(estimated - counted)).toBeLessThanOrEqual(texts.length + counted * 0.06)
    },
  )
})

describe('token estimation', () => {
  const million = 1_000_000
  test.each([
    ['English', () => 'The quick brown fox jumps over the lazy dog. '],
    ['small letters', () => Array.from({ length: 999 }, () => String.fromCharCode(97 + random() * 26)).join('')],
    ['one letter', () => 'a'],
    ['control characters', () => '\u0001\u0002'],
    ['ideographs', () => Array.from({ length: 999 }, () => String.fromCharCode(0x4e00 + random() * 20_000)).join('')],
    ['punctuation', () => '{;}!@'],
    ['blanks', () => ' '],
    ['line breaks', () => '\n'],
    ['emoji', () => '👩‍👩‍👧'],
    ['lone surrogates', () => '\ud800\udc00\ud800'],
  ])('takes linear time for 2 MB of %s', (_, unit) => {
    const text = unit()
      .repeat(Math.ceil((2 * million) / unit().length))
      .slice(0, 2 * million)
    estimateTokens(text)
    const times = Array.from({ length: 5 }, () => {
      const start = cpuMs()
      bound(text)
      return cpuMs() - start
    })
    // Takes at most 50 ms on its own core.
    expect(Math.min(...times)).toBeLessThan(500)
  })
})

describe('vocabulary.json', () => {
  const column = (packed: string) => Bun.zstdDecompressSync(Buffer.from(packed, 'base64'))
  const tokens = publishedTokens()

  test('contains the published tokens and the classes of all code units', () => {
    expect(column(file.bytes).equals(Buffer.concat(tokens))).toBe(true)
    expect(column(file.lengths).equals(Uint8Array.from(tokens, token => token.length))).toBe(true)
    expect(column(file.classes).equals(Uint8Array.from({ length: 0x10000 }, (_, unit) => getClass(unit)))).toBe(true)
  })

  test("contains each token's count elsewhere", () => {
    const weights = column(file.elsewhere)
    const sample = Array.from({ length: 3_000 }, () => Math.floor(random() * tokens.length))
    for (const at of sample) expect(weights[at]).toBe(weightElsewhere(tokens[at] ?? new Uint8Array(0)))
  })
})
