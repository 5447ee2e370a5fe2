import type { WebSource } from '../../core/chat/web-sources.ts'
import { badAnswer, failed, providerFailure, truncated } from '../failure.ts'
import { findTextSlot, frameParser, type TextSlot } from '../frames.ts'
import { findName, isRecord, type Json, record, wholeNumber } from '../json.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import { maximumIndex } from '../response-guard.ts'
import { uniqueNames } from '../tool-names.ts'
import { followUsage } from '../usage.ts'
import { type Choice, endChoice, getReason, hasWholeCalls, readChoice, releaseText, startChoice } from './choice.ts'
import { readSources } from './citations.ts'
import { failureInAnswer, getError } from './failure.ts'
import { findUsage, OpenAiFields } from './usage.ts'

/**
 * Reads a response, streamed or complete. A stream has ended when `[DONE]` arrives, or when the body ends with all `wanted`
 * choices, each with a finish reason. Some compatible servers send `[DONE]` without any finish reason: that counts as an end
 * with `stop` or `tool_calls`. Finish reasons are emitted at the end, when tool calls are known. Must be guarded: parts after an
 * end or failure are meaningless. A class, because closures would be created again for each response.
 */
export class ResponseReader implements StreamReader {
  private readonly official: boolean
  private readonly wanted: number
  /** By index, with holes. */
  private readonly choices: Choice[] = []
  /** Null until there is a call: most responses have none. */
  private unique: ReturnType<typeof uniqueNames> | null = null
  private readonly follow = followUsage()
  private readonly parse = frameParser(placeOfText)
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

  constructor(official: boolean, wanted = 1) {
    this.official = official
    this.wanted = wanted
  }

  read({ name, data }: Parameters<StreamReader['read']>[0]): readonly AnswerPart[] {
    const parts: AnswerPart[] = []
    if (data.charCodeAt(0) !== openBrace) {
      const text = data.trim()
      if (text === '') return parts
      if (text === '[DONE]') {
        if (this.isDone()) this.end(parts)
        else parts.push(failed(providerFailure('truncated', '200 done_without_finish_reason')))
        return parts
      }
    }
    const payload = this.parse(data)
    if (name === 'error')
      return [failed(failureInAnswer((isRecord(payload) && getError(payload)) || (payload ?? data)))]
    // Pings and similar events may hold anything; a named event is read only if it is a chunk.
    if (name !== '' && name !== 'message' && !Array.isArray(record(payload).choices)) return parts
    if (payload === undefined) return [badAnswer('not_json')]
    this.readPayload(payload, parts)
    return parts
  }

  finish(): readonly AnswerPart[] {
    const parts: AnswerPart[] = []
    const all = this.seen()
    if (all.length >= this.wanted && all.every(({ reason }) => reason !== null)) this.end(parts)
    // Truncated: known text is still emitted, an end is not.
    else for (const choice of all) releaseText(choice, parts)
    return parts
  }

  whole(body: unknown): readonly AnswerPart[] {
    const parts: AnswerPart[] = []
    this.readPayload(body, parts)
    if (this.choices.length === 0) parts.push(badAnswer('no_choices'))
    else this.end(parts)
    return parts
  }

  private readPayload(payload: unknown, parts: AnswerPart[]): void {
    const body = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body)) return void parts.push(badAnswer('not_an_object'))
    this.readServed(body, parts)
    this.fields.read(body, parts)
    readSources(body, this.sources)
    this.isCounted = false
    this.hasGrown = false
    this.readUsage(body.usage, parts)
    if (isRecord(body.x_groq)) this.readUsage(body.x_groq.usage, parts)
    const error = getError(body)
    if (error !== null) return void parts.push(failed(failureInAnswer(error)))
    if (!Array.isArray(body.choices)) return
    for (let position = 0; position < body.choices.length; position += 1) {
      const wire: unknown = body.choices[position]
      if (isRecord(wire)) this.readWire(wire, position, parts)
    }
    if (body.choices.length > 0 && this.isOtherResponse(findName(body.id)))
      return void parts.splice(0, parts.length, truncated('response_restarted'))
    if (!this.isCounted && parts.some(isContent)) parts.push(...this.follow(null, true))
  }

  /**
   * Returns true if a frame belongs to a second response. Frames of a response share one ID or have one each: content
   * that breaks this pattern, or returns to the first ID, means that the first response was truncated.
   */
  private isOtherResponse(id: string | null): boolean {
    if (id === null) return false
    this.frameId ??= id
    if (id === this.frameId) {
      this.framesOfId += 1
      return this.hasGrown && this.hasOtherContent
    }
    this.hasOtherContent ||= this.hasGrown
    return this.hasGrown && this.framesOfId > 1
  }

  private readWire(wire: Json, position: number, parts: AnswerPart[]): void {
    const index = wholeNumber(wire.index) ?? position
    if (index > maximumIndex) return void parts.push(badAnswer('choice_index'))
    this.readUsage(wire.usage, parts)
    this.choices[index] ??= this.start(index)
    const grew = readChoice(this.choices[index], wire, parts)
    this.hasGrown ||= grew
  }

  private start(index: number): Choice {
    return startChoice(index, this.official, this.sources, wireId => this.mintId(wireId))
  }

  private readUsage(wire: unknown, parts: AnswerPart[]): void {
    const told = isRecord(wire) ? findUsage(wire) : null
    if (told === null) return
    this.isCounted = true
    parts.push(...this.follow(told, false))
  }

  private readServed(body: Json, parts: AnswerPart[]): void {
    const id = this.servedId ?? findName(body.id)
    const model = this.servedModel ?? findName(body.model)
    if (id === this.servedId && model === this.servedModel) return
    this.servedId = id
    this.servedModel = model
    parts.push({ type: 'served', id, model })
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

  private end(parts: AnswerPart[]): void {
    if (this.choices.length === 0) this.choices.push(this.start(0))
    const all = this.seen()
    for (const choice of all) endChoice(choice, parts)
    for (const choice of all) {
      const { index, stopSequence } = choice
      const reason = getReason(choice)
      parts.push({ type: 'finish', choice: index, reason, ...(stopSequence === undefined ? {} : { stopSequence }) })
    }
    parts.push({ type: 'end' })
  }
}

const openBrace = 123

const texts = ['content', 'reasoning_content', 'reasoning'] as const

/** Locates the text in a frame with one choice. */
function placeOfText(payload: unknown): TextSlot | null {
  const { choices } = record(payload)
  return Array.isArray(choices) && choices.length === 1 ? findTextSlot(record(choices[0]).delta, texts) : null
}

function isContent({ type }: AnswerPart): boolean {
  return (
    type === 'text' || type === 'reasoning' || type === 'refusal' || type === 'tool_call' || type === 'tool_arguments'
  )
}
