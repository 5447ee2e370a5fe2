import type { FinishReason } from '../../core/chat/chat-events.ts'
import type { WebSource } from '../../core/chat/web-sources.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { failed, findIdentifier, providerFailure, truncated } from '../failure.ts'
import { getText, isRecord, isText, type Json, record } from '../json.ts'
import type { AnswerPart, ProviderFailure } from '../provider.ts'
import { type Calls, endCalls, openNamed, readCall } from './calls.ts'
import {
  type ChoiceCitations,
  noteAnnotations,
  noteRemoved,
  noteText,
  releaseCitations,
  startCitations,
} from './citations.ts'
import { failureInAnswer } from './failure.ts'
import {
  addDetails,
  type ReasoningDetails,
  type ReasoningText,
  readThinking,
  releaseDetails,
  releaseHeld,
  type Thinking,
} from './reasoning.ts'
import { getLogprobs } from './usage.ts'

/** State of one choice of a response. */
export type Choice = {
  readonly index: number
  readonly calls: Calls
  readonly thinking: Thinking
  readonly details: ReasoningDetails
  readonly citations: ChoiceCitations
  /** The first finish reason. */
  reason: FinishReason | null
  /** The stop sequence that ended it; null = one without a name, undefined = none. */
  stopSequence: string | null | undefined
  /** Parts arrived in `delta`: a complete `message` beside them repeats what was read. */
  streamed: boolean
}

/**
 * Creates an empty choice. `official` = OpenAI's own models, which never write reasoning into their text. `sources` = those of the
 * response, which may still arrive.
 */
export function startChoice(
  index: number,
  official: boolean,
  sources: readonly WebSource[],
  mintId: Calls['mintId'],
): Choice {
  return {
    index,
    calls: { choice: index, list: [], opened: 0, mintId },
    thinking: { place: official ? 'over' : 'maybe', closing: '', held: '' },
    details: [],
    citations: startCitations(index, sources),
    reason: null,
    stopSequence: undefined,
    streamed: false,
  }
}

/**
 * Reads a payload's part of a choice and returns true if it contained content. Content after the finish reason belongs
 * to a second response, unless the server repeats the finish reason on every chunk.
 */
export function readChoice(choice: Choice, wire: Json, parts: AnswerPart[]): boolean {
  if (wire.error) return fails(failed(failureInAnswer(wire.error)), parts)
  const isDelta = isRecord(wire.delta)
  const message = isDelta ? wire.delta : wire.message
  const reason = wire.finish_reason
  let grew = false
  if (isRecord(message) && (isDelta || !choice.streamed)) {
    const isLate = choice.reason !== null && !isText(reason)
    grew = hasGrown(choice, message, !isDelta, isLate ? [] : parts)
    if (grew && isLate) return fails(truncated('content_after_finish'), parts)
  }
  choice.streamed ||= isDelta
  if (isRecord(wire.logprobs)) {
    const tokens = getLogprobs(wire.logprobs.content)
    if (tokens.length > 0) parts.push({ type: 'logprobs', choice: choice.index, tokens })
  }
  if (!isText(reason) || reason === 'null') return grew
  const mapped = finishReasons.get(reason.toLowerCase().replace(whatGoogleAdds, '')) ?? 'stop'
  if (choice.reason === null) choice.stopSequence = stopSequenceIn(wire)
  if (mapped !== 'failed') choice.reason ??= mapped
  else parts.push(failed(providerFailure('generation_failed', `200 ${findIdentifier(reason) ?? 'error'}`)))
  return grew
}

/**
 * Returns the stop sequence that a server names: vLLM in `stop_reason` and SGLang in `matched_stop`, where a number is a token. Others
 * only report that there was one: Hugging Face's, and OpenRouter for Claude.
 */
function stopSequenceIn(wire: Json): string | null | undefined {
  for (const named of [wire.stop_reason, wire.matched_stop]) if (isText(named)) return named
  return [wire.finish_reason, wire.native_finish_reason].includes('stop_sequence') ? null : undefined
}

function fails(failure: AnswerPart, parts: AnswerPart[]): false {
  parts.push(failure)
  return false
}

/** Reads a message or a delta; returns true if it contained part of the output. */
function hasGrown(choice: Choice, message: Json, whole: boolean, parts: AnswerPart[]): boolean {
  const { length } = parts
  const calls = choice.calls.list.length
  readMessage(choice, message, whole, parts)
  return parts.length > length || choice.calls.list.length > calls
}

/** Emits held-back text, which turned out not to be a tag. */
export function releaseText(choice: Choice, parts: AnswerPart[]): void {
  say(choice, releaseHeld(choice.thinking), parts)
}

/** Ends a choice. */
export function endChoice(choice: Choice, parts: AnswerPart[]): void {
  releaseText(choice, parts)
  releaseCitations(choice.citations, true, parts)
  releaseDetails(choice.details, choice.index, parts)
  addFailure(endCalls(choice.calls, parts), parts)
}

