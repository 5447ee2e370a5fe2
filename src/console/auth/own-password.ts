/** Counting of failed passwords, and the check of a signed-in user's own password. */
import { normalizePassword } from '../../core/accounts/passwords.ts'
import { type Actor, actingAs } from '../../core/audit/audit.ts'
import type { Log } from '../../core/ports/log.ts'
import type { Passwords } from '../../core/ports/passwords.ts'
import type { Database } from '../../database/database.ts'
import { recordAuditAlone } from '../../database/repositories/audit.ts'
import type { User } from '../../database/tables.ts'
import { invalidToken, type Principal } from '../../http/authentication.ts'
import type { Mailer } from '../../mail/mailer.ts'
import { invalidCredentials } from './sign-in.ts'
import { changeSubject, isAnyLocked, mailSubject, recordFailure } from './stores/sessions.ts'
import { findUser } from './stores/users.ts'

export type FailureDeps = {
  readonly database: Database
  readonly log: Pick<Log, 'warn'>
  /** Null = no mail server is configured. */
  readonly post: Pick<Mailer, 'signInLocked'> | null
}

/** Counts a failure against each subject; reports new lockouts to the log and to the user. */
export async function countFailure(
  deps: FailureDeps,
  subjects: readonly string[],
  user: Pick<User, 'id' | 'accountId' | 'email'> | null,
  actor: Actor | null,
): Promise<void> {
  const locked = await recordFailure(deps.database, subjects)
  if (locked.length === 0) return
  deps.log.warn('sign_in_locked', { user_id: user?.id ?? null, locks: locked.length })
  if (user !== null && actor !== null)
    await recordAuditAlone(actingAs(deps.database, actor), {
      accountId: user.accountId,
      action: 'sign_in.locked',
      target: user.id,
    })
  if (user !== null && locked.includes(mailSubject(user.email))) deps.post?.signInLocked(user.email)
}

export type OwnPasswordDeps = FailureDeps & {
  readonly passwords: Pick<Passwords, 'verify'>
}

/** Returns the user if the password is right. Throws `invalid_credentials` otherwise. */
export async function verifyOwnPassword(
  deps: OwnPasswordDeps,
  {
    principal: { accountId, userId },
    actor,
  }: { readonly principal: Pick<Principal, 'accountId' | 'userId'>; readonly actor: Actor },
  password: string,
): Promise<User> {
  const { database } = deps
  // An open session must not allow password guesses. Only the user's own sessions can add to these failures.
  const subjects = [changeSubject(userId)]
  const [user, isLocked] = await Promise.all([findUser(database, accountId, userId), isAnyLocked(database, subjects)])
  if (user === null) throw invalidToken()
  if (isLocked) throw invalidCredentials()
  const verdict = await deps.passwords.verify(normalizePassword(password), user.passwordHash, userId)
  if (verdict !== 'wrong') return user
  await countFailure(deps, subjects, user, actor)
  throw invalidCredentials()
}
