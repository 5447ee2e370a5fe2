/**
 * Prompt enhancement: a terse prompt of a known kind gains a few labelled lines that say how to answer it. Rules alone, in
 * process; the caller's own text stays in one piece in front, so nothing of it can be lost. What is already detailed, or
 * too small a question to gain, comes back as it is.
 */
import { type QueryType, queryTypes } from './chat.ts'
import type { Aspect } from './enhancements/language.ts'
import { enhancements } from './enhancements.ts'
import { isSmallQuestion } from './small-question.ts'

/** What must be known of a prompt to enhance it. */
export type PromptReading = {
  readonly queryType: QueryType
  /** How probable each is; absent = `queryType` is certain. */
  readonly queryTypeScores?: Readonly<Record<QueryType, number>>
  /** ISO 639-1. */
  readonly language: string
}

export type Enhancement = { readonly changed: boolean; readonly prompt: string }

/** Longest prompt that can be terse, in UTF-16 units; without spaces between words, a third of that. */
const maximumTerse = 160
const maximumTerseUnspaced = 56
/** A shorter one says too little for its kind to be known. */
const minimumWords = 3
const minimumUnspaced = 5

/** A rewritten prompt is at most this much longer, in UTF-16 units, and above `alwaysRoom` at most four times as long. */
export const maximumGrowth = 600
export const maximumRatio = 4
const alwaysRoom = 60

/** The prompt with what it lacks, in its own language; unchanged where it lacks nothing or nobody knows what. */
export function enhance(prompt: string, reading: PromptReading): Enhancement {
  const unchanged = { changed: false, prompt }
  const type = typeToFit(reading)
  const words = enhancements[reading.language]
  if (type === 'other' || words === undefined || !mayGain(prompt, reading)) return unchanged
  const lines = Object.entries(words.lines[type]).map(([aspect, line]) => `${words.labels[aspect as Aspect]}: ${line}`)
  const enhanced = `${prompt}\n\n${lines.join('\n')}`
  return fitsLength(prompt, enhanced) ? { changed: true, prompt: enhanced } : unchanged
}

/** Whether a prompt says so little, of so much, that it gains by saying more. */
export function mayGain(prompt: string, reading: PromptReading): boolean {
  return isTerse(prompt) && typeToFit(reading) !== 'other' && !isSmallQuestion(prompt, reading.language)
}

/**
 * What a prompt is enhanced as: where it reads as nothing in particular, and by not much, its likeliest kind. A terse prompt
 * gives little to go by, and what is no small question is mostly of some kind.
 */
export function typeToFit({ queryType, queryTypeScores: scores }: PromptReading): QueryType {
  if (queryType !== 'other' || scores === undefined) return queryType
  const likeliest = knownTypes.reduce((best, type) => (scores[type] > scores[best] ? type : best))
  return scores[likeliest] >= nearlyAsLikely * scores.other ? likeliest : 'other'
}

const knownTypes = queryTypes.filter(type => type !== 'other')

/** Of the labelled terse prompts of a kind, read by models that had not seen them, .84 gain without it, .96 with it. */
const nearlyAsLikely = 0.35

/** Whether a rewritten prompt is no longer than the rules allow. */
export function fitsLength(prompt: string, rewritten: string): boolean {
  const growth = rewritten.length - prompt.length
  return growth <= maximumGrowth && (prompt.length <= alwaysRoom || rewritten.length <= maximumRatio * prompt.length)
}

/** Short, one paragraph, without material, code or conditions of its own. */
export function isTerse(prompt: string): boolean {
  const text = prompt.trim()
  if (text.length > maximumTerse || text.includes('\n') || states.test(text)) return false
  if (unspaced.test(text)) return text.length >= minimumUnspaced && text.length <= maximumTerseUnspaced
  return text.split(/\s+/).length >= minimumWords
}

/** Kana, CJK ideographs. */
const unspaced = /[\u3040-\u30ff\u3400-\u9fff]/

/** Marks of a prompt that brings its own material or conditions: code, a quotation of length, a bound, a list, a format. */
const states =
  /```|[{};]|"[^"]{24,}"|\b(?:at (?:least|most)|no more than|less than|fewer than|more than|must|exactly|step[- ]by[- ]step|as an? (?:table|list|json)|in (?:json|markdown|bullet)|based on the|following|the given)\b|:\s*\S.*[,;]/i
