import type { Scored } from './scoring.ts'

/**
 * Inserts an entry into a sorted list: after all entries that `order` (as of `Array.sort`) does not place after it.
 * Faster than sorting if the list is short or entries arrive mostly in order.
 */
export function insertSorted<T>(ordered: T[], entry: T, order: (before: T, entry: T) => number): void {
  let at = ordered.length
  for (; at > 0; at--) {
    const before = ordered[at - 1]
    if (before === undefined || order(before, entry) <= 0) break
    ordered[at] = before
  }
  ordered[at] = entry
}

/** Scores this close count as equal when alternating providers. */
export const nearScore = 0.15

/**
 * Returns the first `count` of a ranked list. After the first, a model of an unused provider moves ahead if its score
 * is near the best remaining one, so that one provider's outage does not also affect the next candidate.
 */
export function alternateProviders<T extends Scored>(ordered: readonly T[], count: number): T[] {
  const chosen: T[] = []
  const isChosen = new Uint8Array(ordered.length)
  // Index in `chosen` at which the current round begins; each provider has at most one model per round.
  let round = 0
  while (chosen.length < count) {
    let [best, fresh] = [-1, -1]
    for (let at = 0; at < ordered.length && fresh === -1; at++) {
      if (isChosen[at] === 1) continue
      if (best === -1) best = at
      const provider = ordered[at]?.model.provider
      let turn = round
      while (turn < chosen.length && chosen[turn]?.model.provider !== provider) turn++
      if (turn === chosen.length) fresh = at
    }
    const [first, other] = [ordered[best], ordered[fresh]]
    if (first === undefined) break
    if (other === undefined) round = chosen.length
    const passes = other !== undefined && fresh !== best && first.score - other.score <= nearScore
    isChosen[passes ? fresh : best] = 1
    chosen.push(passes ? { ...other, place: 'other_provider' } : first)
  }
  return chosen
}
