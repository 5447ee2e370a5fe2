/**
 * Estimates the quality gain of a strong model for a prompt. For exam questions it follows benchmark results, for
 * requests the expected effort. Each text is a mix of both, in the proportion that the exam classifier returns.
 */
import { type DifficultySignal, difficultySignals } from '../dry-run-names.ts'
import { createEffortHead, type KeptEffort } from './effort.ts'
import type { Features } from './features.ts'
import type { Notions } from './notions.ts'
import { createGainHead, type StoredGainModel } from './quality-gain.ts'

/** Effect of effort, and for requests of the benchmark rank, on the log-odds. */
const effortPart = 0.35
const examPart = 0.1
/** Level of a request without either signal. Changes levels, never the order of prompts. */
const levelPart = 0.4
/**
 * Log-odds required beyond even odds before a text counts as an exam question: mistaking a request for one is the worse
 * error.
 */
const examDoubt = 1

/** One signal and how far it moves `strongGain`, in log-odds. */
export type WeighedSignal = { readonly signal: DifficultySignal; readonly weight: number }

type DifficultyHead = {
  /** Returns 0 to 1. */
  strongGain(features: Features, notions: Notions): number
  /** Returns the signals that decided the result, strongest first. */
  signals(features: Features, notions: Notions): readonly WeighedSignal[]
}

/** Creates a classifier with its own buffers from stored weights. */
export function createDifficultyHead(gain: StoredGainModel, kept: KeptEffort): DifficultyHead {
  const getGain = createGainHead(gain)
  const getEffort = createEffortHead(kept)
  return {
    strongGain(features, notions) {
      // An empty request gains nothing.
      if (features.count === 0) return 0
      const { effort, examChance } = getEffort(features, notions)
      return mixedGain(getGain(features), effort, examShare(examChance))
    },
    signals(features, notions) {
      if (features.count === 0) return []
      const { bySignal, examChance } = getEffort(features, notions, true)
      const exam = examShare(examChance)
      const odds = getOdds(getGain(features))
      return difficultySignals
        .map((signal, index) => ({
          signal,
          weight:
            signal === 'benchmarks'
              ? odds * (exam + (1 - exam) * examPart)
              : (1 - exam) * effortPart * (bySignal[index] ?? 0),
        }))
        .filter(({ weight }) => Math.abs(weight) >= leastShown)
        .sort((item, other) => Math.abs(other.weight) - Math.abs(item.weight))
        .slice(0, mostShown)
    },
  }
}

const leastShown = 0.1
const mostShown = 6

/** Returns how far a text is an exam question, 0–1. */
export function examShare(examChance: number): number {
  return 1 / (1 + Math.exp(examDoubt - getOdds(examChance)))
}

/**
 * Returns the gain of a text that is `exam` (0–1) parts exam question and the rest request. `rank` is its rank among
 * benchmark prompts, `effort` the expected work.
 */
export function mixedGain(rank: number, effort: number, exam: number): number {
  const odds = examPart * getOdds(rank) + effortPart * effort + levelPart
  return exam * rank + (1 - exam) / (1 + Math.exp(-odds))
}

/** Returns a rank as log-odds, bounded at both ends. */
function getOdds(rank: number): number {
  const bounded = Math.max(0.005, Math.min(0.995, rank))
  return Math.log(bounded / (1 - bounded))
}
