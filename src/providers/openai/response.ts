import type { WebSource } from '../../core/chat/web-sources.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { badAnswer, providerFailure } from '../failure.ts'
import { findTextSlot, type TextSlot } from '../frames.ts'
import { findName, isRecord, type Json, record, wholeNumber } from '../json.ts'
import { type AnswerSink, maximumIndex, type StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { uniqueNames } from '../tool-names.ts'
import { followUsage } from '../usage.ts'
import { type Choice, endChoice, getReason, hasWholeCalls, readChoice, startChoice } from './choice.ts'
import { readSources } from './citations.ts'
import { failureInAnswer, getError } from './failure.ts'
import { findUsage, OpenAiFields } from './usage.ts'

/**
 * Reads a response, streamed or complete. A stream has ended when `[DONE]` arrives, or when the body ends with all `wanted`
 * choices, each with a finish reason. Some compatible servers send `[DONE]` without any finish reason: that counts as an end
 * with `stop` or `tool_calls`. Finish reasons are emitted at the end, when tool calls are known. What it says
 * after an end or failure is meaningless. A class, because closures would be created again for each response.
 */
export class ResponseReader implements StreamReader {
  /** By index, with holes. */
  private readonly choices: Choice[] = []
  /** Null until there is a call: most responses have none. */
  private unique: ReturnType<typeof uniqueNames> | null = null
  private readonly follow = followUsage()
  /** The last payload that an event may repeat with another text. */
  private repeated: Repeated | null = null
  /** The current payload contained token counts. */
  private isCounted = false
  /** The current payload contained content. */
  private hasGrown = false
  private readonly fields = new OpenAiFields()
  /** Sources beside the choices. */
  private readonly sources: WebSource[] = []
  private servedId: string | null = null
  private servedModel: string | null = null
  /** ID of the first frame with a choice, and number of frames that had it. */
  private frameId: string | null = null
  private framesOfId = 0
  /** Content arrived under another ID. */
  private hasOtherContent = false

  constructor(
    private readonly official: boolean,
    private readonly wanted = 1,
  ) {}

  read({ name, data }: ServerSentEvent, sink: AnswerSink): TextSlot | null {
    if (data.charCodeAt(0) !== openBrace) {
      const text = data.trim()
      if (text === '') return null
      if (text === '[DONE]') {
        if (this.isDone()) this.end(sink)
        else sink.fail(providerFailure('truncated', '200 done_without_finish_reason'))
        return null
      }
    }
    const payload = parseUntrustedJson(data)
    if (name === 'error') {
      sink.fail(failureInAnswer((isRecord(payload) && getError(payload)) || (payload ?? data)))
      return null
    }
    // Pings and similar events may hold anything; a named event is read only if it is a chunk.
    if (name !== '' && name !== 'message' && !Array.isArray(record(payload).choices)) return null
    if (payload === undefined) {
      sink.fail(badAnswer('not_json'))
      return null
    }
    this.readPayload(payload, sink)
    const repeated = findRepeated(payload)
    if (repeated === null) return null
    this.repeated = repeated
    return repeated.slot
  }

  repeat(text: string, sink: AnswerSink): void {
    if (this.repeated === null) return
    const { payload, slot } = this.repeated
    slot.holder[slot.key] = text
    this.readPayload(payload, sink)
  }

  finish(sink: AnswerSink): void {
    const all = this.seen()
    // Truncated: what may be the beginning of a tag is no text, and what goes on after it would not complete the tag.
    if (all.length >= this.wanted && all.every(({ reason }) => reason !== null)) this.end(sink)
  }

  whole(body: unknown, sink: AnswerSink): void {
    this.readPayload(body, sink)
    if (this.choices.length === 0) sink.fail(badAnswer('no_choices'))
    else this.end(sink)
  }

  private readPayload(payload: unknown, sink: AnswerSink): void {
    const body = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body)) {
      sink.fail(badAnswer('not_an_object'))
      return
    }
    this.readServed(body, sink)
    this.fields.read(body, sink)
    readSources(body, this.sources)
    this.isCounted = false
    this.hasGrown = false
    this.readUsage(body.usage, sink)
    if (isRecord(body.x_groq)) this.readUsage(body.x_groq.usage, sink)
    const error = getError(body)
    if (error !== null) {
      sink.fail(failureInAnswer(error))
      return
    }
    if (!Array.isArray(body.choices) || body.choices.length === 0) return
    const id = findName(body.id)
    const isOther = this.mayBeOther(id)
    for (let position = 0; position < body.choices.length; position += 1) {
      const wire: unknown = body.choices[position]
      if (isRecord(wire)) this.readWire(wire, position, isOther, sink)
    }
    this.noteFrame(id)
    const outgrown = !this.isCounted && this.hasGrown ? this.follow(null, true) : null
    if (outgrown !== null) sink.reportUsage(outgrown)
  }

  /**
   * Returns true if output in a frame with this ID belongs to a second response. Frames of a response share one ID or have one
   * each: output that breaks this pattern, or returns to the first ID, means that the first response was truncated.
   */
  private mayBeOther(id: string | null): boolean {
    if (id === null || this.frameId === null) return false
    return id === this.frameId ? this.hasOtherContent : this.framesOfId > 1
  }

  private noteFrame(id: string | null): void {
    if (id === null) return
    this.frameId ??= id
    if (id === this.frameId) this.framesOfId += 1
    else this.hasOtherContent ||= this.hasGrown
  }

  private readWire(wire: Json, position: number, isOther: boolean, sink: AnswerSink): void {
    const index = wholeNumber(wire.index) ?? position
    if (index > maximumIndex) {
      sink.fail(badAnswer('choice_index'))
      return
    }
    this.readUsage(wire.usage, sink)
    this.choices[index] ??= this.start(index)
    const grew = readChoice(this.choices[index], wire, isOther, sink)
    this.hasGrown ||= grew
  }

  private start(index: number): Choice {
    return startChoice(index, this.official, this.sources, wireId => this.mintId(wireId))
  }

  private readUsage(wire: unknown, sink: AnswerSink): void {
    const told = isRecord(wire) ? findUsage(wire) : null
    if (told === null) return
    this.isCounted = true
    const usage = this.follow(told, false)
    if (usage !== null) sink.reportUsage(usage)
  }

  private readServed(body: Json, sink: AnswerSink): void {
    const id = this.servedId ?? findName(body.id)
    const model = this.servedModel ?? findName(body.model)
    if (id === this.servedId && model === this.servedModel) return
    this.servedId = id
    this.servedModel = model
    sink.identify(id, model)
  }

  /**
   * Returns the server's ID if it is unique, else one that includes the response's ID, so that it differs between
   * turns.
   */
  private mintId(wireId: string | null): string {
    const made = () => `call_${(this.servedId ?? '').replaceAll(/[^A-Za-z0-9]/g, '').slice(-24)}`
    this.unique ??= uniqueNames()
    return this.unique(wireId, count => `${wireId ?? made()}_${count}`)
  }

  private seen(): readonly Choice[] {
    return this.choices.filter(choice => choice !== undefined)
  }

  /** Returns true if `[DONE]` is credible: a relay also sends it after a truncated response. */
  private isDone(): boolean {
    const all = this.seen()
    const isUnstated = !this.official && all.every(choice => choice.reason === null && hasWholeCalls(choice))
    return isUnstated || (all.length > 0 && all.every(({ reason }) => reason !== null))
  }

  private end(sink: AnswerSink): void {
    if (this.choices.length === 0) this.choices.push(this.start(0))
    const all = this.seen()
    for (const choice of all) endChoice(choice, sink)
    for (const choice of all) sink.finish(choice.index, getReason(choice), choice.stopSequence)
    sink.end()
  }
}

const openBrace = 123

const texts = ['content', 'reasoning_content', 'reasoning'] as const

/** A payload whose text may change. */
type Repeated = { readonly payload: unknown; readonly slot: TextSlot }

/** Returns a payload with a text and one choice; null = it has another form. */
function findRepeated(payload: unknown): Repeated | null {
  const { choices } = record(payload)
  if (!Array.isArray(choices) || choices.length !== 1) return null
  const slot = findTextSlot(record(choices[0]).delta, texts)
  return slot === null ? null : { payload, slot }
}
