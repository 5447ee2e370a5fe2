/**
 * One attempt of a request for embeddings at one host: as many upstream calls as its inputs need, read as one response. The first
 * failure ends all of them, since vectors of another host must not be mixed in.
 */
import type { EmbeddingInputs, Vector } from '../core/chat/chat.ts'
import type { Access, AnswerPart } from '../providers/provider.ts'
import { type AttemptDeps, type AttemptOptions, type OpenAttempt, UpstreamAttempt } from './attempt.ts'
import { unreadableBody } from './body-reader.ts'

/** Calls of one attempt that run at the same time. */
const maximumParallelCalls = 4

/** Inputs from index `from` up to but excluding `to`, and their probable tokens. */
type Batch = { readonly from: number; readonly to: number; readonly tokens: number }

type Turn = { readonly call: UpstreamAttempt; readonly batch: Batch; readonly parts: readonly AnswerPart[] | null }

class EmbeddingsAttempt implements OpenAttempt {
  readonly droppedParameters: readonly string[]
  private readonly deps: AttemptDeps
  private readonly options: AttemptOptions
  private readonly embedding: EmbeddingInputs
  private readonly batches: readonly Batch[]
  private readonly vectors: Vector[]
  private readonly running = new Map<UpstreamAttempt, Promise<Turn>>()
  private first: UpstreamAttempt | null
  private started = 0
  private inputTokens = 0
  private isEstimated = false
  private last: UpstreamAttempt

  constructor(deps: AttemptDeps, options: AttemptOptions, embedding: EmbeddingInputs) {
    const { model } = options.candidate
    this.deps = deps
    this.options = options
    this.embedding = embedding
    this.batches = splitIntoBatches(embedding.tokens, model.embedding?.batch ?? { inputs: 1, tokens: 1 })
    this.vectors = new Array(embedding.tokens.length)
    this.first = this.callFor(this.batches[0])
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
    while (this.running.size < maximumParallelCalls && this.started < this.batches.length) this.start()
    if (this.running.size === 0) return null
    const { call, batch, parts } = await Promise.race(this.running.values())
    this.running.delete(call)
    this.last = call
    const [part] = parts ?? []
    if (part?.type !== 'vectors') {
      call.close(false)
      return [part?.type === 'failure' ? part : unreadableBody('200 no vectors')]
    }
    call.close(true)
    const { model } = this.options.candidate
    const problem = wrongLength(part.vectors, this.embedding.dimensions ?? model.embedding?.dimensions ?? null)
    if (problem !== null) return [problem]
    for (const [index, vector] of part.vectors.entries()) this.vectors[batch.from + index] = vector
    this.inputTokens += part.inputTokens ?? batch.tokens
    this.isEstimated ||= part.inputTokens === null
    const counts = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
    const { inputTokens, isEstimated } = this
    const usage: AnswerPart = { type: 'usage', usage: { inputTokens, ...counts }, isEstimated }
    if (this.running.size > 0 || this.started < this.batches.length) return [usage]
    // Checked over all calls: two servers behind one address may serve two models.
    const mixed = wrongLength(this.vectors, null)
    if (mixed !== null) return [usage, mixed]
    return [usage, { type: 'vectors', vectors: this.vectors, inputTokens }, { type: 'end' }]
  }

  /** Ends the calls that still run. Always called. */
  close(): void {
    this.first?.close(false)
    for (const call of this.running.keys()) call.close(false)
  }

  private start(): void {
    const batch = this.batches[this.started]
    if (batch === undefined) return
    const call = this.first ?? this.callFor(batch)
    this.first = null
    this.started += 1
    this.running.set(
      call,
      call.next().then(parts => ({ call, batch, parts })),
    )
  }

  private callFor(batch: Batch = { from: 0, to: 0, tokens: 0 }): UpstreamAttempt {
    const { request, deadlines, candidate } = this.options
    const { inputs, texts } = this.embedding
    const sent = candidate.model.embedding?.tokenIds === 'as_is' ? inputs : texts
    return new UpstreamAttempt(this.deps, {
      ...this.options,
      request: { ...request, inputs: sent.slice(batch.from, batch.to) },
      deadlines: { ...deadlines, firstContentMs: deadlines.totalMs },
    })
  }
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
