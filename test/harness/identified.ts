import type { Authenticate } from '../../src/console/routes.ts'
import type { Role } from '../../src/core/accounts/roles.ts'
import type { Database } from '../../src/database/database.ts'
import type { Principal } from '../../src/http/authentication.ts'
import { anyBodies } from './bodies.ts'

/** A signed-in user in the given role. */
export const principalIn = (role: Role, accountId = 'acc', userId = 'usr'): Principal => ({
  ...{ accountId, userId, role, projects: new Map(), sessionId: 'ses_test', managementKey: null },
  ...{ isUnverified: false, mustSetUpTwoFactor: false, isSingleSignOn: false, email: 'somebody@example.test' },
})

const noQuery = () => Promise.reject(new Error('this test expects no query'))
const noDatabase: Database = { address: 'postgres://none', run: noQuery, transact: noQuery, close: async () => {} }

/** What the console's tables of routes need, with users of the test's own. */
export function identified(getPrincipal: (request: Request) => Principal, database = noDatabase): Authenticate {
  return {
    principal: async request => getPrincipal(request),
    bodies: anyBodies(),
    database,
    getAddress: () => '192.0.2.1',
  }
}
