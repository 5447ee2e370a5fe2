/** Records what a reader says, after the guarantees of `ReceivedAnswer`, as one object per call. */
import type { FinishReason, ProviderFields, ReportedUsage } from '../../src/core/chat/chat-events.ts'
import type { Provider, ProviderFailure, StreamReader } from '../../src/providers/provider.ts'
import { ReceivedAnswer } from '../../src/providers/received-answer.ts'
import type { EventReader, EventSplitter, ServerSentEvent } from '../../src/providers/sse.ts'
import { askWith } from './ask.ts'
import { type ContentEvent, EventLog } from './events.ts'

export type AnswerPart =
  | ContentEvent
  | { readonly type: 'served'; readonly id: string | null; readonly model: string | null }
  | {
      readonly type: 'finish'
      readonly choice: number
      readonly reason: FinishReason
      readonly stopSequence?: string | null
      readonly upstreamReason?: string
    }
  | { readonly type: 'provider_fields'; readonly fields: ProviderFields }
  | { readonly type: 'usage'; readonly usage: ReportedUsage; readonly isEstimated?: boolean }
  | { readonly type: 'end' }
  | { readonly type: 'failure'; readonly failure: ProviderFailure }

/** What a call of a sink records if it was accepted; the content of others is in the queue. */
const accepted: Readonly<Record<string, (...given: never[]) => AnswerPart>> = {
  identify: (id: string | null, model: string | null) => ({ type: 'served', id, model }),
  finish: (choice: number, reason: FinishReason, stopSequence?: string | null, upstreamReason?: string) => ({
    type: 'finish',
    choice,
    reason,
    ...(stopSequence === undefined ? {} : { stopSequence }),
    ...(upstreamReason === undefined ? {} : { upstreamReason }),
  }),
  reportUsage: (usage: ReportedUsage) => ({ type: 'usage', usage }),
  reportFields: (fields: ProviderFields) => ({ type: 'provider_fields', fields }),
  end: () => ({ type: 'end' }),
}
const ownMethods: readonly PropertyKey[] = ['isOver', 'release']

/** An answer, and its parts since the last `drain`. By default, the request asks for as many choices as a reader can have. */
export function recordedAnswer(request = askWith({ choices: 128 })) {
  const received = new ReceivedAnswer(request)
  const log = new EventLog()
  let parts: AnswerPart[] = []
  const record = (name: string, given: readonly unknown[], call: () => unknown) => {
    if (received.isOver()) return
    call()
    received.release(log)
    for (const event of log.taken())
      if (event.type !== 'opened' && event.type !== 'filtered' && event.type !== 'finish' && event.type !== 'done')
        parts.push(event)
    const part = accepted[name]?.(...(given as never[]))
    if (received.failure === null) {
      if (part !== undefined) parts.push(part)
      return
    }
    // A response that failed at its end has no finish reasons.
    if (received.finishes.size === 0) parts = parts.filter(({ type }) => type !== 'finish')
    parts.push({ type: 'failure', failure: received.failure })
  }
  const answer = new Proxy(received, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      const call = (...given: unknown[]): unknown => Reflect.apply(value, target, given)
      return ownMethods.includes(name)
        ? call
        : (...given: unknown[]) => record(String(name), given, () => call(...given))
    },
  })
  const drain = () => parts.splice(0)
  return { answer, drain }
}

/** A reader whose calls return what they say. */
export function recorded(reader: StreamReader) {
  const { answer, drain } = recordedAnswer()
  return {
    read(event: ServerSentEvent): AnswerPart[] {
      reader.read(event, answer)
      return drain()
    },
    finish(): AnswerPart[] {
      reader.finish(answer)
      return drain()
    },
  }
}

/** Returns what a provider reads in a complete response. */
export function partsIn(provider: Pick<Provider, 'readResponse'>, body: unknown): AnswerPart[] {
  const { answer, drain } = recordedAnswer()
  provider.readResponse(body, answer)
  return drain()
}

/** A splitter whose calls return the events, and which knows none by a template. */
export function collected(splitter: EventSplitter) {
  const events: ServerSentEvent[] = []
  const reader: EventReader<null> = {
    read(event) {
      events.push(event)
      return null
    },
    repeat() {},
  }
  return {
    push(bytes: Uint8Array): ServerSentEvent[] {
      splitter.push(bytes, reader, null)
      return events.splice(0)
    },
    finish(): ServerSentEvent[] {
      splitter.finish(reader, null)
      return events.splice(0)
    },
  }
}
