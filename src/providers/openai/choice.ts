import type { FinishReason } from '../../core/chat/chat-events.ts'
import type { WebSource } from '../../core/chat/web-sources.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { findIdentifier, providerFailure, truncated } from '../failure.ts'
import { getText, isRecord, isText, type Json, record } from '../json.ts'
import type { AnswerSink, ProviderFailure } from '../provider.ts'
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
 * Reads a payload's part of a choice and returns true if it contained part of the output. That is truncated where it belongs to a
 * second response: if `isOther`, and after the finish reason, unless the server repeats that on every chunk.
 */
export function readChoice(choice: Choice, wire: Json, isOther: boolean, sink: AnswerSink): boolean {
  if (wire.error) {
    sink.fail(failureInAnswer(wire.error))
    return false
  }
  const isDelta = isRecord(wire.delta)
  const message = isDelta ? wire.delta : wire.message
  const reason = wire.finish_reason
  let grew = false
  if (isRecord(message) && (isDelta || !choice.streamed)) {
    const isLate = choice.reason !== null && !isText(reason)
    const { received } = sink
    const calls = choice.calls.list.length
    sink.isMuted = isLate || isOther
    readMessage(choice, message, !isDelta, sink)
    sink.isMuted = false
    grew = sink.received > received || choice.calls.list.length > calls
    if (grew && (isLate || isOther)) {
      sink.fail(truncated(isLate ? 'content_after_finish' : 'response_restarted'))
      return false
    }
  }
  choice.streamed ||= isDelta
  if (isRecord(wire.logprobs)) {
    const tokens = getLogprobs(wire.logprobs.content)
    if (tokens.length > 0) sink.add({ type: 'logprobs', choice: choice.index, tokens })
  }
  if (!isText(reason) || reason === 'null') return grew
  const mapped = finishReasons.get(reason.toLowerCase().replace(whatGoogleAdds, '')) ?? 'stop'
  if (choice.reason === null) choice.stopSequence = stopSequenceIn(wire)
  if (mapped !== 'failed') choice.reason ??= mapped
  else sink.fail(providerFailure('generation_failed', `200 ${findIdentifier(reason) ?? 'error'}`))
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

/** Emits held-back text, which turned out not to be a tag. */
function releaseText(choice: Choice, sink: AnswerSink): void {
  say(choice, releaseHeld(choice.thinking), sink)
}

/** Ends a choice. */
export function endChoice(choice: Choice, sink: AnswerSink): void {
  releaseText(choice, sink)
  releaseCitations(choice.citations, true, sink)
  releaseDetails(choice.details, choice.index, sink)
  addFailure(endCalls(choice.calls, sink), sink)
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

function addFailure(failure: ProviderFailure | null, sink: AnswerSink): void {
  if (failure !== null) sink.fail(failure)
}

function readMessage(choice: Choice, message: Json, whole: boolean, sink: AnswerSink): void {
  pushReasoning(choice, getReasoning(message), sink)
  addDetails(choice.details, message.reasoning_details)
  const { content, refusal, tool_calls: calls, function_call: legacyCall } = message
  if (isText(content)) readText(choice, content, sink)
  else if (Array.isArray(content)) {
    for (const part of content) if (isRecord(part)) readContentPart(choice, part, sink)
  }
  noteAnnotations(choice.citations, message.annotations)
  if (isText(refusal)) sink.addRefusal(choice.index, refusal)
  if (Array.isArray(calls)) {
    const several = calls.length > 1
    for (const [position, call] of calls.entries()) pushCall(choice, call, whole, several ? position : null, sink)
  }
  // Hugging Face's server up to version 3.
  else if (isRecord(calls)) pushCall(choice, calls, whole, null, sink)
  if (isRecord(legacyCall)) pushCall(choice, { function: legacyCall }, whole, null, sink)
}

function pushCall(choice: Choice, wire: unknown, whole: boolean, position: number | null, sink: AnswerSink): void {
  if (!isRecord(wire)) return
  releaseText(choice, sink)
  releaseCitations(choice.citations, false, sink)
  releaseDetails(choice.details, choice.index, sink)
  addFailure(readCall(choice.calls, wire, whole, position, sink), sink)
}

/** Returns the reasoning text. Several servers send the same text in two of the three fields, so one is read. */
function getReasoning({ reasoning_content: content, reasoning, reasoning_details: details }: Json): string {
  if (isText(content)) return content
  if (isText(reasoning)) return reasoning
  if (!Array.isArray(details)) return ''
  return details.map(detail => getText(record(detail).text) || getText(record(detail).summary)).join('')
}

function pushReasoning(choice: Choice, text: string, sink: AnswerSink): void {
  if (text !== '') sink.addReasoning(choice.index, text)
}

function readContentPart(choice: Choice, part: Json, sink: AnswerSink): void {
  if (isText(part.text)) readText(choice, part.text, sink)
  // Mistral's reasoning is a list of text parts, Databricks' a summary of them; others send plain text.
  const list = [part.thinking, part.summary].find(Array.isArray)
  const thoughts: readonly unknown[] = list ?? [{ text: part.thinking }]
  for (const thought of thoughts) pushReasoning(choice, getText(record(thought).text), sink)
}

function readText(choice: Choice, text: string, sink: AnswerSink): void {
  if (choice.thinking.place === 'over') pushText(choice, text, false, sink)
  else {
    noteRemoved(choice.citations, text)
    say(choice, readThinking(choice.thinking, text), sink)
  }
}

function say(choice: Choice, said: readonly ReasoningText[], sink: AnswerSink): void {
  for (const { type, text } of said) {
    if (type === 'text') pushText(choice, text, true, sink)
    else sink.addReasoning(choice.index, text)
  }
}

/** Adds text. Text after a call means that the call's name is complete. */
function pushText(choice: Choice, text: string, wasHeld: boolean, sink: AnswerSink): void {
  openNamed(choice.calls, sink)
  if (choice.details.length > 0) releaseDetails(choice.details, choice.index, sink)
  noteText(choice.citations, text, wasHeld)
  sink.addText(choice.index, text)
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
