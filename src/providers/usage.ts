import type { Built, ReportedUsage } from '../core/chat/chat-events.ts'
import { maximumTokens } from './json.ts'

/** Token counts of one response as an upstream reports them; null = not reported. */
type WireCounts = {
  readonly input: number | null
  readonly output: number | null
  readonly total: number | null
  readonly cached: number
  readonly written: number
  /** Of those written, the ones to be kept for an hour. */
  readonly hourWritten: number
  readonly reasoning: number
  /** Of input and output, those of audio. */
  readonly audio?: number
}

/**
 * Returns the usage, in which the input includes cached and written tokens and the output includes reasoning. Null if
 * none is reported. Upstreams differ in what their sums include: caches above the input were counted beside it, and so
 * were the parts by which the total exceeds both sums. Any other rest of the total is hidden reasoning, and so is one that equals the
 * reported reasoning, which xAI counts beside the output. Two counts imply the third, but a missing count is never
 * assumed to be zero.
 */
export function reportedUsage(counts: WireCounts): ReportedUsage | null {
  const { total, cached, written, reasoning } = counts
  if (counts.input === null && counts.output === null && reasoning === 0) return null
  const caches = cached + written
  const isBeside = counts.input !== null && caches > counts.input
  const input = isBeside ? (counts.input ?? 0) + caches : counts.input
  // Without a total, only reasoning above the output is certain to be none of it.
  const isMore = total === null && counts.output !== null && reasoning > counts.output
  const output = isMore ? (counts.output ?? 0) + reasoning : counts.output
  if (input === null || output === null)
    return bounded({
      ...counts,
      input: input ?? findDifference(total, output),
      output: output ?? findDifference(total, input),
    })
  const rest = Math.max(0, (total ?? 0) - input - output)
  const beside =
    isBeside || rest === reasoning ? 0 : ([caches, cached, written].find(part => isRest(part, rest, reasoning)) ?? 0)
  const thought = rest - beside
  return bounded({ ...counts, input: input + beside, output: output + thought, reasoning: reasoning || thought })
}

/** Returns the counts with no part above its sum, and no sum above the largest count. */
function bounded({ input, output, cached, written, hourWritten, reasoning, audio = 0 }: WireCounts): ReportedUsage {
  const inputTokens = input === null ? null : Math.min(input, maximumTokens)
  const outputTokens = output === null ? null : Math.min(output, maximumTokens)
  const cachedInputTokens = Math.min(cached, inputTokens ?? maximumTokens)
  const cacheWriteTokens = Math.min(written, (inputTokens ?? maximumTokens) - cachedInputTokens)
  const usage: Built<ReportedUsage> = {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens,
    outputTokens,
    reasoningTokens: Math.min(reasoning, outputTokens ?? maximumTokens),
  }
  if (hourWritten > 0) usage.hourCacheWriteTokens = Math.min(hourWritten, cacheWriteTokens)
  if (audio > 0) usage.audioTokens = audio
  if (outputTokens === null) usage.leastOutputTokens = reasoning
  return usage
}

/** Returns true if a part is the rest of a total, also together with the reasoning. */
function isRest(part: number, rest: number, reasoning: number): boolean {
  return part > 0 && (part === rest || part + reasoning === rest)
}

/** Returns the rest of a total without one part; null if that is 0, which means unknown. */
function findDifference(total: number | null, part: number | null): number | null {
  const rest = (total ?? 0) - (part ?? 0)
  return rest > 0 ? rest : null
}

/**
 * Creates a filter for the token counts of one response. Takes a frame's counts (null = none) and whether it contained
 * output, and returns the counts to report, null = no new ones. A count that later output has exceeded, or that a later frame omits,
 * becomes a lower bound.
 */
export function followUsage(): (told: ReportedUsage | null, wentOn: boolean) => ReportedUsage | null {
  let last: ReportedUsage | null = null
  return (told, wentOn) => {
    if (told !== null) last = told.outputTokens === null ? atLeast(told, last) : told
    else if (wentOn && last !== null && last.outputTokens !== null) last = atLeast(last, last)
    else return null
    return last
  }
}

function atLeast(usage: ReportedUsage, before: ReportedUsage | null): ReportedUsage {
  const known = [usage.leastOutputTokens, before?.outputTokens, before?.leastOutputTokens]
  return { ...usage, outputTokens: null, leastOutputTokens: Math.max(...known.map(count => count ?? 0)) }
}
