import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { RequestContext } from '../pipeline/request-context.ts'
import type { Route } from '../pipeline/routing/route.ts'

/** A settled request. Contains only numbers and names. */
export type SettledRequest = {
  readonly tally: RequestContext
  readonly record: UsageRecord
  readonly plan: Pick<Route, 'mode' | 'first' | 'choices'>
}
