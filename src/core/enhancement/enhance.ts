/**
 * Prompt enhancement: a terse prompt of a known kind gains a few labelled lines that say how to answer it. Rules alone, in
 * process; the caller's own text stays in one piece in front, so nothing of it can be lost. What is already detailed, or
 * too small a question to gain, comes back as it is.
 */

import { isTrivialPrompt } from '../analysis/trivial-prompt.ts'
import { type QueryType, queryTypes } from '../chat/chat.ts'
import type { Aspect, EnhancedType, Task } from './enhancements/language.ts'
import { enhancements } from './enhancements.ts'
import { detectTask } from './task-detection.ts'

/** What must be known of a prompt to enhance it. */
export type EnhancementInput = {
  readonly queryType: QueryType
  /** How probable each is; absent = `queryType` is certain. */
  readonly queryTypeScores?: Readonly<Record<QueryType, number>>
  /** ISO 639-1. */
  readonly language: string
}

export type Enhancement = {
  readonly changed: boolean
  readonly prompt: string
  /** What it was taken for: the reading's, but where its likeliest kind stood in. */
  readonly queryType: QueryType
}

/** Longest prompt that can be terse, in UTF-16 units; without spaces between words, a third of that. */
const maximumTerse = 160
const maximumTerseUnspaced = 56
/** A shorter one says too little for its kind to be known. */
const minimumWords = 2
const minimumUnspaced = 3

/** A rewritten prompt is at most this much longer, in UTF-16 units, and above `alwaysRoom` at most four times as long. */
export const maximumGrowth = 600
export const maximumRatio = 4
const alwaysRoom = 60

/** The prompt with what it lacks, in its own language; unchanged where it lacks nothing or nobody knows what. */
export function enhance(prompt: string, reading: EnhancementInput): Enhancement {
  const unchanged = { changed: false, prompt, queryType: reading.queryType }
  const words = enhancements[reading.language]
  const fit = words === undefined ? null : fitOf(prompt, reading)
  if (words === undefined || fit === null) return unchanged
  const lines = Object.entries(fit.task === null ? words.lines[fit.queryType] : words.tasks[fit.task]).map(
    ([aspect, line]) => `${words.labels[aspect as Aspect]}: ${line}`,
  )
  const enhanced = `${prompt}\n\n${lines.join('\n')}`
  return isWithinGrowthLimits(prompt, enhanced)
    ? { changed: true, prompt: enhanced, queryType: fit.queryType }
    : unchanged
}

/** Whether a prompt says so little, of so much, that it gains by saying more. */
export function canEnhance(prompt: string, reading: EnhancementInput): boolean {
  return fitOf(prompt, reading) !== null
}

/** What decides how a prompt is to be answered: a task, else its type. */
type Fit =
  | { readonly task: Task; readonly queryType: QueryType }
  | { readonly task: null; readonly queryType: EnhancedType }

/** Null where a prompt says enough, is too small a thing, or nobody knows what it wants. */
function fitOf(prompt: string, reading: EnhancementInput): Fit | null {
  if (!isTerse(prompt)) return null
  const fit = fitByTask(prompt, reading) ?? fitByType(prompt, reading)
  // Last, since it takes longest.
  return fit === null || program.test(prompt.trim()) || isTrivialPrompt(prompt, reading.language) ? null : fit
}

function fitByTask(prompt: string, { queryType, language }: EnhancementInput): Fit | null {
  const task = detectTask(prompt, language)
  return task === null || doneInTheirWay[task].includes(queryType) ? null : { task, queryType }
}

function fitByType(prompt: string, reading: EnhancementInput): Fit | null {
  const queryType = isBrief(prompt) ? briefType(prompt, reading) : typeToFit(reading)
  return queryType === 'other' ? null : { task: null, queryType }
}

const programs: readonly QueryType[] = ['code', 'code_algorithm', 'debugging']

/** Types that say better than a task how it is done. */
const doneInTheirWay: Readonly<Record<Task, readonly QueryType[]>> = {
  explanation: ['code_algorithm', 'debugging', 'comparison', 'creative', 'writing'],
  summary: programs,
  translation: programs,
  revision: programs,
  ideas: queryTypes.filter(type => type !== 'creative' && type !== 'planning' && type !== 'writing'),
}

