/**
 * Writes Gemini responses: one object, server-sent events, or a JSON array that grows. The finish reason follows only `done`: a
 * truncated or unsettled response must not look complete.
 */
import type {
  ResponsePart,
  ResponseSink,
  ResponseStart,
  ResponseSummary,
  TextChannel,
} from '../../core/chat/chat-events.ts'
import type { BodyWriter } from '../../core/chat/response-collector.ts'
import { shownCost } from '../../core/usage/money.ts'
import type { StreamFormat } from '../../http/sse-response.ts'
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

/** Writes the objects of one response. */
class ResponseFrames implements ResponseSink {
  private readonly candidates = new Map<number, CandidateWriter>()
  private opening: ResponseStart | null = null
  private last: object | null = null

  constructor(private readonly style: GeminiStyle) {}

  text(channel: TextChannel, text: string): void {
    this.at(channel.choice).text(channel, text)
  }

  add(part: ResponsePart): void {
    if (part.type === 'opened') this.opening = part.opening
    else if (part.type === 'done') this.last = this.end(part.receipt)
    else this.at(part.choice).add(part)
  }

  /** Returns the object with what has arrived since the last one; the last has the end. Null = nothing. */
  take(): object | null {
    if (this.last !== null) return this.last
    const arrived = [...this.candidates].flatMap(([index, candidate]) => candidate.frame(index) ?? [])
    return arrived.length === 0 ? null : this.wrapped(arrived)
  }

  hasEnded(): boolean {
    return this.last !== null
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

/** Returns the writer of one response that is not streamed. */
export function geminiBody(style: GeminiStyle): BodyWriter {
  const frames = new ResponseFrames(style)
  return { ...toSink(frames), body: () => frames.take() ?? {} }
}

/** Returns the format of one streamed response, as server-sent events. */
export function geminiStream(style: GeminiStyle, requestId: string): StreamFormat {
  const frames = new ResponseFrames(style)
  const framed = (object: object | null) => (object === null ? '' : `data: ${JSON.stringify(object)}\r\n\r\n`)
  return {
    ...toSink(frames),
    take: () => framed(frames.take()),
    failure: error => framed(googleErrorBody(error, requestId)),
    // Google's client for Python reads a comment as JSON.
    keepAlive: () => '\r\n',
  }
}

/** Returns the format of one streamed response, as a JSON array whose last element has the finish reasons, or the error. */
export function geminiArray(style: GeminiStyle, requestId: string): StreamFormat {
  const frames = new ResponseFrames(style)
  let before = '['
  const element = (object: object | null) => {
    if (object === null) return ''
    const text = before + JSON.stringify(object)
    before = ',\r\n'
    return text
  }
  return {
    contentType: 'application/json',
    ...toSink(frames),
    take: () => element(frames.take()) + (frames.hasEnded() ? ']' : ''),
    failure: error => `${element(googleErrorBody(error, requestId))}]`,
    keepAlive: () => '\r\n',
  }
}

const toSink = (frames: ResponseFrames): ResponseSink => ({
  text: (channel, text) => frames.text(channel, text),
  add: part => frames.add(part),
})
