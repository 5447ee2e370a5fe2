import { type Static, Type } from '@sinclair/typebox'
import { strictObject } from '../core/validation/validate.ts'
import { runawaySchema } from './runaway.ts'

/** Capability levels of models, from which a prompt without a strategy gets one. */
export const levels = ['light', 'middle', 'strong'] as const
export type Level = (typeof levels)[number]

/** Target shares of requests (0–1) for the upper two levels; the rest is `light`. */
export type LevelShares = { readonly strong: number; readonly middle: number }

/** Chosen by the project: 30% of requests go to strong models, 40% to the cheapest ones. */
export const defaultLevelShares: LevelShares = { strong: 0.3, middle: 0.3 }

/** The operator's shares (`GATEWAY_CONFIG`, `routing`); together at most 1. */
export const routingSchema = strictObject({
  strong_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  middle_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  hedge_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  /** The model that savings compare with. */
  baseline_model: Type.Optional(Type.String()),
  /** The model that compares outputs with those of the baseline. */
  judge_model: Type.Optional(Type.String()),
  runaway: Type.Optional(runawaySchema),
})
type RoutingRow = Static<typeof routingSchema>

/**
 * Returns the operator's shares. If only `strong_share` is set, the middle share keeps its default as far as there is
 * room. Null = their sum exceeds 1.
 */
export function parseLevelShares({
  strong_share,
  middle_share,
}: Pick<RoutingRow, 'strong_share' | 'middle_share'>): LevelShares | null {
  const strong = strong_share ?? defaultLevelShares.strong
  const middle = middle_share ?? Math.min(defaultLevelShares.middle, 1 - strong)
  return strong + middle > 1 ? null : { strong, middle }
}

/**
 * Returns the level of a prompt from its expected quality gain. `strongGain` is a percentile among reference prompts,
 * so the shares themselves are the thresholds.
 */
export function getLevel(strongGain: number, { strong, middle }: LevelShares): Level {
  if (strong > 0 && strongGain + strong >= 1) return 'strong'
  return middle > 0 && strongGain + strong + middle >= 1 ? 'middle' : 'light'
}
