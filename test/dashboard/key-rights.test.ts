import { describe, expect, test } from 'bun:test'
import type { ProjectRole, Role } from '../../src/core/accounts/roles.ts'
import { mayManage } from '../../src/dashboard/state/key-rights.ts'
import { limitsOfTexts, rulesOfTexts, textsOfLimits, textsOfRules } from '../../src/dashboard/state/key-rule-texts.ts'

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
    const texts = { ...textsOfLimits(null), daily_tokens: text }
    expect(() => limitsOfTexts(texts)).toThrow(expect.objectContaining({ param: 'limits.daily_tokens' }))
  })

  test('send an empty limit as null and a number as a number', () => {
    expect(limitsOfTexts({ ...textsOfLimits(null), daily_cost_usd: ' 0.5 ' })).toMatchObject({
      daily_cost_usd: 0.5,
      daily_tokens: null,
    })
  })

  test('reject a tag name that occurs twice', () => {
    const texts = { ...textsOfRules(null), tags: 'team=a, env=prod, team = b' }
    expect(() => rulesOfTexts(texts)).toThrow(expect.objectContaining({ param: 'tags' }))
    expect(rulesOfTexts({ ...texts, tags: 'team=a, env=prod' }).tags).toEqual({ team: 'a', env: 'prod' })
  })
})
