/**
 * Who may call a route, attached to the route itself in OpenAPI's own words, never derived from its path: a test walks the
 * route table and fails on one without.
 */
import type { Action } from '../core/accounts/roles.ts'

export type Policy = {
  readonly security: Record<string, string[]>[]
  readonly 'x-action'?: Action
  /** Pages of any origin may call it; absent = the gateway's own pages only. */
  readonly 'x-pages'?: 'any'
}

export const policies = {
  /** Who runs the gateway: from its own machine, or with the token that is set for this. */
  operator: { security: [{ metricsToken: [] }] },
  /** Anyone, and the gateway's own pages. */
  open: { security: [] },
  /** Anyone, and any page: it changes nothing and costs nothing. */
  free: { security: [], 'x-pages': 'any' },
  /** Clients that sign the body, which no page can. */
  signed: { security: [], 'x-pages': 'any' },
  /** An API key of an account in good standing. Browsers never add one by themselves, and other origins cannot read the answer. */
  apiKey: { security: [{ apiKey: [] }], 'x-pages': 'any' },
} satisfies Record<string, Policy>

/** Any key of the account, or somebody signed in whose role is open to `action`. */
export function keyOrSession(action: Action): Policy {
  return { security: [{ apiKey: [] }, { session: [] }], 'x-action': action }
}

/** Somebody signed in whose role is open to `action`. Where they are mounted, the same words decide. */
export function session(action: Action): Policy {
  return { security: [{ session: [] }], 'x-action': action }
}
