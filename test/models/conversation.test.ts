import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Level, levels } from '../../src/models/capability-levels.ts'
import {
  type ConversationState,
  chooseTurn,
  type Pair,
  type PairTable,
  settleTurn,
  type TurnFacts,
} from '../../src/models/conversation.ts'
import type { ChosenEffort } from '../../src/models/effort.ts'

/** Prices in units per token: input, cached input, and the output of a request. */
const models = {
  small: {
    efforts: ['none', 'low', 'medium'],
    scores: { light: 0.7, middle: 0.5, strong: 0.2 },
    quality: 0.3,
    price: [1, 0.1, 500],
  },
  mid: {
    efforts: ['low', 'medium', 'high'],
    scores: { light: 0.5, middle: 0.6, strong: 0.5 },
    quality: 0.6,
    price: [5, 0.5, 3_000],
  },
  large: {
    quality: 0.9,
    efforts: ['low', 'medium', 'high'],
    scores: { light: 0.3, middle: 0.5, strong: 0.9 },
    price: [20, 2, 9_000],
  },
} as const satisfies Record<
  string,
  {
    readonly efforts: readonly Exclude<ChosenEffort, null>[]
    readonly scores: Readonly<Record<Level, number>>
    readonly quality: number
    readonly price: readonly [number, number, number]
  }
>
type Name = keyof typeof models
const names = ['small', 'mid', 'large'] as const
const isName = (model: string): model is Name => names.some(name => name === model)
const weights = { light: 0.5, middle: 0.3, strong: 0.06 } as const

/** A table of the models that may be called. */
function table(callable: readonly Name[] = names): PairTable {
  const find = (model: string, level: Level, raised: number): Pair | null => {
    if (!isName(model) || !callable.includes(model)) return null
    const { efforts, scores, quality } = models[model]
    const effort = efforts[Math.min(efforts.length - 1, levels.indexOf(level) + raised)] ?? null
    return { model, effort, score: scores[level], quality }
  }
  return {
    find,
    leader: (level, raised) =>
      callable
        .flatMap(name => find(name, level, raised) ?? [])
        .toSorted((pair, other) => other.score - pair.score)
        .at(0) ?? null,
    at: (pair, effort) => ({ ...pair, effort }),
    cost({ model }, inputTokens, cachedTokens) {
      const [input, cached, output] = isName(model) ? models[model].price : [0, 0, 0]
      return (inputTokens - cachedTokens) * input + cachedTokens * cached + output
    },
    costWeight: level => weights[level],
  }
}

const facts = (given: Partial<TurnFacts> = {}): TurnFacts => ({
  kind: 'topic',
  level: 'light',
  error: '',
  call: '',
  request: 'r1',
  inputTokens: 20_000,
  ...given,
})
const state = (given: Partial<ConversationState> = {}): ConversationState => ({
  model: 'mid',
  effort: 'medium',
  level: 'middle',
  raised: 0,
  switches: 0,
  turns: 3,
  trouble: 0,
  stalled: 0,
  error: '',
  call: '',
  request: 'r1',
  inputRatio: 1,
  cachedTokens: 20_000,
  spentMicrocents: 0,
  spentAt: 0,
  ...given,
})
const choose = (before: ConversationState | null, given: Partial<TurnFacts>, callable: readonly Name[] = names) => {
  const { pair, reason, next } = chooseTurn(before, facts(given), table(callable))
  return { model: pair?.model, effort: pair?.effort, reason, next }
}

