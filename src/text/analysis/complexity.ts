import { type QueryType, queryTypes } from '../../core/chat/chat.ts'
import { type ConceptCounts, concepts } from './concepts.ts'
import type { Features } from './features.ts'

/** Base demand by query type, before length and wording count. */
const baseDemand: Readonly<Record<QueryType, number>> = {
  code: 0.38,
  code_algorithm: 0.55,
  debugging: 0.5,
  analysis: 0.42,
  writing: 0.25,
  math: 0.48,
  creative: 0.25,
  planning: 0.42,
  comparison: 0.32,
  other: 0.12,
}
const bases = Float64Array.from(queryTypes, type => baseDemand[type])

const hard = concepts.indexOf('hard')
const simple = concepts.indexOf('simple')
const detail = concepts.indexOf('detail')
const stops = Array.from('.?!:;', character => character.charCodeAt(0))

/**
 * Returns how demanding a text is (0–1): the demand of its type, plus word count, stated requirements and demanding
 * words. Each part is bounded, so that none decides on its own.
 */
export function scoreDemand(types: Float64Array, features: Features, meaning: ConceptCounts): number {
  const { count, symbols } = features
  // Only polite phrases.
  if (count === 0) return 0
  let base = 0
  for (let index = 0; index < bases.length; index++) base += (types[index] ?? 0) * (bases[index] ?? 0)
  let ends = 0
  for (const code of stops) ends += symbols[code] ?? 0
  const length = Math.max(-0.08, Math.min(0.25, 0.08 * Math.log2((count + 1) / 16)))
  const clauses = Math.min(0.08, 0.01 * ends)
  const required = Math.min(0.1, 0.025 * (meaning.times[detail] ?? 0))
  // A plain word lowers the demand only in short prompts; long prompts contain some by chance.
  const plain = Math.min(0.15, 0.08 * (meaning.times[simple] ?? 0)) * Math.min(1, 24 / (count + 1))
  const wording = Math.min(0.3, 0.07 * (meaning.times[hard] ?? 0))
  return between(base + length + clauses + required + wording - plain)
}

/**
 * Returns the complexity used for routing: 0 = any model can answer, 1 = the most capable model is needed. Never
 * decreases with `demand`, `strongGain` or the length of the earlier conversation.
 */
export function getComplexity(demand: number, strongGain: number, earlierCharacters: number): number {
  const history = Math.min(0.1, 0.02 * Math.log2(1 + earlierCharacters / 4000))
  return between((demand + strongGain) / 2 + history)
}

function between(value: number): number {
  return Math.max(0, Math.min(1, value))
}
