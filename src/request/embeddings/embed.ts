/**
 * One request for embeddings, top to bottom: prepare → admit → moderate → call → settle. It has no routing, no web and no
 * enhancement: the client names the model, and only hosts of that model serve it. Reserved by estimate, settled once by usage.
 */
import type { Attempt } from '../../core/chat/attempts.ts'
import type { RequestAbortSignal } from '../../core/chat/request-abort.ts'
import type { EmbeddingsRequest } from '../../core/embeddings/embeddings-request.ts'
import type { Vector } from '../../core/embeddings/vectors.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { fullName } from '../../core/models/models.ts'
import type { Clock } from '../../core/ports.ts'
import { scopesOf, type Tags, tagsOf } from '../../core/request/tags.ts'
import type { TraceParent } from '../../core/text/traceparent.ts'
import { priceTable } from '../../core/usage/money.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { Meter, Reservation } from '../../limits/meter.ts'
import { isModelAllowed, modelNotAllowed } from '../../models/allowed-models.ts'
import { checkPaid, limitReachedError } from '../admit.ts'
import { createProgress, failureOf, type Progress } from '../progress.ts'
import type { SettledRequest } from '../settle.ts'
import { paysInFull } from '../settled-cost.ts'
import { type CallHostsDeps, callHosts, type EmbeddingsProgress } from './call-hosts.ts'
import { type ModerateInputsDeps, moderateInputs } from './moderate-inputs.ts'
import { type PreparedEmbeddings, type PrepareEmbeddingsDeps, prepareEmbeddings } from './prepare.ts'
import {
  type AdmittedEmbeddings,
  computeEmbeddingsBill,
  servedName,
  toEmbeddingsRecord,
  toEmbeddingsTrace,
  toInterimUsage,
} from './settle-embeddings.ts'

type EmbedDeps = PrepareEmbeddingsDeps &
  ModerateInputsDeps &
  CallHostsDeps & {
    readonly clock: Pick<Clock, 'now' | 'monotonic'>
    readonly meter: Pick<Meter, 'admit' | 'raise' | 'settle' | 'checkpoint'>
    readonly observe: { admitted(progress: Progress): void; settled(request: SettledRequest): void }
  }

/** The vectors of a request, and what they cost. Money is an integer of 1e-8 USD. */
export type Embeddings = {
  readonly requestId: string
  /** Unix seconds. */
  readonly createdAt: number
  /** `provider/model` of the host that served. */
  readonly model: string
  readonly provider: string
  readonly vectors: readonly Vector[]
  readonly inputTokens: number
  readonly estimated: boolean
  readonly billedMicrocents: number
  readonly attempts: readonly Attempt[]
  readonly droppedParameters: readonly string[]
  /** Kinds of secrets found in the inputs; absent = none. */
  readonly secrets?: readonly string[]
  /** Time in the gateway itself until the serving host was called. */
  readonly overheadMs: number
}

export type ActiveEmbeddings = {
  readonly id: string
  readonly signal: RequestAbortSignal
  readonly trace: TraceParent | null
  /** Tags of the headers; absent = none. */
  readonly tags?: Tags | null
  /** Reserves memory for vectors with this many numbers in total. Throws if there is none. Absent = unlimited. */
  readonly reserveNumbers?: (numbers: number) => void
  /** Called when the request is admitted: from then on it has a usage record, however it ends. */
  readonly admitted?: () => void
  /** Called when all vectors arrived: from then on the request is billed. */
  readonly answered?: () => void
  /** Awaited once the usage record is durable. */
  readonly settled?: (record: UsageRecord) => Promise<void>
}

/** Numbers of a vector whose length is not configured. */
const usualLength = 1_024

