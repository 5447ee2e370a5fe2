import { type Static, Type } from '@sinclair/typebox'

/** How capable a model a prompt is worth, where no strategy says it. */
export const levels = ['light', 'middle', 'strong'] as const
export type Level = (typeof levels)[number]

/** Target shares of requests, 0–1 each, that go to the upper two levels; what is left of 1 is `light`. */
export type LevelShares = { readonly strong: number; readonly middle: number }

/** Our choice: three requests of ten get the strong models, four stay with the cheap ones. */
export const defaultLevelShares: LevelShares = { strong: 0.3, middle: 0.3 }

/** The operator's own (`GATEWAY_CONFIG`, `routing`); together at most 1. */
export const routingSchema = Type.Object(
  {
    strong_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    middle_share: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
  },
  { additionalProperties: false },
)
export type RoutingRow = Static<typeof routingSchema>

/**
 * The shares an operator asks for; of the upper level alone, the middle one keeps its own as far as there is room for it.
 * Null = they are more than all requests.
 */
export function parseLevelShares({ strong_share, middle_share }: RoutingRow): LevelShares | null {
  const strong = strong_share ?? defaultLevelShares.strong
  const middle = middle_share ?? Math.min(defaultLevelShares.middle, 1 - strong)
  return strong + middle > 1 ? null : { strong, middle }
}

/**
 * The level of a prompt, from how much a strong model is expected to gain on it. `strongGain` is a rank among reference
 * prompts, so that its upper `strong` share is the upper level: the thresholds are the shares themselves.
 */
export function levelOf(strongGain: number, { strong, middle }: LevelShares): Level {
  if (strong > 0 && strongGain + strong >= 1) return 'strong'
  return middle > 0 && strongGain + strong + middle >= 1 ? 'middle' : 'light'
}
