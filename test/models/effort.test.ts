import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type ReasoningEffort, reasoningEfforts, type Strategy, strategies } from '../../src/core/chat/chat.ts'
import { buildCatalog, type Model } from '../../src/core/models/models.ts'
import { chatRequestWithDefaults } from '../../src/core/request/chat-request.ts'
import { type Level, levels } from '../../src/models/capability-levels.ts'
import { catalog } from '../../src/models/catalog.ts'
import {
  effortRuleCount,
  expectedReasoning,
  getEffortRules,
  listEfforts,
  mostRaised,
  nearestSupported,
  ReasoningCalibration,
  supportedEfforts,
  usualLengths,
} from '../../src/models/effort.ts'
import { score } from '../../src/models/scoring.ts'

const find = (id: string): Model => {
  const model = buildCatalog(catalog).resolve(id)
  if (model === null) throw new Error(`no model ${id}`)
  return model
}
const [luna, sol, opus48, gemini, fixed] = [
  'gpt-6-luna',
  'gpt-6.1-sol',
  'claude-opus-4-8',
  'gemini-4-argon',
  'gpt-4.1',
].map(find) as [Model, Model, Model, Model, Model]
const request = (fields: Parameters<typeof chatRequestWithDefaults>[1] = {}) => chatRequestWithDefaults([], fields)
const tool = { name: 'run', description: null, parameters: null, strict: null }
const place = (effort: ReasoningEffort) => reasoningEfforts.indexOf(effort)

describe('efforts', () => {
  test.each([
    ['light', luna, ['none', 'low']],
    ['light', sol, ['low']],
    ['middle', luna, ['low', 'medium']],
    ['strong', sol, ['medium']],
    ['speed', sol, ['low']],
    ['quality', sol, ['high', 'xhigh']],
    ['quality', gemini, ['high']],
    ['light', opus48, ['none', 'low']],
    ['strong', fixed, [null]],
  ] as const)('lie within the bounds of %s', (mode, model, expected) => {
    expect(listEfforts(model, mode, getEffortRules(request()))).toEqual([...expected])
  })

  test.each([
    [
      'a forced call, where the model cannot be forced while it reasons',
      { tools: [tool], toolChoice: 'required' },
      opus48,
      ['none'],
    ],
    ['a cap that leaves no room', { maxOutputTokens: 200 }, sol, ['low']],
    ['a cap with little room', { maxOutputTokens: 2_000 }, sol, ['medium']],
    [
      'tools, where the model then takes no effort',
      { tools: [tool] },
      { ...sol, parameters: { ...sol.parameters, toolsNeedEffortNone: true } },
      [null],
    ],
    ['the effort of the client', { reasoningEffort: 'max' }, gemini, ['high']],
  ] as const)('follow %s', (_name, fields, model, expected) => {
    expect(listEfforts(model, 'strong', getEffortRules(request(fields)))).toEqual([...expected])
  })

  test('come from the catalog entry, and rise with the steps of a conversation', () => {
    const modes: readonly (Level | Strategy)[] = [...levels, ...strategies]
    fc.assert(
      fc.property(
        fc.constantFrom(...catalog),
        fc.constantFrom(...modes),
        fc.integer({ min: -mostRaised, max: mostRaised - 1 }),
        fc.record({
          maxOutputTokens: fc.option(fc.integer({ min: 1, max: 20_000 })),
          temperature: fc.option(fc.constant(1)),
          tools: fc.constantFrom([], [tool]),
        }),
        (model, mode, raised, fields) => {
          const rules = getEffortRules(request(fields), raised)
          expect(rules.key).toBeWithin(0, effortRuleCount)
          expect(getEffortRules(request(fields), raised)).toBe(rules)
          const efforts = listEfforts(model, mode, rules)
          expect(efforts.length).toBeGreaterThan(0)
          for (const effort of efforts) expect(effort === null || supportedEfforts(model).includes(effort)).toBe(true)
          const [lowest] = efforts
          const [next] = listEfforts(model, mode, getEffortRules(request(fields), raised + 1))
          if (lowest != null && next != null) expect(place(next)).toBeGreaterThanOrEqual(place(lowest))
        },
      ),
    )
  })

  test('give the client the nearest, the higher of two equally near', () => {
    expect(nearestSupported('minimal', ['none', 'low'])).toBe('low')
    expect(nearestSupported('max', ['low', 'high'])).toBe('high')
    expect(nearestSupported('low', [])).toBeNull()
  })
})

describe('rank table', () => {
  const terms = { at: Date.parse('2026-11-20T12:00:00Z'), tier: null }
  const efforts = getEffortRules(request())
  const best = (level: Level, lengths = usualLengths) =>
    score([sol], { strategy: null, level, terms, efforts, lengths })[0]

  test('pairs each model with its best effort', () => {
    expect([best('light')?.effort, best('strong')?.effort]).toEqual(['low', 'medium'])
  })

  test('scores a pair again when the measured length of its reasoning changes', () => {
    const long = { of: (_model: Model, effort: ReasoningEffort) => (effort === 'medium' ? 50_000 : 100) }
    const before = score([luna], { strategy: null, level: 'middle', terms, efforts })[0]
    expect(before?.effort).toBe('low')
    const shorter = { of: (_model: Model, effort: ReasoningEffort) => (effort === 'low' ? 50_000 : 100) }
    expect(score([luna], { strategy: null, level: 'middle', terms, efforts, lengths: shorter })[0]?.effort).toBe(
      'medium',
    )
    expect(score([luna], { strategy: null, level: 'middle', terms, efforts, lengths: long })[0]?.effort).toBe('low')
  })

  test('ranks without efforts as for a provider’s default', () => {
    const [entry] = score([sol], { strategy: null, level: 'strong', terms })
    expect(entry?.effort).toBeNull()
  })
})

describe('reasoning lengths', () => {
  test('follow settled requests of the model, and those of others until there are enough', () => {
    const calibration = new ReasoningCalibration()
    expect(calibration.current.of(sol, 'high')).toBe(2_000)
    for (let times = 0; times < 200; times++) calibration.add('openai/gpt-6.1-sol', 'high', 6_000)
    expect(calibration.current.of(sol, 'high')).toBeWithin(5_000, 6_001)
    expect(calibration.current.of(luna, 'high')).toBe(2_000)
    calibration.add('openai/gpt-6-luna', 'high', 6_000)
    expect(calibration.current.of(luna, 'high')).toBeGreaterThan(4_000)
    expect(calibration.current.of(sol, 'low')).toBe(400)
  })

  test('begin with the sums of the ledger, which weigh no more than a half-life of requests', () => {
    const calibration = new ReasoningCalibration()
    const row = { model: 'openai/gpt-6.1-sol', effort: 'high', tokens: 600_000_000, requests: 100_000 }
    calibration.seed([row, { ...row, effort: 'utmost' }])
    expect(calibration.current.of(sol, 'high')).toBeWithin(5_800, 6_001)
    for (let times = 0; times < 1_000; times++) calibration.add(row.model, 'high', 1_000)
    expect(calibration.current.of(sol, 'high')).toBeLessThan(2_500)
  })

  test('stay one object while they change by less than a tenth', () => {
    const calibration = new ReasoningCalibration()
    const { current } = calibration
    calibration.add('openai/gpt-6.1-sol', 'high', 2_100)
    expect(calibration.current).toBe(current)
  })

  test('count the default of a model that always reasons as `medium`', () => {
    expect([sol, luna, fixed].map(model => expectedReasoning(model, null, usualLengths))).toEqual([800, 0, 0])
  })
})
