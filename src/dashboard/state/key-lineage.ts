/** Validity of keys, and the effect of a revocation on the other keys of a rotation. */
import type { ShownKey, ShownKeyPage } from '../../console/keys/schemas.ts'
import { exactTime } from './format.ts'

export const isKeyValid = ({ revoked_at, expires_at }: Pick<ShownKey, 'revoked_at' | 'expires_at'>, now = Date.now()) =>
  revoked_at === null && (expires_at === null || Date.parse(expires_at) > now)

/** Returns one sentence per other key of the lineage that keeps working if this key is revoked. Empty = never rotated. */
export function otherKeysOf({ id, lineage }: Pick<ShownKeyPage, 'id' | 'lineage'>, now = Date.now()): string[] {
  if (lineage.length < 2) return []
  const at = lineage.findIndex(key => key.id === id)
  const texts = lineage.flatMap((key, index) => {
    if (index === at || !isKeyValid(key, now)) return []
    const until = key.expires_at === null ? '' : ` until ${exactTime(key.expires_at)}`
    return index > at
      ? [`Key ${key.prefix}, which replaces it, keeps working${until}.`]
      : [`The old key ${key.prefix} still works${until}.`]
  })
  return texts.length === 0 ? ['No other key of this rotation works.'] : texts
}
