/**
 * Moderates an output while it is generated, each of its texts with its own `StreamingModerator`. The text of a JSON
 * response is collected and checked once.
 */

import type { StreamMode } from '../../core/chat/chat.ts'
import { type ChatEvent, isSameText, isTextDelta, type TextDelta } from '../../core/chat/chat-events.ts'
import {
  createStreamingModerator,
  isSurelyClean,
  type StreamingModerator,
  type StreamingRules,
} from './streaming-moderator.ts'
import type { Verdict } from './text-moderator.ts'

/**
 * Screens one response; `mode` null = a JSON response, of which nothing is sent before its end. A class, because closures
 * would be created again for each response.
 */
export class OutputModerator {
  private readonly rules: StreamingRules
  private readonly mode: StreamMode | null
  private readonly lanes = new Map<string, Held>()
  /** The text of the newest delta; the next delta nearly always continues it. */
  private newest: Held | null = null
  private readonly choices = [0]
  private refusal: Verdict | null = null
  private hasShown = false
  /** True after a text has ended: later texts are judged in its context. */
  private hasEnded = false
  /** Citations of text that may still be held back. */
  private citations: Extract<ChatEvent, { type: 'citation' }>[] = []

  constructor(rules: StreamingRules, mode: StreamMode | null) {
    this.rules = rules
    this.mode = mode
  }

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
    if (this.hit() !== null) return []
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
    if (this.newest === null || !isSameText(this.newest.shape, event)) this.endOther(event, out)
    if (this.hit() === null) this.pushText(event, out)
  }

  /** An event that ends or interrupts a text also ends its last word and sentence. */
  private takeOther(event: ChatEvent, out: ChatEvent[]): void {
    if (event.type === 'finish') this.finish(out)
    if (event.type === 'tool_call' || event.type === 'reasoning_end' || event.type === 'provider_item') {
      this.hasEnded = true
      this.flush(out)
    }
    if (event.type === 'citation') this.citations.push(event)
    else if (this.hit() === null) out.push(event)
  }

  private pushText(event: TextDelta, out: ChatEvent[]): void {
    const held = this.getHeld(event)
    if (this.mode === null) {
      held.waiting += event.text
      return
    }
    held.lane ??= createStreamingModerator(this.rules)
    const { lane } = held
    const isFirst = this.mode === 'buffered' && !this.hasShown
    const text = lane.push(event.text, this.isEager(event) || isFirst)
    if (text !== '') {
      out.push(text === event.text ? event : { ...event, text })
      this.hasShown = true
    }
    this.refusal = lane.hit()
  }

  private getHeld(event: TextDelta): Held {
    const { newest } = this
    const held = newest !== null && isSameText(newest.shape, event) ? newest : this.found(event)
    this.newest = held
    held.shape = event
    return held
  }

  private found(event: TextDelta): Held {
    const key = event.type === 'tool_arguments' ? `${event.choice} ${event.index}` : `${event.choice} ${event.type}`
    let held = this.lanes.get(key)
    if (held === undefined) {
      held = { shape: event, waiting: '', lane: null }
      this.lanes.set(key, held)
      if (!this.choices.includes(event.choice)) this.choices.push(event.choice)
    }
    return held
  }

  /** Ends the texts of an answer. The one of a JSON answer that is nothing else is mostly found clean as a whole. */
  private finish(out: ChatEvent[]): void {
    const [held] = this.lanes.values()
    const whole = held?.shape.type === 'text' && this.lanes.size === 1 && !this.hasEnded ? held.waiting : ''
    this.hasEnded = true
    if (held === undefined || whole === '' || !isSurelyClean(this.rules, whole)) return void this.flush(out)
    this.lanes.clear()
    this.newest = null
    out.push({ ...held.shape, text: whole })
    this.cite(out)
  }

  /**
   * When a choice moves from reasoning to output text, the reasoning is complete and must not be sent later. A block of text ends where
   * the next begins, and remains its context.
   */
  private endOther(next: TextDelta, out: ChatEvent[]): void {
    for (const [key, held] of this.lanes) {
      if (held.shape.choice !== next.choice) continue
      if (held.shape.type === next.type) {
        if (next.type !== 'text' || isSameText(held.shape, next)) continue
        this.hasEnded = true
      } else this.lanes.delete(key)
      this.endLane(held, out)
    }
    this.cite(out)
  }

  /** Sends everything that was held back and is clean now. */
  private flush(out: ChatEvent[]): void {
    for (const held of this.lanes.values()) this.endLane(held, out)
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
      if (![url, title, quote].some(text => text != null && this.isBlocked(text))) out.push(event)
    }
  }

  private isBlocked(text: string): boolean {
    if (isSurelyClean(this.rules, text)) return false
    const lane = createStreamingModerator(this.rules)
    lane.end(true, text)
    return lane.hit() !== null
  }

  private endLane(held: Held, out: ChatEvent[]): void {
    const { shape, waiting } = held
    held.lane ??= createStreamingModerator(this.rules)
    held.waiting = ''
    const text = held.lane.end(this.isEager(shape), waiting)
    if (text !== '') out.push({ ...shape, text })
    this.refusal ??= held.lane.hit()
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

type Held = {
  /** The newest event of this text, as a template for the events sent. */
  shape: TextDelta
  /** Collected text of a JSON response, checked only at the end and usually as a whole. */
  waiting: string
  /** Null until the text must be checked. */
  lane: StreamingModerator | null
}
