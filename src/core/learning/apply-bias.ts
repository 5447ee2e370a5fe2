/** Where learning meets the router's choice: a bounded reordering of near-equals, and now and then a look at another. */

import { insertSorted } from '../routing/insert-sorted.ts'
import { confidenceOf, maximumBias } from './learning-cell.ts'

/** What was learnt of one model for a query type. */
export type LearnedBias = { readonly bias: number; readonly entries: number }

/** What routing reads of one account's learning, from memory. `model` is `provider/model`. */
export type LearnedBiasLookup = (model: string) => LearnedBias | null

/** The bias of a model on its score; 0 where nothing is known. */
export function getBias(leaning: LearnedBiasLookup | null, model: string): number {
  return leaning?.(model)?.bias ?? 0
}

type Scored = { readonly score: number }

/**
 * The list, best first, with each score moved by its bias. One model passes another only where its biased score is higher
 * and the margin it had to make up is within the larger of the two models' bounds: of no two models, wherever they stand,
 * is a wider margin overturned. Scores are told so that they descend, and stay within 0–1.
 */
export function applyLearnedBias<T extends Scored>(
  scored: readonly T[],
  leanOf: (entry: T) => LearnedBias | null,
): T[] {
  const placed: Biased<T>[] = []
  for (const entry of scored) {
    const lean = leanOf(entry)
    insertSorted(
      placed,
      { entry, biased: entry.score + (lean?.bias ?? 0), bound: maximumBias(lean?.entries ?? 0) },
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

/** Above 0 where the one below passes the one above. */
function passing(above: Biased<Scored>, below: Biased<Scored>): number {
  const margin = above.entry.score - below.entry.score
  return below.biased > above.biased && margin <= Math.max(above.bound, below.bound) ? 1 : 0
}

/** Share of requests that look at a near-tie not well known yet. */
export const explorationShare = 0.005
/** Scores this close are a tie. */
const nearTie = 0.05

/**
 * The list with its least known near-tie first, where this request is one to explore: only where the leader itself is past
 * its cold start, never a model that is well known, nor one that may not lead. `probability` is that of the first model having become the first:
 * what estimates of another policy would have to weigh this request by.
 */
export function explore<T extends Scored>(
  ordered: readonly T[],
  leanOf: (entry: T) => LearnedBias | null,
  mayLead: (entry: T) => boolean,
  draw: () => number,
): { readonly ordered: readonly T[]; readonly probability: number } {
  const [leader] = ordered
  const sure = { ordered, probability: 1 }
  if (leader === undefined || maximumBias(leanOf(leader)?.entries ?? 0) === 0) return sure
  let least: T | null = null
  let fewest = Number.POSITIVE_INFINITY
  for (const entry of ordered) {
    const entries = leanOf(entry)?.entries ?? 0
    const isNear = entry !== leader && leader.score - entry.score <= nearTie
    if (isNear && entries < fewest && !isWellKnown(entries) && mayLead(entry)) [least, fewest] = [entry, entries]
  }
  if (least === null) return sure
  if (draw() >= explorationShare) return { ordered, probability: 1 - explorationShare }
  return { ordered: [least, ...ordered.filter(entry => entry !== least)], probability: explorationShare }
}

const isWellKnown = (entries: number) => confidenceOf(entries) === 'established'
