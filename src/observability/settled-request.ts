import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { Route } from '../pipeline/routing/route.ts'
import type { Tally } from '../pipeline/request-context.ts'

/** A request that is over. Nothing of it is kept but numbers and names. */
export type Settled = {
  readonly tally: Tally
  readonly record: UsageRecord
  readonly plan: Pick<Route, 'mode' | 'first' | 'choices'>
}
