/** One attempt while it is read: decides which output may be sent and when, and writes the checkpoints. */
import type { AttemptOutcome } from '../core/chat/attempts.ts'
import type { Built, ResponseSink, ResponseStart, TypedPart } from '../core/chat/chat-events.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import { type Catalog, fullName } from '../core/models/models.ts'
import { describeReceiver } from '../core/policy/constraints.ts'
import type { Reservation } from '../limits/meter.ts'
import type { KeyClaim } from '../providers/keys/key-pool.ts'
import type { ProviderFailure } from '../providers/provider.ts'
import type { ReceivedAnswer } from '../providers/received-answer.ts'
import { estimateTokens, likelyInputTokens } from '../text/tokens/tokens.ts'
import type { AttemptDeps, OpenAttempt } from './attempt.ts'
import { upstreamFailure } from './body-reader.ts'
import type { Seam } from './continuation.ts'
import type { Prepared } from './enrich.ts'
import type { AdmittedRequest, Progress } from './progress.ts'
import { type Candidate, findVia } from './routing/candidate.ts'
import { findReceiver } from './routing/constrained.ts'
import { requestedModel } from './routing/named-model.ts'
import { servedModel } from './settled-cost.ts'
import { isHeld, type UpstreamResponse } from './upstream-response.ts'

/** Maximum characters per token of the output cap. An upstream that exceeds it ignores the cap and is aborted. */
const maximumCharactersPerToken = 16

/** Search results and fetched pages are no output under the cap. As much as a JSON response may have. */
const maximumItemCharacters = 8 * 1_048_576

const checkpointEveryMs = 1000
/** The first checkpoint with content is due early: before it, only the request is known. */
const firstCheckpointMs = 250
/** Usually 256 tokens of text. */
const checkpointEveryCharacters = 1024

/** A request that is ready to be sent. */
export type CallRequest = AdmittedRequest & {
  readonly prepared: Prepared
  /** Kinds of detected secrets in the prompt. */
  readonly secrets: readonly string[]
  readonly signal: RequestAbortSignal
  /** Writes a checkpoint of the usage so far. */
  readonly checkpoint: () => void
}

/** One host of a model and one of its keys, with what an attempt on it holds until its end. */
export type Way = {
  readonly candidate: Candidate
  readonly reservation: Reservation
  /** Null = the host has one credential. */
  readonly claim: KeyClaim | null
  /** Ticket of the retry budget. */
  readonly ticket: { end(): void }
}

/** What an attempt needs of the loop. */
type AttemptState = {
  readonly deps: Pick<AttemptDeps, 'clock'> & { readonly catalog: Pick<Catalog, 'resolve'> }
  readonly request: CallRequest
  readonly progress: Progress
}

/** A class, because creating closures per request costs time. */
export class AttemptRun {
  readonly way: Way
  readonly attempt: OpenAttempt
  readonly response: UpstreamResponse
  /** Whether the request asked the upstream to stream. */
  readonly stream: boolean
  /** Joins the output to the text that it continues; null = it is the first. */
  readonly seam: Seam | null
  /** Ends the probe of an open circuit without an outcome; null = the attempt is not a probe. */
  readonly endProbe: (() => void) | null
  /** Content was sent to the client, so no other candidate can answer. */
  isCommitted = false
  /** Begins the response; null = it has begun, or nothing was sent. */
  private opening: ResponseStart | null = null
  private readonly maximumCharacters: number
  private checkpointAt: number
  private checkpointLength = 0

  constructor(
    private readonly state: AttemptState,
    outputCap: number,
    begun: Pick<AttemptRun, 'way' | 'attempt' | 'response' | 'stream' | 'seam' | 'endProbe'>,
  ) {
    this.way = begun.way
    this.attempt = begun.attempt
    this.response = begun.response
    this.stream = begun.stream
    this.seam = begun.seam
    this.endProbe = begun.endProbe
    this.maximumCharacters = outputCap * state.request.prepared.request.choices * maximumCharactersPerToken + 4096
    this.checkpointAt = begun.response.startedAt + firstCheckpointMs - checkpointEveryMs
  }

  /** Notes what arrived. */
  add(): void {
    const { attempt, response } = this
    const { request } = this.state.request.prepared
    if (request.embedding === undefined) this.noteUsage(attempt.arrivedAt)
    else this.state.request.checkpoint()
    if (response.hasContent && response.firstContentAt === null) {
      response.firstContentAt = attempt.arrivedAt
      attempt.contentArrived()
    }
    if (response.text.length > this.maximumCharacters || response.itemCharacters > maximumItemCharacters)
      response.failure ??= endless
  }

  /** Whether what arrived may be sent now. A JSON client receives only a complete output. */
  maySend(): boolean {
    // A failure in the same read as the first content was not sent yet, so the request can still fall back.
    return this.isCommitted || (this.state.request.prepared.request.stream !== null && this.hasServed())
  }

  /** Notes that the attempt serves. */
  commit(): void {
    if (this.isCommitted) return
    this.isCommitted = true
    if (this.seam === null) {
      this.opening = this.opened()
      return
    }
    this.note('served', 200)
    const model = fullName(servedModel(this.state.deps.catalog, this.response))
    this.state.progress.continued.push({ model, at: this.seam.at() })
  }

  /** Passes on what arrived. What only repeats the text before it is nothing to the client. */
  send(sink: ResponseSink): void {
    const { response, seam, opening } = this
    if (opening !== null) sink.add({ type: 'opened', opening })
    this.opening = null
    if (seam === null) response.release(sink)
    else seam.join(response, sink, this.failure() === null)
    if (seam?.hasSent()) this.commit()
  }

