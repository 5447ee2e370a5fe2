import { describe, expect, test } from 'bun:test'
import type { ProjectRole, Role } from '../../src/core/accounts/roles.ts'
import {
  listOtherKeys,
  mayManage,
  toLimits,
  toLimitTexts,
  toRules,
  toRuleTexts,
} from '../../src/dashboard/state/keys.ts'

const own = 'usr_own'
const other = 'usr_other'

describe('mayManage', () => {
  test.each([
    // Role in the account, role in the project, owner of the key, project of the key.
    ['owner', null, other, null, true],
    ['admin', null, other, 'prj_1', true],
    ['member', null, own, null, true],
    ['member', null, other, null, false],
    ['viewer', null, own, null, false],
    ['viewer', 'admin', own, null, false],
    ['viewer', 'admin', other, 'prj_1', true],
    ['viewer', 'member', own, 'prj_1', true],
    ['member', 'member', other, 'prj_1', false],
    ['member', 'viewer', own, 'prj_1', false],
    ['member', null, own, 'prj_1', false],
    ['member', 'admin', other, 'prj_2', false],
  ] as const)(
    'returns the right of %j, %j in prj_1, on a key of %s in %j: %j',
    (role: Role, inProject: ProjectRole | null, user, project, can) => {
      const projects = new Map(inProject === null ? [] : [['prj_1', inProject] as const])
      expect(mayManage({ user_id: user, project_id: project }, { userId: own, role, projects })).toBe(can)
    },
  )
})

describe('Key rules', () => {
  test.each(['1,000', 'many', '1e999'])('reject the limit %j as an error of its field', text => {
    const texts = { ...toLimitTexts(null), 'limits.daily_tokens': text }
    expect(() => toLimits(texts)).toThrow(expect.objectContaining({ param: 'limits.daily_tokens' }))
  })

  test('send an empty limit as null and a number as a number', () => {
    expect(toLimits({ ...toLimitTexts(null), 'limits.daily_cost_usd': ' 0.5 ' })).toMatchObject({
      daily_cost_usd: 0.5,
      daily_tokens: null,
    })
  })

  test('reject a tag name that occurs twice', () => {
    const texts = { ...toRuleTexts(null), tags: 'team=a, env=prod, team = b' }
    expect(() => toRules(texts)).toThrow(expect.objectContaining({ param: 'tags' }))
    expect(toRules({ ...texts, tags: 'team=a, env=prod' }).tags).toEqual({ team: 'a', env: 'prod' })
  })
})

const now = Date.parse('2026-11-23T12:00:00Z')
const [before, after] = ['2026-11-23T11:00:00Z', '2026-11-24T12:00:00Z']
const key = (id: string, revoked_at: string | null = null, expires_at: string | null = null) => ({
  id,
  prefix: `gw_live_${id}…`,
  created_at: before,
  last_used_at: null,
  revoked_at,
  expires_at,
})

test.each([
  ['nothing when the key was never rotated', 'a', [key('a')], []],
  [
    'the key that replaces it',
    'a',
    [key('a', null, after), key('b')],
    ['Key gw_live_b…, which replaces it, keeps working.'],
  ],
  [
    'the end of the old key and of the one that replaces it',
    'b',
    [key('a', null, after), key('b'), key('c', null, after)],
    [
      'The old key gw_live_a… still works until Nov 24, 2026, 12:00:00 UTC.',
      'Key gw_live_c…, which replaces it, keeps working until Nov 24, 2026, 12:00:00 UTC.',
    ],
  ],
  [
    'that no other key works',
    'c',
    [key('a', before), key('b', null, before), key('c')],
    ['No other key of this rotation works.'],
  ],
] as const)('listOtherKeys: names %s', (_, id, lineage, texts) => {
  expect(listOtherKeys({ id, lineage: [...lineage] }, now)).toEqual([...texts])
})
