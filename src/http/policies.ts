/**
 * Who may call a route, attached to the route itself in OpenAPI's own words, never derived from its path: a test walks the
 * route table and fails on one without.
 */
import type { Action } from '../core/roles.ts'

export type Policy = { readonly security: Record<string, string[]>[]; readonly 'x-action'?: Action }

export const policies = {
  /** Who runs the gateway: from its own machine, or with the token that is set for this. */
  operator: { security: [{ metricsToken: [] }] },
  /** Anyone. */
  open: { security: [] },
  /** An API key of an account in good standing. */
  apiKey: { security: [{ apiKey: [] }] },
} satisfies Record<string, Policy>

/** Any key of the account, or somebody signed in whose role is open to `action`. */
export function keyOrSession(action: Action): Policy {
  return { security: [{ apiKey: [] }, { session: [] }], 'x-action': action }
}

/** Somebody signed in whose role is open to `action`. Where they are mounted, the same words decide. */
export function session(action: Action): Policy {
  return { security: [{ session: [] }], 'x-action': action }
}
