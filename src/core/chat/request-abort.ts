import type { ActiveSetMember } from '../limits/active-set.ts'
import { GatewayError } from '../validation/errors.ts'

/**
 * What can end a request before its answer is whole: its caller leaves, or the gateway has to stop. Says and takes what an
 * `AbortController` does, without being an event target, whose making, hearing and collecting cost each request some
 * microseconds.
 */
export type RequestAbort = ActiveSetMember & { readonly signal: RequestAbortSignal; abort(reason?: unknown): void }

/** An `AbortSignal` is one too. */
export type RequestAbortSignal = {
  readonly aborted: boolean
  /** Whatever was given to `abort`. */
  readonly reason: unknown
  addEventListener(type: 'abort', action: () => void): void
  removeEventListener(type: 'abort', action: () => void): void
}

/** An ending that has not come. It comes once; whoever listens only afterwards hears nothing and looks at `aborted`. */
export function createRequestAbort(): RequestAbort {
  return new OwnEnding()
}

/** Is its own signal: one object for each request in place of eight. */
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

/** The caller left, or the gateway had to end the request itself and said why. */
export function abortError(signal: RequestAbortSignal): GatewayError {
  if (signal.reason instanceof GatewayError) return signal.reason
  return new GatewayError('service_unavailable', 'The caller closed the connection.')
}
