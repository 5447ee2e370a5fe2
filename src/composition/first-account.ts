import { randomBytes } from 'node:crypto'
import { mintApiKey, randomBase62 } from '../core/accounts/api-keys.ts'
import type { Clock } from '../core/ports/clock.ts'
import type { Passwords } from '../core/ports/passwords.ts'
import type { Database } from '../database/database.ts'
import { createAccount, hasAccounts } from '../database/repositories/accounts.ts'
import { createKey } from '../database/repositories/keys.ts'

/** Who the first account belongs to, until someone gives it another e-mail address. */
export const localOwner = 'owner@gateway.local'

/** What the first start on an empty embedded database made. Printed once, kept nowhere. */
export type FirstAccount = { readonly email: string; readonly password: string; readonly key: string }

/** One local account on plan `usage`, so that a first answer needs no sign-up; null where there is an account already. */
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
    { id: accountId, name: 'Local', plan: 'usage', createdAt: now },
    {
      id: userId,
      accountId,
      email: localOwner,
      passwordHash: await passwords.hash(password, null),
      role: 'owner',
      createdAt: now,
    },
  )
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
