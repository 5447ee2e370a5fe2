/**
 * One attempt of a request for embeddings at one host: as many upstream calls as its inputs need, read as one response.
 * Each call has a key of its own, and another one after a failure of that. Other failures end all calls, since vectors
 * of another host must not be mixed in.
 */
import { isKeyFailure } from '../core/chat/attempts.ts'
import type { EmbeddingInputs, Vector } from '../core/chat/chat.ts'
import type { TokenUsage } from '../core/chat/chat-events.ts'
import { sleepUnlessAborted } from '../core/chat/request-abort.ts'
import { fullName } from '../core/models/models.ts'
import type { KeyClaim, PoolKey } from '../providers/keys/key-pool.ts'
import type { Access, ProviderFailure } from '../providers/provider.ts'
import { ReceivedAnswer } from '../providers/received-answer.ts'
import { type AttemptDeps, type AttemptOptions, type OpenAttempt, UpstreamAttempt } from './attempt.ts'
import { upstreamFailure } from './body-reader.ts'
import { maximumCapacityWaitMs, maximumKeyFailures } from './ways.ts'

/** Calls of one attempt that run at the same time. */
const maximumParallelCalls = 4

/** Inputs from index `from` up to but excluding `to`, and their probable tokens. */
type Batch = { readonly from: number; readonly to: number; readonly tokens: number }

type Sent = { readonly upstream: UpstreamAttempt; readonly answer: ReceivedAnswer }

type Call = Sent & { readonly batch: Batch; readonly claim: KeyClaim | null }

