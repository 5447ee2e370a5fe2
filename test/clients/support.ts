/** Shared by the tests of client libraries: models, inputs, and waiting. */

import type { Environment } from '../../src/config/config.ts'
import type { Clock } from '../../src/core/ports.ts'
import { systemClock } from '../../src/database/clock.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

/** Two of each provider, and the automatic model. */
export const namedModels = [
  'openai/gpt-5.4-mini',
  'openai/gpt-4.1',
  'anthropic/claude-haiku-5-5',
  'anthropic/claude-sonnet-4-6',
  'google/gemini-3.8-flash',
  'google/gemini-3.5-flash',
] as const
export const allModels = [...namedModels, 'gateway-ai'] as const
/** One of each provider, where a second would add nothing. */
export const oneEach = ['openai/gpt-5.4-mini', 'anthropic/claude-haiku-5-5', 'google/gemini-3.8-flash'] as const

/** Starts a gateway on a date when all of these models are served. `hurry` speeds up its timers. */
export function startOnServiceDay(environment: Environment = {}, hurry = 1): Promise<Gateway> {
  const shiftMs = Date.parse('2026-11-20T12:00:00Z') - Date.now()
  const clock: Clock = {
    ...systemClock,
    now: () => Date.now() + shiftMs,
    after: (milliseconds, action) => systemClock.after(milliseconds / hurry, action),
  }
  return startGateway(environment, { clock })
}

export type Place = { readonly city: string; readonly days: number }

export const placeSchema = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const }, days: { type: 'integer' as const } },
  required: ['city', 'days'],
  additionalProperties: false,
}

/** Output of a simulated model for `placeSchema`. */
export const simulatedPlace: Place = { city: 'simulated city', days: 1 }

/** A red pixel. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** Returns aborted upstream calls and open reservations after client disconnects. */
export function leavings({ deps, accountId }: Gateway) {
  const limits = { requestsPerMinute: 1, concurrentRequests: 1_000, dailyTokens: 1, dailyCostMicrocents: 1 }
  return {
    aborted: deps.simulator?.stats().aborted ?? Number.NaN,
    open: deps.simulator?.stats().exchanges.filter(({ outcome }) => outcome === 'open').length ?? Number.NaN,
    reservationsTaken: 1_000 - (deps.meter.quotaStatus(accountId, limits)?.reservations.remaining ?? Number.NaN),
  }
}

/** Creates a counting `fetch`, since client libraries retry silently. */
export function countingFetch() {
  const seen = { requests: 0, limited: 0 }
  const counted = async (input: string | URL | Request, init?: RequestInit) => {
    seen.requests++
    const response = await fetch(input, init)
    if (response.status === 429) seen.limited++
    return response
  }
  return { seen, fetch: Object.assign(counted, { preconnect: fetch.preconnect }) }
}
