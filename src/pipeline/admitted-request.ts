import type { ChatRequest } from '../core/chat/chat.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import type { Route } from './routing/route.ts'

/** What is fixed once a request is admitted. What changes until it is settled is its `Progress`. */
export type AdmittedRequest = {
  readonly requestId: string
  /** Epoch milliseconds. */
  readonly startedAt: number
  /** Monotonic milliseconds of the same moment, for durations. */
  readonly startedMonotonic: number
  /** The trace that the caller says this is part of. */
  readonly trace: TraceParent | null
  /** Under which the prompt is remembered: see `RecentPrompts`. */
  readonly promptDigest: string
  readonly caller: Caller
  readonly ask: ChatRequest
  readonly plan: Route
}
