/**
 * Calls hosts in order until one has embedded all inputs. All hosts serve the same model: vectors of another model
 * would not match those that a client stored. Vectors of a failed host are discarded.
 */
import type { Attempt, AttemptOutcome } from '../../core/chat/attempts.ts'
import { abortError, createRequestAbort, type RequestAbortSignal } from '../../core/chat/request-abort.ts'
import { splitIntoBatches } from '../../core/embeddings/batches.ts'
import type { EmbeddingInput } from '../../core/embeddings/embeddings-request.ts'
import type { Vector } from '../../core/embeddings/vectors.ts'
import { fullName } from '../../core/models/models.ts'
import type { Meter, Reservation } from '../../limits/meter.ts'
import type { HealthTracker } from '../../models/health-tracker.ts'
import type { ProviderFailure } from '../../providers/provider.ts'
import { baseCost } from '../cost-estimate.ts'
import { reportFailure } from '../report-attempt.ts'
import { callWithKey } from './call-with-key.ts'
import { embeddingsFailedError, type FailedHost } from './failed-error.ts'
import type { ModeratedInputs } from './moderate-inputs.ts'
import type { EmbeddingHost, PreparedEmbeddings } from './prepare.ts'
import type { UpstreamCallDeps } from './upstream-call.ts'

export type CallHostsDeps = UpstreamCallDeps & {
  readonly health: HealthTracker
  readonly meter: Pick<Meter, 'raise'>
  readonly log: Parameters<typeof reportFailure>[0]['log']
}

/** Progress of one host on a request; written here, read at settlement. */
export type EmbeddingsProgress = {
  readonly requestId: string
  readonly attempts: Attempt[]
  seat: Reservation
  /** The host whose vectors count; null = none. */
  host: EmbeddingHost | null
  /** Tokens of its completed calls. */
  inputTokens: number
  /** Whether the gateway counted some of them. */
  estimated: boolean
  /** Called after each completed call. */
  callCompleted: () => void
}

type EmbeddedInputs = {
  readonly host: EmbeddingHost
  readonly vectors: readonly Vector[]
  readonly droppedParameters: readonly string[]
  /** Monotonic milliseconds at which the host was first called. */
  readonly calledAt: number
}

const maximumAttempts = 3
/** Calls of one request that run at the same time. */
const maximumParallelCalls = 4

type EmbedRequest = {
  readonly prepared: PreparedEmbeddings
  readonly moderated: ModeratedInputs
  readonly signal: RequestAbortSignal
}

/** Throws `GatewayError` when every host failed, and when `signal` aborts. */
export async function callHosts(
  deps: CallHostsDeps,
  { prepared, moderated, signal }: EmbedRequest,
  progress: EmbeddingsProgress,
): Promise<EmbeddedInputs> {
  const deadlineAt = deps.clock.monotonic() + deps.config.deadlines.totalMs
  const failed: FailedHost[] = []
  const active = deps.health.beginRequest()
  try {
    for (const host of inOrderOfHealth(deps.health, prepared.hosts)) {
      if (failed.filter(({ isOfKeys }) => !isOfKeys).length >= maximumAttempts || deps.clock.monotonic() >= deadlineAt)
        break
      if (!(await canAfford(deps, host, prepared, progress))) {
        note(progress, host, 'skipped_over_budget', { startedAt: deps.clock.monotonic(), durationMs: 0 })
        continue
      }
      const key = fullName(host.model)
      const calledAt = deps.clock.monotonic()
      const isProbe = deps.health.beginAttempt(key)
      Object.assign(progress, { host, inputTokens: 0, estimated: false })
      const result = await embedAt(deps, { host, prepared, moderated, deadlineAt }, progress, signal).finally(() => {
        // The report of an outcome follows in the same turn, if there is one.
        if (isProbe) deps.health.endProbe(key)
      })
      const durationMs = deps.clock.monotonic() - calledAt
      if (signal.aborted) throw abortError(signal)
      if (result.kind === 'vectors') {
        deps.health.report(key, { outcome: 'ok' })
        note(progress, host, 'served', { startedAt: calledAt, durationMs, status: 200 })
        return { host, vectors: result.vectors, droppedParameters: result.droppedParameters, calledAt }
      }
      const { failure, status, isOfKeys } = result
      // The failures of the keys are reported, and say nothing about the model.
      if (!isOfKeys) reportFailure(deps, progress.requestId, { candidate: host, failure, status })
      note(progress, host, failure.kind, { startedAt: calledAt, durationMs, status })
      progress.host = null
      failed.push({ host, failure, status, isOfKeys })
      if (!failure.retryable || failure.blame === 'caller') break
    }
  } finally {
    active.end()
  }
  throw embeddingsFailedError(failed, deps.clock.monotonic() >= deadlineAt, progress.attempts)
}

