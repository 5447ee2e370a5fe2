import type { FinishReason, ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { googleFinishReasons } from '../../core/chat/google-wire.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { CitedText } from '../citations.ts'
import { badAnswer, providerFailure, truncated } from '../failure.ts'
import {
  findName,
  getText,
  isRecord,
  isText,
  type Json,
  maximumTokens,
  record,
  records,
  tokenCount,
  wholeNumber,
} from '../json.ts'
import { type AnswerSink, maximumIndex, type ProviderFailure, type StreamReader } from '../provider.ts'
import type { ServerSentEvent } from '../sse.ts'
import { uniqueNames } from '../tool-names.ts'
import { followUsage, reportedUsage } from '../usage.ts'
import { GoogleToolCalls } from './calls.ts'
import { addCitations, type Grounding, noGrounding, readGrounding } from './citations.ts'
import { googleBodyFailure } from './failure.ts'

/**
 * Returns the usage; null = not reported. Counts are cumulative; reasoning is separate from candidates' tokens, and
 * tokens of tools from the prompt's. Zeros are omitted on this wire: a missing candidates count is 0 before any output
 * (`answered`), and afterwards the rest of the total, or unknown if that is 0.
 */
function findGoogleUsage(metadata: unknown, answered: boolean): ReportedUsage | null {
  const counts = record(metadata)
  const prompt = tokenCount(counts.promptTokenCount)
  const told = tokenCount(counts.candidatesTokenCount)
  const reasoning = tokenCount(counts.thoughtsTokenCount) ?? 0
  const input = prompt === null ? null : prompt + (tokenCount(counts.toolUsePromptTokenCount) ?? 0)
  const total = tokenCount(counts.totalTokenCount)
  const isRest = told === null && input !== null && total !== null && total > input + reasoning
  const isNone = told === null && !isRest && !answered && counts.candidatesTokenCount === undefined
  if (isNone && input === null && counts.thoughtsTokenCount === undefined) return null
  return reportedUsage({
    input,
    output: told === null && !isNone ? null : (told ?? 0) + reasoning,
    total: told === null && !isRest ? null : total,
    cached: Math.min(tokenCount(counts.cachedContentTokenCount) ?? 0, input ?? maximumTokens),
    written: 0,
    hourWritten: 0,
    reasoning,
  })
}

/** Returns the log probabilities of a delta's tokens. */
function getGoogleLogprobs(result: unknown): readonly TokenLogprob[] {
  const { chosenCandidates, topCandidates } = record(result)
  const tops = records(topCandidates)
  return records(chosenCandidates).map((chosen, position) => ({
    ...getLogprob(chosen),
    top_logprobs: records(tops[position]?.candidates).map(getLogprob),
  }))
}

/** Bytes are not reported, and cannot be derived from a token that is half a character. */
function getLogprob({ token, logProbability }: Json) {
  return {
    token: getText(token).toWellFormed(),
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: null,
  }
}

type Choice = {
  readonly calls: GoogleToolCalls
  /** The first finish reason; later ones never replace it. */
  finish: FinishReason | null
  readonly text: CitedText
  grounding: Grounding
}

/**
 * Reads a response, streamed or complete. A stream has no terminal event: it is complete if the body ended and all `wanted`
 * choices, or the one of a blocked prompt, have a finish reason.
 */
export class GoogleReader implements StreamReader {
  private readonly choices = new Map<number, Choice>()
  private readonly unique = uniqueNames()
  private readonly follow = followUsage()
  private responseId: string | null = null
  private servedModel: string | null = null
  /** The ID and the model as the last frame wrote them. */
  private told: readonly [id: unknown, model: unknown] = [undefined, undefined]
  private emitted = false
  private isBlocked = false
  /** Output arrived, which the upstream must have counted. */
  private answered = false

  constructor(private readonly wanted = 1) {}

  read({ name, data }: ServerSentEvent, sink: AnswerSink): null {
    if (!data.startsWith('{') && (data.trim() === '' || data === '[DONE]')) return null
    const body = parseUntrustedJson(data)
    const failure = body === undefined ? badAnswer('unreadable frame') : this.take(body, sink)
    if (failure !== null) sink.fail(failure)
    else if (name === 'error') sink.fail(badAnswer('error event'))
    return null
  }

  finish(sink: AnswerSink): void {
    this.end(this.wanted, sink)
  }

  /** Valid JSON is complete, so a missing finish reason is not a truncation. */
  whole(body: unknown, sink: AnswerSink): void {
    const failure = this.take(body, sink)
    if (failure !== null) sink.fail(failure)
    else if (!this.end(null, sink)) sink.fail(badAnswer('without_candidates'))
  }

  private take(body: unknown, sink: AnswerSink): ProviderFailure | null {
    if (!Array.isArray(body)) return this.takeFrame(body, sink)
    for (const frame of body) {
      const failure = this.takeFrame(frame, sink)
      if (failure !== null) return failure
    }
    return null
  }

  private takeFrame(frame: unknown, sink: AnswerSink): ProviderFailure | null {
    if (!isRecord(frame)) return badAnswer('frame is no object')
    if (frame.error) return googleBodyFailure(frame)
    const candidates = records(frame.candidates)
    if (!this.identify(frame, sink)) return truncated('response_restarted')
    // Output of a failed generation is not emitted, so that another candidate may still serve.
    const reason = candidates.find(({ finishReason }) => failedGenerations.has(finishReason))?.finishReason
    const isFailed = reason !== undefined && !this.emitted
    let answers = false
    let failure: ProviderFailure | null = null
    for (const [position, candidate] of isFailed ? [] : candidates.entries()) {
      failure = this.readCandidate(candidate, position, sink)
      if (failure !== null) break
      answers ||= records(record(candidate.content).parts).some(isAnswer)
    }
    this.answered ||= answers
    const usage = this.follow(findGoogleUsage(frame.usageMetadata, this.answered), answers)
    if (usage !== null) sink.reportUsage(usage)
    if (failure !== null) return failure
    if (isFailed) return providerFailure('generation_failed', String(reason))
    if (isText(record(frame.promptFeedback).blockReason)) this.block()
    return null
  }

  /** Returns false for a frame of another response before this one has ended. Each has an ID, and a stream contains one. */
  private identify({ responseId, modelVersion }: Json, sink: AnswerSink): boolean {
    if (responseId === this.told[0] && modelVersion === this.told[1]) return true
    this.told = [responseId, modelVersion]
    const id = findName(responseId) ?? this.responseId
    const model = findName(modelVersion)?.replace(/^models\//, '') ?? this.servedModel
    if (this.responseId !== null && id !== this.responseId && this.isUnfinished()) return false
    if (id === this.responseId && model === this.servedModel) return true
    this.responseId = id
    this.servedModel = model
    sink.identify(id, model)
    return true
  }

  private isUnfinished(): boolean {
    return this.emitted && this.choices.values().some(({ finish }) => finish === null)
  }

  private choiceAt(index: number): Choice {
    const known = this.choices.get(index)
    if (known !== undefined) return known
    const choice: Choice = {
      calls: new GoogleToolCalls(index, given => this.mintId(given)),
      finish: null,
      text: new CitedText(index),
      grounding: noGrounding,
    }
    this.choices.set(index, choice)
    return choice
  }

  /** A blocked prompt has no candidates: the gateway creates one choice. */
  private block(): void {
    this.isBlocked = true
    if (this.choices.size === 0) this.choiceAt(0)
    for (const choice of this.choices.values()) choice.finish ??= 'content_filter'
  }

  private readCandidate(candidate: Json, position: number, sink: AnswerSink): ProviderFailure | null {
    // A zero is often omitted on this wire, so a missing index is 0.
    const told = wholeNumber(candidate.index)
    const index = told !== null && told <= maximumIndex ? told : position
    const choice = this.choiceAt(index)
    // Some models repeat the finish reason on every frame. Content without one belongs to a second response.
    const isLate = choice.finish !== null && !isText(candidate.finishReason)
    const { received } = sink
    sink.isMuted = isLate
    let failure: ProviderFailure | null = null
    for (const part of records(record(candidate.content).parts)) failure ??= this.readPart(part, index, choice, sink)
    sink.isMuted = false
    const grew = sink.received > received
    if (isLate && (grew || failure !== null)) return truncated('content_after_finish')
    if (failure !== null) return failure
    choice.grounding = readGrounding(candidate, choice.grounding)
    const tokens = candidate.logprobsResult === undefined ? [] : getGoogleLogprobs(candidate.logprobsResult)
    if (tokens.length > 0) sink.add({ type: 'logprobs', choice: index, tokens })
    if (isText(candidate.finishReason)) choice.finish ??= googleFinishReasons.get(candidate.finishReason) ?? 'stop'
    this.emitted ||= grew || tokens.length > 0
    return null
  }

  /** Reads a content part. Skips code that Google runs itself, its output, images and signatures without content. */
  private readPart(part: Json, index: number, choice: Choice, sink: AnswerSink): ProviderFailure | null {
    if (isRecord(part.functionCall)) return choice.calls.read(part.functionCall, part.thoughtSignature, sink)
    if (isText(part.text)) {
      if (part.thought === true) sink.addReasoning(index, part.text)
      else {
        choice.text.add(part.text)
        sink.addText(index, part.text)
      }
    }
    if (!isText(part.thoughtSignature) || part.text === undefined) return null
    // The signature of a text, perhaps of an empty one behind it.
    const [family, kind, data] = ['google', 'signature', part.thoughtSignature] as const
    sink.add({ type: 'reasoning_end', choice: index, family, kind, data, id: null })
    return null
  }

  /**
   * Returns the given ID if it is unique, else one derived from the response's ID, so that results match their call.
   */
  private mintId(given: unknown): string {
    const answer = (this.responseId ?? '').replace(/[^A-Za-z0-9]/g, '').slice(0, 32)
    return this.unique(findName(given), count => (answer === '' ? `call_${count}` : `call_${count}_${answer}`))
  }

  /**
   * Ends the response; false = it is not complete. `wanted` = number of choices that must have ended; null = no check.
   */
  private end(wanted: number | null, sink: AnswerSink): boolean {
    const all = [...this.choices].sort(([value], [other]) => value - other)
    const ended = all.every(([, choice]) => choice.finish !== null)
    if (all.length === 0 || (wanted !== null && !(ended && (this.isBlocked || all.length >= wanted)))) return false
    if (all.some(([, { finish, calls }]) => (finish === null || finish === 'stop') && calls.hasOpen())) {
      sink.fail(truncated('call_unfinished'))
      return true
    }
    for (const [index, choice] of all) {
      addCitations(choice.grounding, choice.text, sink)
      choice.calls.close(sink)
      sink.finish(index, getReason(choice))
    }
    sink.end()
    return true
  }
}

/** Returns true for a part that `candidatesTokenCount` includes. */
function isAnswer({ functionCall, text, thought }: Json): boolean {
  return isRecord(functionCall) ? isText(functionCall.name) : isText(text) && thought !== true
}

/** Returns the finish reason. Calls end with STOP here, so the calls decide. */
function getReason({ finish, calls }: Choice): FinishReason {
  if (finish === null || finish === 'stop') return calls.count() > 0 ? 'tool_calls' : 'stop'
  return finish
}

const failedGenerations: ReadonlySet<unknown> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
])
