/**
 * What a strong model gains on a prompt: on an exam's question what models did on exams, on a request how much work it is. A text is as much of
 * either as the effort head finds it; the two are mixed by that.
 */
import { type DifficultySignal, difficultySignals } from './difficulty-signals.ts'
import { createEffortHead, isExam, type KeptEffort } from './effort.ts'
import type { Features } from './features.ts'
import type { Notions } from './notions.ts'
import { createGainHead, type StoredGainModel } from './quality-gain.ts'

/** How strongly effort, and for requests the rank among benchmarks, move the logarithm of odds. */
const effortPart = 0.35
const examPart = 0.1
/** Where a request stands that says neither; it sets levels, never an order. */
const levelPart = 0.4
/** What an exam's question must show beyond even odds, in odds as a logarithm: a request taken for one is the worse error. */
const examDoubt = 1

/** One signal, and how far it moves `strongGain` up or down, as a logarithm of odds. */
export type WeighedSignal = { readonly signal: DifficultySignal; readonly weight: number }

export type DifficultyHead = {
  /** 0 to 1. */
  strongGain(features: Features, notions: Notions): number
  /** The signals that decided it, strongest first. */
  signals(features: Features, notions: Notions): readonly WeighedSignal[]
}

/** A head with its own buffers, from the kept weights. */
export function createDifficultyHead(gain: StoredGainModel, kept: KeptEffort): DifficultyHead {
  const gainOf = createGainHead(gain)
  const effortOf = createEffortHead(kept)
  return {
    strongGain(features, notions) {
      // An empty request gains nothing.
      if (features.count === 0) return 0
      const { effort, examChance } = effortOf(features, notions)
      return mixedGain(gainOf(features), effort, examShare(features, examChance))
    },
    signals(features, notions) {
      if (features.count === 0) return []
      const { bySignal, examChance } = effortOf(features, notions, true)
      const exam = examShare(features, examChance)
      const odds = oddsOf(gainOf(features))
      return difficultySignals
        .map((signal, index) => ({
          signal,
          weight:
            signal === 'benchmarks'
              ? odds * (exam + (1 - exam) * examPart)
              : (1 - exam) * effortPart * (bySignal[index] ?? 0),
        }))
        .filter(({ weight }) => Math.abs(weight) >= leastShown)
        .sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight))
        .slice(0, mostShown)
    },
  }
}

const leastShown = 0.1
const mostShown = 6

/** How much of an exam's question a text is, 0–1. */
export function examShare(features: Features, examChance: number): number {
  return isExam(features) ? 1 : 1 / (1 + Math.exp(examDoubt - oddsOf(examChance)))
}

/** The gain of a text that is `exam` (0–1) of an exam's question and the rest a request: `rank` among benchmarks, `effort` of the work. */
export function mixedGain(rank: number, effort: number, exam: number): number {
  const odds = examPart * oddsOf(rank) + effortPart * effort + levelPart
  return exam * rank + (1 - exam) / (1 + Math.exp(-odds))
}

/** A rank as a logarithm of odds, neither end endless. */
function oddsOf(rank: number): number {
  const bounded = Math.max(0.005, Math.min(0.995, rank))
  return Math.log(bounded / (1 - bounded))
}
