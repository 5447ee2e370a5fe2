/** What usage totals can be grouped by. */
export const usageGroups = ['hour', 'day', 'month', 'model', 'key', 'member', 'tag', 'project'] as const
