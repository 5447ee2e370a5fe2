import type { ReportedUsage } from '../core/chat/chat.ts'
import type { AnswerPart } from './provider.ts'

/**
 * Follows the counts through one answer. Takes what a frame told of them (null = nothing) and whether the answer went on in
 * it; gives what is to be said. A count that the answer has outgrown since, or that a later frame leaves out, is said as the
 * least it can be.
 */
export function followUsage(): (told: ReportedUsage | null, wentOn: boolean) => readonly AnswerPart[] {
  let last: ReportedUsage | null = null
  return (told, wentOn) => {
    if (told !== null) last = told.outputTokens === null ? atLeast(told, last) : told
    else if (wentOn && last !== null && last.outputTokens !== null) last = atLeast(last, last)
    else return nothing
    return [{ type: 'usage', usage: last }]
  }
}

const nothing: readonly AnswerPart[] = []

function atLeast(usage: ReportedUsage, before: ReportedUsage | null): ReportedUsage {
  const known = [usage.leastOutputTokens, before?.outputTokens, before?.leastOutputTokens]
  return { ...usage, outputTokens: null, leastOutputTokens: Math.max(...known.map(count => count ?? 0)) }
}
