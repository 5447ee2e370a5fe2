import type { Clock } from '../ports.ts'
import { GatewayError } from '../validation/errors.ts'

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

/** Position that an active set keeps on its members. A member belongs to at most one set. */
export type ActiveSetMember = {
  /** Index in the set; -1 = in no set. Only the set writes it. */
  place: number
}

/** An unordered set for objects that are added and deleted very often. */
type ActiveSet<T extends ActiveSetMember> = Iterable<T> & {
  add(member: T): void
  /** Does nothing if the member is not in the set. */
  delete(member: T): void
}

/**
 * Creates an empty active set. A `Set` keeps deleted members reachable: the engine's outgrown tables hold them until a
 * collection of the whole heap. Every request, with all that it references, would stay in memory until then.
 */
export function createActiveSet<T extends ActiveSetMember>(): ActiveSet<T> {
  const members: T[] = []
  return {
    add(member) {
      if (member.place !== -1) return
      member.place = members.length
      members.push(member)
    },
    delete(member) {
      const { place } = member
      if (place === -1) return
      member.place = -1
      const last = members.pop()
      if (last === undefined || last === member) return
      // The last member fills the gap.
      last.place = place
      members[place] = last
    },
    [Symbol.iterator]: () => members.values(),
  }
}

/** Resolves with `work`; rejects with `abortError` if the request is aborted first. */
export function unlessAborted<T>(work: Promise<T>, signal: RequestAbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(abortError(signal))
    // A listener that is added later is not called.
    if (signal.aborted) return leave()
    signal.addEventListener('abort', leave)
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

/** Resolves after `milliseconds`, or when the request is aborted. */
export function sleepUnlessAborted(
  clock: Pick<Clock, 'after'>,
  milliseconds: number,
  signal: RequestAbortSignal,
): Promise<void> {
  // A listener that is added later is not called.
  if (signal.aborted) return Promise.resolve()
  return new Promise(resolve => {
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(milliseconds, end)
    signal.addEventListener('abort', end)
  })
}
