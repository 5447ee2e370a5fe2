import type { ChatEvent, ChatRequest, FinishReason, ReportedUsage } from '../core/chat/chat.ts'
import type { OutputCap } from '../core/chat/output-cap.ts'
import { appendMerged } from '../core/chat/text-deltas.ts'
import type { AnswerPart, ProviderFailure } from '../providers/provider.ts'
import type { Candidate } from './routing/candidate.ts'

/** What has been read of one upstream answer. */
export type UpstreamResponse = {
  readonly candidate: Candidate
  /** The request as the upstream got it, whose tokens it counts. */
  readonly ask: ChatRequest
  readonly droppedParameters: readonly string[]
  /** The cap that the gateway set on the answer; null = the client's own is in force. */
  readonly outputCap: OutputCap | null
  /** Monotonic milliseconds at which it was asked. */
  readonly startedAt: number
  /** Monotonic milliseconds at which its first content was here. */
  firstContentAt: number | null
  /** Text of every kind but reasoning that arrived; counted only where the upstream gives no count, and never stored. */
  text: string
  /** Apart, since an upstream may count its reasoning and show only a summary of it. */
  reasoning: string
  hasToolCalls: boolean
  /** The upstream says that it refuses. */
  refused: boolean
  usage: ReportedUsage | null
  readonly finishes: Map<number, FinishReason>
  /** The caller's stop text that ended the first choice; null = none, or the provider does not say. */
  stopSequence: string | null
  /** The provider's own word for the end of the first choice, where clients act on it. */
  upstreamReason: string | null
  /** Model that the upstream says served. */
  upstreamModel: string | null
  hasContent: boolean
  ended: boolean
  failure: ProviderFailure | null
}

/** An upstream answer of which nothing has been read yet. */
export function createUpstreamResponse(
  call: Pick<UpstreamResponse, 'candidate' | 'ask' | 'droppedParameters' | 'outputCap' | 'startedAt'>,
): UpstreamResponse {
  return {
    ...call,
    firstContentAt: null,
    text: '',
    reasoning: '',
    hasToolCalls: false,
    refused: false,
    usage: null,
    finishes: new Map(),
    stopSequence: null,
    upstreamReason: null,
    upstreamModel: null,
    hasContent: false,
    ended: false,
    failure: null,
  }
}

/**
 * Notes what the parts say of the answer and hands back the content among them, in order, neighbouring pieces of a text as
 * one. Finish reasons stay here until the answer has truly ended: a cut one never shows them. Of `choices` requested ones,
 * further choices that an upstream sends are ignored: no client expects them.
 */
export function applyParts(response: UpstreamResponse, parts: readonly AnswerPart[], choices: number): ChatEvent[] {
  const content: ChatEvent[] = []
  for (const part of parts) {
    if ('choice' in part && part.choice >= choices) continue
    switch (part.type) {
      case 'reasoning':
        if (part.text === '') break
        response.reasoning += part.text
        response.hasContent = true
        appendMerged(content, part)
        break
      case 'text':
      case 'refusal':
      case 'tool_arguments':
        if (part.text === '') break
        response.text += part.text
        if (part.type === 'refusal') response.refused = true
        response.hasContent = true
        appendMerged(content, part)
        break
      case 'tool_call':
        response.text += part.name
        response.hasToolCalls = true
        response.hasContent = true
        content.push(part)
        break
      case 'reasoning_end':
        // Redacted reasoning has no text of its own.
        if (part.kind === 'redacted') response.hasContent = true
        content.push(part)
        break
      case 'provider_item':
        response.text += part.json
        response.hasContent = true
        content.push(part)
        break
      case 'logprobs':
      case 'citation':
        content.push(part)
        break
      case 'served':
        response.upstreamModel = part.model ?? response.upstreamModel
        break
      case 'finish':
        if (response.finishes.has(part.choice)) break
        response.finishes.set(part.choice, part.reason)
        if (part.choice !== 0) break
        response.stopSequence = part.stopSequence ?? null
        response.upstreamReason = part.upstreamReason ?? null
        break
      case 'usage':
        response.usage = part.usage
        break
      case 'end':
        response.ended = true
        break
      case 'failure':
        response.failure ??= part.failure
        break
      default:
        part satisfies never
    }
  }
  return content
}
