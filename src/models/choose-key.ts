import type { AttemptFailure } from '../core/chat/attempts.ts'

/** A key that may serve a request now. */
export type KeyChoice = {
  /** Remaining share of its quota, 0–1. */
  readonly share: number
  /** Among keys with an equal share, relative to the others. */
  readonly weight: number
}

/** Shares within one step count as equal. Otherwise a single request would decide instead of the weights. */
const steps = 10

/**
 * Returns the index of the key with the most remaining capacity; among equals, one by weight. `random` is a number,
 * 0 ≤ x < 1. -1 = the list is empty.
 */
export function chooseKey(keys: readonly KeyChoice[], random: number): number {
  const best = Math.max(...keys.map(stepOf))
  const equals = keys.flatMap((key, index) => (stepOf(key) === best ? [{ index, weight: key.weight }] : []))
  let point = random * equals.reduce((sum, { weight }) => sum + weight, 0)
  for (const { index, weight } of equals) {
    point -= weight
    if (point < 0) return index
  }
  return equals.at(-1)?.index ?? -1
}

function stepOf({ share }: KeyChoice): number {
  return Math.ceil(share * steps)
}

const keyFailures: ReadonlySet<AttemptFailure> = new Set(['rate_limited', 'quota_exhausted', 'credential_refused'])

/** Returns true if another key of the same provider may succeed with the same request. */
export function isKeyFailure(kind: AttemptFailure): boolean {
  return keyFailures.has(kind)
}
