import { useEffect, useRef, useState } from 'preact/hooks'
import type { ShownRequest } from '../../console/usage/schemas.ts'
import { callApi } from './api.ts'
import { asFailure, isAbort, type RequestError } from './api-error.ts'

const pageSize = 50
const tailEveryMs = 2_000
/** Pages are read until there are this many new rows, or as many pages. */
const enoughRows = 20
const mostShortPages = 20
/** Maximum rows of live updates; older ones remain in the log. */
const mostRows = 2_000

type RequestLog = {
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

  const read = (query: Readonly<Record<string, string>>) =>
    callApi('GET /api/v1/requests', {
      query: { ...filters, limit: String(pageSize), ...query },
      signal: abort.current.signal,
    })
  /** Reports errors, unless the filters have changed meanwhile. */
  const attempt = async (work: () => Promise<void>) => {
    const { signal } = abort.current
    try {
      await work()
      if (!signal.aborted) setState(now => ({ ...now, isLoading: false, failure: null }))
    } catch (thrown) {
      if (!isAbort(thrown)) setState(now => ({ ...now, isLoading: false, failure: asFailure(thrown) }))
    }
  }
  /** Reads on while pages are short: a filter that matches little finds few requests in a bounded search. */
  const fill = async (from: string | null) => {
    const { signal } = abort.current
    let cursor = from
    let found = 0
    for (let pages = 0; pages < mostShortPages && found < enoughRows; pages++) {
      const page = await read(cursor === null ? {} : { cursor })
      if (signal.aborted) return
      const isFirst = cursor === null
      setState(now => ({
        ...(isFirst ? nothing : now),
        rows: [...(isFirst ? [] : (now.rows ?? [])), ...page.data],
        cursor: page.next_cursor,
      }))
      found += page.data.length
      cursor = page.next_cursor
      if (cursor === null) return
    }
  }

  useEffect(() => {
    abort.current = new AbortController()
    setState(now => ({ ...now, isLoading: true }))
    void attempt(() => fill(null))
    return () => abort.current.abort()
  }, [key, round])

  useEffect(() => {
    if (!isLive) return
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return
      void attempt(async () => {
        const page = await read({})
        setState(now => withNewer(now, page))
      })
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
      void attempt(() => fill(cursor))
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
