type Filters = {
  readonly keyId: string | null
  readonly memberId: string | null
  readonly provider: string | null
  readonly model: string | null
  readonly projectId: string | null
}

/** Returns true if only the log knows these totals: the daily totals have a day, a key, a model and a project. */
export function needsLog(groupBy: string, filters: Filters | null | undefined, splitBy: string | null = null): boolean {
  if (groupBy === 'hour' || groupBy === 'dialect' || splitBy === 'dialect') return true
  if (filters == null) return false
  const { keyId, memberId, provider, model, projectId, ...others } = filters
  return Object.values(others).some(filter => filter !== null)
}
