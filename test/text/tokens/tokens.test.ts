import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { countTokens as countOlder } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/o200k_base'
import type { ChatRequest, Message } from '../../../src/core/chat/chat.ts'
import { createDraws, measureText } from '../../../src/text/tokens/pieces-of-text.ts'
import { countTokens, estimateInputTokens, estimateTokens } from '../../../src/text/tokens/tokens.ts'
import { user } from '../../harness/ask.ts'
import { cpuMs } from '../../harness/cpu.ts'

const asText = { disallowedSpecial: new Set<string>() }

const english =
  'Our delivery van broke down twice last week, so I would like to know what it costs to rent one for a month. ' +
  'Please compare three offers, mention the deposit, and tell me which of them lets us cancel within a day.'
const samples: Readonly<Record<string, string>> = {
  english,
  french:
    'Pourriez-vous m’expliquer comment fonctionne une pompe à chaleur, et à partir de quelle température elle cesse d’être rentable ?',
  russian: 'Объясните, пожалуйста, почему зимой птицы не мёрзнут на проводах и как они находят еду под снегом.',
  chinese: '请解释一下为什么冬天白天短而夏天白天长，并举一个日常生活中的例子来说明这个道理。',
  japanese: '週末に家族と海へ行く予定ですが、雨の場合に楽しめる場所を三つ教えてください。',
  korean: '다음 주에 부모님과 함께 갈 만한 조용한 식당을 세 군데 추천해 주세요.',
  arabic: 'اشرح لي من فضلك كيف تعمل الألواح الشمسية ولماذا تقل كفاءتها في الأيام الحارة.',
  code: 'export function median(values: readonly number[]): number | null {\n  const sorted = values.toSorted((a, b) => a - b)\n  return sorted[sorted.length >> 1] ?? null\n}\n',
  json: JSON.stringify({ orders: [{ id: 81_223, total: 19.95, paid: true, address: { city: 'Lyon', zip: '69002' } }] }),
}

const send = (messages: readonly Message[], more: Partial<ChatRequest> = {}) => ({
  messages,
  tools: [],
  responseFormat: { type: 'text' } as const,
  ...more,
})

describe('estimateTokens', () => {
  test.each(Object.entries(samples))('deviates at most a third from the count for %s', (_, text) => {
    const ratio = estimateTokens(text) / countWhole(text, asText)
    expect(ratio).toBeGreaterThan(0.67)
    expect(ratio).toBeLessThan(1.5)
  })

  test.each(Object.entries(samples))('returns at least the count of a request for %s', (_, text) => {
    expect(estimateInputTokens(send([user(text)]), 'openai')).toBeGreaterThanOrEqual(countWhole(text, asText))
  })

  /** Non-words in every alphabet, repeated as one run and as words. */
  const letter = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz', ...'ABCäéабв', ...'漢字あกข', ...'-=_*.')
  const nonWord = fc.string({ unit: letter, minLength: 1, maxLength: 8 })
  const repeatedNonWord = fc
    .tuple(nonWord, fc.boolean())
    .map(([unit, isOneRun]) =>
      isOneRun ? unit.repeat(Math.ceil(320 / unit.length)) : ` ${unit.repeat(Math.ceil(20 / unit.length))}`.repeat(16),
    )
  const known = ['bbn', 'la', 'wake', 'spy', '__._', '-_**=-=-'].flatMap(unit => [
    [unit.repeat(1_000)] as [string],
    [` ${unit.repeat(Math.floor(24 / unit.length))}`.repeat(40)] as [string],
  ])

  test('returns at least the count of OpenAI, and three quarters of another one, for repeated non-words', () => {
    fc.assert(
      fc.property(repeatedNonWord, text => {
        const request = send([user(text)])
        expect(estimateInputTokens(request, 'openai')).toBeGreaterThanOrEqual(countWhole(text, asText))
        expect(estimateInputTokens(request)).toBeGreaterThanOrEqual(countOlder(text, asText) * 0.75)
      }),
      { seed: 20261123, numRuns: 500, examples: known },
    )
  })

  test('takes a few milliseconds for any text of 1 MB', () => {
    for (const unit of [english, '漢字', '\u0000', 'x1!Y', '😀']) {
      const request = send([user(unit.repeat(1_000_000 / unit.length))])
      estimateInputTokens(request)
      const times = Array.from({ length: 9 }, () => {
        const start = cpuMs()
        estimateInputTokens(request)
        return cpuMs() - start
      })
      expect(Math.min(...times)).toBeLessThan(30)
    }
  })

  test('returns an integer that is 0 only for an empty text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), text => {
        const tokens = estimateTokens(text)
        expect(Number.isSafeInteger(tokens)).toBe(true)
        expect(tokens > 0).toBe(text.length > 0)
      }),
    )
  })

  test('reserves for the highest count when no provider is given', () => {
    const request = send([user(english)])
    for (const provider of ['openai', 'anthropic', 'google', 'somebody'])
      expect(estimateInputTokens(request)).toBeGreaterThanOrEqual(estimateInputTokens(request, provider))
  })

  test('counts images, tools, schemas, calls and their results', () => {
    const bare = estimateInputTokens(send([user('hi')]))
    const image = { type: 'image', url: `data:image/png;base64,iVBORw0KGgo${'A'.repeat(1e6)}`, detail: null } as const
    const withImage = estimateInputTokens(send([{ role: 'user', content: [image], name: null }]))
    expect(withImage).toBeGreaterThan(1_000)
    expect(withImage).toBeLessThan(20_000)
    const text = { ...image, url: `data:image/png;base64,${Buffer.from(english.repeat(1_000)).toString('base64')}` }
    expect(estimateInputTokens(send([{ role: 'user', content: [text], name: null }]))).toBeGreaterThan(30_000)
    const schema = { type: 'object', properties: { city: { type: 'string', description: english } } }
    const tools = [{ name: 'weather', description: 'weather by city', parameters: schema, strict: null }]
    expect(estimateInputTokens(send([user('hi')], { tools }))).toBeGreaterThan(bare + 80)
    const responseFormat = { type: 'json_schema', name: 'x', description: null, schema, strict: null } as const
    expect(estimateInputTokens(send([user('hi')], { responseFormat }))).toBeGreaterThan(bare + 60)
    const call = { id: '1', name: 'weather', arguments: JSON.stringify({ city: english }), signature: null }
    const turns: Message[] = [
      { role: 'assistant', text: null, reasoning: null, toolCalls: [call], name: null },
      { role: 'tool', callId: '1', text: english },
    ]
    expect(estimateInputTokens(send([user('hi'), ...turns]))).toBeGreaterThan(bare + 80)
  })

  test('reads a schema nested 100,000 levels deep', () => {
    let schema: Record<string, unknown> = {}
    for (let depth = 0; depth < 100_000; depth += 1) schema = { a: schema }
    const tools = [{ name: 'deep', description: null, parameters: schema, strict: null }]
    expect(estimateInputTokens(send([user('hi')], { tools }))).toBeGreaterThan(100_000)
  })
})

