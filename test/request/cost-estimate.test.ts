import { describe, expect, test } from 'bun:test'
import type { Message } from '../../src/core/chat/chat.ts'
import { getCost } from '../../src/core/usage/money.ts'
import type { CalibratedLength } from '../../src/learning/estimate-calibration.ts'
import { catalog } from '../../src/models/catalog.ts'
import { estimateCost, measurePrompt as measureWith, unknownLength } from '../../src/request/cost-estimate.ts'
import { openPromptAnalyzer } from '../../src/text/readers.ts'
import { noWeb } from '../../src/web/web-plan.ts'
import { user } from '../harness/ask.ts'
import { modelNamed } from '../harness/model.ts'

/** Analyzes in this thread; the composition handles parallel work. */
const read = openPromptAnalyzer().read
const measurePrompt = (messages: Parameters<typeof measureWith>[0], web = noWeb) =>
  measureWith(messages, { cues: read(messages), web, at: 0 })

const image: Message = {
  role: 'user',
  content: [{ type: 'image', url: 'https://example.org/a.png', detail: null }],
  name: null,
}

describe('estimateCost', () => {
  test('costs its own token counts at catalog prices', async () => {
    const prompt = measurePrompt([user('Write a function that reverses a list.')])
    for (const model of catalog) {
      const item = estimateCost(model, prompt, null)
      const tokens = { inputTokens: item.inputTokens, outputTokens: item.expectedOutputTokens }
      expect(item.costMicrocents).toBe(
        getCost(model.pricing, { ...tokens, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }),
      )
      expect(item.costMicrocents).toBeGreaterThan(0)
    }
  })

  test('never exceeds the output cap of the client or the model', async () => {
    const prompt = measurePrompt([user('Write a comprehensive report on rivers.')])
    for (const model of catalog) {
      expect(estimateCost(model, prompt, 7).expectedOutputTokens).toBe(7)
      expect(estimateCost(model, prompt, 10_000_000).expectedOutputTokens).toBeLessThanOrEqual(model.maxOutputTokens)
    }
  })

  test.each([
    ['gpt-5.5', 100, [user('hi')], 'high'],
    ['gpt-5.5', null, [user('hi')], 'medium'],
    ['gpt-5.5', 100, [image], 'medium'],
    // Japanese without spaces is counted in parts.
    ['gpt-5.5', 100, [user('週末に家族と海へ行く予定ですが雨の場合に楽しめる場所を教えてください')], 'medium'],
    ['gpt-5.5', null, [image], 'low'],
    ['claude-opus-5-5', 100, [user('hi')], 'medium'],
    ['gemini-3.8-flash', null, [user('hi')], 'low'],
  ] as const)(
    'for %s with an output cap of %p has the confidence of its parts',
    async (id, cap, messages, confidence) => {
      expect(estimateCost(modelNamed(id), measurePrompt(messages), cap).confidence).toBe(confidence)
    },
  )

  test('returns a maximum exactly when confidence is high, never below the estimate', async () => {
    const prompt = measurePrompt([user('hi')])
    for (const model of catalog) {
      const { confidence, costMicrocents, maximumCostMicrocents } = estimateCost(model, prompt, 2_000)
      expect(maximumCostMicrocents !== null).toBe(confidence === 'high')
      expect(maximumCostMicrocents ?? Infinity).toBeGreaterThanOrEqual(costMicrocents)
    }
  })

  test('expects longer outputs for code, planning and stories than for facts', async () => {
    const expected = async (text: string) =>
      estimateCost(modelNamed('claude-haiku-4-5'), measurePrompt([user(text)]), null).expectedOutputTokens
    const fact = await expected('What is the capital of Peru?')
    for (const text of [
      'Write a Python function that merges two sorted lists, with a docstring and unit tests for the empty list.',
      'Plan a five day trip to Lisbon for a family with two small children, with costs for each day and what to book first.',
      'Write a short story about a lighthouse keeper who finds a letter in a bottle that was meant for somebody else.',
    ])
      expect(await expected(text)).toBeGreaterThan(2 * fact)
  })

  test("prefers measured lengths to the table, and trusts the account's own when accurate", async () => {
    const prompt = measurePrompt([user('Tell me something about otters')])
    const flash = modelNamed('gemini-3.8-flash')
    const by = (known: CalibratedLength, cap: number | null = null) => estimateCost(flash, prompt, cap, known)
    const plain = by(unknownLength)
    const doubled = by({ factor: 2, source: 'traffic', typicalErrorPct: 50 })
    expect(doubled.expectedOutputTokens).toBe(2 * plain.expectedOutputTokens)
    expect([plain, doubled].map(item => [item.outputFrom, item.confidence])).toEqual([
      ['table', 'low'],
      ['traffic', 'low'],
    ])
    expect(by({ factor: 1, source: 'account', typicalErrorPct: 20 }).confidence).toBe('medium')
    expect(by({ factor: 1, source: 'account', typicalErrorPct: 90 }).confidence).toBe('low')
    expect(by({ factor: 100, source: 'account', typicalErrorPct: 20 }, 50)).toMatchObject({
      expectedOutputTokens: 50,
      outputFrom: 'cap',
    })
  })

  test('includes the cost and tokens of web access, with lower confidence', async () => {
    const web = { ...noWeb, query: 'otters', urls: ['https://a.example/'], microcents: 550_000 }
    const messages = [user('Tell me something about otters')]
    const [without, beside] = [measurePrompt(messages), measurePrompt(messages, web)]
    const [plain, dearer] = [without, beside].map(prompt => estimateCost(modelNamed('gpt-5.5'), prompt, 100))
    expect(dearer?.inputTokens).toBeGreaterThan((plain?.inputTokens ?? 0) + 1_000)
    expect(dearer?.costMicrocents).toBeGreaterThan((plain?.costMicrocents ?? 0) + web.microcents)
    expect([plain?.confidence, dearer?.confidence]).toEqual(['high', 'medium'])
    expect(dearer?.maximumCostMicrocents).toBeNull()
  })

  test('expects more from a model that always reasons', async () => {
    const prompt = measurePrompt([user('Tell me something about otters')])
    const expected = (id: string) => estimateCost(modelNamed(id), prompt, null).expectedOutputTokens
    expect(expected('gpt-6.1-sol')).toBeGreaterThan(expected('gpt-6.1-terra'))
    expect(expected('claude-opus-5-5')).toBeGreaterThan(expected('claude-haiku-4-5'))
  })
})
