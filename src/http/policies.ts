/**
 * Who may call a route, attached to the route itself in OpenAPI's own words, never derived from its path: a test walks the
 * route table and fails on one without.
 */
export const policies = {
  /** Anyone. */
  open: { security: [] },
  /** An API key of an account in good standing. */
  apiKey: { security: [{ apiKey: [] }] },
}
