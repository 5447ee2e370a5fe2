import { useEffect, useState } from 'preact/hooks'
import type { RegistrationRules } from '../../console/auth/schemas.ts'
import type { Health } from '../../observability/probes.ts'
import { callOpen } from './api.ts'

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
export function useRegistration(): RegistrationRules | null {
  const [rules, setRules] = useState<RegistrationRules | null>(null)
  useEffect(() => {
    const abort = new AbortController()
    callOpen('GET /api/v1/auth/registration', { signal: abort.signal }).then(setRules, () => {})
    return () => abort.abort()
  }, [])
  return rules
}
