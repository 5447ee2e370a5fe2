/**
 * One request for embeddings, top to bottom: prepare → admit → moderate → call → settle. It has no routing, no web and no
 * enhancement: the client names the model, and only hosts of that model serve it. Reserved by estimate, settled once by usage.
 */
import type { Attempt } from '../../core/chat/chat.ts'
import type { RequestAbortSignal } from '../../core/chat/request-abort.ts'
import type { EmbeddingsRequest } from '../../core/embeddings/embeddings-request.ts'
import type { Vector } from '../../core/embeddings/vectors.ts'
import type { Caller } from '../../core/limits/plans.ts'
import { fullName } from '../../core/models/models.ts'
import type { TraceParent } from '../../core/text/traceparent.ts'
import { priceTable } from '../../core/usage/money.ts'
import type { UsageRecord } from '../../core/usage/usage-record.ts'
import type { Meter, Reservation } from '../../limits/meter.ts'
import type { Telemetry } from '../../observability/telemetry.ts'
import { checkPaid, limitReachedError } from '../admit.ts'
import { createRequestContext, type RequestContext } from '../request-context.ts'
import { type CallHostsDeps, callHosts, type EmbeddingsProgress } from './call-hosts.ts'
import { type ModerateInputsDeps, moderateInputs } from './moderate-inputs.ts'
import { type PreparedEmbeddings, type PrepareEmbeddingsDeps, prepareEmbeddings } from './prepare.ts'
import { computeEmbeddingsBill, servedName, toEmbeddingsRecord, toInterimUsage } from './settle-embeddings.ts'

export type EmbedDeps = PrepareEmbeddingsDeps &
  ModerateInputsDeps &
  CallHostsDeps & {
    readonly clock: Parameters<typeof createRequestContext>[0]
    readonly meter: Pick<Meter, 'admit' | 'raise' | 'settle' | 'checkpoint'>
    readonly observe: Pick<Telemetry, 'admitted' | 'settled'>
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
  /** Awaited once the usage record is durable. */
  readonly settled?: (record: UsageRecord) => Promise<void>
}

/** Resolves once the usage record is durable. Throws `GatewayError`; what was reserved is then settled too. */
export async function embed(
  deps: EmbedDeps,
  caller: Caller,
  request: EmbeddingsRequest,
  active: ActiveEmbeddings,
): Promise<Embeddings> {
  const tally = createRequestContext(deps.clock, active.id)
  tally.trace = active.trace
  checkPaid(deps, caller)
  const prepared = await prepareEmbeddings(deps, request)
  tally.begin('admit')
  const seat = await admitEmbeddings(deps, caller, prepared, tally)
  const progress = startProgress(deps, caller, prepared, tally, seat)
  // At once: a request without a checkpoint leaves no record if the process dies.
  progress.callCompleted()
  try {
    tally.begin('moderate')
    const moderated = await moderateInputs(deps, prepared, active.id)
    tally.secrets = moderated.secrets
    tally.begin('call')
    const { host, vectors, droppedParameters, calledAt } = await callHosts(
      deps,
      prepared,
      moderated,
      progress,
      active.signal,
    )
    tally.outcome = 'completed'
    const overheadMs = Math.max(0, calledAt - tally.startedMonotonic - tally.upstreamMs)
    const { inputTokens, estimated, billed } = computeEmbeddingsBill(prepared, progress, true)
    return {
      requestId: active.id,
      createdAt: Math.floor(tally.startedAt / 1000),
      model: fullName(host.model),
      provider: host.model.provider,
      vectors,
      inputTokens,
      estimated,
      billedMicrocents: billed,
      attempts: [...tally.attempts],
      droppedParameters,
      ...(moderated.secrets.length === 0 ? {} : { secrets: moderated.secrets }),
      overheadMs,
    }
  } catch (failure) {
    tally.fail(failure, active.signal)
    throw failure
  } finally {
    tally.begin('settle')
    await settleEmbeddings(deps, caller, prepared, progress, { tally, active })
  }
}

/** Reserves a place, and what the inputs can cost at most. Throws the limit that was reached. */
async function admitEmbeddings(
  deps: EmbedDeps,
  caller: Caller,
  { hosts, mostTokens }: PreparedEmbeddings,
  tally: RequestContext,
): Promise<Reservation> {
  const prices = priceTable(hosts[0].model.pricing, mostTokens)
  const admission = await deps.meter.admit({
    requestId: tally.requestId,
    accountId: caller.accountId,
    limits: caller.limits,
    inputTokens: mostTokens,
    // The least that the meter reserves; an embedding has no output, and none is billed.
    outputTokens: 1,
    choices: 1,
    fairShare: false,
    inputPrice: Math.max(prices.input, prices.cachedInput, prices.cacheWrite),
    outputPrice: prices.output,
    extraMicrocents: 0,
  })
  if (!admission.admitted) throw limitReachedError(admission, caller.limits)
  tally.seat = admission.seat
  deps.observe.admitted(tally)
  return admission.seat
}

function startProgress(
  { meter }: EmbedDeps,
  caller: Caller,
  prepared: PreparedEmbeddings,
  tally: RequestContext,
  seat: Reservation,
): EmbeddingsProgress {
  const progress: EmbeddingsProgress = {
    requestId: tally.requestId,
    attempts: tally.attempts,
    seat,
    host: null,
    inputTokens: 0,
    estimated: false,
    callCompleted: () => meter.checkpoint(progress.seat, () => toInterimUsage(caller, tally, prepared, progress)),
  }
  return progress
}

/** Runs once for every admitted request, whoever ended it. */
async function settleEmbeddings(
  deps: EmbedDeps,
  caller: Caller,
  prepared: PreparedEmbeddings,
  progress: EmbeddingsProgress,
  { tally, active }: { readonly tally: RequestContext; readonly active: ActiveEmbeddings },
): Promise<void> {
  tally.seat = progress.seat
  const isOwed = tally.outcome === 'completed' || tally.outcome === 'client_closed'
  const bill = computeEmbeddingsBill(prepared, progress, isOwed)
  if (bill.owed > bill.billed)
    deps.log.warn('billed_less_than_used', {
      request_id: tally.requestId,
      model: servedName(progress),
      account_id: caller.accountId,
      owed: bill.owed,
      billed: bill.billed,
      shortfall: bill.owed - bill.billed,
    })
  const ending = { status: tally.outcome, error_code: tally.errorCode }
  const record = toEmbeddingsRecord(caller, tally, progress, bill, ending)
  try {
    await deps.meter.settle({ seat: progress.seat, tokens: bill.inputTokens, microcents: bill.billed, record })
  } finally {
    const [{ model }] = prepared.hosts
    const plan = { mode: 'manual', choices: 1, first: { model } } as const
    deps.observe.settled({ tally, record, plan, operation: 'embeddings' })
  }
  if (active.settled !== undefined) await active.settled(record)
}