/** Returns true if all calls are complete: truncated arguments reveal a truncation without a finish reason. */
export function hasWholeCalls({ calls }: Choice): boolean {
  return calls.list.every(({ text }) => text === '' || parseUntrustedJson(text) !== undefined)
}

/**
 * Returns the finish reason. Servers send `stop` after tool calls and `tool_calls` without any, so the calls decide.
 */
export function getReason({ reason, calls }: Choice): FinishReason {
  if (reason === 'length' || reason === 'content_filter') return reason
  return calls.opened > 0 ? 'tool_calls' : 'stop'
}

function addFailure(failure: ProviderFailure | null, parts: AnswerPart[]): void {
  if (failure !== null) parts.push(failed(failure))
}

function readMessage(choice: Choice, message: Json, whole: boolean, parts: AnswerPart[]): void {
  pushReasoning(choice, getReasoning(message), parts)
  addDetails(choice.details, message.reasoning_details)
  const { content, refusal, tool_calls: calls, function_call: legacyCall } = message
  if (isText(content)) readText(choice, content, parts)
  else if (Array.isArray(content)) {
    for (const part of content) if (isRecord(part)) readContentPart(choice, part, parts)
  }
  noteAnnotations(choice.citations, message.annotations)
  if (isText(refusal)) parts.push({ type: 'refusal', choice: choice.index, text: refusal })
  if (Array.isArray(calls)) {
    const several = calls.length > 1
    for (const [position, call] of calls.entries()) pushCall(choice, call, whole, several ? position : null, parts)
  }
  // Hugging Face's server up to version 3.
  else if (isRecord(calls)) pushCall(choice, calls, whole, null, parts)
  if (isRecord(legacyCall)) pushCall(choice, { function: legacyCall }, whole, null, parts)
}

function pushCall(choice: Choice, wire: unknown, whole: boolean, position: number | null, parts: AnswerPart[]): void {
  if (!isRecord(wire)) return
  releaseText(choice, parts)
  releaseCitations(choice.citations, false, parts)
  releaseDetails(choice.details, choice.index, parts)
  addFailure(readCall(choice.calls, wire, whole, position, parts), parts)
}

/** Returns the reasoning text. Several servers send the same text in two of the three fields, so one is read. */
function getReasoning({ reasoning_content: content, reasoning, reasoning_details: details }: Json): string {
  if (isText(content)) return content
  if (isText(reasoning)) return reasoning
  if (!Array.isArray(details)) return ''
  return details.map(detail => getText(record(detail).text) || getText(record(detail).summary)).join('')
}

function pushReasoning(choice: Choice, text: string, parts: AnswerPart[]): void {
  if (text !== '') parts.push({ type: 'reasoning', choice: choice.index, text })
}

function readContentPart(choice: Choice, part: Json, parts: AnswerPart[]): void {
  if (isText(part.text)) readText(choice, part.text, parts)
  // Mistral's reasoning is a list of text parts, Databricks' a summary of them; others send plain text.
  const list = [part.thinking, part.summary].find(Array.isArray)
  const thoughts: readonly unknown[] = list ?? [{ text: part.thinking }]
  for (const thought of thoughts) pushReasoning(choice, getText(record(thought).text), parts)
}

function readText(choice: Choice, text: string, parts: AnswerPart[]): void {
  if (choice.thinking.place === 'over') pushText(choice, text, false, parts)
  else {
    noteRemoved(choice.citations, text)
    say(choice, readThinking(choice.thinking, text), parts)
  }
}

function say(choice: Choice, said: readonly ReasoningText[], parts: AnswerPart[]): void {
  for (const { type, text } of said) {
    if (type === 'text') pushText(choice, text, true, parts)
    else parts.push({ type, choice: choice.index, text })
  }
}

/** Adds text. Text after a call means that the call's name is complete. */
function pushText(choice: Choice, text: string, wasHeld: boolean, parts: AnswerPart[]): void {
  openNamed(choice.calls, parts)
  releaseDetails(choice.details, choice.index, parts)
  noteText(choice.citations, text, wasHeld)
  parts.push({ type: 'text', choice: choice.index, text })
}

const whatGoogleAdds = /:.*$/s

/**
 * In lower case, without Google's explanation after a colon. Unknown values mean `stop`, since they are still an end.
 */
const finishReasons: ReadonlyMap<string, FinishReason | 'failed'> = new Map([
  ['length', 'length'],
  ['max_tokens', 'length'],
  ['max_output_tokens', 'length'],
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_calls', 'tool_calls'],
  ['tool_call', 'tool_calls'],
  ['tool_use', 'tool_calls'],
  ['function_call', 'tool_calls'],
  ['content_filter', 'content_filter'],
  ['sensitive', 'content_filter'],
  ['safety', 'content_filter'],
  ['recitation', 'content_filter'],
  ['prohibited_content', 'content_filter'],
  ['refusal', 'content_filter'],
  ['guardrail_intervened', 'content_filter'],
  ['error', 'failed'],
  ['network_error', 'failed'],
  ['abort', 'failed'],
  ['insufficient_system_resource', 'failed'],
  ['function_call_filter', 'failed'],
])
