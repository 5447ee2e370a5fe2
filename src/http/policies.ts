/**
 * Who may call a route, attached to the route itself in OpenAPI's own words, never derived from its path: a test walks the
 * route table and fails on one without.
 */
import type { Action } from '../core/roles.ts'

export const policies = {
  /** Anyone. */
  open: { security: [] },
  /** An API key of an account in good standing. */
  apiKey: { security: [{ apiKey: [] }] },
}

/** Any key of the account, or somebody signed in whose role is open to `action`. */
export function keyOrSession(action: Action) {
  return { security: [{ apiKey: [] as string[] }, { session: [] as string[] }], 'x-action': action }
}

/** Somebody signed in whose role is open to `action`. Where they are mounted, the same words decide. */
export function session(action: Action) {
  return { security: [{ session: [] as string[] }], 'x-action': action }
}
