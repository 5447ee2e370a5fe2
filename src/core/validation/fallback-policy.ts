/**
 * Which candidates may answer when the first one fails. `any`: other models. `same_model`: only other hosts and keys of
 * the same model. `none`: nothing, so a request makes one call.
 */
export const fallbackPolicies = ['any', 'same_model', 'none'] as const
export type FallbackPolicy = (typeof fallbackPolicies)[number]

/** Returns the policy of a client's `fallback` field: `false` has always allowed other hosts and keys of the model. */
export function toPolicy(field: boolean | FallbackPolicy): FallbackPolicy {
  return field === true ? 'any' : field === false ? 'same_model' : field
}

/**
 * Returns the strictest of the policies of account, key and request, so that each can only narrow the others; null = not
 * set. Without any it is `any`.
 */
export function strictestPolicy(...policies: readonly (FallbackPolicy | null | undefined)[]): FallbackPolicy {
  let strictest = 0
  for (const policy of policies) if (policy != null) strictest = Math.max(strictest, fallbackPolicies.indexOf(policy))
  return fallbackPolicies[strictest] ?? 'any'
}
