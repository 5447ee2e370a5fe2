import type { ReasoningItem, ToolCall } from './chat.ts'
import type {
  Built,
  CitedSource,
  FinishReason,
  ResponseOutput,
  ResponsePart,
  ResponseSink,
  ResponseStart,
  ResponseSummary,
  TextChannel,
  TokenLogprob,
} from './chat-events.ts'

/** One choice. Text that never arrived is empty. */
export type CollectedChoice = {
  readonly index: number
  text: string
  reasoning: string
  /** Reasoning that its provider requires on the next turn. */
  readonly reasoningItems: ReasoningItem[]
  /** Length of the reasoning that has ended. */
  reasoningEnd: number
  refusal: string
  /** In order of arrival. */
  readonly citations: CitedSource[]
  readonly toolCalls: Built<ToolCall>[]
  /** Null = the output was truncated. */
  finishReason: FinishReason | null
  readonly logprobs: TokenLogprob[]
  /** The moderation layer that stopped the output; null = none. */
  filtered: { readonly layer: string; readonly category: string } | null
}

/** Writes one response that is sent at once. `body` returns it as an object, or as text that is written on demand until `over`. */
export type BodyWriter = ResponseSink & {
  body(opening: ResponseStart, receipt: ResponseSummary, over: () => void): object | string
}

/** Joins the parts of a response that is sent at once. Choices may interleave. */
export class ResponseCollector implements ResponseOutput {
  /** Null = nothing arrived. */
  opening: ResponseStart | null = null
  /** Null = the response did not end. */
  receipt: ResponseSummary | null = null
  private readonly choices: CollectedChoice[] = []

  text({ type, choice: number, index }: TextChannel, text: string): void {
    const choice = this.at(number)
    if (type !== 'tool_arguments') choice[type] += text
    else if (choice.toolCalls[index] !== undefined) choice.toolCalls[index].arguments += text
  }

  add(part: ResponsePart): void {
    if (part.type === 'opened') this.opening = part.opening
    else if (part.type === 'done') this.receipt = part.receipt
    else addTo(this.at(part.choice), part)
  }

  flush(): null {
    return null
  }

  /** Returns the choices in order of their index; at least one. */
  result(): readonly CollectedChoice[] {
    if (this.choices.length === 0) this.at(0)
    return this.choices.sort((choice, other) => choice.index - other.index)
  }

  private at(index: number): CollectedChoice {
    const known = this.choices.find(choice => choice.index === index)
    if (known !== undefined) return known
    const choice: CollectedChoice = {
      index,
      text: '',
      reasoning: '',
      reasoningItems: [],
      reasoningEnd: 0,
      refusal: '',
      citations: [],
      toolCalls: [],
      finishReason: null,
      logprobs: [],
      filtered: null,
    }
    this.choices.push(choice)
    return choice
  }
}

type WriteBody = (answer: readonly CollectedChoice[], ...given: Parameters<BodyWriter['body']>) => object | string

/** Returns writers of bodies that are built from the joined parts. */
export const collectedBody = (write: WriteBody) => (): BodyWriter => {
  const collector = new ResponseCollector()
  return {
    text: (channel, text) => collector.text(channel, text),
    add: part => collector.add(part),
    body: (...given) => write(collector.result(), ...given),
  }
}

function addTo(choice: CollectedChoice, part: Extract<ResponsePart, { readonly choice: number }>): void {
  switch (part.type) {
    case 'reasoning_end': {
      const { family, kind, data, id } = part
      const text = choice.reasoning.slice(choice.reasoningEnd)
      choice.reasoningEnd = choice.reasoning.length
      if (data !== '') choice.reasoningItems.push({ family, kind, text, data, id })
      break
    }
    case 'tool_call': {
      const { index, id, name, signature } = part
      choice.toolCalls[index] = { id, name, arguments: '', signature }
      break
    }
    case 'logprobs':
      choice.logprobs.push(...part.tokens)
      break
    case 'finish':
      choice.finishReason = part.reason
      break
    case 'filtered':
      choice.filtered = { layer: part.layer, category: part.category }
      break
    case 'citation':
      choice.citations.push(part.source)
      break
    case 'provider_item':
      break
  }
}
