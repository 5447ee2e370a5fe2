/** What usage totals can be grouped by. */
export const usageGroups = ['day', 'month', 'model', 'key', 'member', 'tag'] as const
