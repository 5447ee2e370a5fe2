import type { OutputCap } from '../core/chat/attempts.ts'
import type { ChatRequest, Vector } from '../core/chat/chat.ts'
import {
  appendMerged,
  type ChatEvent,
  type ContentEvent,
  type FinishReason,
  type ProviderFields,
  type ReportedUsage,
} from '../core/chat/chat-events.ts'
import { isChosenTool, isDemanding } from '../core/chat/tool-definitions.ts'
import type { AnswerPart, ProviderFailure } from '../providers/provider.ts'
import type { Candidate } from './routing/candidate.ts'

/** State of one upstream response while it is read. */
export type UpstreamResponse = {
  readonly candidate: Candidate
  /** Account of the claimed key; absent = the provider has one credential. */
  readonly keyAccount?: string
  /** The request as sent to the upstream, for token counts. */
  readonly request: ChatRequest
  readonly droppedParameters: readonly string[]
  /** Output cap that the gateway set; null = the client's own applies. */
  readonly outputCap: OutputCap | null
  /** Monotonic milliseconds at which the attempt began. */
  readonly startedAt: number
  /** Epoch milliseconds of the same moment, which decides the prices. */
  readonly startedAtMs: number
  /** Monotonic milliseconds at which its first content arrived. */
  firstContentAt: number | null
  /** Received text of every kind except reasoning; counted only if the upstream gives no counts, and never stored. */
  text: string
  /** Separate, because an upstream may count its reasoning and show only a summary of it. */
  reasoning: string
  hasToolCalls: boolean
  /** Choices with a call that a forced tool choice accepts. */
  readonly called: Set<number>
  /** The upstream reports a refusal. */
  refused: boolean
  usage: ReportedUsage | null
  /** The gateway counted a part of `usage`. */
  isEstimated: boolean
  readonly finishes: Map<number, FinishReason>
  /** The client's stop text that ended the first choice; null = none, or the provider does not report it. */
  stopSequence: string | null
  /** The provider's own finish reason of the first choice, if clients act on it. */
  upstreamReason: string | null
  /** All vectors of a request for embeddings; null = not complete, or a chat. */
  vectors: readonly Vector[] | null
  /** Null = none. */
  providerFields: ProviderFields | null
  /** Characters of complete output parts of the provider, such as the results of its own searches. They are not output tokens. */
  itemCharacters: number
  /** Model that the upstream reports as serving. */
  upstreamModel: string | null
  /** ID that the upstream gave its response. */
  upstreamId: string | null
  hasContent: boolean
  ended: boolean
  /** The gateway canceled the attempt, because another one had the first content. */
  isCanceled: boolean
  failure: ProviderFailure | null
}

/** Creates the state of a response that was not read yet. */
export function createUpstreamResponse(
  call: Pick<
    UpstreamResponse,
    'candidate' | 'keyAccount' | 'request' | 'droppedParameters' | 'outputCap' | 'startedAt' | 'startedAtMs'
  >,
): UpstreamResponse {
  return {
    ...call,
    firstContentAt: null,
    text: '',
    reasoning: '',
    hasToolCalls: false,
    called: new Set(),
    refused: false,
    usage: null,
    isEstimated: false,
    finishes: new Map(),
    stopSequence: null,
    upstreamReason: null,
    vectors: null,
    providerFields: null,
    itemCharacters: 0,
    upstreamModel: null,
    upstreamId: null,
    hasContent: false,
    ended: false,
    isCanceled: false,
    failure: null,
  }
}

/**
 * Adds the parts to the state and returns their content in order, with adjacent text deltas merged. Finish reasons are
 * held until the output is complete: a truncated one never shows them. Further choices than the requested `choices` are
 * ignored, because no client expects them.
 */
export function applyParts(response: UpstreamResponse, parts: readonly AnswerPart[], choices: number): ChatEvent[] {
  const content: ChatEvent[] = []
  for (const part of parts) {
    if ('choice' in part && part.choice >= choices) continue
    switch (part.type) {
      case 'served':
        response.upstreamModel = part.model ?? response.upstreamModel
        response.upstreamId = part.id ?? response.upstreamId
        break
      case 'finish':
        applyFinish(response, part)
        break
      case 'usage':
        response.usage = part.usage
        response.isEstimated = part.isEstimated === true
        break
      case 'vectors':
        response.vectors = part.vectors
        response.hasContent = true
        break
      case 'provider_fields':
        response.providerFields = part.fields
        break
      case 'end':
        response.ended = true
        break
      case 'failure':
        response.failure ??= part.failure
        break
      default:
        applyContent(response, part, content)
    }
  }
  return content
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

function applyFinish(response: UpstreamResponse, part: Extract<AnswerPart, { type: 'finish' }>): void {
  if (response.finishes.has(part.choice)) return
  response.finishes.set(part.choice, part.reason)
  if (part.choice !== 0) return
  response.stopSequence = findStopSequence(part.stopSequence, response.request.stop)
  response.upstreamReason = part.upstreamReason ?? null
}

/** Returns the client's stop sequence: a server can have others of its own. */
function findStopSequence(named: string | null | undefined, stops: readonly string[]): string | null {
  if (named === undefined) return null
  const stop = named === null && stops.length === 1 ? stops[0] : stops.find(text => text === named)
  return stop ?? null
}

/** Adds a part of the output to the state and to `content`. */
function applyContent(response: UpstreamResponse, part: ContentEvent, content: ChatEvent[]): void {
  switch (part.type) {
    case 'reasoning':
      if (part.text === '') return
      response.reasoning += part.text
      break
    case 'text':
    case 'refusal':
    case 'tool_arguments':
      if (part.text === '') return
      response.text += part.text
      if (part.type === 'refusal') response.refused = true
      break
    case 'tool_call':
      response.text += part.name
      response.hasToolCalls = true
      if (isChosenTool(response.request, part.name)) response.called.add(part.choice)
      break
    case 'provider_item':
      response.itemCharacters += part.json.length
      break
    case 'reasoning_end':
      // Redacted reasoning has no text of its own.
      if (part.kind === 'redacted') response.hasContent = true
      content.push(part)
      return
    case 'logprobs':
    case 'citation':
      content.push(part)
      return
    default:
      part satisfies never
  }
  response.hasContent = true
  appendMerged(content, part)
}
