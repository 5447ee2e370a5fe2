/** Creates accounts on a running gateway, each with its own limits and one key, so that tests do not share limits. */
import { randomBytes } from 'node:crypto'
import { createKey } from '../../src/console/keys/stores/keys.ts'
import { mintApiKey, randomBase62 } from '../../src/core/accounts/api-keys.ts'
import { type PlanName, plans } from '../../src/core/limits/plans.ts'
import type { Database } from '../../src/database/database.ts'
import { changeAccount, createAccount } from '../../src/database/repositories/accounts.ts'
import type { Gateway, GatewayLimits } from './gateway.ts'

export type TestAccount = {
  readonly id: string
  readonly userId: string
  readonly key: string
  readonly headers: Record<string, string>
}

/** Creates an account; `limits` override those of plan `usage`. */
export function newAccount({ deps }: Gateway, limits: GatewayLimits = {}, plan: PlanName = 'usage') {
  return newAccountOn(deps.database, limits, deps.clock.now(), plan)
}

/** The same for gateways in separate processes that share a database. */
export async function newAccountOn(
  database: Database,
  limits: GatewayLimits = {},
  now = Date.now(),
  plan: PlanName = 'usage',
): Promise<TestAccount> {
  const [id, userId] = [`acc_${randomBase62(20, randomBytes)}`, `usr_${randomBase62(20, randomBytes)}`]
  const createdAt = new Date(now)
  const minted = mintApiKey(randomBytes)
  await createAccount(
    database,
    { id, name: 'Test', plan, createdAt },
    { id: userId, accountId: id, email: `${userId}@gateway.local`, passwordHash: '', role: 'owner', createdAt },
  )
  await changeAccount(database, id, { ...plans.usage, ...limits })
  const key = { id: `key_${userId}`, accountId: id, userId, name: 'test', createdAt }
  await createKey(database, { ...key, publicId: minted.id, digest: minted.digest })
  return { id, userId, key: minted.key, headers: { authorization: `Bearer ${minted.key}` } }
}
