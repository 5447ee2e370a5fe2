/** Why routing chose a model, from the scores that the log keeps. */
import type { RequestRecord } from '../../console/usage/schemas.ts'

export type ScoredModel = NonNullable<RequestRecord['candidates']>[number]
type Scored = NonNullable<ScoredModel['parts']>

/** Components of a score with their colors, and with words for a sentence. */
export const scoreParts = [
  ['cost', 's1', 'cost'],
  ['speed', 's4', 'speed'],
  ['quality', 'main', 'quality'],
  ['adjustment', 's5', 'adjustments for health and learning'],
  ['reliability', 'lost', 'reliability'],
] as const satisfies readonly (readonly [keyof Scored, string, string])[]

/** One sentence: why routing put the first candidate first, and which model served in its place. */
export function tellChoice([first, next]: readonly ScoredModel[], served: string | null): string {
  if (first === undefined) return ''
  const gain = (name: keyof Scored) => (first.parts?.[name] ?? 0) - (next?.parts?.[name] ?? 0)
  const [most, , words] = scoreParts.reduce((best, part) => (gain(part[0]) > gain(best[0]) ? part : best))
  const ahead =
    next === undefined || first.parts === null || next.parts === null || gain(most) <= 0
      ? ''
      : `, ahead of ${next.model} mostly by its ${words}`
  const why =
    first.place === 'requested'
      ? 'the request names it'
      : first.place === 'score'
        ? `it has the highest score of the models that may be called now${ahead}`
        : `it is ${first.reasons[0] ?? 'first'}`
  if (served === null || served === first.model) return `Chosen because ${why}.`
  return `${first.model} was chosen because ${why}. ${served} served after it failed or was skipped.`
}