describe('chooseTurn', () => {
  test.each([
    ['the best pair of a first turn', null, { level: 'strong' }, ['large', 'high', 'first']],
    [
      'model and effort within a tool loop',
      state({ effort: 'high' }),
      { kind: 'tool', level: 'strong' },
      ['mid', 'high', 'tool_loop'],
    ],
    [
      'them also after the same error twice',
      state({ error: 'e' }),
      { kind: 'tool', error: 'e' },
      ['mid', 'medium', 'tool_loop'],
    ],
    ['the model of a task', state(), { kind: 'continues' }, ['mid', 'medium', 'same_task']],
    ['a lower effort for thanks', state(), { kind: 'courtesy' }, ['mid', 'low', 'same_task']],
    [
      'the cached model and a lower effort for a simple new topic',
      state(),
      { request: 'r2' },
      ['mid', 'low', 'cached'],
    ],
    [
      'a cheaper model for a simple new topic once the cache is gone',
      state({ cachedTokens: 0 }),
      { request: 'r2' },
      ['small', 'none', 'better'],
    ],
    [
      'a cheaper model where it saves more than the lost cache',
      state({ cachedTokens: 1_100 }),
      { request: 'r2', inputTokens: 5_000 },
      ['small', 'none', 'cheaper'],
    ],
    [
      'a better model for a new topic of a higher level',
      state({ model: 'small', level: 'light' }),
      { request: 'r2', level: 'strong' },
      ['large', 'high', 'better'],
    ],
    [
      'the cached model for a higher level at which only a worse one scores more',
      state({ model: 'large', level: 'light' }),
      { request: 'r2', level: 'middle', inputTokens: 25_000 },
      ['large', 'medium', 'cached'],
    ],
    [
      'one change of model per task',
      state({ model: 'small', level: 'light', switches: 1 }),
      { kind: 'continues', level: 'strong' },
      ['small', 'medium', 'same_task'],
    ],
    [
      'a higher effort after trouble',
      state({ effort: 'medium', trouble: 3 }),
      { kind: 'continues' },
      ['mid', 'high', 'escalated'],
    ],
    ['a higher effort for a request that is repeated twice', state({ trouble: 2 }), {}, ['mid', 'high', 'escalated']],
    [
      'a stronger model when no higher effort is left',
      state({ effort: 'high', trouble: 4 }),
      { kind: 'continues' },
      ['large', 'medium', 'escalated'],
    ],
    [
      'the model when neither is left',
      state({ effort: 'high', trouble: 4, switches: 1 }),
      { kind: 'continues' },
      ['mid', 'medium', 'same_task'],
    ],
  ] as const)('takes %s', (_name, before, given, [model, effort, reason]) => {
    const chosen = choose(before, given)
    expect(chosen).toMatchObject({ reason, model })
    if (reason !== 'escalated' || model === 'mid') expect(chosen.effort).toBe(effort)
  })

  test('leaves a model that cannot be called, also within a tool loop', () => {
    expect(choose(state(), { kind: 'tool' }, ['small', 'large'])).toMatchObject({ reason: 'lost', model: 'small' })
    expect(chooseTurn(state(), facts(), table([])).pair).toBeNull()
  })

  test('counts cached and estimated tokens in the provider’s unit', () => {
    // The gateway estimates half again as many tokens as the provider counts: all of them are cached.
    const counted = state({ inputRatio: 20_000 / 30_000, cachedTokens: 20_000 })
    expect(choose(counted, { request: 'r2', inputTokens: 30_400 }).reason).toBe('cached')
    const settled = settleTurn(state(), {
      model: 'mid',
      effort: 'low',
      estimatedTokens: 30_418,
      inputTokens: 20_100,
      cachedTokens: 20_013,
      microcents: 500,
      at: 0,
    })
    expect(settled.inputRatio).toBeCloseTo(20_100 / 30_418, 5)
  })

  test('forgets trouble, steps and the change of model with a new topic', () => {
    const { next } = choose(state({ trouble: 2, raised: 2, switches: 1, stalled: 4 }), { request: 'r2' })
    expect(next).toMatchObject({ trouble: 0, raised: 0, switches: 0, stalled: 0, level: 'light', turns: 4 })
  })

  test('counts turns without progress, until a call succeeds that is another', () => {
    const stalled = (before: ConversationState, given: Partial<TurnFacts>) =>
      choose(before, { kind: 'tool', request: '', ...given }).next
    const once = stalled(state(), { error: 'e', call: 'c' })
    const twice = stalled(once, { error: 'e', call: 'd' })
    const again = stalled(twice, { call: 'd' })
    expect([once.stalled, twice.stalled, again.stalled, stalled(again, { call: 'f' }).stalled]).toEqual([1, 2, 3, 0])
    expect([once.trouble, twice.trouble, again.trouble]).toEqual([1, 3, 2])
  })
})

test('chooseTurn: changes the model at most once per task, never in a tool loop, and keeps a cheaper cached one, for any session', () => {
  const turns = fc.array(
    fc.record({
      kind: fc.constantFrom('tool', 'tool', 'tool', 'continues', 'topic', 'courtesy'),
      level: fc.constantFrom(...levels),
      error: fc.constantFrom('', '', 'e1', 'e2'),
      call: fc.constantFrom('c1', 'c2', 'c3'),
      request: fc.constantFrom('r1', 'r2', 'r3', 'r4'),
      added: fc.integer({ min: 10, max: 8_000 }),
      ratio: fc.double({ min: 0.5, max: 1.5, noNaN: true }),
      hits: fc.boolean(),
    }),
    { maxLength: 40 },
  )
  fc.assert(
    fc.property(turns, session => {
      let before: ConversationState | null = null
      let [inputTokens, changes] = [500, 0]
      for (const { added, ratio, hits, ...turn } of session) {
        inputTokens += added
        const given = facts({ ...turn, inputTokens })
        const { pair, reason, next } = chooseTurn(before, given, table())
        if (pair === null) throw new Error('all may be called')
        if (before !== null) {
          const isNew: boolean = given.kind === 'topic' && given.request !== before.request
          const isChange: boolean = pair.model !== before.model
          changes = (isNew ? 0 : changes) + (isChange ? 1 : 0)
          expect(changes).toBeLessThanOrEqual(1)
          if (given.kind === 'tool') expect([pair.model, pair.effort]).toEqual([before.model, before.effort])
          const input: number = inputTokens * before.inputRatio
          const cached: number = Math.min(before.cachedTokens, input)
          const rises: boolean = levels.indexOf(next.level) > levels.indexOf(before.level)
          const kept = table().find(before.model, next.level, next.raised) ?? pair
          const gains = rises && pair.quality > kept.quality
          if (isChange && cached >= 1_024 && !gains && reason !== 'escalated') {
            expect(table().cost(pair, input, 0)).toBeLessThan(table().cost(kept, input, cached))
          }
        }
        const counted = Math.round(inputTokens * ratio)
        before = settleTurn(next, {
          model: pair.model,
          effort: pair.effort,
          estimatedTokens: inputTokens,
          inputTokens: counted,
          cachedTokens: hits ? counted : 0,
          microcents: 0,
          at: 0,
        })
      }
    }),
    { numRuns: 2_000 },
  )
})