/** Vectors have only input. */
export function vectorUsage(inputTokens: number): TokenUsage {
  return { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
}

class EmbeddingsAttempt implements OpenAttempt {
  private readonly waiting: Batch[]
  private readonly vectors: Vector[]
  private readonly running = new Map<Call, Promise<Call>>()
  private readonly failedKeys = new Set<PoolKey>()
  private keyFailure: ProviderFailure | null = null
  private waitedForKeysMs = 0
  private first: Sent | null
  private inputTokens = 0
  private isEstimated = false
  private last: UpstreamAttempt

  constructor(
    private readonly deps: AttemptDeps,
    private readonly options: AttemptOptions,
    private readonly embedding: EmbeddingInputs,
  ) {
    const { model } = options.candidate
    this.waiting = [...splitIntoBatches(embedding.tokens, model.embedding?.batch ?? { inputs: 1, tokens: 1 })]
    this.vectors = new Array(embedding.tokens.length)
    this.first = this.callFor(this.waiting[0], options.claim ?? null)
    this.last = this.first.upstream
    options.response.droppedParameters = this.first.answer.droppedParameters
  }

  get access(): Access {
    return this.last.access
  }

  get status(): number | null {
    return this.last.status
  }

  get arrivedAt(): number {
    return this.last.arrivedAt
  }

  get waitedMs(): number {
    return this.last.waitedMs
  }

  /** Calls have no content before their end, and only the deadline of the whole request bounds that. */
  contentArrived(): void {}

  /** Reports the usage of the calls that have completed, and with the last of them all vectors. Never throws. */
  async next(): Promise<boolean> {
    const { response, candidate } = this.options
    const isShort = await this.startAll()
    if (this.running.size === 0) {
      if (isShort) response.fail(this.keyFailure ?? noCapacity)
      return isShort
    }
    const call = await Promise.race(this.running.values())
    const { upstream, answer, batch, claim } = call
    this.running.delete(call)
    this.last = upstream
    const { vectors, vectorTokens } = answer
    if (vectors === null) {
      const failure = answer.failure ?? upstreamFailure('bad_answer', '200 no vectors')
      if (!this.hasOtherKey(call, failure)) response.fail(failure)
      return true
    }
    upstream.close(true)
    claim?.settle(vectorTokens ?? batch.tokens)
    const { model } = candidate
    const problem = wrongLength(vectors, this.embedding.dimensions ?? model.embedding?.dimensions ?? null)
    if (problem !== null) {
      response.fail(problem)
      return true
    }
    for (const [index, vector] of vectors.entries()) this.vectors[batch.from + index] = vector
    this.inputTokens += vectorTokens ?? batch.tokens
    this.isEstimated ||= vectorTokens === null
    response.reportUsage(vectorUsage(this.inputTokens), this.isEstimated)
    if (this.running.size > 0 || this.waiting.length > 0) return true
    // Checked over all calls: two servers behind one address may serve two models.
    const mixed = wrongLength(this.vectors, null)
    if (mixed !== null) response.fail(mixed)
    else {
      response.giveVectors({ vectors: this.vectors, inputTokens: this.inputTokens })
      response.end()
    }
    return true
  }

  /** Ends the calls that still run. Always called. */
  close(): void {
    this.first?.upstream.close(false)
    for (const { upstream, claim } of this.running.keys()) {
      upstream.close(false)
      claim?.settle(null)
    }
  }

  /** Ends a failed call. Returns whether its inputs wait for another key. */
  private hasOtherKey({ upstream, batch, claim }: Call, failure: ProviderFailure): boolean {
    upstream.close(false)
    const { status } = upstream
    const isRefused = failure.kind === 'connection_failed' || (status !== null && status >= 400)
    claim?.settle(isRefused ? 0 : null, { ...failure, status })
    if (claim === null || !isKeyFailure(failure.kind) || this.failedKeys.size + 1 >= maximumKeyFailures) return false
    this.options.keyFailed?.(failure, status, claim)
    this.failedKeys.add(claim.key)
    this.keyFailure = failure
    this.waiting.unshift(batch)
    return true
  }

  /** Starts the calls that have a key, and waits briefly for the first. Returns whether none runs for lack of one. */
  private async startAll(): Promise<boolean> {
    const { candidate, signal, deadlineAt } = this.options
    for (;;) {
      const batch = this.waiting[0]
      if (batch === undefined || this.running.size >= maximumParallelCalls) return false
      const { keys } = candidate.endpoint
      const isFirst = this.first !== null
      const claim = isFirst
        ? (this.options.claim ?? null)
        : (keys?.claim({ model: fullName(candidate.model), tokens: batch.tokens, except: this.failedKeys }) ?? null)
      if (claim === null || claim.key !== null) {
        this.start(batch, claim)
        continue
      }
      // The end of a running call may free capacity as well.
      if (this.running.size > 0) return false
      const { reason, waitMs } = claim
      const isLate = this.deps.clock.monotonic() + waitMs >= deadlineAt
      if (reason !== 'at_limit' || isLate || this.waitedForKeysMs + waitMs > maximumCapacityWaitMs) return true
      this.waitedForKeysMs += waitMs
      await sleepUnlessAborted(this.deps.clock, waitMs, signal)
      if (signal.aborted) return true
    }
  }

  private start(batch: Batch, claim: KeyClaim | null): void {
    this.waiting.shift()
    const call = { ...(this.first ?? this.callFor(batch, claim)), batch, claim }
    this.first = null
    this.running.set(
      call,
      call.upstream.next().then(() => call),
    )
  }

  private callFor(batch: Batch = { from: 0, to: 0, tokens: 0 }, claim: KeyClaim | null = null): Sent {
    const { request, deadlines, candidate } = this.options
    const { inputs, texts } = this.embedding
    const sent = candidate.model.embedding?.tokenIds === 'as_is' ? inputs : texts
    const answer = new ReceivedAnswer(request.request)
    const upstream = new UpstreamAttempt(this.deps, {
      ...this.options,
      claim,
      request: { ...request, inputs: sent.slice(batch.from, batch.to) },
      response: answer,
      deadlines: { ...deadlines, firstContentMs: deadlines.totalMs },
    })
    return { upstream, answer }
  }
}

/** No key has capacity within the bound, and none has failed. */
const noCapacity: ProviderFailure = {
  kind: 'rate_limited',
  blame: 'upstream',
  retryable: true,
  retryAfterMs: maximumCapacityWaitMs,
  detail: 'no capacity',
}

/** Returns the attempt of a request: as one call, or as those that its inputs need. */
export function createAttempt(deps: AttemptDeps, options: AttemptOptions): OpenAttempt {
  const { embedding } = options.request.request
  return embedding === undefined ? new UpstreamAttempt(deps, options) : new EmbeddingsAttempt(deps, options, embedding)
}

/**
 * Splits inputs of these token counts into batches within the limits of one call, in order. `tokens` limits a batch of several
 * inputs: a single input is sent whatever its length.
 */
function splitIntoBatches(
  tokens: readonly number[],
  limits: { readonly inputs: number; readonly tokens: number },
): readonly Batch[] {
  const batches: Batch[] = []
  let from = 0
  let sum = 0
  for (const [index, count] of tokens.entries()) {
    const isFull = index - from >= limits.inputs || (index > from && sum + count > limits.tokens)
    if (isFull) {
      batches.push({ from, to: index, tokens: sum })
      from = index
      sum = 0
    }
    sum += count
  }
  if (from < tokens.length) batches.push({ from, to: tokens.length, tokens: sum })
  return batches
}

/** Returns the failure of vectors that have another length than expected, or than the first of them. */
function wrongLength(vectors: readonly Vector[], expected: number | null): ProviderFailure | null {
  const length = expected ?? vectors[0]?.length ?? 0
  const wrong = vectors.find(vector => vector.length !== length)
  return wrong === undefined
    ? null
    : upstreamFailure('bad_answer', `200 a vector of ${wrong.length} dimensions in place of ${length}`)
}
