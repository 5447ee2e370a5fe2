/** `X-Gateway-Timeout-Ms`: the client's bound for a whole request, from its arrival to the end of its response. */

import { Type } from '@sinclair/typebox'
import type { RequestAbort } from '../core/chat/request-abort.ts'
import type { Clock } from '../core/ports.ts'
import { GatewayError } from '../core/validation/errors.ts'
import { invalidField } from '../core/validation/validate.ts'

const name = 'X-Gateway-Timeout-Ms'
/** The largest `TOTAL_TIMEOUT_MS`. */
const maximumMs = 3_600_000

/** The header in the API reference. */
export const timeoutHeader = { [name]: Type.Integer({ minimum: 1, maximum: maximumMs }) }

/** Returns the header's value in milliseconds; null if absent. Throws `invalid_request`. */
export function readTimeout(headers: Headers): number | null {
  const sent = headers.get(name)?.trim()
  if (sent === undefined) return null
  const value = /^\d{1,7}$/.test(sent) ? Number(sent) : 0
  if (value >= 1 && value <= maximumMs) return value
  throw invalidField(name, `must be a whole number of milliseconds from 1 to ${maximumMs}, or not be sent`)
}

type TimedRequest = {
  readonly deps: { readonly clock: Pick<Clock, 'monotonic' | 'after'> }
  readonly ending: RequestAbort
  /** Monotonic milliseconds at which the request arrived. */
  readonly receivedAt: number
}

/**
 * Aborts the request when its time is up; returns the function that cancels this. An abort is no failure of the
 * upstream: a short timeout must not make a model look unhealthy.
 */
export function endInTime({ deps: { clock }, ending, receivedAt }: TimedRequest, timeoutMs: number): () => void {
  const message = `The request took longer than its timeout of ${timeoutMs} ms (\`${name}\`). Allow more time, or lower \`max_output_tokens\`.`
  const end = () =>
    ending.abort(new GatewayError('upstream_timeout', message, { shouldRetry: false, detail: 'timeout of the client' }))
  return clock.after(Math.max(0, receivedAt + timeoutMs - clock.monotonic()), end)
}
