/** Outcome of one prompt: the router's score, and how well each of the two models did. */
export type ModelOutcome = { readonly score: number; readonly weak: number; readonly strong: number }

/**
 * Returns the area under the performance gap recovered (APGR) as the share of prompts sent to the strong model, highest
 * scores first, goes from 0 to 1 (Ong et al. 2024, RouteLLM). Chance reaches 0.5; values above 1 are possible if the
 * weak model is better on some prompts. Prompts of equal score are sent together, as a straight line.
 */
export function areaRecovered(outcomes: readonly ModelOutcome[]): number {
  const curve = recoveryCurve(outcomes)
  let area = 0
  for (const [index, point] of curve.entries()) {
    const before = curve[index - 1]
    if (before !== undefined) area += ((point.share - before.share) * (point.recovered + before.recovered)) / 2
  }
  return area
}

type Point = { readonly share: number; readonly recovered: number }

/**
 * Returns the curve from no strong call to all of them: (mixed − weak) / (strong − weak), with a point per distinct
 * score.
 */
function recoveryCurve(outcomes: readonly ModelOutcome[]): readonly Point[] {
  const ranked = outcomes.toSorted((left, right) => right.score - left.score)
  const gap = ranked.reduce((sum, { weak, strong }) => sum + strong - weak, 0)
  const curve: Point[] = [{ share: 0, recovered: 0 }]
  let gained = 0
  for (const [index, { score, weak, strong }] of ranked.entries()) {
    gained += strong - weak
    if (ranked[index + 1]?.score === score) continue
    curve.push({ share: (index + 1) / ranked.length, recovered: gained / gap })
  }
  return curve
}
