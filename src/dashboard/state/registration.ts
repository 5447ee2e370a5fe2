import { useEffect, useState } from 'preact/hooks'
import type { RegistrationRules } from '../../console/auth/schemas.ts'
import { callOpen } from './api.ts'

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
