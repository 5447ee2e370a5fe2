import { useCallback, useState } from 'preact/hooks'
import { asFailure, isAbort, type RequestError } from './api-error.ts'

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
