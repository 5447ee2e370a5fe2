/**
 * Estimates in any language how much work a request is, from notions of hard or routine work, from its shape and
 * wording; and how much it resembles an exam question. Two linear models over the same features, trained on the
 * project's own prompts.
 */

import { type DifficultySignal, difficultySignals } from '../dry-run-names.ts'
import {
  addFeature,
  addSteps,
  createSlots,
  decodeWeights,
  deduplicate,
  type Slots,
  type StoredWeights,
} from './feature-slots.ts'
import { type Features, getHash, getSlot } from './features.ts'
import { type Notions, taskNotions } from './notions.ts'
import { courtesyLetters, courtesyWords } from './quality-gain.ts'

/** Weights stored by `bun run train`: one linear model for effort, one for exam questions. */
export type KeptEffort = {
  readonly effort: StoredWeights
  readonly exam: StoredWeights
}

/** Notions by signal; all others belong to `subject`. */
const notionsTable: Partial<Readonly<Record<DifficultySignal, string>>> = {
  design: 'design optimize systems algo make',
  proof: 'prove mathterm calc',
  debugging: 'bug',
  expert_field: 'science medicine legal finance ml philosophy law',
  constraints: 'constraint',
  depth: 'deep analyze compare explain',
  risk: 'risk',
  planning: 'plan trip',
  routine: 'routine simple rewrite translate summary list',
  lookup: 'fact what now volatile history',
  small_talk: 'hello advice',
  creative: 'creative text write',
}

const signalNumber = (signal: DifficultySignal) => difficultySignals.indexOf(signal)
const signalOfNotion = Uint8Array.from(taskNotions, notion => {
  const signal = difficultySignals.find(difficultySignal => notionsTable[difficultySignal]?.split(' ').includes(notion))
  return signalNumber(signal ?? 'subject')
})
const shape = signalNumber('shape')
const wording = signalNumber('wording')
/** Keyed by name, so that adding a notion leaves the other slots unchanged. */
const hashOfNotion = Int32Array.from(taskNotions, getHash)

/** Features of a text, with the signal that each belongs to. */
type EffortSlots = Slots & { readonly signals: Uint8Array }

/** Number of words read. The request is clear by then. */
export const effortWords = 200

export function createEffortSlots(bits: number): EffortSlots {
  const slots = createSlots(bits)
  return { ...slots, signals: new Uint8Array(slots.places.length) }
}

// Kinds of features, kept apart in the table.
const always = 0
const again = [1, 2, 3] as const
const firstNotion = 4
const earlyNotion = 5
const stem = 6
const firstStem = 7
const length = { salt: 8, value: 0.15 }
const letters = { salt: 9, value: 0.5 }
const symbol = { salt: 10, value: 0.5 }
const number = { salt: 11, value: 0.5 }
const longWords = { salt: 12, value: 0.5 }
/** Words of this length are rare in conversation and common in work. */
const longWord = 9

/** Weight of the first, second and third occurrence of a notion. */
const againValues = [1, 0.6, 0.4] as const
/** Slots of a notion's first three occurrences with their weights, for setting weights by notion. */
export const effortNotionSlots = (notion: string, bits: number) =>
  again.map((kind, index) => ({ place: getSlot(getHash(notion), kind, bits), value: againValues[index] ?? 0 }))

const marks = Array.from(',:;?!.', mark => mark.charCodeAt(0))
const mostMarks = 5
const times = new Uint8Array(taskNotions.length)