/**
 * What a prompt is enhanced as: where it reads as nothing in particular, and by not much, its likeliest kind. A terse prompt
 * gives little to go by, and what is no small question is mostly of some kind.
 */
function typeToFit({ queryType, queryTypeScores: scores }: EnhancementInput): QueryType {
  if (queryType !== 'other' || scores === undefined) return queryType
  const likeliest = likeliestOf(scores)
  return scores[likeliest] >= nearlyAsLikely * scores.other ? likeliest : 'other'
}

function likeliestOf(scores: Readonly<Record<QueryType, number>>): QueryType {
  return knownTypes.reduce((best, type) => (scores[type] > scores[best] ? type : best))
}

const knownTypes = queryTypes.filter(type => type !== 'other')

/** Of the labelled terse prompts of a kind, read by models that had not seen them, .84 gain without it, .96 with it. */
const nearlyAsLikely = 0.35

/** Of a few words many are names, facts and remarks: for them less is taken for a type. */
function briefType(prompt: string, { queryType, queryTypeScores: scores, language }: EnhancementInput): QueryType {
  if (isName(prompt, language)) return 'other'
  if (scores === undefined) return queryType
  const likeliest = likeliestOf(scores)
  const isClear = scores[likeliest] >= leastClear && scores[likeliest] >= asLikely * scores.other
  return isClear ? likeliest : 'other'
}

/** Of some four hundred of our own, in many languages, more would lose requests, less take in remarks. */
const leastClear = 0.25
const asLikely = 0.6

function isBrief(prompt: string): boolean {
  const text = prompt.trim()
  if (asksHow.test(text)) return false
  return unspaced.test(text) ? text.length <= briefUnspaced : text.split(/\s+/).length <= briefWords
}

const briefWords = 4
const briefUnspaced = 7

/** Who asks how or why names nothing, and remarks on nothing. */
const asksHow =
  /^(?:(?:how (?:to|(?:do|does|did|can|could|should|would)(?: (?:i|you|we|one))?)|why (?:do|does|did|is|are|was|were)|wie|warum|comment|pourquoi|cómo|por qué|como|por que|come|perché|hoe|waarom|jak|dlaczego|как|почему|як|чому|nasıl|neden|كيف|لماذا|कैसे|क्यों)(?![\p{L}\p{M}])|怎么|怎样|如何|为什么|なぜ|どうやって|왜|어떻게)/iu

/** Each word with a capital, where that is no noun's: a title, a person, a product. */
function isName(prompt: string, language: string): boolean {
  if (language === 'de') return false
  return /^\p{Lu}[\p{L}\p{M}\p{N}’'.-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}’'.-]*)+$/u.test(prompt.trim())
}

/** Whether a rewritten prompt is no longer than the rules allow. */
export function isWithinGrowthLimits(prompt: string, rewritten: string): boolean {
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
  /```|[{}]|;(?!dr\b)|"[^"]{24,}"|\b(?:at (?:least|most)|no more than|less than|fewer than|more than|must|exactly|step[- ]by[- ]step|as an? (?:table|list|json)|in (?:json|markdown|bullet)|based on the|following|the given)\b|:\s*\S.*[,;]/i

/** A line of a program, or a command, and nothing beside it. */
const program =
  /^(?:(?:for|while|if|elif|def|class|const|let|var|return|fn|func|function|public|private|int|void)\b.*(?:\w\(|\)$|[=<>+]|:$)|import \w+(?: as \w+)?$|from \w+ import \b.*|select .{1,60} from \w+|[\w.]+\(.*\)$|[\w.]+ ?(?:=|=>) ?\S.*|(?:sudo|cd|git|docker|kubectl|npm|yarn|pnpm|pip3?|cargo|brew|apt(?:-get)?) (?:\.\.|\/|run|install|push|pull|status|clone|add|ps|build|update|init|log|diff|test|fetch|stash|compose (?:up|down))(?! \w* ?(?:fail|error|not |hang|stuck|slow|example|tutorial))(?: [\w@./:-]+){0,3}$)/i
