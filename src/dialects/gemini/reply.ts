/**
 * Writes Gemini responses: one object, server-sent events, or a JSON array that grows. The finish reason follows only `done`: a
 * truncated or unsettled response must not look complete.
 */
import type { ChatEvent, ResponseStart, ResponseSummary } from '../../core/chat/chat-events.ts'
import type { CollectedResponse } from '../../core/chat/response-collector.ts'
import { shownCost } from '../../core/usage/money.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
import type { Fields } from '../foreign-objects.ts'
import { CandidateWriter, type GeminiStyle } from './candidate.ts'
import { googleErrorBody } from './errors.ts'

function usageMetadata(receipt: ResponseSummary) {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens } = receipt.usage
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: Math.max(0, outputTokens - reasoningTokens),
    totalTokenCount: inputTokens + outputTokens,
    ...(cachedInputTokens === 0 ? {} : { cachedContentTokenCount: cachedInputTokens }),
    ...(reasoningTokens === 0 ? {} : { thoughtsTokenCount: reasoningTokens }),
    ...shownCost(receipt),
  }
}

/** Writes the frames of one response. */
class ResponseFrames {
  private readonly candidates = new Map<number, CandidateWriter>()
  private opening: ResponseStart | null = null

  constructor(private readonly style: GeminiStyle) {}

  /** Returns the objects of a batch, at most two: the parts since the last batch, and the end. */
  add(batch: readonly ChatEvent[]): object[] {
    let receipt: ResponseSummary | null = null
    for (const event of batch)
      if (event.type === 'opened') this.opening = event.opening
      else if (event.type === 'done') receipt = event.receipt
      else if (event.type === 'finish') this.at(event.choice).finish = event
      else if (event.type === 'filtered') this.at(event.choice).filtered = event
      else this.at(event.choice).add(event)
    if (receipt !== null) return [this.end(receipt)]
    const arrived = [...this.candidates].flatMap(([index, candidate]) => candidate.frame(index) ?? [])
    return arrived.length === 0 ? [] : [this.wrapped(arrived)]
  }

  private end(receipt: ResponseSummary): object {
    if (this.candidates.size === 0) this.at(0)
    const candidates = [...this.candidates].sort(([index], [other]) => index - other)
    return {
      ...this.wrapped(candidates.map(([index, candidate]) => candidate.end(index))),
      usageMetadata: usageMetadata(receipt),
    }
  }

  private wrapped(candidates: readonly object[]) {
    const { askedName, model = '', requestId } = this.opening ?? {}
    return { candidates, modelVersion: askedName ?? model, responseId: requestId }
  }

  private at(index: number): CandidateWriter {
    const known = this.candidates.get(index)
    if (known !== undefined) return known
    const candidate = new CandidateWriter(this.style, this.opening?.provider ?? '')
    this.candidates.set(index, candidate)
    return candidate
  }
}

/** Returns the body of a response that is not streamed. */
export function geminiBody(
  { choices, events }: CollectedResponse,
  opening: ResponseStart,
  receipt: ResponseSummary,
  style: GeminiStyle,
): Fields {
  const ends = choices.flatMap(({ index: choice, finishReason, upstreamReason, filtered }): ChatEvent[] => [
    ...(filtered === undefined ? [] : [{ type: 'filtered' as const, choice, ...filtered }]),
    {
      type: 'finish',
      choice,
      reason: finishReason ?? 'stop',
      ...(upstreamReason === undefined ? {} : { upstreamReason }),
    },
  ])
  const [body = {}] = new ResponseFrames(style).add([
    { type: 'opened', opening },
    ...events,
    ...ends,
    { type: 'done', receipt },
  ])
  return { ...body }
}

/** Returns the format of one streamed response, as server-sent events. */
export function geminiStream(style: GeminiStyle, requestId: string): StreamFormat {
  const frames = new ResponseFrames(style)
  const framed = (object: object) => `data: ${JSON.stringify(object)}\r\n\r\n`
  return {
    frame: batch => frames.add(batch).map(framed).join(''),
    failure: error => framed(googleErrorBody(error, requestId)),
    // Google's client for Python reads a comment as JSON.
    keepAlive: () => '\r\n',
  }
}

/** Returns the format of one streamed response, as a JSON array whose last element has the finish reasons, or the error. */
export function geminiArray(style: GeminiStyle, requestId: string): StreamFormat {
  const frames = new ResponseFrames(style)
  let before = '['
  const element = (object: object) => {
    const text = before + JSON.stringify(object)
    before = ',\r\n'
    return text
  }
  return {
    contentType: 'application/json',
    frame: batch => frames.add(batch).map(element).join('') + (batch.at(-1)?.type === 'done' ? ']' : ''),
    failure: error => `${element(googleErrorBody(error, requestId))}]`,
    keepAlive: () => '\r\n',
  }
}