/** Fills the list from a text and its notions within the first `effortWords` words. */
export function fillEffortSlots(slots: EffortSlots, features: Features, { found, count: notionCount }: Notions): void {
  const { stems, symbols, numbers } = features
  const start = courtesyWords(features)
  const words = features.count - start
  slots.count = 0
  slots.signals.fill(shape)
  addFeature(slots, 0, always, 1)

  times.fill(0)
  for (let at = 0; at < notionCount; at++) {
    const notion = found[at] ?? 0
    const hash = hashOfNotion[notion] ?? 0
    const signal = signalOfNotion[notion] ?? 0
    const before = times[notion] ?? 0
    times[notion] = before + 1
    if (before < again.length) note(slots, hash, again[before] ?? 1, againValues[before] ?? 0, signal)
    if (at === 0) note(slots, hash, firstNotion, 1, signal)
    if (at < 3) note(slots, hash, earlyNotion, 0.7, signal)
  }

  const last = Math.min(features.count, effortWords)
  // The more words there are, the less each one counts.
  const volume = 4.5 / Math.sqrt(Math.max(8, last - start))
  const { places, values, signals } = slots
  for (let at = start; at < last; at++) {
    signals[slots.count] = wording
    places[slots.count] = (stems[at] ?? 0) ^ stem
    values[slots.count++] = volume
  }
  if (words > 0) note(slots, stems[start] ?? 0, firstStem, 1, wording)

  addSteps(slots, length, 0, Math.min(14, Math.floor(2 * Math.log2(words + 1))))
  const meanLetters = (features.letters - courtesyLetters(features, start)) / Math.max(1, words)
  addSteps(slots, letters, 0, Math.min(8, Math.floor(2 * (meanLetters - 3))))
  const longSixteenths = (16 * longCount(features, start, last)) / Math.max(1, last - start)
  addSteps(slots, longWords, 0, Math.min(8, Math.floor(longSixteenths)))
  for (const mark of marks) {
    const often = Math.min(mostMarks, symbols[mark] ?? 0)
    if (often > 0) addSteps(slots, symbol, 8 * mark + 1, 8 * mark + often)
  }
  addSteps(slots, number, 1, Math.min(3, numbers))
  deduplicate(slots, signals)
}

/** Returns the number of words with at least `longWord` letters. */
function longCount({ offsets, units, unitCount, count }: Features, from: number, to: number): number {
  let long = 0
  for (let at = from; at < to; at++) {
    const place = (offsets[at] ?? 0) + longWord - 1
    const next = at + 1 < count ? (offsets[at + 1] ?? 0) : unitCount
    const unit = units[place] ?? 0
    if (place < next && (unit > 127 || ((unit | 32) >= 97 && (unit | 32) <= 122))) long++
  }
  return long
}

function note(slots: EffortSlots, hash: number, kind: number, value: number, signal: number): void {
  slots.signals[slots.count] = signal
  addFeature(slots, hash, kind, value)
}

type Effort = {
  /** Log-odds: below 0 = routine, above 0 = demanding. */
  readonly effort: number
  /** Probability that the text is an exam question, 0–1. */
  readonly examChance: number
  /** Contribution of each signal to `effort`; overwritten by the next reading. All 0 unless requested. */
  readonly bySignal: Float64Array
}

type EffortHead = (features: Features, notions: Notions, withSignals?: boolean) => Effort

/** Creates a classifier with its own buffers from stored weights. */
export function createEffortHead({ effort, exam }: KeptEffort): EffortHead {
  const effortWeights = decodeWeights(effort)
  const examWeights = decodeWeights(exam)
  const slots = createEffortSlots(effort.bits)
  const bySignal = new Float64Array(difficultySignals.length)
  return (features, read, withSignals = false) => {
    fillEffortSlots(slots, features, read)
    const { places, values, signals, count } = slots
    let demand = 0
    let closed = 0
    for (let at = 0; at < count; at++) {
      const place = places[at] ?? 0
      const value = values[at] ?? 0
      demand += value * (effortWeights[place] ?? 0)
      closed += value * (examWeights[place] ?? 0)
    }
    bySignal.fill(0)
    if (withSignals)
      for (let at = 0; at < count; at++) {
        const signal = signals[at] ?? 0
        const part = (values[at] ?? 0) * (effortWeights[places[at] ?? 0] ?? 0) * effort.scale
        bySignal[signal] = (bySignal[signal] ?? 0) + part
      }
    return { effort: demand * effort.scale, examChance: 1 / (1 + Math.exp(-closed * exam.scale)), bySignal }
  }
}
