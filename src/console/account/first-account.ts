import { randomBytes } from 'node:crypto'
import { mintApiKey, randomBase62 } from '../../core/accounts/api-keys.ts'
import type { Passwords } from '../../core/accounts/passwords.ts'
import { firstAccountLimits } from '../../core/limits/plans.ts'
import type { Clock } from '../../core/ports.ts'
import type { Database } from '../../database/database.ts'
import { createAccount, hasAccounts } from '../../database/repositories/accounts.ts'
import { changeBilling, manualMethod } from '../billing/stores/billing.ts'
import { createKey } from '../keys/stores/keys.ts'

/** Owner of the first account until the operator sets another email address. */
export const localOwner = 'owner@gateway.local'

/** Credentials that the first start on an empty embedded database created. Printed once and not stored. */
export type FirstAccount = { readonly email: string; readonly password: string; readonly key: string }

/**
 * Creates one local account on plan `usage`, with a billing cycle, and limits of its own, so that the first request needs no sign-up. Returns
 * null if an account exists.
 */
export async function makeFirstAccount(
  database: Database,
  passwords: Passwords,
  clock: Clock,
  newId: (prefix: string) => string,
): Promise<FirstAccount | null> {
  if (await hasAccounts(database)) return null
  const now = new Date(clock.now())
  const [accountId, userId] = [newId('acc'), newId('usr')]
  const password = randomBase62(20, randomBytes)
  const minted = mintApiKey(randomBytes)
  await createAccount(
    database,
    { id: accountId, name: 'Local', plan: 'evaluation', ...firstAccountLimits, isOperator: true, createdAt: now },
    {
      id: userId,
      accountId,
      email: localOwner,
      passwordHash: await passwords.hash(password, null),
      role: 'owner',
      createdAt: now,
    },
  )
  // The upgrade opens the billing cycle, without which no invoice is issued.
  const upgrade = { event: 'upgrade', at: now.getTime(), userId: null, newId, method: manualMethod(newId) } as const
  const outcome = await changeBilling(database, accountId, upgrade)
  if (outcome !== 'done') throw new Error(`The first account is not on the plan usage: ${outcome}`)
  await createKey(database, {
    id: newId('key'),
    accountId,
    userId,
    name: 'first key',
    publicId: minted.id,
    digest: minted.digest,
    createdAt: now,
  })
  return { email: localOwner, password, key: minted.key }
}
