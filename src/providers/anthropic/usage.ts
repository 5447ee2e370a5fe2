import type { ReportedUsage } from '../../core/chat/chat-events.ts'
import { isRecord, isText, type Json, record, records, tokenCount } from '../json.ts'

/** Counts so far; null = not reported. */
export type Counts = {
  readonly input: number | null
  readonly cacheWrite: number
  readonly cacheRead: number
  /** Of what was written, for an hour. */
  readonly hourWrite: number
  readonly searches: number
  readonly output: number | null
  /**
   * Lower bound of the output: the first event's count is a placeholder, and any count before later content is too low.
   */
  readonly leastOutput: number
  readonly thinking: number
  /** Of passes that compacted the conversation. They are billed beside the other counts, which exclude them. */
  readonly compaction: {
    readonly input: number
    readonly read: number
    readonly written: number
    readonly hourWritten: number
    readonly output: number
  }
}

export const noCounts: Counts = {
  input: null,
  cacheWrite: 0,
  cacheRead: 0,
  hourWrite: 0,
  searches: 0,
  output: null,
  leastOutput: 0,
  thinking: 0,
  compaction: { input: 0, read: 0, written: 0, hourWritten: 0, output: 0 },
}

/** Returns the counts updated by newer ones; null if there are none. */
export function findCounts(usage: unknown, known: Counts, stage: 'first' | 'later'): Counts | null {
  if (!isRecord(usage)) return null
  const input = tokenCount(usage.input_tokens)
  const output = tokenCount(usage.output_tokens)
  if (input === null && output === null) return null
  return {
    input: input ?? known.input,
    cacheWrite: cacheWrites(usage) ?? known.cacheWrite,
    cacheRead: tokenCount(usage.cache_read_input_tokens) ?? known.cacheRead,
    hourWrite: hourWrites(usage) ?? known.hourWrite,
    searches: tokenCount(record(usage.server_tool_use).web_search_requests) ?? known.searches,
    output: (stage === 'later' ? output : null) ?? known.output,
    leastOutput: stage === 'first' ? (output ?? 0) : known.leastOutput,
    thinking: tokenCount(record(usage.output_tokens_details).thinking_tokens) ?? known.thinking,
    compaction: Array.isArray(usage.iterations) ? getCompactions(usage) : known.compaction,
  }
}

function getCompactions(usage: Json): Counts['compaction'] {
  const passes = records(usage.iterations).filter(({ type }) => type === 'compaction')
  const sum = (count: (pass: Json) => number | null) => passes.reduce((total, pass) => total + (count(pass) ?? 0), 0)
  return {
    input: sum(pass => tokenCount(pass.input_tokens)),
    read: sum(pass => tokenCount(pass.cache_read_input_tokens)),
    written: sum(cacheWrites),
    hourWritten: sum(hourWrites),
    output: sum(pass => tokenCount(pass.output_tokens)),
  }
}

/** Returns the counts after more content followed them. */
export function outgrown(known: Counts): Counts {
  return known.output === null ? known : { ...known, output: null, leastOutput: known.output }
}

/** Returns the total, or the sum over the cache lifetimes if only those are reported. */
function cacheWrites({ cache_creation_input_tokens: total, cache_creation: written }: Json): number | null {
  const { ephemeral_5m_input_tokens, ephemeral_1h_input_tokens } = record(written)
  const short = tokenCount(ephemeral_5m_input_tokens)
  const long = tokenCount(ephemeral_1h_input_tokens)
  return tokenCount(total) ?? (short === null && long === null ? null : (short ?? 0) + (long ?? 0))
}

function hourWrites(usage: Json): number | null {
  return tokenCount(record(usage.cache_creation).ephemeral_1h_input_tokens)
}

/** Returns the counts as `ReportedUsage`: here, input excludes cache reads and writes. */
export function getAnthropicUsage(counts: Counts): ReportedUsage {
  const { searches, leastOutput, thinking, compaction } = counts
  const read = counts.cacheRead + compaction.read
  const written = counts.cacheWrite + compaction.written
  const hourWrite = counts.hourWrite + compaction.hourWritten
  const output = counts.output === null ? null : counts.output + compaction.output
  return {
    inputTokens: counts.input === null ? null : counts.input + compaction.input + read + written,
    cachedInputTokens: read,
    cacheWriteTokens: written,
    ...(hourWrite > 0 && { hourCacheWriteTokens: hourWrite }),
    ...(searches > 0 && { providerSearches: searches }),
    outputTokens: output,
    ...(output === null && { leastOutputTokens: Math.max(leastOutput, thinking) + compaction.output }),
    reasoningTokens: output === null ? thinking : Math.min(thinking, output),
  }
}

const longestName = 64

/** Returns the fields of a usage beside the token counts; null = none. */
export function findUsageFields(usage: unknown): Json | null {
  if (!isRecord(usage)) return null
  const { server_tool_use: uses, iterations } = usage
  const fields: Record<string, unknown> = {}
  for (const name of ['service_tier', 'inference_geo', 'speed'] as const) {
    const value = usage[name]
    if (isText(value) && value.length <= longestName) fields[name] = value
  }
  if (isRecord(uses)) {
    const counts = Object.entries(uses).filter(([, count]) => tokenCount(count) !== null)
    if (counts.length > 0) fields.server_tool_use = Object.fromEntries(counts)
  }
  if (Array.isArray(iterations) && iterations.length > 0) fields.iterations = records(iterations)
  return Object.keys(fields).length === 0 ? null : fields
}