describe('measureText', () => {
  const parts = Object.values(samples)
  const long = Array.from({ length: 400 }, (_, index) => parts[(index * index) % parts.length]).join('\n')
  const measureSample = (seed: number) => measureText(long, 8_192, createDraws(seed))
  // Another seed has another sample. These are the same in each run, so none of the bounds is one of chance.
  const seeds = Array.from({ length: 400 }, (_, index) => 7_919 * (index + 1))
  const whole = measureText(long, long.length, () => 0)

  test('counts a long text in full when it may be read in full', () => {
    const ofPieces = pieces(long).reduce((sum, piece) => sum + estimateTokens(piece), 0)
    expect(Math.abs(whole.own / ofPieces - 1)).toBeLessThan(0.01)
    expect(whole.ownVariance).toBe(0)
  })

  test('stays within 1% of the full count on average when a long text is sampled', () => {
    for (const kind of ['own', 'elsewhere'] as const) {
      const mean = seeds.reduce((sum, seed) => sum + measureSample(seed)[kind], 0) / seeds.length
      expect(Math.abs(mean / whole[kind] - 1)).toBeLessThan(0.01)
    }
  })

  test('states how far a sample is from the full count', () => {
    const distances = seeds.map(seed => {
      const { own, ownVariance } = measureSample(seed)
      return Math.abs(own - whole.own) / Math.sqrt(ownVariance)
    })
    expect(Math.max(...distances)).toBeLessThan(4)
    const getShare = (deviations: number) => distances.filter(distance => distance < deviations).length / seeds.length
    // 68% and 95% of a normal distribution.
    expect(Math.abs(getShare(1) - 0.68)).toBeLessThan(0.07)
    expect(Math.abs(getShare(2) - 0.95)).toBeLessThan(0.03)
  })
})

describe('countTokens', () => {
  test.each(Object.entries(samples))('equals the tokenizer for %s, or says that it may not', (_, text) => {
    const { tokens, isExact } = countTokens([text])
    const whole = countWhole(text, asText)
    expect(isExact || /[\u3040-\u9fff]/.test(text)).toBe(true)
    if (isExact) expect(tokens).toBe(whole)
    else expect(Math.abs(tokens / whole - 1)).toBeLessThan(0.1)
  })

  test('equals the tokenizer for prose of any length that is read in full', () => {
    for (const times of [40, 80, 150]) {
      const long = `${english} `.repeat(times)
      expect(countTokens([long])).toEqual({ tokens: countWhole(long, asText), isExact: true })
    }
    expect(countTokens([`${english} `.repeat(400)]).isExact).toBe(false)
  })

  test('treats special tokens, lone surrogates and empty input as text', () => {
    expect(countTokens([''])).toEqual({ tokens: 0, isExact: true })
    expect(countTokens(['<|endoftext|>']).tokens).toBeGreaterThan(1)
    expect(countTokens([`a\ud800${'\udc00'.repeat(2_000)}`]).tokens).toBeGreaterThan(0)
  })
})

function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / 4_000) }, (_, index) =>
    text.slice(index * 4_000, (index + 1) * 4_000),
  )
}
