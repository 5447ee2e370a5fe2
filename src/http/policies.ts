/**
 * Access policies of routes, attached to each route in OpenAPI terms and never derived from its path. A test fails for
 * a route without a policy.
 */
import type { Action } from '../core/accounts/roles.ts'

export type Policy = {
  readonly security: Record<string, string[]>[]
  readonly 'x-action'?: Action
  /** Pages of any origin may call it; absent = only the gateway's own pages. */
  readonly 'x-pages'?: 'any'
}

export const policies = {
  /** The operator: from this machine, or with the configured token. */
  operator: { security: [{ metricsToken: [] }] },
  /** All clients, and the gateway's own pages. */
  open: { security: [] },
  /** All clients and all pages: it changes nothing and costs nothing. */
  free: { security: [], 'x-pages': 'any' },
  /** Clients that sign the body, which a page cannot do. */
  signed: { security: [], 'x-pages': 'any' },
  /**
   * An API key of an account that has paid. Browsers never add one automatically, and other origins cannot read the
   * response.
   */
  apiKey: { security: [{ apiKey: [] }], 'x-pages': 'any' },
} satisfies Record<string, Policy>

/** Any key of the account, or a signed-in user whose role permits `action`. */
export function keyOrSession(action: Action): Policy {
  return { security: [{ apiKey: [] }, { session: [] }], 'x-action': action }
}

/** A signed-in user whose role permits `action`. The routes enforce the same policy that the document shows. */
export function session(action: Action): Policy {
  return { security: [{ session: [] }], 'x-action': action }
}
