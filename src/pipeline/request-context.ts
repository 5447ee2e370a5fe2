import type { Clock } from '../composition/clock.ts'
import type {
  Attempt,
  ChatEvent,
  ChatRequest,
  FinishReason,
  ReportedUsage,
  ResponseSummary,
} from '../core/chat/chat.ts'
import type { OutputCap } from '../core/chat/output-cap.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import { appendMerged } from '../core/chat/text-deltas.ts'
import type { OmittedSource, WebSource } from '../core/chat/web-sources.ts'
import type { ActiveSetMember } from '../core/limits/active-set.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { Reservation } from '../limits/meter.ts'
import type { AnswerPart, ProviderFailure } from '../providers/provider.ts'
import type { Candidate } from './routing/candidate.ts'

/** In this order. */
export type PipelineStage = 'route' | 'admit' | 'moderate' | 'enhance' | 'enrich' | 'call' | 'settle'

export type RequestStatus = 'completed' | 'failed' | 'client_closed' | 'blocked'

/** What one request has used and done so far: written by the steps as it happens, read once when it is settled. */
export type RequestContext = ActiveSetMember & {
  readonly requestId: string
  /** Epoch milliseconds, and monotonic ones for durations. */
  readonly startedAt: number
  readonly startedMonotonic: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly attempts: Attempt[]
  /** When each step began, in monotonic milliseconds; it ends where the next begins. Null = it has not come. */
  readonly steps: Record<PipelineStage, number | null>
  /** The trace that the caller says this is part of. */
  trace: TraceParent | null
  /** The prompt's name in the book of prompts. */
  promptDigest: string
  /** Milliseconds spent waiting for upstreams that failed; with the serving one's own wait, what is not our overhead. */
  upstreamMs: number
  seat: Reservation | null
  /** What was made of the prompt; null = nobody asked for that. */
  enhancement: ResponseSummary['enhancement']
  /** The ask as models are sent it, whose tokens they count; null = none has been yet. */
  asked: ChatRequest | null
  /** What the web added; null = nothing was looked up. */
  web: WebUse | null
  /** The candidate whose answer is being read. */
  serving: UpstreamResponse | null
  firstContentMs: number | null
  /** Until someone knows better, the caller left: a generator that is ended from outside tells nobody why. */
  outcome: RequestStatus
  errorCode: string | null
  /** Kinds of secrets found in the prompt. */
  secrets: readonly string[]
  /** Notes in the meter what has been used so far. */
  checkpoint: () => void
  begin(step: PipelineStage): void
  fail(failure: unknown, signal: RequestAbortSignal): void
}

/** What was looked up for a request. Costs are integers of 1e-8 USD: of what succeeded, the rest is ours. */
export type WebUse = {
  readonly searched: boolean
  readonly sources: readonly WebSource[]
  readonly leftOut: readonly OmittedSource[]
  readonly searchMicrocents: number
  readonly fetchMicrocents: number
}

/** What has been read of one upstream answer. */
export type UpstreamResponse = {
  readonly candidate: Candidate
  readonly droppedParameters: readonly string[]
  /** The cap that the gateway set on the answer; null = the client's own is in force. */
  outputCap: OutputCap | null
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

/** A tally for a request that begins now. */
export function createRequestContext(clock: Clock, requestId: string): RequestContext {
  const startedMonotonic = clock.monotonic()
  return {
    place: -1,
    requestId,
    startedAt: clock.now(),
    startedMonotonic,
    clock,
    attempts: [],
    steps: {
      route: startedMonotonic,
      admit: null,
      moderate: null,
      enhance: null,
      enrich: null,
      call: null,
      settle: null,
    },
    trace: null,
    promptDigest: '',
    upstreamMs: 0,
    seat: null,
    enhancement: null,
    asked: null,
    web: null,
    serving: null,
    firstContentMs: null,
    outcome: 'client_closed',
    errorCode: null,
    secrets: [],
    checkpoint: nothing,
    begin,
    fail,
  }
}

const nothing = () => {}

function begin(this: RequestContext, step: PipelineStage): void {
  this.steps[step] = this.clock.monotonic()
}

function fail(this: RequestContext, failure: unknown, signal: RequestAbortSignal): void {
  // The caller who left is told apart from the gateway that had to end a request and gave its reason.
  if (signal.aborted && !(signal.reason instanceof GatewayError)) return
  const error = failure instanceof GatewayError ? failure : null
  this.outcome = error?.code === 'content_blocked' && error.layer !== 'provider' ? 'blocked' : 'failed'
  this.errorCode = error?.code ?? 'service_unavailable'
  // What was refused is nobody's bill, whatever the upstream had begun to write.
  if (this.outcome === 'blocked') this.serving = null
}

/** An upstream answer of which nothing has been read yet. */
export function createUpstreamResponse(
  candidate: Candidate,
  droppedParameters: readonly string[],
  startedAt: number,
): UpstreamResponse {
  return {
    candidate,
    droppedParameters,
    outputCap: null,
    startedAt,
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
export function applyParts(serving: UpstreamResponse, parts: readonly AnswerPart[], choices: number): ChatEvent[] {
  const content: ChatEvent[] = []
  for (const part of parts) {
    if ('choice' in part && part.choice >= choices) continue
    switch (part.type) {
      case 'reasoning':
        if (part.text === '') break
        serving.reasoning += part.text
        serving.hasContent = true
        appendMerged(content, part)
        break
      case 'text':
      case 'refusal':
      case 'tool_arguments':
        if (part.text === '') break
        serving.text += part.text
        if (part.type === 'refusal') serving.refused = true
        serving.hasContent = true
        appendMerged(content, part)
        break
      case 'tool_call':
        serving.text += part.name
        serving.hasToolCalls = true
        serving.hasContent = true
        content.push(part)
        break
      case 'reasoning_end':
        // Redacted reasoning has no text of its own.
        if (part.kind === 'redacted') serving.hasContent = true
        content.push(part)
        break
      case 'provider_item':
        serving.text += part.json
        serving.hasContent = true
        content.push(part)
        break
      case 'logprobs':
      case 'citation':
        content.push(part)
        break
      case 'served':
        serving.upstreamModel = part.model ?? serving.upstreamModel
        break
      case 'finish':
        if (serving.finishes.has(part.choice)) break
        serving.finishes.set(part.choice, part.reason)
        if (part.choice !== 0) break
        serving.stopSequence = part.stopSequence ?? null
        serving.upstreamReason = part.upstreamReason ?? null
        break
      case 'usage':
        serving.usage = part.usage
        break
      case 'end':
        serving.ended = true
        break
      case 'failure':
        serving.failure ??= part.failure
        break
      default:
        part satisfies never
    }
  }
  return content
}
