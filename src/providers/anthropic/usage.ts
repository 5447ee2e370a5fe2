import type { ReportedUsage } from '../../core/chat/chat-events.ts'
import { isRecord, isText, type Json, record, records, tokenCount } from '../json.ts'

/**
 * The usage of a message so far. Later events repeat the members that they change. The output of the first event is a placeholder,
 * and any before later content is too low: both are a lower bound.
 */
export class MessageUsage {
  private readonly told: Record<string, unknown> = {}
  private output: number | null = null
  private leastOutput = 0

  /** Adds the usage of an event. Returns false if it has no count of its own. */
  add(usage: Json, stage: 'first' | 'later'): boolean {
    for (const name of countNames) if (tokenCount(usage[name]) !== null) this.told[name] = usage[name]
    for (const name of otherNames) if (usage[name] != null) this.told[name] = usage[name]
    const output = tokenCount(usage.output_tokens)
    if (output === null && tokenCount(usage.input_tokens) === null) return false
    if (stage === 'first') this.leastOutput = output ?? 0
    else this.output = output ?? this.output
    return true
  }

  /** Notes that content followed the counts. Returns false if none was certain. */
  outgrow(): boolean {
    if (this.output === null) return false
    this.leastOutput = this.output
    this.output = null
    return true
  }

  /**
   * Returns the counts: here, input excludes cache reads and writes, and all of them exclude the passes that compacted the
   * conversation.
   */
  counts(): ReportedUsage {
    const { told } = this
    const isCompaction = ({ type }: Json) => type === 'compaction'
    const compactions = told.iterations === undefined ? [] : records(told.iterations).filter(isCompaction)
    const sum = (of: (pass: Json) => number | null, first = of(told) ?? 0) =>
      compactions.reduce((total, pass) => total + (of(pass) ?? 0), first)
    const read = sum(pass => tokenCount(pass.cache_read_input_tokens))
    const written = sum(cacheWrites)
    const hourWrite = sum(pass => tokenCount(record(pass.cache_creation).ephemeral_1h_input_tokens))
    const input = sum(pass => tokenCount(pass.input_tokens))
    const compacted = sum(pass => tokenCount(pass.output_tokens), 0)
    const searches = tokenCount(record(told.server_tool_use).web_search_requests) ?? 0
    const thinking = tokenCount(record(told.output_tokens_details).thinking_tokens) ?? 0
    const output = this.output === null ? null : this.output + compacted
    return {
      inputTokens: told.input_tokens === undefined ? null : input + read + written,
      cachedInputTokens: read,
      cacheWriteTokens: written,
      ...(hourWrite > 0 && { hourCacheWriteTokens: hourWrite }),
      ...(searches > 0 && { providerSearches: searches }),
      outputTokens: output,
      ...(output === null && { leastOutputTokens: Math.max(this.leastOutput, thinking) + compacted }),
      reasoningTokens: output === null ? thinking : Math.min(thinking, output),
    }
  }

  /** Returns the fields beside the token counts; null = none. */
  fields(): Json | null {
    const { server_tool_use: uses, iterations } = this.told
    const fields: Record<string, unknown> = {}
    for (const name of textNames) {
      const value = this.told[name]
      if (isText(value) && value.length <= longestName) fields[name] = value
    }
    if (isRecord(uses)) {
      const counts = Object.entries(uses).filter(([, count]) => tokenCount(count) !== null)
      if (counts.length > 0) fields.server_tool_use = Object.fromEntries(counts)
    }
    if (Array.isArray(iterations) && iterations.length > 0) fields.iterations = records(iterations)
    return Object.keys(fields).length === 0 ? null : fields
  }
}

const longestName = 64
const textNames = ['service_tier', 'inference_geo', 'speed'] as const
const countNames = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const
const otherNames = ['cache_creation', 'output_tokens_details', 'server_tool_use', 'iterations', ...textNames] as const

/** Returns the total, or the sum over the cache lifetimes if only those are reported. */
function cacheWrites({ cache_creation_input_tokens: total, cache_creation: written }: Json): number | null {
  const { ephemeral_5m_input_tokens, ephemeral_1h_input_tokens } = record(written)
  const [short, long] = [tokenCount(ephemeral_5m_input_tokens), tokenCount(ephemeral_1h_input_tokens)]
  return tokenCount(total) ?? (short === null && long === null ? null : (short ?? 0) + (long ?? 0))
}