/** Orders the named host first, unless its circuit is open and another one's is not. */
function inOrderOfHealth(health: HealthTracker, hosts: readonly EmbeddingHost[]): readonly EmbeddingHost[] {
  const rests = ({ model }: EmbeddingHost) => health.skipReason(fullName(model), model === hosts[0]?.model) !== null
  return [...hosts.filter(host => !rests(host)), ...hosts.filter(rests)]
}

/** Enlarges the reservation for a host that is more expensive than the first; false = the account cannot pay it. */
async function canAfford(
  { meter }: CallHostsDeps,
  { model }: EmbeddingHost,
  { mostTokens }: PreparedEmbeddings,
  progress: EmbeddingsProgress,
): Promise<boolean> {
  const worst = baseCost(model.pricing, mostTokens, 0)
  if (worst <= progress.seat.reservedMicrocents) return true
  const raised = await meter.raise(progress.seat, progress.seat.reservedTokens, worst)
  if (raised !== null) progress.seat = raised
  return raised !== null
}

type HostCall = {
  readonly host: EmbeddingHost
  readonly prepared: PreparedEmbeddings
  readonly moderated: ModeratedInputs
  readonly deadlineAt: number
}

type HostResult =
  | { readonly kind: 'vectors'; readonly vectors: readonly Vector[]; readonly droppedParameters: readonly string[] }
  | {
      readonly kind: 'failure'
      readonly failure: ProviderFailure
      readonly status: number | null
      readonly isOfKeys: boolean
    }

/** Embeds all inputs by one host, in as many calls as needed. The first failure aborts the others. */
async function embedAt(
  deps: CallHostsDeps,
  { host, prepared, moderated, deadlineAt }: HostCall,
  progress: EmbeddingsProgress,
  signal: RequestAbortSignal,
): Promise<HostResult> {
  const { model } = host
  const { request, tokens } = prepared
  const inputs: readonly EmbeddingInput[] = model.tokenIds === 'as_is' ? moderated.inputs : moderated.texts
  const batches = splitIntoBatches(tokens, model.batch)
  const vectors: Vector[] = new Array(inputs.length)
  const dropped = new Set<string>()
  const ending = createRequestAbort()
  const leave = () => ending.abort(signal.reason)
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  let failure: Extract<HostResult, { kind: 'failure' }> | null = null
  let next = 0
  const work = async () => {
    while (!ending.signal.aborted) {
      const batch = batches[next++]
      if (batch === undefined) return
      const { dimensions, endUser, extras } = request
      const call = { model, inputs: inputs.slice(batch.from, batch.to), dimensions, endUser, extras }
      const { result, status, droppedParameters, isOfKeys } = await callWithKey(deps, {
        host,
        requestId: progress.requestId,
        tokens: batch.tokens,
        call,
        deadlineAt,
        signal: ending.signal,
      })
      for (const name of droppedParameters) dropped.add(name)
      const problem =
        result.kind === 'failure' ? result.failure : wrongLength(result.vectors, dimensions ?? model.dimensions)
      if (result.kind === 'failure' || problem !== null) {
        if (problem !== null) failure ??= { kind: 'failure', failure: problem, status, isOfKeys }
        ending.abort()
        return
      }
      for (const [index, vector] of result.vectors.entries()) vectors[batch.from + index] = vector
      progress.inputTokens += result.inputTokens ?? batch.tokens
      if (result.inputTokens === null) progress.estimated = true
      progress.callCompleted()
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(maximumParallelCalls, batches.length) }, work))
  } finally {
    signal.removeEventListener('abort', leave)
  }
  // Checked over all calls: two servers behind one address may serve two models.
  const problem = failure ?? mixedLengths(vectors)
  return problem ?? { kind: 'vectors', vectors, droppedParameters: [...dropped] }
}

function wrongLength(vectors: readonly Vector[], expected: number | null): ProviderFailure | null {
  const wrong = vectors.find(vector => vector.length !== (expected ?? vectors[0]?.length))
  return wrong === undefined ? null : badLength(wrong.length, expected ?? vectors[0]?.length ?? 0)
}

function mixedLengths(vectors: readonly Vector[]): Extract<HostResult, { kind: 'failure' }> | null {
  const problem = wrongLength(vectors, null)
  return problem === null ? null : { kind: 'failure', failure: problem, status: 200, isOfKeys: false }
}

function badLength(length: number, expected: number): ProviderFailure {
  const detail = `200 a vector of ${length} dimensions in place of ${expected}`
  return { kind: 'bad_answer', blame: 'upstream', retryable: true, retryAfterMs: null, detail }
}

function note(
  { attempts }: EmbeddingsProgress,
  { model }: EmbeddingHost,
  outcome: AttemptOutcome,
  call: { readonly startedAt: number; readonly durationMs: number; readonly status?: number | null },
): void {
  attempts.push({ model: fullName(model), outcome, ...call, durationMs: Math.round(call.durationMs) })
}
