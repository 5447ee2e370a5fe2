/** What the client libraries' tests share: the models asked, what is sent, and how an end is awaited. */

import { systemClock } from '../../src/composition/clock.ts'
import type { Environment } from '../../src/config.ts'
import type { Clock } from '../../src/core/ports/clock.ts'
import { type Gateway, startGateway } from '../harness/gateway.ts'

/** Two of each provider, and the model that the gateway chooses itself. */
export const namedModels = [
  'openai/gpt-5.4-mini',
  'openai/gpt-4.1',
  'anthropic/claude-haiku-5-5',
  'anthropic/claude-sonnet-4-6',
  'google/gemini-3.8-flash',
  'google/gemini-3.5-flash',
] as const
export const allModels = [...namedModels, 'gateway-ai'] as const
/** One of each provider, where the second would tell nothing more. */
export const oneEach = ['openai/gpt-5.4-mini', 'anthropic/claude-haiku-5-5', 'google/gemini-3.8-flash'] as const

/**
 * A gateway on a day when all of them are served, whatever day it is. Where its timers are to run `hurry` times as fast,
 * what it does after seconds is seen in a moment.
 */
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

/** What a simulated model makes of `placeSchema`. */
export const simulatedPlace: Place = { city: 'simulated city', days: 1 }

/** A red pixel. */
export const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** Resolves once it holds; rejects after `withinMs`, naming it. */
export async function eventually(what: string, holds: () => boolean, withinMs = 1_000): Promise<void> {
  const endsAt = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > endsAt) throw new Error(`not within ${withinMs} ms: ${what}`)
    await Bun.sleep(5)
  }
}

/** What the upstream and the meter saw of callers who left: calls cut off, and seats of the account still taken. */
export function leavings({ deps, accountId }: Gateway) {
  const limits = { requestsPerMinute: 1, concurrentRequests: 1_000, dailyTokens: 1, dailyCostMicrocents: 1 }
  return {
    aborted: deps.simulator?.stats().aborted ?? Number.NaN,
    open: deps.simulator?.stats().exchanges.filter(({ outcome }) => outcome === 'open').length ?? Number.NaN,
    seatsTaken: 1_000 - (deps.meter.standing(accountId, limits)?.seats.remaining ?? Number.NaN),
  }
}

/** `fetch`, counting: client libraries retry in silence. */
export function countingFetch() {
  const seen = { requests: 0 }
  const counted = (input: string | URL | Request, init?: RequestInit) => {
    seen.requests++
    return fetch(input, init)
  }
  return { seen, fetch: Object.assign(counted, { preconnect: fetch.preconnect }) }
}
