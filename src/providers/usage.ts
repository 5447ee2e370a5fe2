import type { ReportedUsage } from '../core/chat.ts'
import type { AnswerPart } from './provider.ts'

/**
 * Follows the counts through one answer. Takes what a frame told of them (null = nothing) and whether the answer went on in
 * it; gives what is to be said. A count that the answer has outgrown since is said again, as the least it can be.
 */
export function followUsage(): (told: ReportedUsage | null, wentOn: boolean) => readonly AnswerPart[] {
  let last: ReportedUsage | null = null
  return (told, wentOn) => {
    const outgrown = told === null && wentOn && last !== null ? outgrownOf(last) : null
    if (told !== null || outgrown !== null) last = told
    const usage = told ?? outgrown
    return usage === null ? nothing : [{ type: 'usage', usage }]
  }
}

const nothing: readonly AnswerPart[] = []

function outgrownOf({ outputTokens, leastOutputTokens = 0, ...usage }: ReportedUsage): ReportedUsage {
  return { ...usage, outputTokens: null, leastOutputTokens: outputTokens ?? leastOutputTokens }
}
