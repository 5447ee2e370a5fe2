import { parsed } from '../../core/parsed.ts'
import { failed, failureOf } from '../failure.ts'
import { maximumIndex } from '../guard.ts'
import { isRecord, type Json, nameOf, record, wholeNumber } from '../json.ts'
import { uniqueNames } from '../names.ts'
import type { AnswerPart, StreamReader } from '../provider.ts'
import { followUsage } from '../usage.ts'
import { type Choice, endChoice, hasWholeCalls, readChoice, reasonOf, releaseText, startChoice } from './choice.ts'
import { errorOf, failureInAnswer } from './failure.ts'
import { usageOf } from './usage.ts'

/** A stream's reader that also takes an answer whole. To be guarded: what it says behind an end or a failure is nothing. */
export type Reader = StreamReader & { whole(body: unknown): readonly AnswerPart[] }

/**
 * The stream has ended when `[DONE]` came, or the body ended with all that was `wanted`, and every choice had its finish
 * reason. `[DONE]` without any finish reason is recorded from compatible servers that send none: that is an end too, by
 * `stop` or `tool_calls`. Finish reasons are told at the end, when it is known whether there were tool calls.
 */
export function createReader(official: boolean, wanted = 1): Reader {
  /** By index, with holes. */
  const choices: Choice[] = []
  const unique = uniqueNames()
  const follow = followUsage()
  /** The payload being read told its counts. */
  let isCounted = false
  let servedId: string | null = null
  let servedModel: string | null = null

  function readPayload(payload: unknown, parts: AnswerPart[]): void {
    const body = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body)) return void parts.push(badAnswer('not_an_object'))
    readServed(body, parts)
    isCounted = false
    readUsage(body.usage, parts)
    if (isRecord(body.x_groq)) readUsage(body.x_groq.usage, parts)
    const error = errorOf(body)
    if (error !== null) return void parts.push(failed(failureInAnswer(error)))
    if (!Array.isArray(body.choices)) return
    for (let position = 0; position < body.choices.length; position += 1) {
      const wire: unknown = body.choices[position]
      if (isRecord(wire)) readWire(wire, position, parts)
    }
    if (!isCounted && parts.some(isContent)) parts.push(...follow(null, true))
  }

  function readWire(wire: Json, position: number, parts: AnswerPart[]): void {
    const index = wholeNumber(wire.index) ?? position
    if (index > maximumIndex) return void parts.push(badAnswer('choice_index'))
    readUsage(wire.usage, parts)
    choices[index] ??= startChoice(index, official, mintId)
    readChoice(choices[index], wire, parts)
  }

  function readUsage(wire: unknown, parts: AnswerPart[]): void {
    const told = isRecord(wire) ? usageOf(wire) : null
    if (told === null) return
    isCounted = true
    parts.push(...follow(told, false))
  }

  function readServed(body: Json, parts: AnswerPart[]): void {
    const id = servedId ?? nameOf(body.id)
    const model = servedModel ?? nameOf(body.model)
    if (id === servedId && model === servedModel) return
    servedId = id
    servedModel = model
    parts.push({ type: 'served', id, model })
  }

  /** The server's own id where it is the first of its name. A made one holds the answer's id, to differ from turn to turn. */
  function mintId(wireId: string | null): string {
    const made = () => `call_${(servedId ?? '').replaceAll(/[^A-Za-z0-9]/g, '').slice(-24)}`
    return unique(wireId, count => `${wireId ?? made()}_${count}`)
  }

  const seen = (): readonly Choice[] => choices.filter(choice => choice !== undefined)

  /** Whether `[DONE]` may be believed: a relay says it behind what was cut, too. */
  function isDone(): boolean {
    const all = seen()
    const isUnsaid = !official && all.every(choice => choice.reason === null && hasWholeCalls(choice))
    return isUnsaid || (all.length > 0 && all.every(({ reason }) => reason !== null))
  }

  function end(parts: AnswerPart[]): void {
    if (choices.length === 0) choices.push(startChoice(0, official, mintId))
    for (const choice of seen()) endChoice(choice, parts)
    for (const choice of seen()) parts.push({ type: 'finish', choice: choice.index, reason: reasonOf(choice) })
    parts.push({ type: 'end' })
  }

  return {
    read({ name, data }) {
      const parts: AnswerPart[] = []
      if (data.charCodeAt(0) !== openBrace) {
        const text = data.trim()
        if (text === '') return parts
        if (text === '[DONE]') {
          if (isDone()) end(parts)
          else parts.push(failed(failureOf('truncated', '200 done_without_finish_reason')))
          return parts
        }
      }
      const payload = parsed(data)
      if (name === 'error')
        return [failed(failureInAnswer((isRecord(payload) && errorOf(payload)) || (payload ?? data)))]
      // Pings and the like may hold anything; a named event is read only if it is a chunk.
      if (name !== '' && name !== 'message' && !Array.isArray(record(payload).choices)) return parts
      if (payload === undefined) return [badAnswer('not_json')]
      readPayload(payload, parts)
      return parts
    },

    finish() {
      const parts: AnswerPart[] = []
      const all = seen()
      if (all.length >= wanted && all.every(({ reason }) => reason !== null)) end(parts)
      // Cut: what is known to be text is still handed out, an end is not.
      else for (const choice of all) releaseText(choice, parts)
      return parts
    },

    whole(body) {
      const parts: AnswerPart[] = []
      readPayload(body, parts)
      if (choices.length === 0) parts.push(badAnswer('no_choices'))
      else end(parts)
      return parts
    },
  }
}

const openBrace = 123

function badAnswer(detail: string): AnswerPart {
  return failed(failureOf('bad_answer', `200 ${detail}`))
}

function isContent({ type }: AnswerPart): boolean {
  return (
    type === 'text' || type === 'reasoning' || type === 'refusal' || type === 'tool_call' || type === 'tool_arguments'
  )
}
