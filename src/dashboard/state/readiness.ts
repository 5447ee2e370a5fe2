import { asFailure } from './api-error.ts'

export type Readiness = 'ready' | 'not_ready' | 'unreachable'

/** What a failed `GET /readyz` tells: the gateway answers 503 while it starts or stops, other errors are of a proxy. */
export const readinessOf = (thrown: unknown): Readiness =>
  asFailure(thrown).status === 503 ? 'not_ready' : 'unreachable'
