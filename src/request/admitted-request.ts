import type { ChatRequest } from '../core/chat/chat.ts'
import type { Caller } from '../core/limits/plans.ts'
import type { TraceParent } from '../core/text/traceparent.ts'
import type { Route } from './routing/route.ts'

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
  readonly ask: ChatRequest
  readonly plan: Route
}
