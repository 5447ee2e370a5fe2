import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  type ConstraintsRow,
  type DataPolicy,
  describeReceiver,
  findBreach,
  nameDemands,
  narrowedPolicy,
  noPolicy,
  type PolicyRow,
  readConstraintsHeader,
  toDemand,
  withPolicy,
} from '../../../src/core/policy/constraints.ts'
import { getRefusal } from '../../harness/refusal.ts'

const policy = (row: PolicyRow): DataPolicy => withPolicy(noPolicy, row)
const demand = (row: ConstraintsRow) => {
  const found = toDemand('request', row)
  if (found === null) throw new Error('the row demands something')
  return found
}

describe('findBreach', () => {
  const cases: readonly (readonly [constraints: ConstraintsRow, policy: PolicyRow, breach: string | null])[] = [
    [{ zdr: true }, {}, 'zdr'],
    [{ zdr: true }, { zdr: true }, null],
    [{ zdr: true }, { no_training: true }, 'zdr'],
    [{ no_training: true }, { zdr: true }, 'no_training'],
    [{ no_training: true }, { no_training: true }, null],
    [{ region: 'eu' }, {}, 'region=eu'],
    [{ region: 'EU' }, { region: 'eu' }, null],
    [{ region: ['eu', 'ch'] }, { region: 'ch' }, null],
    [{ region: 'eu' }, { region: ['eu', 'us'] }, 'region=eu'],
    [{ region: ['eu', 'us'] }, { region: ['eu', 'us'] }, null],
    [{ region: 'eu' }, { region: 'eu-west-2' }, 'region=eu'],
    [{ providers: 'azure' }, {}, null],
    [{ providers: ['other', 'AZURE'] }, {}, null],
    [{ providers: 'azure-openai' }, {}, null],
    [{ providers: 'openai' }, {}, 'providers=openai'],
    [{ ignore_providers: 'azure' }, {}, 'ignore_providers=azure'],
    [{ ignore_providers: 'azure-openai' }, {}, 'ignore_providers=azure-openai'],
    [{ ignore_providers: 'openai' }, {}, null],
    [
      { zdr: true, no_training: true, region: 'eu', providers: 'azure' },
      { zdr: true, no_training: true, region: 'eu' },
      null,
    ],
  ]
  for (const [row, given, breach] of cases)
    test(`returns ${breach ?? 'nothing'} for ${JSON.stringify([row, given]).replaceAll('"', '')}`, () => {
      const found = findBreach([demand(row)], { names: ['azure', 'azure-openai'], policy: policy(given) })
      expect(found?.constraint ?? null).toBe(breach)
    })

  test('names whose demand fails', () => {
    const demands = [toDemand('account', { no_training: true }), toDemand('key', { zdr: true })].filter(
      item => item !== null,
    )
    expect(findBreach(demands, { names: ['a'], policy: policy({ no_training: true }) })).toEqual({
      constraint: 'zdr',
      by: 'key',
      field: 'constraints',
    })
  })
})

describe('toDemand', () => {
  test('returns null for a row that demands nothing', () => {
    for (const row of [null, undefined, {}, { zdr: false, no_training: false }]) expect(toDemand('key', row)).toBeNull()
  })
})

describe('readConstraintsHeader', () => {
  const read = (text: string) => readConstraintsHeader(new Headers({ 'x-gateway-constraints': text }))

  test('reads flags and lists', () => {
    expect(read('zdr, no_training , region = eu|ch, providers=azure|my-host,ignore_providers=x')).toEqual({
      zdr: true,
      no_training: true,
      region: ['eu', 'ch'],
      providers: ['azure', 'my-host'],
      ignore_providers: ['x'],
    })
    expect(readConstraintsHeader(new Headers())).toBeNull()
  })

  test('rejects any other text: a constraint that is not understood is not kept', () => {
    for (const text of [
      '',
      'zdr=true',
      'region',
      'region=',
      'region=a||b',
      'zrd',
      'ZDR',
      'zdr no_training',
      'providers=a b',
      'zdr,',
      'region=eu, region=us',
      'ignore_providers=a, ignore_providers=b',
    ])
      expect([text, getRefusal(() => read(text)).param]).toEqual([text, 'X-Gateway-Constraints'])
  })
})

describe('narrowedPolicy', () => {
  test('adds no guarantee and takes what a row denies', () => {
    const any = fc.record({
      zdr: fc.option(fc.boolean(), { nil: undefined }),
      no_training: fc.option(fc.boolean(), { nil: undefined }),
      region: fc.option(fc.subarray(['eu', 'us', 'ch'], { minLength: 1 }), { nil: undefined }),
    })
    const clean = (row: object) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined))
    fc.assert(
      fc.property(any, any, (base, row) => {
        const before = policy(clean(base))
        const after = narrowedPolicy(before, clean(row))
        expect(!after.zdr || (before.zdr && row.zdr !== false)).toBe(true)
        expect(!after.noTraining || (before.noTraining && row.no_training !== false)).toBe(true)
        expect(after.regions.every(region => before.regions.includes(region))).toBe(true)
      }),
    )
  })
})

describe('words of constraints', () => {
  test('name each constraint once, and a receiver with its guarantees', () => {
    expect(nameDemands([demand({ zdr: true }), demand({ zdr: true, region: ['eu', 'ch'] })])).toEqual([
      'zdr',
      'region=eu|ch',
    ])
    expect(describeReceiver({ names: ['azure', 'x'], policy: policy({ zdr: true, region: 'eu' }) })).toBe(
      'azure (zdr, region=eu)',
    )
    expect(describeReceiver({ names: ['azure'], policy: noPolicy })).toBe('azure (no guarantee)')
  })
})
