import type { FinishReason, ReportedUsage, TokenLogprob } from '../../core/chat/chat-events.ts'
import { parseUntrustedJson } from '../../core/validation/untrusted-json.ts'
import { CitedText } from '../citations.ts'
import { badAnswer, failed, providerFailure, truncated } from '../failure.ts'
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
import type { AnswerPart, StreamReader } from '../provider.ts'
import { maximumIndex } from '../response-guard.ts'
import { uniqueNames } from '../tool-names.ts'
import { followUsage, reportedUsage } from '../usage.ts'
import { callReader, type GoogleToolCalls } from './calls.ts'
import { type Grounding, getCitations, noGrounding, readGrounding } from './citations.ts'
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

/** Reads a complete response. Valid JSON is complete, so a missing finish reason is not a truncation. */
export function readGoogleResponse(body: unknown): readonly AnswerPart[] {
  const reader = answerReader()
  const parts = reader.take(body)
  if (parts.at(-1)?.type === 'failure') return parts
  const rest = reader.finish(null)
  return rest.length === 0 ? [badAnswer('without_candidates')] : [...parts, ...rest]
}

/**
 * Creates a reader for a stream, which has no terminal event: it is complete if the body ended and all `wanted`
 * choices, or the one of a blocked prompt, have a finish reason.
 */
export function googleStreamReader(wanted = 1): StreamReader {
  const reader = answerReader()
  return {
    read({ name, data }) {
      if (!data.startsWith('{') && (data.trim() === '' || data === '[DONE]')) return []
      const frame = parseUntrustedJson(data)
      if (frame === undefined) return [badAnswer('unreadable frame')]
      const parts = reader.take(frame)
      if (name !== 'error' || parts.at(-1)?.type === 'failure') return parts
      return [badAnswer('error event')]
    },
    finish: () => reader.finish(wanted),
  }
}

type Choice = {
  readonly calls: GoogleToolCalls
  /** The first finish reason; later ones never replace it. */
  finish: FinishReason | null
  readonly text: CitedText
  grounding: Grounding
}

