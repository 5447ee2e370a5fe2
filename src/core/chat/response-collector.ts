import type { ReasoningItem, ToolCall } from './chat.ts'
import {
  appendMerged,
  type ChatEvent,
  type CitedSource,
  type ContentEvent,
  type FinishReason,
  type ResponseOutput,
  type ResponseStart,
  type ResponseSummary,
  type TokenLogprob,
} from './chat-events.ts'

/** One complete choice. Text that never arrived is empty. */
export type CollectedChoice = {
  readonly index: number
  readonly text: string
  readonly reasoning: string
  /** Reasoning that its provider requires on the next turn; absent = none. */
  readonly reasoningItems?: readonly ReasoningItem[]
  readonly refusal: string
  /** In order of arrival. */
  readonly citations: readonly CitedSource[]
  readonly toolCalls: readonly ToolCall[]
  /** null = the output was truncated. */
  readonly finishReason: FinishReason | null
  /** The client's stop sequence that ended the output; absent = none, or not reported. */
  readonly stopSequence?: string
  /** The provider's own finish reason, if clients of its API form act on it. */
  readonly upstreamReason?: string
  readonly logprobs: readonly TokenLogprob[]
  /** The moderation layer that stopped the output; absent = none. */
  readonly filtered?: { readonly layer: string; readonly category: string }
}

/** In order of their index; at least one. */
export type CollectedResponse = {
  readonly choices: readonly CollectedChoice[]
  /**
   * The content in order of arrival, with text deltas joined; empty unless the collector was created with
   * `keepsEvents`.
   */
  readonly events: readonly ContentEvent[]
}

type OpenChoice = {
  readonly index: number
  text: string
  reasoning: string
  readonly reasoningItems: ReasoningItem[]
  /** Length of the reasoning that belongs to items. */
  reasoningEnd: number
  refusal: string
  readonly citations: CitedSource[]
  readonly calls: { id: string; name: string; signature: string | null; text: string }[]
  finishReason: FinishReason | null
  readonly logprobs: TokenLogprob[]
  stopSequence: string | null
  upstreamReason: string | null
  filtered: CollectedChoice['filtered'] | null
}

/**
 * Joins the events of a response that is sent at once. Choices may interleave. `keepsEvents` also keeps the content in
 * order, for dialects whose responses are lists of parts.
 */
export class ResponseCollector implements ResponseOutput {
  /** Null = nothing arrived. */
  opening: ResponseStart | null = null
  /** Null = the response did not end. */
  receipt: ResponseSummary | null = null
  private readonly events: ChatEvent[] = []
  private readonly choices: OpenChoice[] = []

  constructor(private readonly keepsEvents = false) {}

  write(batch: readonly ChatEvent[]): null {
    for (const event of batch) this.add(event)
    return null
  }

  add(event: ChatEvent): void {
    if (this.keepsEvents) appendMerged(this.events, event)
    switch (event.type) {
      case 'text':
        this.at(event.choice).text += event.text
        break
      case 'reasoning':
        this.at(event.choice).reasoning += event.text
        break
      case 'reasoning_end':
        endReasoning(this.at(event.choice), event)
        break
      case 'refusal':
        this.at(event.choice).refusal += event.text
        break
      case 'tool_call':
        this.at(event.choice).calls[event.index] = {
          id: event.id,
          name: event.name,
          signature: event.signature,
          text: '',
        }
        break
      case 'tool_arguments': {
        const call = this.at(event.choice).calls[event.index]
        if (call !== undefined) call.text += event.text
        break
      }
      case 'logprobs':
        this.at(event.choice).logprobs.push(...event.tokens)
        break
      case 'finish': {
        const choice = this.at(event.choice)
        choice.finishReason = event.reason
        choice.stopSequence = event.stopSequence ?? null
        choice.upstreamReason = event.upstreamReason ?? null
        break
      }
      case 'filtered':
        this.at(event.choice).filtered = { layer: event.layer, category: event.category }
        break
      case 'citation':
        this.at(event.choice).citations.push(event.source)
        break
      case 'opened':
        this.opening = event.opening
        break
      case 'done':
        this.receipt = event.receipt
        break
      case 'provider_item':
        break
    }
  }

  result(): CollectedResponse {
    const { choices, events } = this
    if (choices.length === 0) opened(choices, 0)
    return {
      choices: choices.sort((choice, other) => choice.index - other.index).map(folded),
      events: events.filter(isContent),
    }
  }

  private at(index: number): OpenChoice {
    return this.choices.find(choice => choice.index === index) ?? opened(this.choices, index)
  }
}

function endReasoning(choice: OpenChoice, { family, kind, data, id }: Extract<ChatEvent, { type: 'reasoning_end' }>) {
  const text = choice.reasoning.slice(choice.reasoningEnd)
  choice.reasoningEnd = choice.reasoning.length
  if (data !== '') choice.reasoningItems.push({ family, kind, text, data, id })
}

function opened(choices: OpenChoice[], index: number): OpenChoice {
  const choice: OpenChoice = {
    index,
    text: '',
    reasoning: '',
    reasoningItems: [],
    reasoningEnd: 0,
    refusal: '',
    citations: [],
    calls: [],
    finishReason: null,
    stopSequence: null,
    upstreamReason: null,
    logprobs: [],
    filtered: null,
  }
  choices.push(choice)
  return choice
}

function folded(choice: OpenChoice): CollectedChoice {
  const { index, text, reasoning, refusal, calls, finishReason, stopSequence, upstreamReason } = choice
  const { citations, logprobs, filtered } = choice
  const toolCalls = calls.map(call => ({
    id: call.id,
    name: call.name,
    arguments: call.text,
    signature: call.signature,
  }))
  return {
    index,
    text,
    reasoning,
    ...(choice.reasoningItems.length === 0 ? {} : { reasoningItems: choice.reasoningItems }),
    refusal,
    citations,
    toolCalls,
    finishReason,
    logprobs,
    ...(stopSequence === null ? {} : { stopSequence }),
    ...(upstreamReason === null ? {} : { upstreamReason }),
    ...(filtered == null ? {} : { filtered }),
  }
}

function isContent(event: ChatEvent): event is ContentEvent {
  switch (event.type) {
    case 'opened':
    case 'filtered':
    case 'finish':
    case 'done':
      return false
    default:
      return true
  }
}
