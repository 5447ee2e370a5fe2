import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import {
  applyRules,
  findDenial,
  operatorRulesSchema,
  prepareRules,
  type RuleRow,
  type RuleSubject,
  ruleProblems,
} from '../../../src/core/policy/rules.ts'
import { getRefusal } from '../../harness/refusal.ts'

const models = new Map([
  ['openai/large', { provider: 'openai', id: 'large' }],
  ['large', { provider: 'openai', id: 'large' }],
  ['big', { provider: 'openai', id: 'large' }],
  ['openai/small', { provider: 'openai', id: 'small' }],
  ['anthropic/fine', { provider: 'anthropic', id: 'fine' }],
])

const subject: RuleSubject = {
  accountId: 'acc_1',
  keyIds: ['key_2', 'key_1'],
  projectId: 'prj_1',
  tags: { team: 'search', env: 'prod' },
  findHeader: name => ({ 'x-stage': 'canary-2' })[name.toLowerCase()] ?? null,
  countTokens: () => 1_000,
  draw: () => 50,
  resolve: name => models.get(name.toLowerCase()) ?? null,
}

function apply(rows: readonly RuleRow[], model: string, given: Partial<RuleSubject> = {}) {
  return applyRules(prepareRules(rows, 'operator'), { ...subject, ...given }, model)
}

const when = (conditions: NonNullable<RuleRow['when']>): RuleRow => ({
  name: 'one',
  when: conditions,
  rewrite: 'anthropic/fine',
})

describe('conditions of a rule', () => {
  const cases: readonly (readonly [holds: boolean, conditions: NonNullable<RuleRow['when']>, model?: string])[] = [
    [true, {}],
    [true, { model: 'openai/large' }],
    [true, { model: 'OPENAI/Large' }],
    [true, { model: 'big' }, 'large'],
    [true, { model: 'openai/large' }, 'BIG'],
    [true, { model: 'lar*' }, 'big'],
    [true, { model: 'openai/*' }],
    [true, { model: ['x/y', 'openai/large'] }],
    [true, { model: '*' }, 'gateway-ai'],
    [true, { model: 'gateway-ai' }, 'gateway-ai'],
    [true, { model: 'gpt-4*' }, 'gpt-4-0613'],
    [false, { model: 'gateway-ai' }],
    [false, { model: 'openai/larg' }],
    [false, { model: 'openai/small' }],
    [false, { model: 'anthropic/*' }],
    [true, { tag: { team: 'search' } }],
    [true, { tag: { team: 'sea*', env: ['dev', 'prod'] } }],
    [false, { tag: { team: 'search', env: 'dev' } }],
    [false, { tag: { none: '*' } }],
    [true, { key: 'key_1' }],
    [true, { key: 'key_2' }],
    [false, { key: 'key_3' }],
    [true, { project: ['prj_0', 'prj_1'] }],
    [false, { project: 'prj_0' }],
    [true, { account: 'acc_1' }],
    [false, { account: 'acc_2' }],
    [true, { header: { 'X-Stage': 'canary-*' } }],
    [false, { header: { 'x-stage': 'canary' } }],
    [false, { header: { 'x-other': '*' } }],
    [true, { size: { above_tokens: 999 } }],
    [false, { size: { above_tokens: 1_000 } }],
    [true, { size: { up_to_tokens: 1_000 } }],
    [false, { size: { up_to_tokens: 999 } }],
    [false, { model: 'openai/large', tag: { team: 'other' } }],
  ]
  for (const [holds, conditions, model = 'openai/large'] of cases)
    test(`${holds ? 'hold' : 'fail'} for ${model}: ${JSON.stringify(conditions).replaceAll('"', '')}`, () => {
      expect(apply([when(conditions)], model).model).toBe(holds ? 'anthropic/fine' : model)
    })

  test('fail without a project or tags', () => {
    const bare = { projectId: undefined, tags: undefined }
    for (const conditions of [{ project: '*' }, { tag: { team: '*' } }])
      expect(apply([when(conditions)], 'large', bare).model).toBe('large')
  })

  test('count tokens only where a rule asks for the size', () => {
    const countTokens = () => {
      throw new Error('counted')
    }
    expect(
      apply([when({ model: 'x/y', size: { above_tokens: 1 }, key: 'key_9' })], 'large', { countTokens }).model,
    ).toBe('large')
  })
})

