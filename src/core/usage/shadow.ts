/** Shadow evaluation: which requests of an account are compared with its baseline, and what the verdicts say. */
import { type Static, Type } from '@sinclair/typebox'
import { strictObject } from '../validation/validate.ts'

/** Key of the calls that comparisons make, in the ledger. No API key has it. */
export const shadowKeyId = 'shadow'

/** Of the served output against that of the baseline. `none`: there was no answer to compare, or no verdict. */
export const shadowVerdicts = ['win', 'tie', 'loss', 'none'] as const
export type ShadowVerdict = (typeof shadowVerdicts)[number]

/** The setting of an account. */
export const shadowSchema = strictObject({
  share: Type.Number({ minimum: 0, maximum: 1, description: 'share of the eligible requests', examples: [0.05] }),
  monthly_cap_usd: Type.Number({
    minimum: 0,
    maximum: 1_000_000,
    description: 'what comparisons may cost per UTC month',
    examples: [5],
  }),
})
export type Shadow = Static<typeof shadowSchema>

/** z of 95%. */
const z = 1.959964

/**
 * Returns the share `successes / trials` with the bounds of its 95% Wilson interval, which is right for few trials too; null = no
 * trial.
 */
export function getWilson(successes: number, trials: number) {
  if (trials === 0) return null
  const share = successes / trials
  const spread = z * Math.sqrt((share * (1 - share)) / trials + (z / (2 * trials)) ** 2)
  const [middle, scale] = [share + z ** 2 / (2 * trials), 1 + z ** 2 / trials]
  return { share: rounded(share), low: rounded((middle - spread) / scale), high: rounded((middle + spread) / scale) }
}

/** To hundredths of a percent, without a negative zero. */
const rounded = (share: number) => Math.round(share * 1e4) / 1e4 + 0