  /** Whether content that may be sent has arrived without a failure. */
  hasServed(): boolean {
    return this.response.hasContent && this.response.failure === null && !isHeld(this.response)
  }

  /** Ends the upstream call and releases the ticket and the key. Always called. */
  close(): void {
    this.attempt.close(this.response.ended && this.response.failure === null)
    this.way.ticket.end()
    // The report of an outcome follows in the same turn, if there is one.
    this.endProbe?.()
    const { failure } = this.response
    this.way.claim?.settle(this.drawnTokens(), failure && { ...failure, status: this.attempt.status })
  }

  /** Tokens that count against the quota; null = unknown, and the estimate stays. A refused request draws none. */
  private drawnTokens(): number | null {
    const { failure, usage, text, reasoning } = this.response
    const status = this.attempt.status
    const isRefused = failure?.kind === 'connection_failed' || (failure !== null && status !== null && status >= 400)
    if (isRefused) return 0
    if (usage?.inputTokens == null) return null
    const { inputTokens, outputTokens, leastOutputTokens = 0 } = usage
    return inputTokens + (outputTokens ?? Math.max(leastOutputTokens, estimateTokens(text) + estimateTokens(reasoning)))
  }

  /** Returns why the output is incomplete; null = it is complete. */
  failure(): ProviderFailure | null {
    return this.response.failure ?? (this.response.ended ? null : truncated)
  }

  /** Passes on the end of the serving response, with all that was held back. */
  end(sink: ResponseSink): void {
    this.send(sink)
    sendFinishes(this.response, sink)
  }

  /** Records the attempt with its duration until now. */
  note(outcome: AttemptOutcome, status: number | null = this.attempt.status): void {
    const { candidate, startedAt } = this.response
    const hasReceiver = this.state.request.request.demands !== undefined && candidate.endpoint.receiver !== null
    this.state.progress.attempts.push({
      model: fullName(candidate.model),
      outcome,
      startedAt,
      durationMs: Math.round(this.lastedMs()),
      status,
      ...(hasReceiver ? { receiver: describeReceiver(findReceiver(candidate)) } : null),
      ...findVia(candidate, this.way.claim),
    })
  }

  /** Milliseconds since the attempt began. */
  lastedMs(): number {
    return this.state.deps.clock.monotonic() - this.response.startedAt
  }

  /** Returns the start of the response, whose model from here on is the serving one. */
  private opened(): ResponseStart {
    const { response } = this
    const { request, progress } = this.state
    const { candidate, startedAt, firstContentAt, request: question, effort, providerFields, vectors } = response
    const { requestId, startedMonotonic, secrets } = request
    // Vectors arrive at once.
    if (firstContentAt !== null && vectors === null) progress.firstContentMs = firstContentAt - startedMonotonic
    this.note('served', 200)
    const model = fullName(servedModel(this.state.deps.catalog, response))
    const requested = requestedModel(request.plan)
    const opening: Built<ResponseStart> = {
      requestId,
      createdAt: Math.floor(request.startedAt / 1000),
      model,
      provider: candidate.model.provider,
      requestedModel: requested,
      attempts: [...progress.attempts],
      droppedParameters: response.droppedParameters,
      enhanced: progress.enhancement?.changed ?? null,
      overheadMs: Math.max(0, startedAt - startedMonotonic - progress.upstreamMs),
    }
    if (model === requested && question.model !== null) opening.askedName = question.model
    if (question.rules?.acted != null) opening.rules = question.rules.acted
    if (effort !== null) opening.effort = effort
    if (request.plan.turn?.runaway != null) opening.runaway = request.plan.turn.runaway.cause
    if (secrets.length > 0) opening.secrets = secrets
    if (response.outputCap !== null) opening.outputCap = response.outputCap
    if (progress.web !== null) opening.web = progress.web
    if (progress.hedge !== null) opening.hedge = progress.hedge.result
    if (question.dialect === 'messages') opening.inputUsage = getInputUsage(response)
    if (providerFields !== null) opening.providerFields = providerFields
    if (vectors !== null) opening.vectors = vectors
    return opening
  }

  /** Each second or 256 tokens, whichever comes first: a process that dies loses at most this much of a request. */
  private noteUsage(now: number): void {
    const { length } = this.response.text
    if (now - this.checkpointAt < checkpointEveryMs && length - this.checkpointLength < checkpointEveryCharacters)
      return
    this.checkpointAt = now
    this.checkpointLength = length
    this.state.request.checkpoint()
  }
}

/** The input tokens that are known when the response begins. */
function getInputUsage({ usage, candidate, request }: UpstreamResponse): NonNullable<ResponseStart['inputUsage']> {
  const { cachedInputTokens = 0, cacheWriteTokens = 0, hourCacheWriteTokens = 0 } = usage ?? {}
  const inputTokens = usage?.inputTokens ?? likelyInputTokens(request, candidate.model.provider)
  return { inputTokens, cachedInputTokens, cacheWriteTokens, hourCacheWriteTokens }
}

/** Passes on the finish reasons of a complete output. */
export function sendFinishes(response: ReceivedAnswer, sink: ResponseSink): void {
  const { stopSequence, upstreamReason } = response
  for (const [choice, reason] of response.finishes) {
    const finish: Built<TypedPart<'finish'>> = { type: 'finish', choice, reason }
    if (choice === 0 && reason === 'stop' && stopSequence !== null) finish.stopSequence = stopSequence
    if (choice === 0 && upstreamReason !== null) finish.upstreamReason = upstreamReason
    sink.add(finish)
  }
}

const truncated = upstreamFailure('truncated', 'the response ended without its terminal event')
const endless = upstreamFailure('bad_answer', 'the output exceeded its cap')
