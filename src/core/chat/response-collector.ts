import type { ChatEvent, FinishReason, TokenLogprob, ToolCall } from './chat.ts'

/** One complete choice. Text that never arrived is empty. */
export type CollectedChoice = {
  readonly index: number
  readonly text: string
  readonly reasoning: string
  readonly refusal: string
  readonly toolCalls: readonly ToolCall[]
  /** null = the output was truncated. */
  readonly finishReason: FinishReason | null
  readonly logprobs: readonly TokenLogprob[]
  /** The moderation layer that stopped the output; absent = none. */
  readonly filtered?: { readonly layer: string; readonly category: string }
}

/** Ordered by index; at least one. */
export type CollectedResponse = { readonly choices: readonly CollectedChoice[] }

export type ResponseCollector = {
  add(event: ChatEvent): void
  result(): CollectedResponse
}

type OpenChoice = {
  readonly index: number
  text: string
  reasoning: string
  refusal: string
  readonly calls: { id: string; name: string; signature: string | null; text: string }[]
  finishReason: FinishReason | null
  readonly logprobs: TokenLogprob[]
  filtered: CollectedChoice['filtered'] | null
}

/** Creates a collector that joins the events of a response. Keeps the order within a choice; choices may interleave. */
export function createResponseCollector(): ResponseCollector {
  const choices: OpenChoice[] = []
  const at = (index: number) => choices.find(choice => choice.index === index) ?? opened(choices, index)
  return {
    add(event) {
      switch (event.type) {
        case 'text':
          at(event.choice).text += event.text
          break
        case 'reasoning':
          at(event.choice).reasoning += event.text
          break
        case 'refusal':
          at(event.choice).refusal += event.text
          break
        case 'tool_call':
          at(event.choice).calls[event.index] = { id: event.id, name: event.name, signature: event.signature, text: '' }
          break
        case 'tool_arguments': {
          const call = at(event.choice).calls[event.index]
          if (call !== undefined) call.text += event.text
          break
        }
        case 'logprobs':
          at(event.choice).logprobs.push(...event.tokens)
          break
        case 'finish':
          at(event.choice).finishReason = event.reason
          break
        case 'filtered':
          at(event.choice).filtered = { layer: event.layer, category: event.category }
          break
        case 'opened':
        case 'done':
          break
      }
    },
    result() {
      if (choices.length === 0) opened(choices, 0)
      return { choices: choices.sort((one, other) => one.index - other.index).map(folded) }
    },
  }
}

function opened(choices: OpenChoice[], index: number): OpenChoice {
  const choice: OpenChoice = {
    index,
    text: '',
    reasoning: '',
    refusal: '',
    calls: [],
    finishReason: null,
    logprobs: [],
    filtered: null,
  }
  choices.push(choice)
  return choice
}

function folded(choice: OpenChoice): CollectedChoice {
  const { index, text, reasoning, refusal, calls, finishReason, logprobs, filtered } = choice
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
    refusal,
    toolCalls,
    finishReason,
    logprobs,
    ...(filtered == null ? {} : { filtered }),
  }
}
