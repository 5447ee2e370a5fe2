import { useEffect, useState } from 'preact/hooks'
import type { RegistrationRules } from '../../console/auth/schemas.ts'
import type { Health } from '../../observability/probes.ts'
import { callOpen } from './api.ts'
import { asFailure, type RequestError } from './api-error.ts'
import { whileVisible } from './resource.ts'

/** Requested once per page load: neither version nor providers change without a restart of the gateway. */
let loaded: Promise<Health> | null = null

/** Returns version and provider mode of the gateway; null while loading, and if it does not answer. */
export function useGateway(): Health | null {
  const [found, setFound] = useState<Health | null>(null)
  useEffect(() => {
    loaded ??= callOpen('GET /healthz')
    loaded.then(setFound, () => {
      loaded = null
    })
  }, [])
  return found
}

/** Returns who can register; null while loading. */
export const useRegistration = (): RegistrationRules | null => useOpen(readRegistration).data

const readRegistration = () => callOpen('GET /api/v1/auth/registration')

type Open<T> = { readonly data: T | null; readonly failure: RequestError | null }

/** Returns what `read` found last, and its failure since; repeats it every `everyMs` while the tab is visible. */
export function useOpen<T>(read: () => Promise<T>, everyMs?: number): Open<T> {
  const [found, setFound] = useState<Open<T>>({ data: null, failure: null })
  useEffect(() => {
    let isShown = true
    const load = () =>
      void read().then(
        data => isShown && setFound({ data, failure: null }),
        thrown => isShown && setFound(({ data }) => ({ data, failure: asFailure(thrown) })),
      )
    load()
    const stop = everyMs === undefined ? () => {} : whileVisible(everyMs, load)
    return () => {
      isShown = false
      stop()
    }
  }, [])
  return found
}
