const timeGroups = ['minute', 'hour', 'day', 'month'] as const
/** What totals over time or by query type can be split by. By tag: the values of one tag name, so that no request counts twice. */
export const usageSplits = ['model', 'key', 'member', 'tag', 'dialect', 'project'] as const
/** What usage totals can be grouped by. */
export const usageGroups = [...timeGroups, ...usageSplits, 'query_type'] as const

export const isTime = (group: (typeof usageGroups)[number]): group is (typeof timeGroups)[number] =>
  timeGroups.some(unit => unit === group)

/** Status filters of admitted requests. `failed_or_blocked`: those that the totals count as failed. */
export const statusFilters = ['completed', 'failed', 'client_closed', 'blocked', 'failed_or_blocked'] as const

/** Rejected requests are counted up to here, which bounds the work. */
export const mostCountedRejections = 10_000

type Filters = {
  readonly keyId: string | null
  readonly memberId: string | null
  readonly provider: string | null
  readonly model: string | null
  readonly projectId: string | null
}

/** Returns true if only the log knows these totals: the daily totals have a day, a key, a model and a project. */
export function needsLog(groupBy: string, filters: Filters | null | undefined, splitBy: string | null = null): boolean {
  if (['minute', 'hour', 'query_type', 'dialect'].includes(groupBy) || splitBy === 'dialect') return true
  if (filters == null) return false
  const { keyId, memberId, provider, model, projectId, ...others } = filters
  return Object.values(others).some(filter => filter !== null)
}

/** Sums of requests in the daily totals, by the names of their columns. Money is an integer of 1e-8 USD. */
export const summedTokens = ['input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens'] as const
export const summedMoney = [
  ...(['billed_microcents', 'own_key_microcents', 'routing_saved_microcents', 'cache_saved_microcents'] as const),
] as const
/** `failed`: also blocked requests; client disconnects are in neither count. `own_key_…` is not billed. */
export const summedCounts = ['requests', 'completed', 'failed'] as const
export const summedColumns = [...summedCounts, ...summedTokens, ...summedMoney] as const
