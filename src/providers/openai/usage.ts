import type { ProviderFields, ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { findName, isRecord, type Json, largestCount, record, records, tokenCount } from '../json.ts'
import type { AnswerSink } from '../provider.ts'
import { reportedUsage } from '../usage.ts'

/** Collects the fields of one response that only clients of OpenAI's APIs read. */
export class OpenAiFields {
  private tier: unknown
  private fingerprint: unknown
  private known: Extract<ProviderFields, { form: 'openai' }> = {
    form: 'openai',
    serviceTier: null,
    systemFingerprint: null,
    acceptedPredictionTokens: 0,
    rejectedPredictionTokens: 0,
  }

  /** Reports the fields if the frame has a new value. */
  read({ service_tier, system_fingerprint, usage }: Json, sink: AnswerSink): void {
    if (service_tier === this.tier && system_fingerprint === this.fingerprint && usage == null) return
    this.tier = service_tier
    this.fingerprint = system_fingerprint
    const { accepted_prediction_tokens, rejected_prediction_tokens } = record(record(usage).completion_tokens_details)
    const { known } = this
    const newer: typeof known = {
      form: 'openai',
      serviceTier: findName(service_tier) ?? known.serviceTier,
      systemFingerprint: findName(system_fingerprint) ?? known.systemFingerprint,
      acceptedPredictionTokens: tokenCount(accepted_prediction_tokens) ?? known.acceptedPredictionTokens,
      rejectedPredictionTokens: tokenCount(rejected_prediction_tokens) ?? known.rejectedPredictionTokens,
    }
    const isKnown =
      newer.serviceTier === known.serviceTier &&
      newer.systemFingerprint === known.systemFingerprint &&
      newer.acceptedPredictionTokens === known.acceptedPredictionTokens &&
      newer.rejectedPredictionTokens === known.rejectedPredictionTokens
    if (isKnown) return
    this.known = newer
    sink.reportFields(newer)
  }
}

/**
 * Returns the usage of a response in the Chat Completions or the Responses API; null if the object has none. DeepSeek,
 * Kimi, Mistral and relays report parts beside the details, and relays of Anthropic use its names.
 */
export function findUsage(wire: Json): ReportedUsage | null {
  const inputDetails = joined(wire.input_tokens_details, wire.prompt_tokens_details)
  const outputDetails = joined(wire.output_tokens_details, wire.completion_tokens_details)
  const lifetimes = joined(inputDetails.cache_creation_token_details, wire.cache_creation)
  const hourWritten = tokenCount(lifetimes.ephemeral_1h_input_tokens) ?? 0
  return reportedUsage({
    input: largestCount(wire.prompt_tokens, wire.input_tokens),
    output: largestCount(wire.completion_tokens, wire.output_tokens),
    total: tokenCount(wire.total_tokens),
    cached:
      largestCount(
        inputDetails.cached_tokens,
        inputDetails.cache_read_input_tokens,
        wire.prompt_cache_hit_tokens,
        wire.cached_tokens,
        wire.num_cached_tokens,
        wire.cache_read_input_tokens,
      ) ?? 0,
    written:
      largestCount(
        inputDetails.cache_write_tokens,
        inputDetails.cache_creation_tokens,
        inputDetails.cached_creation_tokens,
        inputDetails.cache_creation_input_tokens,
        wire.cache_creation_input_tokens,
        hourWritten + (tokenCount(lifetimes.ephemeral_5m_input_tokens) ?? 0),
      ) ?? 0,
    hourWritten,
    reasoning: largestCount(outputDetails.reasoning_tokens, wire.reasoning_tokens) ?? 0,
    audio: (tokenCount(inputDetails.audio_tokens) ?? 0) + (tokenCount(outputDetails.audio_tokens) ?? 0),
  })
}

/** Most servers send one of both. */
function joined(first: unknown, second: unknown): Json {
  return isRecord(first) && isRecord(second) ? { ...first, ...second } : record(isRecord(first) ? first : second)
}

/** Returns the log probabilities of a delta's tokens, without incomplete entries. */
export function getLogprobs(content: unknown): readonly TokenLogprob[] {
  return records(content).flatMap(wire => {
    const token = findToken(wire)
    const top_logprobs = records(wire.top_logprobs).flatMap(other => findToken(other) ?? [])
    return token === null ? [] : [{ ...token, top_logprobs }]
  })
}

function findToken({ token, logprob, bytes }: Json): Omit<TokenLogprob, 'top_logprobs'> | null {
  if (typeof token !== 'string' || typeof logprob !== 'number') return null
  const numbers = Array.isArray(bytes) ? bytes.filter(byte => typeof byte === 'number') : null
  return { token: token.toWellFormed(), logprob, bytes: numbers }
}
