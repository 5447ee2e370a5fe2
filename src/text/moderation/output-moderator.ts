/**
 * Moderates an output while it is generated, each of its texts with its own `OutputText`. The text of a JSON response is
 * collected and checked once.
 */

import type { StreamMode } from '../../core/chat/chat.ts'
import { type ChatEvent, isSameText, isTextDelta, type TextDelta } from '../../core/chat/chat-events.ts'
import { judgeOutput, OutputText } from './output-text.ts'
import type { OutputLayers, Verdict } from './verdict.ts'

/** One text of a response; `shape`: its newest event, as a template for the events sent. */
type Lane = { shape: TextDelta; readonly text: OutputText }

/**
 * Screens one response; `mode` null = a JSON response, of which nothing is sent before its end. A class, because closures
 * would be created again for each response.
 */
export class OutputModerator {
  private readonly lanes = new Map<string, Lane>()
  /** The text of the newest delta; the next delta nearly always continues it. */
  private newest: Lane | null = null
  private readonly choices = [0]
  private refusal: Verdict | null = null
  private hasShown = false
  /** Citations of text that may still be held back. */
  private citations: Extract<ChatEvent, { type: 'citation' }>[] = []

  constructor(
    private readonly layers: OutputLayers,
    private readonly mode: StreamMode | null,
  ) {}

  /** Returns the blocking verdict; null = none so far. */
  hit(): Verdict | null {
    return this.refusal
  }

  /** Returns the held-back events of a truncated output that are clean. */
  rest(): readonly ChatEvent[] {
    const out: ChatEvent[] = []
    if (this.refusal === null) this.flush(out)
    return out
  }

  /** Returns the events of a batch that may be sent now; none after a block. */
  take(batch: readonly ChatEvent[]): readonly ChatEvent[] {
    if (this.refusal !== null) return []
    const out: ChatEvent[] = []
    for (const event of batch) {
      if (isTextDelta(event)) this.takeText(event, out)
      else this.takeOther(event, out)
      const hit = this.hit()
      if (hit === null) continue
      this.filter(hit, out)
      break
    }
    return out
  }

  private takeText(event: TextDelta, out: ChatEvent[]): void {
    let lane = this.newest
    if (lane === null || !isSameText(lane.shape, event)) {
      this.endOther(event, out)
      if (this.refusal !== null) return
      lane = this.getLane(event)
      this.newest = lane
    }
    lane.shape = event
    if (this.mode === null) {
      lane.text.add(event.text)
      return
    }
    const isFirst = this.mode === 'buffered' && !this.hasShown
    const text = lane.text.push(event.text, isFirst || this.isEager(event))
    if (text !== '') {
      out.push(text === event.text ? event : { ...event, text })
      this.hasShown = true
    }
    this.refusal = lane.text.hit
  }

  /** An event that ends or interrupts a text also ends its last word and sentence. */
  private takeOther(event: ChatEvent, out: ChatEvent[]): void {
    const { type } = event
    if (type === 'finish' || type === 'tool_call' || type === 'reasoning_end' || type === 'provider_item')
      this.flush(out)
    if (type === 'citation') this.citations.push(event)
    else if (this.refusal === null) out.push(event)
  }

  private getLane(event: TextDelta): Lane {
    const key = event.type === 'tool_arguments' ? `${event.choice} ${event.index}` : `${event.choice} ${event.type}`
    let lane = this.lanes.get(key)
    if (lane === undefined) {
      lane = { shape: event, text: new OutputText(this.layers) }
      this.lanes.set(key, lane)
      if (!this.choices.includes(event.choice)) this.choices.push(event.choice)
    }
    return lane
  }

  /**
   * When a choice moves from reasoning to output text, the reasoning is complete and must not be sent later. A block of text ends where
   * the next begins, and remains its context.
   */
  private endOther(next: TextDelta, out: ChatEvent[]): void {
    for (const [key, lane] of this.lanes) {
      if (lane.shape.choice !== next.choice) continue
      if (lane.shape.type !== next.type) this.lanes.delete(key)
      else if (next.type !== 'text' || isSameText(lane.shape, next)) continue
      this.endLane(lane, out)
    }
    this.cite(out)
  }

  /** Sends everything that was held back and is clean now. */
  private flush(out: ChatEvent[]): void {
    for (const lane of this.lanes.values()) this.endLane(lane, out)
    this.cite(out)
  }

  /** Sends the citations of text that was sent. One with a blocked address, title or passage is left out: no text depends on it. */
  private cite(out: ChatEvent[]): void {
    const { citations } = this
    if (citations.length === 0) return
    this.citations = []
    if (this.refusal !== null) return
    for (const event of citations) {
      const { url, title, quote } = event.source
      // Apart: words of one text would excuse another, as within a sentence.
      if (![url, title, quote].some(text => text != null && judgeOutput(this.layers, text) !== null)) out.push(event)
    }
  }

  private endLane({ shape, text }: Lane, out: ChatEvent[]): void {
    const rest = text.finish(this.isEager(shape))
    if (rest !== '') out.push({ ...shape, text: rest })
    this.refusal ??= text.hit
  }

  private isEager({ type }: TextDelta): boolean {
    return this.mode === 'realtime' || type === 'tool_arguments'
  }

  private filter({ layer, category }: Verdict, out: ChatEvent[]): void {
    for (const choice of this.choices) {
      out.push({ type: 'filtered', choice, layer: layer ?? '', category: category ?? '' })
      out.push({ type: 'finish', choice, reason: 'content_filter' })
    }
  }
}
