/** Responses as lists: one object per delta of a text or other part. */
import type {
  ResponseOutput,
  ResponsePart,
  ResponseSink,
  ResponseStart,
  ResponseSummary,
  TextChannel,
} from '../../src/core/chat/chat-events.ts'
import type { BodyWriter } from '../../src/core/chat/response-collector.ts'
import type { StreamFormat } from '../../src/http/sse-response.ts'

type TextDelta =
  | {
      readonly type: 'text'
      readonly choice: number
      readonly text: string
      readonly phase?: string
      readonly block?: number
    }
  | { readonly type: 'reasoning' | 'refusal'; readonly choice: number; readonly text: string }
  | { readonly type: 'tool_arguments'; readonly choice: number; readonly index: number; readonly text: string }

export type ChatEvent = TextDelta | ResponsePart
export type ContentEvent = Exclude<ChatEvent, { readonly type: 'opened' | 'filtered' | 'finish' | 'done' }>

const channels = new Map<string, TextChannel>()

/** Returns the channel of a delta: the same object for the same text. */
export function findChannel(delta: TextDelta): TextChannel {
  const { type, choice } = delta
  const channel = {
    type,
    choice,
    index: delta.type === 'tool_arguments' ? delta.index : 0,
    phase: delta.type === 'text' ? (delta.phase ?? null) : null,
    block: delta.type === 'text' ? (delta.block ?? 0) : 0,
  }
  const key = JSON.stringify(channel)
  const known = channels.get(key) ?? channel
  channels.set(key, known)
  return known
}

/** Sends events to a sink. */
export function tell<Sink extends ResponseSink>(sink: Sink, events: readonly ChatEvent[]): Sink {
  for (const event of events)
    if ('text' in event) sink.text(findChannel(event), event.text)
    else sink.add(event)
  return sink
}

/** Returns the frames of the events. */
export const writeFrames = (format: StreamFormat, events: readonly ChatEvent[]) => tell(format, events).take()

/** Returns the body of the events, which begin with `opened` and end with `done`. */
export function writeBody(
  writer: BodyWriter,
  events: readonly ChatEvent[],
  given: { opening?: ResponseStart; receipt?: ResponseSummary } = {},
): object | string {
  const opening = events.find(event => event.type === 'opened')?.opening ?? given.opening
  const receipt = events.find(event => event.type === 'done')?.receipt ?? given.receipt
  if (opening === undefined || receipt === undefined) throw new Error('a body has a start and an end')
  return tell(writer, events).body(opening, receipt, () => {})
}

/** Keeps what it receives. */
export class EventLog implements ResponseOutput {
  readonly events: ChatEvent[] = []

  private flushed = 0

  /** `written` is called for each batch, and returns what the source waits for. */
  constructor(private readonly written: ResponseOutput['flush'] = () => null) {}

  text({ type, choice, index, phase, block }: TextChannel, text: string): void {
    if (type === 'tool_arguments') this.events.push({ type, choice, index, text })
    else if (type !== 'text') this.events.push({ type, choice, text })
    else
      this.events.push({
        type,
        choice,
        text,
        ...(phase === null ? {} : { phase }),
        ...(block === 0 ? {} : { block }),
      })
  }

  add(part: ResponsePart): void {
    this.events.push(part)
  }

  flush(): Promise<void> | null {
    if (this.events.length === this.flushed) return null
    this.flushed = this.events.length
    return this.written()
  }

  /** Returns the events since the last call. */
  taken(): ChatEvent[] {
    this.flushed = 0
    return this.events.splice(0)
  }
}
