import type { ReportedUsage } from '../core/chat/chat-events.ts'
import type { AnswerPart } from './provider.ts'

/**
 * Creates a filter for the token counts of one response. Takes a frame's counts (null = none) and whether it contained
 * output, and returns the counts to report. A count that later output has exceeded, or that a later frame omits,
 * becomes a lower bound.
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
