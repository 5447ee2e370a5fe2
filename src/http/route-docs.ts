/**
 * API description of a route: the schemas that check its input and type its response, and its own errors. The API
 * reference (`http/reference`) is generated from these descriptions only.
 */
import type { TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { Action } from '../core/accounts/roles.ts'
import type { ErrorCode } from '../core/validation/errors.ts'
import { refuseForeignPage } from './pages.ts'

export type RouteDocs = {
  readonly summary: string
  readonly description?: string
  /** Schema of the JSON body. */
  readonly body?: TSchema
  /** Example bodies by name. A test sends each of them. */
  readonly examples?: Readonly<Record<string, object>> | undefined
  /** False if an absent body counts as an empty object. */
  readonly bodyRequired?: boolean
  readonly query?: TObject<TProperties>
  /** Request headers that change the behavior, by name. */
  readonly requestHeaders?: Readonly<Record<string, TSchema>>
  /** JSON response of a success; null = 204 without a body. */
  readonly answer: TSchema | null
  /** 303 redirects a browser, without a body. */
  readonly status?: 200 | 201 | 202 | 303
  /** Other media types of a success, by name. */
  readonly alsoAs?: Readonly<Record<string, TSchema>>
  /** Terminal frame of a stream if it is not an event. */
  readonly streamEnd?: string
  /** Responses that are neither a success nor an error, by status. */
  readonly alsoWith?: Readonly<Record<number, TSchema>>
  /** Response headers of a success besides the common ones, by name. */
  readonly answerHeaders?: readonly AnswerHeader[]
  /** True if the route returns 304 to a client that has the current response. */
  readonly isTagged?: boolean
  /** Error codes of this route besides those of its policy. */
  readonly errors?: readonly ErrorCode[]
  /** Schema of its errors, if not the API's own. */
  readonly refusals?: { readonly shape: TSchema; readonly getStatus: (code: ErrorCode) => number }
}

/** Response headers that a route may name. */
export type AnswerHeader = 'served' | 'cost' | 'estimated' | 'quotaStatus' | 'deprecation' | 'download'

/** Returns the route's hook: its policy, the check against other origins' pages, and its description. */
export function withRouteDocs(policy: Policy, route: RouteDocs) {
  const reference = { 'x-reference': route }
  return {
    detail: { summary: route.summary, ...policy, ...reference },
    beforeHandle: policy['x-pages'] === 'any' ? [] : [refuseForeignPage],
  }
}

/**
 * Access policies of routes, attached to each route in OpenAPI terms and never derived from its path. A test fails for
 * a route without a policy.
 */

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
