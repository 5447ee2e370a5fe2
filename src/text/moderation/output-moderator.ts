/**
 * Moderates an output while it is generated, each of its texts with its own `OutputText`. The text of a JSON response is
 * collected and checked once.
 */

import type { StreamMode } from '../../core/chat/chat.ts'
import type { ResponsePart, ResponseSink, TextChannel, TypedPart } from '../../core/chat/chat-events.ts'
import { judgeOutput, OutputText } from './output-text.ts'
import type { OutputLayers, Verdict } from './verdict.ts'

/** One text of a response, and its newest channel. */
type Lane = { channel: TextChannel; readonly text: OutputText }

/**
 * Screens one response and passes on what may be sent; `mode` null = a JSON response, of which nothing is sent before its
 * end. A class, because closures would be created again for each response.
 */
export class OutputModerator implements ResponseSink {
  private readonly lanes = new Map<string, Lane>()
  /** The text of the newest delta; the next delta nearly always continues it. */
  private newest: Lane | null = null
  private readonly choices = [0]
  private refusal: Verdict | null = null
  private hasShown = false
  /** Citations of text that may still be held back. */
  private citations: TypedPart<'citation'>[] = []

  constructor(
    private readonly layers: OutputLayers,
    private readonly mode: StreamMode | null,
    private readonly next: ResponseSink,
  ) {}

  /** Returns the blocking verdict; null = none so far. Nothing is passed on after it. */
  hit(): Verdict | null {
    return this.refusal
  }

  /** Passes on what was held back of a truncated output and is clean. */
  rest(): void {
    if (this.refusal === null) this.flush()
  }

  text(channel: TextChannel, text: string): void {
    if (this.refusal !== null) return
    if (this.newest?.channel !== channel) this.endOther(channel)
    if (this.hit() === null) this.read(channel, text)
    this.filter()
  }

  /** A part that ends or interrupts a text also ends its last word and sentence. */
  add(part: ResponsePart): void {
    if (this.refusal !== null) return
    const { type } = part
    if (type === 'finish' || type === 'tool_call' || type === 'reasoning_end' || type === 'provider_item') this.flush()
    if (type === 'citation') this.citations.push(part)
    else if (this.hit() === null) this.next.add(part)
    this.filter()
  }

  private read(channel: TextChannel, text: string): void {
    const lane = this.newest?.channel === channel ? this.newest : this.getLane(channel)
    this.newest = lane
    lane.channel = channel
    if (this.mode === null) {
      lane.text.add(text)
      return
    }
    const isFirst = this.mode === 'buffered' && !this.hasShown
    const clean = lane.text.push(text, isFirst || this.isEager(channel))
    if (clean !== '') {
      this.next.text(channel, clean)
      this.hasShown = true
    }
    this.refusal = lane.text.hit
  }

  private getLane(channel: TextChannel): Lane {
    const { type, choice, index } = channel
    const key = `${type} ${choice} ${index}`
    let lane = this.lanes.get(key)
    if (lane === undefined) {
      lane = { channel, text: new OutputText(this.layers) }
      this.lanes.set(key, lane)
      if (!this.choices.includes(choice)) this.choices.push(choice)
    }
    return lane
  }

  /**
   * When a choice moves from reasoning to output text, the reasoning is complete and must not be sent later. A block of text ends where
   * the next begins, and remains its context.
   */
  private endOther(next: TextChannel): void {
    for (const [key, lane] of this.lanes) {
      const { type, choice } = lane.channel
      if (choice !== next.choice) continue
      if (type !== next.type) this.lanes.delete(key)
      else if (type !== 'text' || lane.channel === next) continue
      this.endLane(lane)
    }
    this.cite()
  }

  /** Passes on everything that was held back and is clean now. */
  private flush(): void {
    for (const lane of this.lanes.values()) this.endLane(lane)
    this.cite()
  }

  /** Passes on the citations of text that was sent. One with a blocked address, title or passage is left out: no text depends on it. */
  private cite(): void {
    const { citations } = this
    if (citations.length === 0) return
    this.citations = []
    if (this.refusal !== null) return
    for (const part of citations) {
      const { url, title, quote } = part.source
      // Apart: words of one text would excuse another, as within a sentence.
      if (![url, title, quote].some(text => text != null && judgeOutput(this.layers, text) !== null))
        this.next.add(part)
    }
  }

  private endLane({ channel, text }: Lane): void {
    const rest = text.finish(this.isEager(channel))
    if (rest !== '') this.next.text(channel, rest)
    this.refusal ??= text.hit
  }

  private isEager({ type }: TextChannel): boolean {
    return this.mode === 'realtime' || type === 'tool_arguments'
  }

  /** Ends the output at a hit. */
  private filter(): void {
    if (this.refusal === null) return
    const { layer, category } = this.refusal
    for (const choice of this.choices) {
      this.next.add({ type: 'filtered', choice, layer: layer ?? '', category: category ?? '' })
      this.next.add({ type: 'finish', choice, reason: 'content_filter' })
    }
  }
}
