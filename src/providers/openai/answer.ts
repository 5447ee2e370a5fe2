import type { FinishReason } from '../../core/chat.ts'
import { failureOf, identifierOf } from '../failure.ts'
import { maximumIndex } from '../guard.ts'
import { isRecord, isText, type Json, nameOf, parsed, record, textOf, wholeNumber } from '../json.ts'
import { uniqueNames } from '../names.ts'
import type { AnswerPart, ProviderFailure, StreamReader } from '../provider.ts'
import { followUsage } from '../usage.ts'
import { type Calls, endCalls, openNamed, readCall } from './calls.ts'
import { errorOf, failureInAnswer } from './failure.ts'
import { readThinking, releaseHeld, type Said, type Thinking } from './thinking.ts'
import { logprobsOf, usageOf } from './usage.ts'

type Choice = {
  readonly index: number
  readonly calls: Calls
  readonly thinking: Thinking
  reason: FinishReason | null
  /** Pieces came in `delta`: a whole `message` beside them repeats what was read. */
  streamed: boolean
}

/** A stream's reader that also takes an answer whole. */
export type Reader = StreamReader & { whole(body: unknown): readonly AnswerPart[] }

/**
 * The stream has ended when `[DONE]` came, or the body ended with all that was `wanted`, and every choice had its finish
 * reason. `[DONE]` without any finish reason is recorded from compatible servers that send none: that is an end too, by
 * `stop` or `tool_calls`. Finish reasons are told at the end, when it is known whether there were tool calls.
 */
