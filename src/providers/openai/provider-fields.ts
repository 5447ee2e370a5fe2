import type { ProviderFields } from '../../core/chat/chat-events.ts'
import { type Json, nameOf, record, tokenCount } from '../json.ts'
import type { AnswerPart } from '../provider.ts'

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

  /** Adds a part if the frame has a new value. */
  read({ service_tier, system_fingerprint, usage }: Json, parts: AnswerPart[]): void {
    if (service_tier === this.tier && system_fingerprint === this.fingerprint && usage == null) return
    this.tier = service_tier
    this.fingerprint = system_fingerprint
    const { accepted_prediction_tokens, rejected_prediction_tokens } = record(record(usage).completion_tokens_details)
    const { known } = this
    const newer: typeof known = {
      form: 'openai',
      serviceTier: nameOf(service_tier) ?? known.serviceTier,
      systemFingerprint: nameOf(system_fingerprint) ?? known.systemFingerprint,
      acceptedPredictionTokens: tokenCount(accepted_prediction_tokens) ?? known.acceptedPredictionTokens,
      rejectedPredictionTokens: tokenCount(rejected_prediction_tokens) ?? known.rejectedPredictionTokens,
    }
    if (Bun.deepEquals(newer, known)) return
    this.known = newer
    parts.push({ type: 'provider_fields', fields: newer })
  }
}
