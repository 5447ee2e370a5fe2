import type { OutputCap } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import { isDemanding } from '../core/chat/tool-definitions.ts'
import type { ChosenEffort } from '../models/effort.ts'
import { ReceivedAnswer } from '../providers/received-answer.ts'
import { type Candidate, getEffort } from './routing/candidate.ts'

/** One upstream response while it is read. */
export class UpstreamResponse extends ReceivedAnswer {
  readonly candidate: Candidate
  /** Account of the claimed key; null = the provider has one credential. */
  readonly keyAccount: string | null
  /** Output cap that the gateway set; null = the client's own applies. */
  readonly outputCap: OutputCap | null
  /** Monotonic milliseconds at which the attempt began. */
  readonly startedAt: number
  /** Epoch milliseconds of the same moment, which decides the prices. */
  readonly startedAtMs: number
  /** The effort that the model was called with; null = its provider's default. */
  readonly effort: ChosenEffort
  /** Monotonic milliseconds at which its first content arrived. */
  firstContentAt: number | null = null
  /** The gateway canceled the attempt, because another one had the first content. */
  isCanceled = false

  constructor(
    request: ChatRequest,
    call: Pick<UpstreamResponse, 'candidate' | 'keyAccount' | 'outputCap' | 'startedAt' | 'startedAtMs'>,
  ) {
    super(request)
    this.candidate = call.candidate
    this.keyAccount = call.keyAccount
    this.outputCap = call.outputCap
    this.startedAt = call.startedAt
    this.startedAtMs = call.startedAtMs
    this.effort = getEffort(call.candidate, request)
  }
}

/**
 * Returns true if a complete response lacks the tool call that the request requires: clients read its arguments without looking at the
 * text. The output cap, a filter, a refusal and a tool that ran at the provider explain it.
 */
export function lacksForcedCall(response: UpstreamResponse): boolean {
  const { request, finishes, called, refused, itemCharacters, upstreamReason } = response
  if (!isDemanding(request.toolChoice) || request.tools.length === 0) return false
  if (refused || itemCharacters > 0 || upstreamReason !== null) return false
  return [...finishes].some(([choice, reason]) => (reason === 'stop' || reason === 'tool_calls') && !called.has(choice))
}

/** More text than this before a forced call is sent, and an end without the call is then an error. */
const maximumHeldCharacters = 64 * 1024

/**
 * Returns true while text waits for a call that the model was only asked for: without the call, it is no answer to the client, and
 * another attempt replaces it.
 */
export function isHeld({
  request,
  droppedParameters,
  called,
  itemCharacters,
  text,
  reasoning,
}: UpstreamResponse): boolean {
  return (
    isDemanding(request.toolChoice) &&
    droppedParameters.includes('tool_choice') &&
    request.tools.length > 0 &&
    called.size === 0 &&
    itemCharacters === 0 &&
    text.length + reasoning.length <= maximumHeldCharacters
  )
}