/** Shared by streamed and complete responses: converts response objects to parts. */
function answerReader() {
  const choices = new Map<number, Choice>()
  const unique = uniqueNames()
  const follow = followUsage()
  let responseId: string | null = null
  let servedModel: string | null = null
  let emitted = false
  let isBlocked = false
  /** Output arrived, which the upstream must have counted. */
  let answered = false

  const take = (body: unknown): readonly AnswerPart[] => {
    const parts: AnswerPart[] = []
    for (const frame of Array.isArray(body) ? body : [body]) {
      if (parts.at(-1)?.type === 'failure') break
      parts.push(...takeFrame(frame))
    }
    return parts
  }

  const takeFrame = (frame: unknown): readonly AnswerPart[] => {
    if (!isRecord(frame)) return [badAnswer('frame is no object')]
    if (frame.error) return [failed(googleBodyFailure(frame))]
    const candidates = records(frame.candidates)
    if (isOtherResponse(frame) && isUnfinished()) return [truncated('response_restarted')]
    const parts = served(frame)
    // Output of a failed generation is not emitted, so that another candidate may still serve.
    const reason = candidates.map(({ finishReason }) => finishReason).find(isFailedGeneration)
    const isFailed = reason !== undefined && !emitted
    const content = isFailed ? [] : untilFailure(candidates.flatMap(readCandidate))
    const answers = content.some(isAnswer)
    answered ||= answers
    parts.push(...follow(findGoogleUsage(frame.usageMetadata, answered), answers), ...content)
    if (content.at(-1)?.type === 'failure') return parts
    if (isFailed) return [...parts, failed(providerFailure('generation_failed', reason))]
    if (isText(record(frame.promptFeedback).blockReason)) block()
    return parts
  }

  const served = (frame: Json): AnswerPart[] => {
    const id = findName(frame.responseId) ?? responseId
    const model = findName(frame.modelVersion)?.replace(/^models\//, '') ?? servedModel
    if (id === responseId && model === servedModel) return []
    responseId = id
    servedModel = model
    return [{ type: 'served', id, model }]
  }

  /** Each response has an ID, and a stream contains one response. */
  const isOtherResponse = (frame: Json) => {
    const id = findName(frame.responseId)
    return id !== null && responseId !== null && id !== responseId
  }
  const isUnfinished = () => emitted && choices.values().some(({ finish }) => finish === null)

  const choiceAt = (index: number): Choice => {
    const known = choices.get(index)
    if (known !== undefined) return known
    const choice: Choice = {
      calls: callReader(index, mintId),
      finish: null,
      text: new CitedText(index),
      grounding: noGrounding,
    }
    choices.set(index, choice)
    return choice
  }

  /** A blocked prompt has no candidates: the gateway creates one choice. */
  const block = () => {
    isBlocked = true
    if (choices.size === 0) choiceAt(0)
    for (const choice of choices.values()) choice.finish ??= 'content_filter'
  }

  const readCandidate = (candidate: Json, position: number): readonly AnswerPart[] => {
    // A zero is often omitted on this wire, so a missing index is 0.
    const told = wholeNumber(candidate.index)
    const index = told !== null && told <= maximumIndex ? told : position
    const choice = choiceAt(index)
    const parts = records(record(candidate.content).parts).flatMap(part => readPart(part, index, choice))
    // Some models repeat the finish reason on every frame. Content without one belongs to a second response.
    if (choice.finish !== null && !isText(candidate.finishReason) && parts.length > 0)
      return [truncated('content_after_finish')]
    choice.grounding = readGrounding(candidate, choice.grounding)
    const tokens = getGoogleLogprobs(candidate.logprobsResult)
    if (tokens.length > 0) parts.push({ type: 'logprobs', choice: index, tokens })
    if (isText(candidate.finishReason)) choice.finish ??= finishReasons.get(candidate.finishReason) ?? 'stop'
    emitted ||= parts.length > 0
    return parts
  }

  /** Reads a content part. Skips code that Google runs itself, its output, images and signatures without content. */
  const readPart = (part: Json, index: number, choice: Choice): readonly AnswerPart[] => {
    if (isRecord(part.functionCall)) return choice.calls.read(part.functionCall, part.thoughtSignature)
    if (isText(part.text) && part.thought !== true) choice.text.add(part.text)
    const said: readonly AnswerPart[] = isText(part.text)
      ? [{ type: part.thought === true ? 'reasoning' : 'text', choice: index, text: part.text }]
      : []
    if (!isText(part.thoughtSignature) || part.text === undefined) return said
    // The signature of a text, perhaps of an empty one behind it.
    const [family, kind, data] = ['google', 'signature', part.thoughtSignature] as const
    return [...said, { type: 'reasoning_end', choice: index, family, kind, data, id: null }]
  }

  /**
   * Returns the given ID if it is unique, else one derived from the response's ID, so that results match their call.
   */
  const mintId = (given: unknown): string => {
    const answer = (responseId ?? '').replace(/[^A-Za-z0-9]/g, '').slice(0, 32)
    return unique(findName(given), count => (answer === '' ? `call_${count}` : `call_${count}_${answer}`))
  }

  /** Ends the response. `wanted` = number of choices that must have ended; null = no check. */
  const finish = (wanted: number | null): readonly AnswerPart[] => {
    const all = [...choices].sort(([value], [other]) => value - other)
    const ended = all.every(([, choice]) => choice.finish !== null)
    const whole = wanted === null || (ended && (isBlocked || all.length >= wanted))
    if (all.length === 0 || !whole) return []
    if (all.some(([, { finish, calls }]) => (finish === null || finish === 'stop') && calls.hasOpen()))
      return [truncated('call_unfinished')]
    const ends = all.flatMap(([index, choice]): AnswerPart[] => [
      ...getCitations(choice.grounding, choice.text),
      ...choice.calls.close(),
      { type: 'finish', choice: index, reason: getReason(choice) },
    ])
    return [...ends, { type: 'end' }]
  }

  return { take, finish }
}

function untilFailure(parts: readonly AnswerPart[]): readonly AnswerPart[] {
  const at = parts.findIndex(({ type }) => type === 'failure')
  return at === -1 ? parts : parts.slice(0, at + 1)
}

/** Returns true for parts that `candidatesTokenCount` includes. */
function isAnswer({ type }: AnswerPart): boolean {
  return type === 'text' || type === 'tool_call'
}

/** Returns the finish reason. Calls end with STOP here, so the calls decide. */
function getReason({ finish, calls }: Choice): FinishReason {
  if (finish === null || finish === 'stop') return calls.count() > 0 ? 'tool_calls' : 'stop'
  return finish
}

/** Others mean `stop`. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ['MAX_TOKENS', 'length'],
  ['CONTINUATION', 'length'],
  ['SAFETY', 'content_filter'],
  ['RECITATION', 'content_filter'],
  ['BLOCKLIST', 'content_filter'],
  ['PROHIBITED_CONTENT', 'content_filter'],
  ['SPII', 'content_filter'],
  ['LANGUAGE', 'content_filter'],
  ['MODEL_ARMOR', 'content_filter'],
  ['IMAGE_SAFETY', 'content_filter'],
  ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter'],
])

const failedGenerations = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
] as const

function isFailedGeneration(reason: unknown): reason is (typeof failedGenerations)[number] {
  return failedGenerations.some(failed => failed === reason)
}
