/**
 * The content-free trace of one request: how it was routed at that time, and the facts behind its attempts and cost. It
 * is one compact JSON value of a usage record, because every record is stored: short names, scores as integers of a
 * thousandth, at most `maximumTraced` candidates.
 */
import { Type } from '@sinclair/typebox'
import type { AttemptSkip } from '../chat/attempts.ts'
import type { HealthState } from '../request/health-state.ts'
import type { PlaceReason } from '../request/place-reason.ts'
import type { FallbackPolicy } from '../validation/fallback-policy.ts'

export const maximumTraced = 8

/** Quality, cost, speed, reliability and adjustment in thousandths; their sum is the score. */
type TracedParts = readonly [number, number, number, number, number]

/** `provider/model`, score in thousandths, reason of its place, health, and the score components; null = no scores. */
export type TracedCandidate = readonly [
  model: string,
  score: number,
  place: PlaceReason,
  health: HealthState,
  parts: TracedParts | null,
]

export type RequestTrace = {
  /** Candidates in the order of the ranking. */
  readonly c: readonly TracedCandidate[]
  /** HTTP statuses of the record's `tried`, in its order; 0 = no response. */
  readonly s?: readonly number[]
  /** Cost of uncached input, cached input, cache writes and output in 1e-8 USD, before rounding up; absent = nothing. */
  readonly b?: readonly [number, number, number, number]
  /** Moderation layer and category that decided; absent = none did. */
  readonly m?: readonly [layer: string, category: string]
  /** Field that the error names; absent = none. */
  readonly p?: string
  /** Candidates that were not called in their turn; absent = none. */
  readonly k?: readonly (readonly [model: string, reason: AttemptSkip])[]
  /** Fallback policy in force; absent = `any`. */
  readonly f?: FallbackPolicy
}

/**
 * Schema of a trace in the journal. It checks nothing inside: a trace only explains, so one of another version must
 * never make its record invalid.
 */
export const requestTraceSchema = Type.Unsafe<RequestTrace>(Type.Object({}, { additionalProperties: true }))

/** Converts a share or score to thousandths, without a negative zero. */
export function toThousandths(value: number): number {
  return Math.round(value * 1000) + 0
}
