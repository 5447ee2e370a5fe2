import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownRequest } from '../../routes/usage/schemas.ts'
import { callApi } from './api.ts'
import { asFailure, isAbort, type RequestError } from './api-error.ts'

const pageSize = 50
const tailEveryMs = 2_000
/** Maximum rows of live updates; older ones remain in the log. */
const mostRows = 2_000

export type RequestLog = {
  readonly rows: readonly ShownRequest[] | undefined
  readonly hasMore: boolean
  readonly isLoading: boolean
  readonly failure: RequestError | null
  /** Rows that arrived during live updates. */
  readonly fresh: ReadonlySet<string>
  loadMore(): void
  reload(): void
}

type State = Omit<RequestLog, 'loadMore' | 'reload' | 'hasMore'> & { readonly cursor: string | null }

const nothing: State = { rows: undefined, cursor: null, isLoading: true, failure: null, fresh: new Set() }

/** Loads the request log under `filters` page by page; with `isLive` new requests are added at the top. */
export function useLog(filters: Readonly<Record<string, string>>, isLive: boolean): RequestLog {
  const [state, setState] = useState(nothing)
  const [round, setRound] = useState(0)
  const key = JSON.stringify(filters)
  const abort = useRef(new AbortController())

  const ask = async (query: Readonly<Record<string, string>>, take: (state: State, page: Page) => State) => {
    const { signal } = abort.current
    try {
      const page = await callApi('GET /api/v1/requests', {
        query: { ...filters, limit: String(pageSize), ...query },
        signal,
      })
      if (!signal.aborted) setState(now => ({ ...take(now, page), isLoading: false, failure: null }))
    } catch (thrown) {
      if (!isAbort(thrown)) setState(now => ({ ...now, isLoading: false, failure: asFailure(thrown) }))
    }
  }

  useEffect(() => {
    abort.current = new AbortController()
    setState(now => ({ ...now, isLoading: true }))
    void ask({}, (_, page) => ({ ...nothing, rows: page.data, cursor: page.next_cursor }))
    return () => abort.current.abort()
  }, [key, round])

  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void ask({}, withNewer)
    }, tailEveryMs)
    return () => clearInterval(timer)
  }, [key, isLive])

  const { cursor, ...shown } = state
  return {
    ...shown,
    hasMore: cursor !== null,
    loadMore: () => {
      if (cursor === null || state.isLoading) return
      setState(now => ({ ...now, isLoading: true }))
      void ask({ cursor }, (now, page) => ({
        ...now,
        rows: [...(now.rows ?? []), ...page.data],
        cursor: page.next_cursor,
      }))
    },
    reload: () => setRound(now => now + 1),
  }
}

type Page = { readonly data: readonly ShownRequest[]; readonly next_cursor: string | null }

function withNewer(state: State, page: Page): State {
  const known = new Set(state.rows?.map(({ request_id }) => request_id))
  const newer = page.data.filter(({ request_id }) => !known.has(request_id))
  if (newer.length === 0) return state
  // More new requests than one page: the gap is unknown, so the list restarts.
  if (newer.length === page.data.length && known.size > 0)
    return {
      ...state,
      rows: page.data,
      cursor: page.next_cursor,
      fresh: new Set(newer.map(({ request_id }) => request_id)),
    }
  return {
    ...state,
    rows: [...newer, ...(state.rows ?? [])].slice(0, mostRows),
    fresh: new Set(newer.map(({ request_id }) => request_id)),
  }
}
