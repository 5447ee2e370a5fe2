/**
 * Screens an answer while it is written: each of its texts in a lane of its own (`streaming-moderator.ts`). A JSON answer is gathered
 * and screened in one go.
 */

import type { ChatEvent, StreamMode } from '../chat/chat.ts'
import { isSameText, isTextDelta, type TextDelta } from '../chat/text-deltas.ts'
import {
  createStreamingModerator,
  isSurelyClean,
  type StreamingModerator,
  type StreamingRules,
} from './streaming-moderator.ts'
import type { Verdict } from './text-moderator.ts'

export type OutputModerator = {
  /** What of a batch may go out now; after a hit nothing more. */
  take(batch: readonly ChatEvent[]): readonly ChatEvent[]
  /** What is still held back and clean, of an answer that was cut. */
  rest(): readonly ChatEvent[]
  /** What refused, null while nothing has. */
  hit(): Verdict | null
}

export type OutputModerationRules = StreamingRules & {
  /** Whole answers that were found clean; null = none is remembered. */
  readonly known: CleanOutputs | null
}

/** Looks up a whole answer by its digest, which is taken once: `keep` remembers that the same answer was found clean. */
export type CleanOutputs = (text: string) => { readonly isClean: boolean; keep(): void }

/** A screen for one answer; null = a JSON answer, of which nothing goes out before its end. */
export function createOutputModerator(rules: OutputModerationRules, mode: StreamMode | null): OutputModerator {
  return new OwnScreen(rules, mode)
}

/** A class, since each answer would make its functions anew. */
class OwnScreen implements OutputModerator {
  private readonly rules: OutputModerationRules
  private readonly mode: StreamMode | null
  private readonly lanes = new Map<string, Held>()
  /** Of the newest piece: the next nearly always goes on with it. */
  private newest: Held | null = null
  private readonly choices = [0]
  private refusal: Verdict | null = null
  private hasShown = false
  /** A text was ended before: what follows stands in its context. */
  private hasEnded = false

  constructor(rules: OutputModerationRules, mode: StreamMode | null) {
    this.rules = rules
    this.mode = mode
  }

  hit(): Verdict | null {
    return this.refusal
  }

  rest(): readonly ChatEvent[] {
    const out: ChatEvent[] = []
    if (this.refusal === null) this.flush(out)
    return out
  }

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

  /** What ends or interrupts a text ends its last word and sentence too. */
  private takeOther(event: ChatEvent, out: ChatEvent[]): void {
    if (event.type === 'finish') this.finish(out)
    if (event.type === 'tool_call') {
      this.hasEnded = true
      this.flush(out)
    }
    if (this.hit() === null) out.push(event)
  }

  private pushText(event: TextDelta, out: ChatEvent[]): void {
    const held = this.heldOf(event)
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

  private heldOf(event: TextDelta): Held {
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

  /** Ends the texts of an answer. The one of a JSON answer that is nothing else is mostly found clean as a whole, or was before. */
  private finish(out: ChatEvent[]): void {
    const [held] = this.lanes.values()
    const whole = held?.shape.type === 'text' && this.lanes.size === 1 && !this.hasEnded ? held.waiting : ''
    this.hasEnded = true
    if (held === undefined || whole === '') return void this.flush(out)
    const answer = this.rules.known?.(whole)
    if (answer?.isClean || isSurelyClean(this.rules, whole)) {
      this.lanes.clear()
      this.newest = null
      out.push({ ...held.shape, text: whole })
    } else this.flush(out)
    if (this.refusal === null && answer?.isClean === false) answer.keep()
  }

  /** Where a choice goes on from its reasoning to its text, the reasoning is over: none of it may follow behind. */
  private endOther({ choice, type }: TextDelta, out: ChatEvent[]): void {
    for (const [key, held] of this.lanes) {
      if (held.shape.choice !== choice || held.shape.type === type) continue
      this.lanes.delete(key)
      this.endLane(held, out)
    }
  }

  /** All that was held and is clean now. */
  private flush(out: ChatEvent[]): void {
    for (const held of this.lanes.values()) this.endLane(held, out)
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
  /** The newest event of the lane: what its text goes out as. */
  shape: TextDelta
  /** Of a JSON answer what has come, looked at only in the end, and then mostly by its name alone. */
  waiting: string
  /** Null until somebody has to look. */
  lane: StreamingModerator | null
}
