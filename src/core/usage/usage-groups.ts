/** What usage totals can be grouped by. */
export const usageGroups = ['hour', 'day', 'month', 'model', 'key', 'member', 'tag', 'dialect', 'project'] as const

/** What totals over time can be split by. By tag: the values of one tag name, so that no request counts twice. */
export const usageSplits = ['model', 'key', 'member', 'tag', 'dialect', 'project'] as const
