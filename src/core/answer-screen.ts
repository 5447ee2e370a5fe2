/**
 * Screens an answer while it is written: each of its texts in a lane of its own (`answer-lane.ts`). A JSON answer is gathered
 * and screened in one go.
 */
import { type Lane, type LaneRules, startLane } from './answer-lane.ts'
import type { ChatEvent, StreamMode } from './chat.ts'
import type { Verdict } from './screen.ts'

export type AnswerScreen = {
  /** What of a batch may go out now; after a hit nothing more. */
  take(batch: readonly ChatEvent[]): readonly ChatEvent[]
  /** What is still held back and clean, of an answer that was cut. */
  rest(): readonly ChatEvent[]
  /** What refused, null while nothing has. */
  hit(): Verdict | null
}

export type AnswerRules = LaneRules & {
  /** Whole answers that were found clean; null = none is remembered. */
  readonly known: KnownAnswers | null
}

export type KnownAnswers = { isClean(text: string): boolean; keep(text: string): void }

/** A screen for one answer; null = a JSON answer, of which nothing goes out before its end. */
export function startAnswerScreen(rules: AnswerRules, mode: StreamMode | null): AnswerScreen {
  const lanes = new Map<string, Held>()
  /** Of the newest piece: the next nearly always goes on with it. */
  let newest: Held | null = null
  const choices = new Set([0])
  let hit: Verdict | null = null
  let hasShown = false
  /** A text was ended before: what follows stands in its context. */
  let hasEnded = false

  const heldOf = (event: Textual): Held => {
    if (newest === null || !goesOn(newest.shape, event)) newest = found(event)
    newest.shape = event
    return newest
  }
  const found = (event: Textual): Held => {
    const key = event.type === 'tool_arguments' ? `${event.choice} ${event.index}` : `${event.choice} ${event.type}`
    let held = lanes.get(key)
    if (held === undefined) {
      held = { shape: event, waiting: '', lane: null }
      lanes.set(key, held)
      choices.add(event.choice)
    }
    return held
  }

  const isEager = ({ type }: Textual) => mode === 'realtime' || type === 'tool_arguments'

  const endLane = (held: Held, out: ChatEvent[]) => {
    const { shape, waiting } = held
    held.lane ??= startLane(rules)
    held.waiting = ''
    const text = held.lane.end(isEager(shape), waiting)
    if (text !== '') out.push({ ...shape, text } as Textual)
    hit ??= held.lane.hit()
  }
  /** All that was held and is clean now. */
  const flush = (out: ChatEvent[]) => {
    for (const held of lanes.values()) endLane(held, out)
  }
  /** Ends the texts of an answer; the one of a JSON answer that is nothing else by its name alone where that was clean before. */
  const finish = (out: ChatEvent[]) => {
    const [held] = lanes.values()
    const whole = held?.shape.type === 'text' && lanes.size === 1 && !hasEnded ? held.waiting : ''
    hasEnded = true
    if (held === undefined || whole === '' || rules.known === null) return flush(out)
    if (rules.known.isClean(whole)) {
      lanes.clear()
      newest = null
      out.push({ ...held.shape, text: whole } as Textual)
      return
    }
    flush(out)
    if (hit === null) rules.known.keep(whole)
  }
  /** Where a choice goes on from its reasoning to its text, the reasoning is over: none of it may follow behind. */
  const endOther = ({ choice, type }: Textual, out: ChatEvent[]) => {
    for (const [key, held] of lanes) {
      if (held.shape.choice !== choice || held.shape.type === type) continue
      lanes.delete(key)
      endLane(held, out)
    }
  }

  const pushText = (event: Textual, out: ChatEvent[]) => {
    const held = heldOf(event)
    if (mode === null) {
      held.waiting += event.text
      return
    }
    held.lane ??= startLane(rules)
    const { lane } = held
    const isFirst = mode === 'buffered' && !hasShown
    const text = lane.push(event.text, isEager(event) || isFirst)
    if (text !== '') {
      out.push(text === event.text ? event : { ...event, text })
      hasShown = true
    }
    hit = lane.hit()
  }

  const filtered = (out: ChatEvent[], { layer, category }: Verdict) => {
    for (const choice of choices) {
      out.push({ type: 'filtered', choice, layer: layer ?? '', category: category ?? '' })
      out.push({ type: 'finish', choice, reason: 'content_filter' })
    }
  }

  return {
    hit: () => hit,
    rest() {
      const out: ChatEvent[] = []
      if (hit === null) flush(out)
      return out
    },
    take(batch) {
      if (hit !== null) return []
      const out: ChatEvent[] = []
      for (const event of batch) {
        if (!isTextual(event)) {
          // What ends or interrupts a text ends its last word and sentence too.
          if (event.type === 'finish') finish(out)
          if (event.type === 'tool_call') {
            hasEnded = true
            flush(out)
          }
          if (hit === null) out.push(event)
        } else {
          if (newest === null || !goesOn(newest.shape, event)) endOther(event, out)
          if (hit === null) pushText(event, out)
        }
        if (hit !== null) {
          filtered(out, hit)
          break
        }
      }
      return out
    },
  }
}

type Textual = Extract<ChatEvent, { type: 'text' | 'reasoning' | 'refusal' | 'tool_arguments' }>

function isTextual(event: ChatEvent): event is Textual {
  return 'text' in event
}

/** Whether both are pieces of one text. */
function goesOn(last: Textual, next: Textual): boolean {
  if (last.choice !== next.choice || last.type !== next.type) return false
  return last.type !== 'tool_arguments' || next.type !== 'tool_arguments' || last.index === next.index
}

type Held = {
  /** The newest event of the lane: what its text goes out as. */
  shape: Textual
  /** Of a JSON answer what has come, looked at only in the end, and then mostly by its name alone. */
  waiting: string
  /** Null until somebody has to look. */
  lane: Lane | null
}