export function createReader(official: boolean, wanted = 1): Reader {
  const choices: Choice[] = []
  const unique = uniqueNames()
  const follow = followUsage()
  /** The payload being read told its counts. */
  let isCounted = false
  let servedId: string | null = null
  let servedModel: string | null = null
  /** Nothing is read any more: the end or a failure was handed out. */
  let over = false

  function fail(parts: AnswerPart[], failure: ProviderFailure | null): void {
    if (over || failure === null) return
    over = true
    parts.push({ type: 'failure', failure })
  }

  function readPayload(payload: unknown, parts: AnswerPart[]) {
    const body = Array.isArray(payload) ? payload[0] : payload
    if (!isRecord(body)) return fail(parts, failureOf('bad_answer', '200 not_an_object'))
    readServed(body, parts)
    isCounted = false
    readUsage(body.usage, parts)
    if (isRecord(body.x_groq)) readUsage(body.x_groq.usage, parts)
    const error = errorOf(body)
    if (error !== null) return fail(parts, failureInAnswer(error))
    if (!Array.isArray(body.choices)) return
    for (let position = 0; position < body.choices.length && !over; position += 1) {
      const choice: unknown = body.choices[position]
      if (isRecord(choice)) readChoice(choice, position, parts)
    }
    if (!isCounted && parts.some(isContent)) parts.push(...follow(null, true))
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

  function choiceAt(index: number): Choice {
    const known = choices[index]
    if (known !== undefined) return known
    const choice: Choice = {
      index,
      calls: { choice: index, list: [], opened: 0, mintId },
      thinking: { place: official ? 'over' : 'maybe', closing: '', held: '' },
      reason: null,
      streamed: false,
    }
    choices[index] = choice
    return choice
  }

  /** The server's own id where it is the first of its name. A made one holds the answer's id, to differ from turn to turn. */
  function mintId(wireId: string | null): string {
    const made = () => `call_${(servedId ?? '').replaceAll(/[^A-Za-z0-9]/g, '').slice(-24)}`
    return unique(wireId, count => `${wireId ?? made()}_${count}`)
  }

  function readChoice(wire: Json, position: number, parts: AnswerPart[]) {
    const index = wholeNumber(wire.index) ?? position
    if (index > maximumIndex) return fail(parts, failureOf('bad_answer', '200 choice_index'))
    const choice = choiceAt(index)
    if (wire.usage !== undefined) readUsage(wire.usage, parts)
    if (wire.error) return fail(parts, failureInAnswer(wire.error))
    const isDelta = isRecord(wire.delta)
    const message = isDelta ? wire.delta : wire.message
    if (isRecord(message) && (isDelta || !choice.streamed)) readMessage(choice, message, !isDelta, parts)
    if (over) return
    choice.streamed ||= isDelta
    if (isRecord(wire.logprobs)) {
      const tokens = logprobsOf(wire.logprobs.content)
      if (tokens.length > 0) parts.push({ type: 'logprobs', choice: index, tokens })
    }
    const reason = wire.finish_reason
    if (isText(reason) && reason !== 'null') {
      const mapped = finishReasons.get(reason.toLowerCase().replace(/:.*$/s, '')) ?? 'stop'
      if (mapped === 'failed')
        return fail(parts, failureOf('generation_failed', `200 ${identifierOf(reason) ?? 'error'}`))
      choice.reason ??= mapped
    }
  }

  function readMessage(choice: Choice, message: Json, whole: boolean, parts: AnswerPart[]): void {
    pushReasoning(choice, reasoningOf(message), parts)
    const { content, refusal, tool_calls: calls, function_call: legacyCall } = message
    if (isText(content)) readText(choice, content, parts)
    else if (Array.isArray(content)) {
      for (const part of content) if (isRecord(part)) readContentPart(choice, part, parts)
    }
    if (isText(refusal)) parts.push({ type: 'refusal', choice: choice.index, text: refusal })
    if (Array.isArray(calls)) {
      const several = calls.length > 1
      for (const [position, call] of calls.entries()) pushCall(choice, call, whole, several ? position : null, parts)
    }
    if (isRecord(legacyCall)) pushCall(choice, { function: legacyCall }, whole, null, parts)
  }

  function pushCall(choice: Choice, wire: unknown, whole: boolean, position: number | null, parts: AnswerPart[]): void {
    if (over || !isRecord(wire)) return
    say(choice, releaseHeld(choice.thinking), parts)
    fail(parts, readCall(choice.calls, wire, whole, position, parts))
  }

  return {
    read({ name, data }) {
      const parts: AnswerPart[] = []
      if (over) return parts
      if (data.charCodeAt(0) !== openBrace) {
        const text = data.trim()
        if (text === '') return parts
        if (text === '[DONE]') {
          if (isDone()) end(parts)
          else fail(parts, failureOf('truncated', '200 done_without_finish_reason'))
          return parts
        }
      }
      const payload = parsed(data)
      if (name === 'error') fail(parts, failureInAnswer((isRecord(payload) && errorOf(payload)) || (payload ?? data)))
      // Pings and the like may hold anything; a named event is read only if it is a chunk.
      else if (name !== '' && name !== 'message' && !Array.isArray(record(payload).choices)) return parts
      else if (payload === undefined) fail(parts, failureOf('bad_answer', '200 not_json'))
      else readPayload(payload, parts)
      return parts
    },

    finish() {
      const parts: AnswerPart[] = []
      if (over) return parts
      const seen = choices.filter(choice => choice !== undefined)
      if (seen.length >= wanted && seen.every(({ reason }) => reason !== null)) end(parts)
      // Cut: what is known to be text is still handed out, an end is not.
      else for (const choice of seen) say(choice, releaseHeld(choice.thinking), parts)
      return parts
    },

    whole(body) {
      const parts: AnswerPart[] = []
      readPayload(body, parts)
      if (over) return parts
      if (choices.length === 0) fail(parts, failureOf('bad_answer', '200 no_choices'))
      else end(parts)
      return parts
    },
  }

  /** Whether `[DONE]` may be believed: a relay says it behind what was cut, too. */
  function isDone(): boolean {
    const reasons = choices.flatMap(choice => (choice === undefined ? [] : [choice.reason]))
    const isUnsaid = !official && reasons.every(reason => reason === null)
    return isUnsaid || (reasons.length > 0 && !reasons.includes(null))
  }

  function end(parts: AnswerPart[]): void {
    if (choices.length === 0) choiceAt(0)
    const seen = choices.filter(choice => choice !== undefined)
    for (const choice of seen) {
      say(choice, releaseHeld(choice.thinking), parts)
      fail(parts, endCalls(choice.calls, parts))
      if (over) return
    }
    for (const choice of seen) parts.push({ type: 'finish', choice: choice.index, reason: reasonOf(choice) })
    over = true
    parts.push({ type: 'end' })
  }
}

const openBrace = 123

function isContent({ type }: AnswerPart): boolean {
  return (
    type === 'text' || type === 'reasoning' || type === 'refusal' || type === 'tool_call' || type === 'tool_arguments'
  )
}

/** Several servers send the same text in two of the three: one is read. */
function reasoningOf({ reasoning_content: content, reasoning, reasoning_details: details }: Json): string {
  if (isText(content)) return content
  if (isText(reasoning)) return reasoning
  if (!Array.isArray(details)) return ''
  return details.map(detail => textOf(record(detail).text) || textOf(record(detail).summary)).join('')
}

function pushReasoning(choice: Choice, text: string, parts: AnswerPart[]): void {
  if (text !== '') parts.push({ type: 'reasoning', choice: choice.index, text })
}

function readContentPart(choice: Choice, part: Json, parts: AnswerPart[]): void {
  if (isText(part.text)) readText(choice, part.text, parts)
  // Mistral's thinking is itself a list of text parts; others give plain text.
  const thoughts: readonly unknown[] = Array.isArray(part.thinking) ? part.thinking : [{ text: part.thinking }]
  for (const thought of thoughts) pushReasoning(choice, textOf(record(thought).text), parts)
}

function readText(choice: Choice, text: string, parts: AnswerPart[]): void {
  if (choice.thinking.place === 'over') pushText(choice, text, parts)
  else say(choice, readThinking(choice.thinking, text), parts)
}

function say(choice: Choice, said: readonly Said[], parts: AnswerPart[]): void {
  for (const { type, text } of said) {
    if (type === 'text') pushText(choice, text, parts)
    else parts.push({ type, choice: choice.index, text })
  }
}

/** Text after a call means that the call's name is whole. */
function pushText(choice: Choice, text: string, parts: AnswerPart[]): void {
  openNamed(choice.calls, parts)
  parts.push({ type: 'text', choice: choice.index, text })
}

/** Lower case, without what Google says more after a colon. What is not here means `stop`: unknown, it is still an end. */
const finishReasons: ReadonlyMap<string, FinishReason | 'failed'> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_length', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['safety', 'content_filter'],
  ['error', 'failed'],
  ['network_error', 'failed'],
  ['abort', 'failed'],
  ['insufficient_system_resource', 'failed'],
  ['function_call_filter', 'failed'],
])

/** Servers say `stop` after tool calls, and `tool_calls` without any: what was sent decides. */
function reasonOf({ reason, calls }: Choice): FinishReason {
  if (reason === 'length' || reason === 'content_filter') return reason
  return calls.opened > 0 ? 'tool_calls' : 'stop'
}
