/** Applies learning to the ranking: a bounded reordering of near ties, and occasional exploration. */

import { insertSorted } from '../models/insert-sorted.ts'
import { getConfidence, maximumBias } from './learning-cell.ts'

/** Learned bias of one model for a query type. `ratings` = number of rated responses; absent = none. */
export type LearnedBias = { readonly bias: number; readonly entries: number; readonly ratings?: number }

/** Looks up the learned bias of `provider/model` for one account, from memory. */
export type LearnedBiasLookup = (model: string) => LearnedBias | null

/** Returns the bias on a model's score; 0 without data. */
export function getBias(leaning: LearnedBiasLookup | null, model: string): number {
  return leaning?.(model)?.bias ?? 0
}

type Scored = { readonly score: number }

/**
 * Returns the list, highest score first, with each score moved by its learned bias. A model passes another only if its
 * biased score is higher and the original margin is at most the larger bound of the two. No wider margin is ever
 * reversed. Returned scores descend and stay within 0–1.
 */
export function applyLearnedBias<T extends Scored>(
  scored: readonly T[],
  findBias: (entry: T) => LearnedBias | null,
): T[] {
  const placed: Biased<T>[] = []
  for (const entry of scored) {
    const lean = findBias(entry)
    insertSorted(
      placed,
      { entry, biased: entry.score + (lean?.bias ?? 0), bound: maximumBias(lean?.entries ?? 0, lean?.ratings) },
      passing,
    )
  }
  let highest = 1
  return placed.map(({ entry, biased }) => {
    highest = Math.max(0, Math.min(highest, biased))
    return highest === entry.score ? entry : { ...entry, score: highest }
  })
}

type Biased<T extends Scored> = { readonly entry: T; readonly biased: number; readonly bound: number }

/** Returns a value above 0 if `below` passes `above`. */
function passing(above: Biased<Scored>, below: Biased<Scored>): number {
  const margin = above.entry.score - below.entry.score
  return below.biased > above.biased && margin <= Math.max(above.bound, below.bound) ? 1 : 0
}

/** Share of requests that explore another model of a near tie. */
export const explorationShare = 0.005
/** Scores this close are a near tie. */
const nearTie = 0.05

/**
 * Returns the list with the least-known model of the near tie first, if this request explores. Explores only if the
 * leader is past its cold start, and never moves a well-known or ineligible model to the front. `probability` is the
 * chance that the resulting first model came first: the weight for off-policy estimates.
 */
export function explore<T extends Scored>(
  ordered: readonly T[],
  findBias: (entry: T) => LearnedBias | null,
  mayLead: (entry: T) => boolean,
  draw: () => number,
): { readonly ordered: readonly T[]; readonly probability: number } {
  const [leader] = ordered
  const sure = { ordered, probability: 1 }
  if (leader === undefined || maximumBias(findBias(leader)?.entries ?? 0) === 0) return sure
  let least: T | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const entry of ordered) {
    const entries = findBias(entry)?.entries ?? 0
    const isNear = entry !== leader && leader.score - entry.score <= nearTie
    if (isNear && entries < fewest && !isWellKnown(entries) && mayLead(entry)) [least, fewest] = [entry, entries]
  }
  if (least === null) return sure
  if (draw() >= explorationShare) return { ordered, probability: 1 - explorationShare }
  return { ordered: [least, ...ordered.filter(entry => entry !== least)], probability: explorationShare }
}

const isWellKnown = (entries: number) => getConfidence(entries) === 'established'
