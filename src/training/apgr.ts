/** One prompt's outcome: where a router ranks it, and how each of the two models did. */
export type ModelOutcome = { readonly score: number; readonly weak: number; readonly strong: number }

/**
 * The area under the performance gap recovered as the share of prompts sent to the strong model, highest scores first, goes from
 * 0 to 1 (Ong et al. 2024, RouteLLM). 0.5 is what chance reaches; above 1 is possible where the weak model is the better one
 * for part of the prompts. Prompts of equal score are sent together, as a straight line.
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

/** The smallest share of strong calls that recovers `part` (0 to 1) of the gap. */
export function callsFor(part: number, outcomes: readonly ModelOutcome[]): number {
  const curve = recoveryCurve(outcomes)
  for (const [index, point] of curve.entries()) {
    if (point.recovered < part) continue
    const before = curve[index - 1]
    if (before === undefined) return point.share
    const way = (part - before.recovered) / (point.recovered - before.recovered)
    return before.share + way * (point.share - before.share)
  }
  return 1
}

type Point = { readonly share: number; readonly recovered: number }

/** From no strong call to all of them: (mixed − weak) / (strong − weak), a corner for each different score. */
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
