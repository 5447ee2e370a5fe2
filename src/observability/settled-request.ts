import type { UsageRecord } from '../core/usage/usage-record.ts'
import type { RequestContext } from '../pipeline/request-context.ts'
import type { Route } from '../pipeline/routing/route.ts'

/** A request that is over. Nothing of it is kept but numbers and names. */
export type SettledRequest = {
  readonly tally: RequestContext
  readonly record: UsageRecord
  readonly plan: Pick<Route, 'mode' | 'choices'> & {
    readonly first: { readonly model: Pick<Route['first']['model'], 'id' | 'provider'> }
  }
  /** `chat` unless given. */
  readonly operation?: 'chat' | 'embeddings'
}
