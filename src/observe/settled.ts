import type { UsageRecord } from '../core/usage.ts'
import type { Route } from '../pipeline/route.ts'
import type { Tally } from '../pipeline/tally.ts'

/** A request that is over. Nothing of it is kept but numbers and names. */
export type Settled = {
  readonly tally: Tally
  readonly record: UsageRecord
  readonly plan: Pick<Route, 'mode' | 'first' | 'choices'>
}
