/**
 * Runaway protection: bounds on one conversation that makes no progress, or spends too fast. Off unless the operator sets a
 * bound. The first step warns, the second lowers the effort, the third stops the conversation before anything is billed.
 */
import { type Static, Type } from '@sinclair/typebox'
import { toUsd } from '../core/usage/money.ts'
import type { RunawayStep } from '../core/usage/usage-record.ts'
import { strictObject } from '../core/validation/validate.ts'

/** `routing.runaway` of `GATEWAY_CONFIG`. The factors are multiples of the bounds. */
export const runawaySchema = strictObject({
  stalled_turns: Type.Optional(Type.Integer({ minimum: 2, maximum: 10_000 })),
  usd_per_minute: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 10_000 })),
  lower_factor: Type.Optional(Type.Number({ minimum: 1, maximum: 1_000 })),
  stop_factor: Type.Optional(Type.Number({ minimum: 1, maximum: 1_000 })),
})
export type RunawayBounds = Static<typeof runawaySchema>

/** Progress and spending of a conversation, as its state has them. */
type Course = { readonly stalled: number; readonly spentMicrocents: number; readonly spentAt: number }

/** A step, and its cause as a sentence without a full stop. */
export type Runaway = { readonly step: RunawayStep; readonly cause: string }

const [usualLowerFactor, usualStopFactor] = [2, 3]
/** Spending counts half after this time. */
export const burnHalfLifeMs = 300_000

/** Returns the step that a conversation has reached; null = it is within the bounds. `now`: monotonic milliseconds. */
export function findRunaway(
  { stalled, spentMicrocents, spentAt }: Course,
  bounds: RunawayBounds,
  now: number,
): Runaway | null {
  const { stalled_turns, usd_per_minute, lower_factor = usualLowerFactor, stop_factor = usualStopFactor } = bounds
  const left = spentMicrocents * 0.5 ** (Math.max(0, now - spentAt) / burnHalfLifeMs)
  const perMinute = (toUsd(left) * Math.LN2 * 60_000) / burnHalfLifeMs
  const turns = stalled_turns === undefined ? 0 : stalled / stalled_turns
  const money = usd_per_minute === undefined ? 0 : perMinute / usd_per_minute
  const factor = Math.max(turns, money)
  if (factor < 1) return null
  const step = factor >= stop_factor ? 'stop' : factor >= lower_factor ? 'lower' : 'warn'
  const cause =
    turns >= money
      ? `${stalled} turns in a row without progress`
      : `${perMinute.toFixed(2)} USD per minute in this conversation`
  return { step, cause }
}
