/**
 * Prompt enhancement: a terse prompt of a known kind gains a few labelled lines that say how to answer it. Rules alone, in
 * process; the caller's own text stays in one piece in front, so nothing of it can be lost. What is already detailed, or
 * too small a question to gain, comes back as it is.
 */
import type { QueryType } from './chat.ts'
import { type Aspect, enhancements } from './enhancements.ts'

/** What must be known of a prompt to enhance it. */
export type PromptReading = {
  readonly queryType: QueryType
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
export function enhance(prompt: string, { queryType, language }: PromptReading): Enhancement {
  const unchanged = { changed: false, prompt }
  const words = enhancements[language]
  if (queryType === 'other' || words === undefined) return unchanged
  if (!isTerse(prompt) || isSmallQuestion(prompt)) return unchanged
  const lines = Object.entries(words.lines[queryType]).map(
    ([aspect, line]) => `${words.labels[aspect as Aspect]}: ${line}`,
  )
  const enhanced = `${prompt}\n\n${lines.join('\n')}`
  return fitsLength(prompt, enhanced) ? { changed: true, prompt: enhanced } : unchanged
}

/** Whether a rewritten prompt is no longer than the rules allow. */
export function fitsLength(prompt: string, rewritten: string): boolean {
  const growth = rewritten.length - prompt.length
  return growth <= maximumGrowth && (prompt.length <= alwaysRoom || rewritten.length <= maximumRatio * prompt.length)
}

/** Short, one paragraph, without material, code or conditions of its own. */
function isTerse(prompt: string): boolean {
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

/** Courtesies, and questions whose answer is one fact or a yes or no: advice on how to answer would only lengthen it. */
function isSmallQuestion(prompt: string): boolean {
  const text = prompt.trim().toLowerCase()
  if (text.split(/\s+/).length <= courtesyWords && greeting.test(text)) return true
  return (closedFact.test(text) && !open.test(text)) || yesOrNo.test(text)
}

/** A longer prompt that opens with a greeting goes on to ask something. */
const courtesyWords = 5

const greeting =
  /^(?:hi|hello|hey|thanks|thank you|good (?:morning|afternoon|evening|night)|bye|ok(?:ay)?|yes|no|hola|gracias|bonjour|merci|hallo|danke|olá|obrigad[oa]|ciao|grazie|привет|спасибо|你好|谢谢|こんにちは|ありがとう)(?:[\s,.!?，。！]|$)/
const closedFact =
  /^(?:who|whom|whose|when|where|in (?:what|which) (?:year|country|city|century)|what (?:is|are|was|were) the (?:name|capital|date|population|height|size|largest|smallest|longest|highest|first|last)|what (?:year|day|time|date|country|city)|how (?:old|tall|far|cold|hot|deep|high|long is|long was|many|much is|much was)|since when)(?=\s|$)/
const open =
  /\b(?:best|difference|compare|pros|plan|steps|explain|calculate|solve|would|should|each|total|altogether|left|remain)\b/
const yesOrNo =
  /^(?:is|are|am|was|were|do|does|did|has|have|had|will|should|isn['’]t|aren['’]t|doesn['’]t|can (?!you)|could (?!you)|would (?!you)|may)\b(?!.*\b(?:and why|how|why|what)\b)/
