import { expect, test } from 'bun:test'
import {
  actions,
  isAllowed,
  isAllowedIn,
  isAllowedSomewhere,
  projectRoles,
  roles,
} from '../../../src/core/accounts/roles.ts'

test('project roles: match the agreed matrix', () => {
  const inProject = (role: (typeof projectRoles)[number]) => {
    const holder = { role: 'viewer', projects: new Map([['prj_1', role]]) } as const
    return actions.filter(action => isAllowedIn(holder, action, 'prj_1'))
  }
  expect(projectRoles.map(role => [role, inProject(role).sort().join(' ')])).toEqual([
    ['viewer', ''],
    ['member', 'keys.own'],
    ['admin', 'alerts.manage keys.all keys.own projects.change'],
  ])
})

test('project roles: every role × project role × action allows nothing in another project or in the account', () => {
  for (const role of roles)
    for (const projectRole of [null, ...projectRoles])
      for (const action of actions) {
        const holder = { role, projects: new Map(projectRole === null ? [] : [['prj_1', projectRole]]) }
        const isLeader = role === 'admin' || role === 'owner'
        const own = isAllowedIn(holder, action, 'prj_1')
        expect([action, isAllowedIn(holder, action, null)]).toEqual([action, isAllowed(role, action)])
        expect([action, isAllowedIn(holder, action, 'prj_2')]).toEqual([action, isLeader && isAllowed(role, action)])
        expect([action, isAllowedSomewhere(holder, action)]).toEqual([action, isAllowed(role, action) || own])
        if (isLeader) expect([action, own]).toEqual([action, isAllowed(role, action)])
      }
})
