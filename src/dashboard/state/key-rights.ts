/** The right to change, rotate and revoke one key. The gateway checks it again. */

import type { ShownKey } from '../../console/keys/schemas.ts'
import { type Holder, isAllowedIn } from '../../core/accounts/roles.ts'

/** A user with the roles in the account and in projects. */
export type KeyManager = Holder & { readonly userId: string }

/** Returns true if the user manages all keys of the key's project or account, or owns the key and may manage own keys there. */
export function mayManage({ user_id, project_id }: Pick<ShownKey, 'user_id' | 'project_id'>, manager: KeyManager) {
  const isOwn = user_id === manager.userId
  return isAllowedIn(manager, 'keys.all', project_id) || (isOwn && isAllowedIn(manager, 'keys.own', project_id))
}
