import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { callApi, callOpen } from './api.ts'
import { asFailure, isAbort, type RequestError } from './api-error.ts'
import type { ReadRoute, Routes } from './routes.ts'

export type Resource<T> = {
  /** The last response; undefined before the first. Stays while a newer one is loading. */
  readonly data: T | undefined
  readonly failure: RequestError | null
  readonly isLoading: boolean
  reload(): void
  /** Replaces the data by a response obtained another way. */
  set(data: T): void
}

/** Responses of earlier pages, shown at once on return; cleared when the user changes. */
const kept = new Map<string, unknown>()

/** Calls in progress: parts of a page that show the same response share one. */
const pending = new Map<string, Promise<unknown>>()

export function forgetResources(): void {
  kept.clear()
  pending.clear()
}

type Options = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  /** Reload interval in milliseconds while the tab is visible. */
  readonly everyMs?: number
  /** False = not loaded. */
  readonly when?: boolean
  /** The route needs no session. */
  readonly isOpen?: boolean
}

/** Loads a route's response when the component is first shown and whenever its parameters change. */
export function useResource<R extends ReadRoute>(
  route: R,
  { params = {}, query = {}, everyMs, when = true, isOpen = false }: Options = {},
): Resource<Routes[R]> {
  const key = `${route} ${JSON.stringify([params, query])}`
  const [state, setState] = useState<{ key: string; failure: RequestError | null; isLoading: boolean; round: number }>({
    key,
    failure: null,
    isLoading: when,
    round: 0,
  })
  const input = useRef({ params, query })
  input.current = { params, query }

  const reload = useCallback(() => setState(now => ({ ...now, round: now.round + 1 })), [])
  const set = useCallback(
    (data: Routes[R]) => {
      kept.set(key, data)
      setState(now => ({ ...now, failure: null }))
    },
    [key],
  )

  useEffect(() => {
    if (!when) return
    const abort = new AbortController()
    setState(now => ({ ...now, key, isLoading: true }))
    // A reload asks for what is newer than a call in progress.
    const shared = state.round === 0 ? pending.get(key) : undefined
    const send = isOpen ? callOpen : callApi
    const call = shared ?? send(route, { ...input.current, signal: abort.signal })
    pending.set(key, call)
    const end = () => {
      if (pending.get(key) === call) pending.delete(key)
      return abort.signal.aborted
    }
    call.then(
      data => {
        if (end()) return
        kept.set(key, data)
        setState(now => ({ ...now, key, failure: null, isLoading: false }))
      },
      thrown => {
        if (end()) return
        // The part that made the call has left the page.
        if (isAbort(thrown)) reload()
        else setState(now => ({ ...now, key, failure: asFailure(thrown), isLoading: false }))
      },
    )
    return () => abort.abort()
  }, [key, when, state.round])

  useEffect(() => {
    if (everyMs === undefined || !when) return
    return whileVisible(everyMs, reload)
  }, [everyMs, when, reload])

  const isCurrent = state.key === key
  return {
    // Only this route's responses are stored under this key.
    data: kept.get(key) as Routes[R] | undefined,
    failure: isCurrent ? state.failure : null,
    isLoading: isCurrent ? state.isLoading : when,
    reload,
    set,
  }
}

/** Returns version and provider mode of the gateway; undefined while loading, and if it does not answer. */
export const useGateway = () => useResource('GET /healthz', { isOpen: true }).data

/** Returns who can register; undefined while loading. */
export const useRegistration = () => useResource('GET /api/v1/auth/registration', { isOpen: true }).data

/** Repeats `work` while the tab is visible, and at once when it becomes visible. Returns what stops it. */
export function whileVisible(everyMs: number, work: () => void): () => void {
  const workIfVisible = () => {
    if (document.visibilityState === 'visible') work()
  }
  const timer = setInterval(workIfVisible, everyMs)
  document.addEventListener('visibilitychange', workIfVisible)
  return () => {
    clearInterval(timer)
    document.removeEventListener('visibilitychange', workIfVisible)
  }
}

export type UiAction<A extends readonly unknown[]> = {
  run(...input: A): Promise<void>
  readonly isBusy: boolean
  readonly failure: RequestError | null
  clear(): void
}

/** A user action that may fail. Cannot be started again while it runs. */
export function useAction<A extends readonly unknown[]>(perform: (...input: A) => Promise<void>): UiAction<A> {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<RequestError | null>(null)
  const run = async (...input: A) => {
    if (isBusy) return
    setBusy(true)
    setFailure(null)
    try {
      await perform(...input)
    } catch (thrown) {
      if (!isAbort(thrown)) setFailure(asFailure(thrown))
    } finally {
      setBusy(false)
    }
  }
  return { run, isBusy, failure, clear: useCallback(() => setFailure(null), []) }
}
