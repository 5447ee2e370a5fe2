import { GatewayError } from '../validation/errors.ts'
import type { ActiveSetMember } from './active-set.ts'

/**
 * Aborts a request before its response is complete: the client disconnects, or the gateway has to stop. Behaves like an
 * `AbortController` but is not an event target, which would cost each request some microseconds to create and collect.
 */
export type RequestAbort = ActiveSetMember & { readonly signal: RequestAbortSignal; abort(reason?: unknown): void }

/** Subset of `AbortSignal`. */
export type RequestAbortSignal = {
  readonly aborted: boolean
  /** The value passed to `abort`. */
  readonly reason: unknown
  addEventListener(type: 'abort', action: () => void): void
  removeEventListener(type: 'abort', action: () => void): void
}

/** Creates a request abort. It fires once. A listener that is added later is not called and must check `aborted`. */
export function createRequestAbort(): RequestAbort {
  return new OwnEnding()
}

/** Controller and signal in one object per request instead of eight objects. */
class OwnEnding implements RequestAbort, RequestAbortSignal {
  place = -1
  aborted = false
  reason: unknown = undefined
  private actions: (() => void)[] = []

  get signal(): RequestAbortSignal {
    return this
  }

  abort(reason?: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const { actions } = this
    this.actions = []
    for (const action of actions) action()
  }

  addEventListener(_: 'abort', action: () => void): void {
    this.actions.push(action)
  }

  removeEventListener(_: 'abort', action: () => void): void {
    const index = this.actions.indexOf(action)
    if (index !== -1) this.actions.splice(index, 1)
  }
}

/** Returns the reason given to `abort`, or `client_closed` if the client disconnected. */
export function abortError(signal: RequestAbortSignal): GatewayError {
  if (signal.reason instanceof GatewayError) return signal.reason
  return new GatewayError('service_unavailable', 'The caller closed the connection.')
}
