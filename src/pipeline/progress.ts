/**
 * What settlement must see of a request that may end at any point, whoever ended it. Steps return everything else. Each field
 * has one writer, named here: `answer`, or `call` with the files of its attempts. Everybody may read.
 */
import type { Attempt, ResponseSummary } from '../core/chat/chat.ts'
import type { RequestAbortSignal } from '../core/chat/request-abort.ts'
import type { ActiveSetMember } from '../core/limits/active-set.ts'
import { GatewayError } from '../core/validation/errors.ts'
import type { WebUse } from '../core/web/web-plan.ts'
import type { Reservation } from '../limits/meter.ts'
import type { UpstreamResponse } from './upstream-response.ts'

/** In this order. */
type PipelineStage = 'route' | 'admit' | 'moderate' | 'enhance' | 'enrich' | 'call' | 'settle'

type RequestStatus = 'completed' | 'failed' | 'client_closed' | 'blocked'

/** `place` is written by the active set that telemetry keeps of open requests. */
export type Progress = ActiveSetMember & {
  /** `answer`: monotonic milliseconds at which each stage began; it ends where the next begins. Null = not reached. */
  readonly stages: Record<PipelineStage, number | null>
  /** `answer`: `client_closed` until the end is known, since a generator that is ended from outside receives no reason. */
  outcome: RequestStatus
  /** `answer`. */
  errorCode: string | null
  /** `answer`, from `enhance`; null = not requested. */
  enhancement: ResponseSummary['enhancement']
  /** `answer`, from `admit` and `enrich`; null = nothing was looked up. */
  web: WebUse | null
  /** `answer`, from `moderateOutput`: the output ended at a hit. */
  isFiltered: boolean
  /** `call`: enlarged for a more expensive fallback. */
  reservation: Reservation
  /** `call`: each model that was called or skipped, in order. */
  readonly attempts: Attempt[]
  /** `call`: the response that is being read; null = none, or it failed. */
  response: UpstreamResponse | null
  /** `call`: milliseconds from the start to the first content. */
  firstContentMs: number | null
  /**
   * `call`: milliseconds that the request waited for others (a rewrite, the web, upstreams that failed). With the wait for the
   * serving upstream, this is what the gateway's own overhead excludes.
   */
  upstreamMs: number
}

/** Creates the progress of a request that has just been admitted. */
export function createProgress(
  reservation: Reservation,
  { route, admit }: { readonly route: number; readonly admit: number },
): Progress {
  return {
    place: -1,
    stages: { route, admit, moderate: null, enhance: null, enrich: null, call: null, settle: null },
    outcome: 'client_closed',
    errorCode: null,
    enhancement: null,
    web: null,
    isFiltered: false,
    reservation,
    attempts: [],
    response: null,
    firstContentMs: null,
    upstreamMs: 0,
  }
}

/** Returns how a request ended that threw `failure`; null = its caller left. */
export function failureOf(
  failure: unknown,
  signal: RequestAbortSignal,
): { readonly outcome: RequestStatus; readonly errorCode: string } | null {
  // A caller who left is told apart from the gateway that had to end a request and gave its reason.
  if (signal.aborted && !(signal.reason instanceof GatewayError)) return null
  const error = failure instanceof GatewayError ? failure : null
  const isBlocked = error?.code === 'content_blocked' && error.layer !== 'provider'
  return { outcome: isBlocked ? 'blocked' : 'failed', errorCode: error?.code ?? 'service_unavailable' }
}

/** Returns the response to bill. Null = none: a blocked request costs nothing, whatever the upstream had begun to write. */
export function billedResponse({ response, outcome, isFiltered }: Progress): UpstreamResponse | null {
  if (response === null || outcome === 'blocked') return null
  return isFiltered ? { ...response, finishes: new Map([...response.finishes, [0, 'content_filter']]) } : response
}
