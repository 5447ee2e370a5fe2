import { GatewayError } from './errors.ts'
import type { Listed } from './roster.ts'

/**
 * What can end a request before its answer is whole: its caller leaves, or the gateway has to stop. Says and takes what an
 * `AbortController` does, without being an event target, whose making, hearing and collecting cost each request some
 * microseconds.
 */
export type Ending = Listed & { readonly signal: EndingSignal; abort(reason?: unknown): void }

/** An `AbortSignal` is one too. */
export type EndingSignal = {
  readonly aborted: boolean
  /** Whatever was given to `abort`. */
  readonly reason: unknown
  addEventListener(type: 'abort', action: () => void): void
  removeEventListener(type: 'abort', action: () => void): void
}

/** An ending that has not come. It comes once; whoever listens only afterwards hears nothing and looks at `aborted`. */
export function createEnding(): Ending {
  let actions: Set<() => void> | null = null
  const signal = {
    aborted: false,
    reason: undefined as unknown,
    addEventListener(_: 'abort', action: () => void) {
      actions ??= new Set()
      actions.add(action)
    },
    removeEventListener: (_: 'abort', action: () => void) => void actions?.delete(action),
  }
  return {
    place: -1,
    signal,
    abort(reason) {
      if (signal.aborted) return
      signal.aborted = true
      signal.reason = reason
      for (const action of actions ?? []) action()
      actions = null
    },
  }
}

/** The caller left, or the gateway had to end the request itself and said why. */
export function endedFromOutside(signal: EndingSignal): GatewayError {
  if (signal.reason instanceof GatewayError) return signal.reason
  return new GatewayError('service_unavailable', 'The caller closed the connection.')
}
