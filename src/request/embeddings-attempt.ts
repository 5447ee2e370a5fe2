/**
 * One attempt of a request for embeddings at one host: as many upstream calls as its inputs need, read as one response.
 * Each call has a key of its own, and another one after a failure of that. Other failures end all calls, since vectors
 * of another host must not be mixed in.
 */
import { isKeyFailure } from '../core/chat/attempts.ts'
import type { EmbeddingInputs, Vector } from '../core/chat/chat.ts'
import { sleepUnlessAborted } from '../core/chat/request-abort.ts'
import { fullName } from '../core/models/models.ts'
import type { KeyClaim, PoolKey } from '../providers/keys/key-pool.ts'
import type { Access, AnswerPart, ProviderFailure } from '../providers/provider.ts'
import { type AttemptDeps, type AttemptOptions, type OpenAttempt, UpstreamAttempt } from './attempt.ts'
import { unreadableBody } from './body-reader.ts'
import { maximumCapacityWaitMs, maximumKeyFailures } from './ways.ts'

/** Calls of one attempt that run at the same time. */
const maximumParallelCalls = 4

/** Inputs from index `from` up to but excluding `to`, and their probable tokens. */
type Batch = { readonly from: number; readonly to: number; readonly tokens: number }

type Call = { readonly upstream: UpstreamAttempt; readonly batch: Batch; readonly claim: KeyClaim | null }

type Turn = Call & { readonly parts: readonly AnswerPart[] | null }

class EmbeddingsAttempt implements OpenAttempt {
  readonly droppedParameters: readonly string[]
  private readonly deps: AttemptDeps
  private readonly options: AttemptOptions
  private readonly embedding: EmbeddingInputs
  private readonly waiting: Batch[]
  private readonly vectors: Vector[]
  private readonly running = new Map<Call, Promise<Turn>>()
  private readonly failedKeys = new Set<PoolKey>()
  private keyFailure: ProviderFailure | null = null
  private waitedForKeysMs = 0
  private first: UpstreamAttempt | null
  private inputTokens = 0
  private isEstimated = false
  private last: UpstreamAttempt

  constructor(deps: AttemptDeps, options: AttemptOptions, embedding: EmbeddingInputs) {
    const { model } = options.candidate
    this.deps = deps
    this.options = options
    this.embedding = embedding
    this.waiting = [...splitIntoBatches(embedding.tokens, model.embedding?.batch ?? { inputs: 1, tokens: 1 })]
    this.vectors = new Array(embedding.tokens.length)
    this.first = this.callFor(this.waiting[0], options.claim ?? null)
    this.last = this.first
    this.droppedParameters = this.first.droppedParameters
  }

  access(): Access {
    return this.last.access()
  }

  status(): number | null {
    return this.last.status()
  }

  arrivedAt(): number {
    return this.last.arrivedAt()
  }

  waitedMs(): number {
    return this.last.waitedMs()
  }

  /** Calls have no content before their end, and only the deadline of the whole request bounds that. */
  contentArrived(): void {}

  /** Returns the usage of the calls that have completed, and with the last of them all vectors. Never throws. */
  async next(): Promise<readonly AnswerPart[] | null> {
    const isShort = await this.startAll()
    if (this.running.size === 0) return isShort ? [{ type: 'failure', failure: this.keyFailure ?? noCapacity }] : null
    const { upstream, batch, claim, parts } = await Promise.race(this.running.values())
    for (const call of this.running.keys()) if (call.upstream === upstream) this.running.delete(call)
    this.last = upstream
    const [part] = parts ?? []
    if (part?.type !== 'vectors') {
      const failed = part?.type === 'failure' ? part : unreadableBody('200 no vectors')
      return this.hasOtherKey({ upstream, batch, claim }, failed.failure) ? [] : [failed]
    }
    upstream.close(true)
    claim?.settle(part.inputTokens ?? batch.tokens)
    const { model } = this.options.candidate
    const problem = wrongLength(part.vectors, this.embedding.dimensions ?? model.embedding?.dimensions ?? null)
    if (problem !== null) return [problem]
    for (const [index, vector] of part.vectors.entries()) this.vectors[batch.from + index] = vector
    this.inputTokens += part.inputTokens ?? batch.tokens
    this.isEstimated ||= part.inputTokens === null
    const counts = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
    const { inputTokens, isEstimated } = this
    const usage: AnswerPart = { type: 'usage', usage: { inputTokens, ...counts }, isEstimated }
    if (this.running.size > 0 || this.waiting.length > 0) return [usage]
    // Checked over all calls: two servers behind one address may serve two models.
    const mixed = wrongLength(this.vectors, null)
    if (mixed !== null) return [usage, mixed]
    return [usage, { type: 'vectors', vectors: this.vectors, inputTokens }, { type: 'end' }]
  }

  /** Ends the calls that still run. Always called. */
  close(): void {
    this.first?.close(false)
    for (const { upstream, claim } of this.running.keys()) {
      upstream.close(false)
      claim?.settle(null)
    }
  }

  /** Ends a failed call. Returns whether its inputs wait for another key. */
  private hasOtherKey({ upstream, batch, claim }: Call, failure: ProviderFailure): boolean {
    upstream.close(false)
    const status = upstream.status()
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
    const upstream = this.first ?? this.callFor(batch, claim)
    this.first = null
    const call = { upstream, batch, claim }
    this.running.set(
      call,
      upstream.next().then(parts => ({ ...call, parts })),
    )
  }

  private callFor(batch: Batch = { from: 0, to: 0, tokens: 0 }, claim: KeyClaim | null = null): UpstreamAttempt {
    const { request, deadlines, candidate } = this.options
    const { inputs, texts } = this.embedding
    const sent = candidate.model.embedding?.tokenIds === 'as_is' ? inputs : texts
    return new UpstreamAttempt(this.deps, {
      ...this.options,
      claim,
      request: { ...request, inputs: sent.slice(batch.from, batch.to) },
      deadlines: { ...deadlines, firstContentMs: deadlines.totalMs },
    })
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
function wrongLength(vectors: readonly Vector[], expected: number | null): AnswerPart | null {
  const length = expected ?? vectors[0]?.length ?? 0
  const wrong = vectors.find(vector => vector.length !== length)
  return wrong === undefined ? null : unreadableBody(`200 a vector of ${wrong.length} dimensions in place of ${length}`)
}
