/**
 * State of a request that settlement needs however the request ends. Steps return all other results. Each field has one
 * writer, named here: `answer`, or `call` with the files of its attempts.
 */
import type { Attempt, HedgeResult } from '../core/chat/attempts.ts'
import type { ChatRequest } from '../core/chat/chat.ts'
import type { Continuation, ResponseSummary } from '../core/chat/chat-events.ts'
import type { ActiveSetMember, RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { Reservation } from '../limits/meter.ts'
import type { WebUse } from '../web/web-plan.ts'
import type { Route } from './routing/route.ts'
import { isHeld, type UpstreamResponse } from './upstream-response.ts'

/** Stages in this order. */
type PipelineStage = 'route' | 'admit' | 'moderate' | 'enhance' | 'enrich' | 'call' | 'settle'

type RequestStatus = 'completed' | 'failed' | 'client_closed' | 'blocked'

/** The moderation layer and category that blocked, and the invalid field. Null = not named. */
type Decision = { readonly layer: string | null; readonly category: string | null; readonly param: string | null }

/** A second attempt that began because the first content was late. */
export type Hedge = {
  result: HedgeResult
  /** The response beside `Progress.response`: still read, or of the canceled attempt. Null = none, or it failed. */
  other: UpstreamResponse | null
  /** Its part of the reservation. */
  tokens: number
  microcents: number
}

/** Of a request that has been admitted. */
export class Progress implements ActiveSetMember {
  /** Written by the active set of open requests in the telemetry. */
  place = -1
  /**
   * `answer`: monotonic milliseconds at which each stage began; a stage ends where the next one begins. Null = not
   * reached.
   */
  readonly stages: Record<PipelineStage, number | null>
  /** `answer`: defaults to `client_closed`, because a generator that is ended from outside receives no reason. */
  outcome: RequestStatus = 'client_closed'
  /** `answer`. */
  errorCode: string | null = null
  /** `answer`: what the error of a failed request names, or the layer that ended the output; null = nothing. */
  decision: Decision | null = null
  /** `answer`, from `enhance`; null = not requested. */
  enhancement: ResponseSummary['progress']['enhancement'] = null
  /** `answer`, from `admit` and `enrich`; null = no web access. */
  web: WebUse | null = null
  /** `answer`, from `ScreenedOutput`: the output ended at a hit. */
  isFiltered = false
  /** `call`: each model that was called or skipped, in order. */
  readonly attempts: Attempt[] = []
  /** `call`: the response that is being read; null = none, or it failed. */
  response: UpstreamResponse | null = null
  /** `call`: responses whose text the client has and another one continues, in order. */
  readonly cut: UpstreamResponse[] = []
  /** `call`: where they were continued. */
  readonly continued: Continuation[] = []
  /** `call`: complete answers, and canceled hedges beside them, that another attempt or an error replaced. */
  readonly discarded: UpstreamResponse[] = []
  /** `call`: the hedge of the request; null = hedging was not requested. */
  hedge: Hedge | null = null
  /** `call`: milliseconds from the start to the first content. */
  firstContentMs: number | null = null
  /**
   * `call`: milliseconds that the request waited for other services (a rewrite, the web, failed upstreams). The gateway
   * overhead excludes these and the wait for the serving upstream.
   */
  upstreamMs = 0

  /** `reservation` is enlarged by `call` for a more expensive fallback. */
  constructor(
    public reservation: Reservation,
    { route, admit }: { readonly route: number; readonly admit: number },
  ) {
    this.stages = { route, admit, moderate: null, enhance: null, enrich: null, call: null, settle: null }
  }
}

/** Returns the status of a request that threw `failure`; null = the client disconnected. */
export function findFailure(
  failure: unknown,
  signal: RequestAbortSignal,
): { readonly outcome: RequestStatus; readonly errorCode: string; readonly decision: Decision | null } | null {
  // Separates a client disconnect from an abort by the gateway, which has its own reason.
  if (signal.aborted && !(signal.reason instanceof GatewayError)) return null
  const error = failure instanceof GatewayError ? failure : null
  const isBlocked = error?.code === 'content_blocked' && error.layer !== 'provider'
  return {
    outcome: isBlocked ? 'blocked' : 'failed',
    errorCode: error?.code ?? 'service_unavailable',
    decision: error,
  }
}

/**
 * Returns the response to bill. Null = none: a blocked request costs nothing, whatever the upstream generated, and text that was held
 * back was not sent.
 */
export function billedResponse({ response: last, cut, outcome, isFiltered }: Progress): UpstreamResponse | null {
  const response = last === null || isUnsent(last) ? (cut.at(-1) ?? null) : last
  if (response === null || outcome === 'blocked') return null
  // A client has no part of the vectors of a request that failed.
  if (outcome === 'failed' && response.request.embedding !== undefined) return null
  if (isFiltered) response.finishes.set(0, 'content_filter')
  return response
}

/** Returns the parts of a cut text before its last response; none of a blocked request is billed. */
export function cutParts({ cut, outcome }: Progress, last: UpstreamResponse | null): readonly UpstreamResponse[] {
  return outcome === 'blocked' ? [] : cut.filter(part => part !== last)
}

/** Returns the responses that the provider charges and the account does not pay for. */
export function unbilledResponses({ response, discarded, hedge, outcome }: Progress): readonly UpstreamResponse[] {
  if (response === null || outcome === 'blocked' || !isUnsent(response)) return discarded
  return [...discarded, response, ...(hedge === null || hedge.other === null ? [] : [hedge.other])]
}

function isUnsent(response: UpstreamResponse): boolean {
  return response.hasContent && !response.ended && isHeld(response)
}

/** Fixed properties of an admitted request. `Progress` holds those that change until settlement. */
export type AdmittedRequest = {
  readonly requestId: string
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** Monotonic milliseconds of the same moment, for durations. */
  readonly startedMonotonic: number
  /** Trace context of the client. */
  readonly trace: TraceParent | null
  /** Digest under which the prompt is remembered: see `RecentPrompts`. */
  readonly promptDigest: string
  readonly caller: Caller
  readonly request: ChatRequest
  readonly plan: Route
}