/** Resolves when the usage record is durable. Throws `GatewayError`; the reservation is then settled too. */
export async function embed(
  deps: EmbedDeps,
  caller: Caller,
  request: EmbeddingsRequest,
  active: ActiveEmbeddings,
): Promise<Embeddings> {
  const { clock } = deps
  const tags = tagsOf(caller, { tags: active.tags ?? null, metadata: null })
  const admitted = { requestId: active.id, caller, tags, startedAt: clock.now(), startedMonotonic: clock.monotonic() }
  checkPaid(deps, caller)
  const prepared = await prepareEmbeddings(deps, request)
  const [{ model }] = prepared.hosts
  if (caller.models !== undefined && !isModelAllowed(caller.models, fullName(model)))
    throw modelNotAllowed(caller.models)
  active.reserveNumbers?.(request.inputs.length * (request.dimensions ?? model.dimensions ?? usualLength))
  const admittedFrom = clock.monotonic()
  const reservation = await admitEmbeddings(deps, admitted, prepared)
  const progress = createProgress(reservation, { route: admitted.startedMonotonic, admit: admittedFrom })
  deps.observe.admitted(progress)
  active.admitted?.()
  const calls = startCalls(deps, admitted, prepared, progress)
  // Written immediately: a request without a checkpoint leaves no record if the process dies.
  calls.callCompleted()
  try {
    progress.stages.moderate = clock.monotonic()
    const { inputs, texts, secrets } = await moderateInputs(deps, prepared, active.id)
    progress.stages.call = clock.monotonic()
    const called = { prepared, moderated: { inputs, texts, secrets }, signal: active.signal }
    const { host, vectors, droppedParameters, calledAt } = await callHosts(deps, called, calls)
    progress.outcome = 'completed'
    active.answered?.()
    const overheadMs = Math.max(0, calledAt - admitted.startedMonotonic - progress.upstreamMs)
    const { inputTokens, estimated, billed } = computeEmbeddingsBill(prepared, calls, { isOwed: true, caller })
    return {
      requestId: active.id,
      createdAt: Math.floor(admitted.startedAt / 1000),
      model: fullName(host.model),
      provider: host.model.provider,
      vectors,
      inputTokens,
      estimated,
      billedMicrocents: billed,
      attempts: [...progress.attempts],
      droppedParameters,
      ...(secrets.length === 0 ? {} : { secrets }),
      overheadMs,
    }
  } catch (thrown) {
    const failure = failureOf(thrown, active.signal)
    if (failure !== null) {
      progress.outcome = failure.outcome
      progress.errorCode = failure.errorCode
      progress.decision = failure.decision
    }
    throw thrown
  } finally {
    progress.stages.settle = clock.monotonic()
    await settleEmbeddings(deps, { admitted, prepared, progress, calls, active })
  }
}

/** Reserves a concurrent request and the maximum cost of the inputs. Throws the limit that was reached. */
async function admitEmbeddings(
  deps: EmbedDeps,
  { requestId, caller, tags }: AdmittedEmbeddings,
  { hosts, mostTokens }: PreparedEmbeddings,
): Promise<Reservation> {
  const prices = priceTable(hosts[0].model.pricing, mostTokens)
  const scopes = scopesOf(caller, tags)
  const admission = await deps.meter.admit({
    requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    ...(scopes === undefined ? {} : { scopes }),
    inputTokens: mostTokens,
    // The meter's minimum; an embedding has no output, and none is billed.
    outputTokens: 1,
    choices: 1,
    fairShare: false,
    inputPrice: prices.input,
    outputPrice: prices.output,
    extraMicrocents: 0,
  })
  if (!admission.admitted) throw limitReachedError(admission, caller)
  return admission.seat
}

function startCalls(
  { meter, clock }: EmbedDeps,
  admitted: AdmittedEmbeddings,
  prepared: PreparedEmbeddings,
  { attempts, reservation }: Progress,
): EmbeddingsProgress {
  const calls: EmbeddingsProgress = {
    requestId: admitted.requestId,
    attempts,
    seat: reservation,
    host: null,
    inputTokens: 0,
    estimated: false,
    callCompleted: () =>
      meter.checkpoint(calls.seat, () => toInterimUsage(admitted, prepared, calls, clock.monotonic())),
  }
  return calls
}

type EndedEmbeddings = {
  readonly admitted: AdmittedEmbeddings
  readonly prepared: PreparedEmbeddings
  readonly progress: Progress
  readonly calls: EmbeddingsProgress
  readonly active: ActiveEmbeddings
}

/** Runs once for every admitted request, however it ended. */
async function settleEmbeddings(
  deps: EmbedDeps,
  { admitted, prepared, progress, calls, active }: EndedEmbeddings,
): Promise<void> {
  progress.reservation = calls.seat
  const { outcome, errorCode } = progress
  const isOwed = outcome === 'completed' || outcome === 'client_closed'
  const bill = computeEmbeddingsBill(prepared, calls, { isOwed, caller: admitted.caller })
  if (bill.owed > bill.billed)
    deps.log.warn('bill_capped_at_reservation', {
      request_id: admitted.requestId,
      model: servedName(calls),
      account_id: admitted.caller.accountId,
      owed: bill.owed,
      billed: bill.billed,
      shortfall: bill.owed - bill.billed,
    })
  const end = { status: outcome, error_code: errorCode, at: deps.clock.monotonic() }
  const record = toEmbeddingsRecord(admitted, prepared, calls, { ...end, bill })
  record.trace = toEmbeddingsTrace(prepared, calls, progress)
  try {
    await deps.meter.settle({
      seat: calls.seat,
      tokens: bill.inputTokens,
      microcents: bill.billed,
      ...(paysInFull(admitted.caller) && { isOwedInFull: true }),
      record,
    })
  } finally {
    const [{ model }] = prepared.hosts
    const plan = { mode: 'manual', choices: 1, first: { model } } as const
    const request = {
      startedAt: admitted.startedAt,
      startedMonotonic: admitted.startedMonotonic,
      trace: active.trace,
      plan,
    }
    deps.observe.settled({ request, progress, response: null, record, operation: 'embeddings' })
  }
  if (active.settled !== undefined) await active.settled(record)
}