describe('rules in order', () => {
  const rewrite = (name: string, model: string, to: string): RuleRow => ({ name, when: { model }, rewrite: to })

  test('let a later rule see the name that an earlier one wrote', () => {
    const { model, effects } = apply(
      [rewrite('first', 'large', 'openai/small'), rewrite('second', 'openai/small', 'anthropic/fine')],
      'big',
    )
    expect(model).toBe('anthropic/fine')
    expect(effects.acted?.map(({ name, model: to }) => [name, to])).toEqual([
      ['first', 'openai/small'],
      ['second', 'anthropic/fine'],
    ])
  })

  test('act once each: two rewrites toward each other end', () => {
    const rows = [rewrite('there', 'openai/large', 'openai/small'), rewrite('back', 'openai/small', 'openai/large')]
    expect(apply(rows, 'openai/large').model).toBe('openai/large')
  })

  test('deny by any spelling of the model, with an error that names the rule', () => {
    for (const [pattern, model] of [
      ['openai/large', 'BIG'],
      ['big', 'openai/large'],
      ['openai/*', 'large'],
      ['l*', 'openai/large'],
    ] as const) {
      const refusal = getRefusal(() => apply([{ name: 'no-large', when: { model: pattern }, deny: true }], model))
      expect([refusal.code, refusal.layer, refusal.category]).toEqual(['forbidden', 'rules', 'no-large'])
      expect(refusal.message).toContain('"no-large"')
    }
  })

  test('deny the result of a later rewrite too', () => {
    const rows = [
      { name: 'no-fine', when: { model: 'anthropic/fine' }, deny: true },
      rewrite('up', 'large', 'anthropic/fine'),
    ] as const
    expect(getRefusal(() => apply(rows, 'large')).category).toBe('no-fine')
    expect(apply(rows, 'small').model).toBe('small')
  })

  test('let a rewrite before a deny rule avoid it', () => {
    const rows = [
      rewrite('away', 'large', 'openai/small'),
      { name: 'no-large', when: { model: 'large' }, deny: true },
    ] as const
    expect(apply(rows, 'large').model).toBe('openai/small')
  })

  test('keep deny rules for fallbacks only if their other conditions hold', () => {
    const deny = (tag: string): RuleRow => ({
      name: 'no',
      when: { model: 'anthropic/*', tag: { team: tag } },
      deny: true,
    })
    const found = (tag: string) =>
      findDenial(apply([deny(tag)], 'large').effects.denials, 'anthropic/fine', subject.resolve)
    expect([found('search')?.name, found('other')]).toEqual(['no', null])
  })
})

describe('a split', () => {
  const split: RuleRow = {
    name: 'canary',
    when: { model: 'openai/large' },
    split: [
      { model: 'openai/small', percent: 10 },
      { model: 'anthropic/fine', percent: 20 },
    ],
  }
  const at = (drawn: number) => apply([split], 'large', { draw: () => drawn })

  test('sends each share to its model and leaves the others', () => {
    expect([0, 9.99, 10, 29.99, 30, 99.9].map(drawn => at(drawn).model)).toEqual([
      'openai/small',
      'openai/small',
      'anthropic/fine',
      'anthropic/fine',
      'large',
      'large',
    ])
  })

  test('reports that it left the model', () => {
    expect(at(99).effects.acted).toEqual([{ name: 'canary', owner: 'operator', kind: 'split', model: null }])
  })
})

describe('checks of rules', () => {
  const isModel = (name: string) => models.has(name)
  const problems = (...rows: RuleRow[]) => ruleProblems(rows, isModel).join('\n')

  test('name each problem', () => {
    expect(problems({ name: 'none' })).toContain('must have one of')
    expect(problems({ name: 'two', deny: true, rewrite: 'large' })).toContain('must have one of')
    expect(problems({ name: 'lost', rewrite: 'missing' })).toContain(
      'no configured provider has a model named "missing"',
    )
    expect(
      problems({
        name: 'much',
        split: [
          { model: 'large', percent: 60 },
          { model: 'big', percent: 41 },
        ],
      }),
    ).toContain('100 percent')
    expect(problems({ name: 'same', deny: true }, { name: 'same', deny: true })).toContain('has the name of an earlier')
    expect(problems({ name: 'secret', when: { header: { Authorization: '*' } }, deny: true })).toContain('credentials')
    expect(problems({ name: 'fine', rewrite: 'large' })).toBe('')
  })

  test('reject unknown keys and conditions', () => {
    const isValid = (row: object) => Value.Check(operatorRulesSchema, [row])
    expect(isValid({ name: 'a', deny: true })).toBe(true)
    for (const row of [
      { name: 'a', deny: false },
      { name: 'a b', deny: true },
      { name: 'a', deny: true, when: { modle: 'x' } },
      { name: 'a', deny: true, when: { model: [] } },
      { name: 'a', split: [] },
    ])
      expect(isValid(row)).toBe(false)
  })
})

describe('properties of rules', () => {
  const anyModel = fc.constantFrom(...models.keys(), 'gateway-ai', 'unknown')
  const anyRow = (at: number): fc.Arbitrary<RuleRow> =>
    fc
      .record({
        model: fc.option(fc.constantFrom('openai/large', 'big', 'openai/*', 'anthropic/fine', 'gateway-ai', 'l*'), {
          nil: undefined,
        }),
        team: fc.option(fc.constantFrom('search', 'other'), { nil: undefined }),
        kind: fc.constantFrom('rewrite', 'deny', 'split'),
        to: anyModel,
        percent: fc.integer({ min: 0, max: 100 }),
      })
      .map(({ model, team, kind, to, percent }) => ({
        name: `r${at}`,
        when: { ...(model === undefined ? {} : { model }), ...(team === undefined ? {} : { tag: { team } }) },
        ...(kind === 'deny'
          ? { deny: true as const }
          : kind === 'rewrite'
            ? { rewrite: to }
            : { split: [{ model: to, percent }] }),
      }))

  test('yield no model that a deny rule in force names', () => {
    fc.assert(
      fc.property(fc.tuple(anyRow(0), anyRow(1), anyRow(2), anyRow(3)), anyModel, (rows, model) => {
        let result: ReturnType<typeof apply> | null = null
        try {
          result = apply(rows, model)
        } catch {
          return
        }
        expect(findDenial(result.effects.denials, result.model, subject.resolve)).toBeNull()
      }),
    )
  })
})
