/**
 * Prompt enhancement: adds a few labeled lines on how to answer to a terse prompt of a known type. Rule-based and in
 * process. The user's text stays unchanged in front of the lines. A prompt that is detailed or trivial is returned
 * unchanged.
 */
import { type QueryType, queryTypes } from '../../core/chat/chat.ts'
import { isTrivialPrompt, within } from '../analysis/trivial-prompt.ts'
import byLanguage from './enhancements.json'
import { statesLimit } from './stated-limits.ts'
import taskVerbs from './task-verbs.json'

type EnhancedType = Exclude<QueryType, 'other'>
type Aspect = 'audience' | 'format' | 'scope' | 'constraints' | 'steps' | 'check'
type Lines = Partial<Readonly<Record<Aspect, string>>>

/**
 * Lines added to a terse prompt, by language (ISO 639-1) and query type or task, in the prompt's language. Each says how
 * to answer, never what: it contains no number, name or claim. With its labels, a set is shorter than 180 characters, so
 * that a prompt of 61 characters grows to at most four times its length.
 */
const enhancements: Readonly<
  Record<
    string,
    {
      readonly labels: Readonly<Record<Aspect, string>>
      readonly lines: Readonly<Record<EnhancedType, Lines>>
      readonly tasks: Readonly<Record<Task, Lines>>
    }
  >
> = byLanguage

/** Analysis of a prompt that enhancement needs. */
export type PromptTraits = {
  readonly queryType: QueryType
  /** Probability of each type; absent = `queryType` is certain. */
  readonly queryTypeScores?: Readonly<Record<QueryType, number>>
  /** ISO 639-1. */
  readonly language: string
}

type Enhancement = {
  readonly changed: boolean
  readonly prompt: string
  /** The type that decided: the analyzed one, or the most likely other type if the prompt was general. */
  readonly queryType: QueryType
}

/** Maximum length of a terse prompt in UTF-16 units; a third of it for scripts without spaces between words. */
const maximumTerse = 160
const maximumTerseUnspaced = 56
/** A shorter prompt is too vague for its type to be known. */
const minimumWords = 2
const minimumUnspaced = 3

/** Maximum growth of a rewritten prompt in UTF-16 units. Above `alwaysRoom` it is also at most four times as long. */
export const maximumGrowth = 600
const maximumRatio = 4
const alwaysRoom = 60

/**
 * Returns the prompt with the missing instructions, in its own language. Unchanged if nothing is missing or the type is
 * unknown.
 */
export function enhancePrompt(prompt: string, traits: PromptTraits): Enhancement {
  const unchanged = { changed: false, prompt, queryType: traits.queryType }
  const words = enhancements[traits.language]
  const fit = words === undefined ? null : findFit(prompt, traits)
  if (words === undefined || fit === null) return unchanged
  const lines = Object.entries(fit.task === null ? words.lines[fit.queryType] : words.tasks[fit.task]).map(
    ([aspect, line]) => `${words.labels[aspect as Aspect]}: ${line}`,
  )
  const enhanced = `${prompt}\n\n${lines.join('\n')}`
  return isWithinGrowthLimits(prompt, enhanced)
    ? { changed: true, prompt: enhanced, queryType: fit.queryType }
    : unchanged
}

/** Returns true if a prompt is so terse, and about so much, that enhancement helps. */
export function canEnhance(prompt: string, traits: PromptTraits): boolean {
  return findFit(prompt, traits) !== null
}

/** What decides the added lines: a task, else the query type. */
type Fit =
  | { readonly task: Task; readonly queryType: QueryType }
  | { readonly task: null; readonly queryType: EnhancedType }

/** Returns null if a prompt is detailed, trivial, or of an unknown type. */
function findFit(prompt: string, traits: PromptTraits): Fit | null {
  if (!isTerse(prompt, traits)) return null
  const fit = fitByTask(prompt, traits) ?? fitByType(prompt, traits)
  if (fit?.task === 'translation' && shortQuotation.test(prompt)) return null
  // Last, since it is the slowest check.
  return fit === null || program.test(prompt.trim()) || isTrivialPrompt(prompt, traits.language) ? null : fit
}

function fitByTask(prompt: string, { queryType, language }: PromptTraits): Fit | null {
  const task = detectTask(prompt, language)
  return task === null || doneInTheirWay[task].includes(queryType) ? null : { task, queryType }
}

function fitByType(prompt: string, traits: PromptTraits): Fit | null {
  const queryType = isBrief(prompt) ? briefType(prompt, traits) : typeToFit(traits)
  return queryType === 'other' ? null : { task: null, queryType }
}

const programs: readonly QueryType[] = ['code', 'code_algorithm', 'debugging']

/** Query types whose own lines are better than a task's. */
const doneInTheirWay: Readonly<Record<Task, readonly QueryType[]>> = {
  explanation: ['code_algorithm', 'debugging', 'comparison', 'creative', 'writing'],
  summary: programs,
  translation: programs,
  revision: programs,
  ideas: queryTypes.filter(type => type !== 'creative' && type !== 'planning' && type !== 'writing'),
}

/**
 * Returns the type used for enhancement. If a prompt is general by a small margin, uses its most likely other type: a
 * terse prompt gives little evidence, and most non-trivial prompts have a type.
 */
function typeToFit({ queryType, queryTypeScores: scores }: PromptTraits): QueryType {
  if (queryType !== 'other' || scores === undefined) return queryType
  const likeliest = getBestType(scores)
  return scores[likeliest] >= nearlyAsLikely * scores.other ? likeliest : 'other'
}

function getBestType(scores: Readonly<Record<QueryType, number>>): QueryType {
  return knownTypes.reduce((best, type) => (scores[type] > scores[best] ? type : best))
}

const knownTypes = queryTypes.filter(type => type !== 'other')

/**
 * Of the labeled terse prompts of a type, classified by models that had not seen them, 84% are enhanced without this
 * rule and 96% with it.
 */
const nearlyAsLikely = 0.35

/** Very short prompts are often names, facts and remarks, so weaker evidence decides their type. */
function briefType(prompt: string, { queryType, queryTypeScores: scores, language }: PromptTraits): QueryType {
  if (isName(prompt, language)) return 'other'
  if (scores === undefined) return queryType
  const likeliest = getBestType(scores)
  const isClear = scores[likeliest] >= leastClear && scores[likeliest] >= asLikely * scores.other
  return isClear ? likeliest : 'other'
}

/**
 * Measured on 400 of the project's own prompts in many languages: a higher value would miss requests, a lower one would
 * include remarks.
 */
const leastClear = 0.25
const asLikely = 0.6

function isBrief(prompt: string): boolean {
  const text = prompt.trim()
  if (asksHow.test(text)) return false
  return unspaced.test(text) ? text.length <= briefUnspaced : text.split(/\s+/).length <= briefWords
}

const briefWords = 4
const briefUnspaced = 7

/** A prompt that asks how or why is neither a name nor a remark. */
const asksHow =
  /^(?:(?:how (?:to|(?:do|does|did|can|could|should|would)(?: (?:i|you|we|one))?)|why (?:do|does|did|is|are|was|were)|wie|warum|comment|pourquoi|cómo|por qué|como|por que|come|perché|hoe|waarom|jak|dlaczego|как|почему|як|чому|nasıl|neden|كيف|لماذا|कैसे|क्यों)(?![\p{L}\p{M}])|怎么|怎样|如何|为什么|なぜ|どうやって|왜|어떻게)/iu

/** Returns true if each word has a capital that is not a noun's: a title, a person, a product. */
function isName(prompt: string, language: string): boolean {
  if (language === 'de') return false
  return /^\p{Lu}[\p{L}\p{M}\p{N}’'.-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}’'.-]*)+$/u.test(prompt.trim())
}

/** Returns true if a rewritten prompt is within the length limits. */
export function isWithinGrowthLimits(prompt: string, rewritten: string): boolean {
  const growth = rewritten.length - prompt.length
  return growth <= maximumGrowth && (prompt.length <= alwaysRoom || rewritten.length <= maximumRatio * prompt.length)
}

/** Returns true if a prompt is short, one paragraph, and without material, code or limits of its own. */
export function isTerse(
  prompt: string,
  { queryType, language }: Pick<PromptTraits, 'queryType' | 'language'>,
): boolean {
  const text = prompt.trim()
  if (text.length > maximumTerse || text.includes('\n') || material.test(text)) return false
  const fits = unspaced.test(text)
    ? text.length >= minimumUnspaced && text.length <= maximumTerseUnspaced
    : text.split(/\s+/).length >= minimumWords
  return fits && !statesLimit(text, language, programs.includes(queryType))
}

/** Kana, CJK ideographs. */
const unspaced = /[\u3040-\u30ff\u3400-\u9fff]/

/** Signs of a prompt with its own material: code, a long quotation, a list. */
const material = /```|[{}]|;(?!dr\b)|"[^"]{24,}"|:\s*\S.*[,;]/i

/** The translation of a quoted phrase is a phrase, which leaves no room for instructions. */
const shortQuotation = /"[^"]{1,40}"|“[^”]{1,40}”|„[^“”]{1,40}[“”]|«[^»]{1,40}»|「[^」]{1,40}」|『[^』]{1,40}』/

/** Only a line of a program or a command. */
const program =
  /^(?:(?:for|while|if|elif|def|class|const|let|var|return|fn|func|function|public|private|int|void)\b.*(?:\w\(|\)$|[=<>+]|:$)|import \w+(?: as \w+)?$|from \w+ import \b.*|select .{1,60} from \w+|[\w.]+\(.*\)$|[\w.]+ ?(?:=|=>) ?\S.*|(?:sudo|cd|git|docker|kubectl|npm|yarn|pnpm|pip3?|cargo|brew|apt(?:-get)?) (?:\.\.|\/|run|install|push|pull|status|clone|add|ps|build|update|init|log|diff|test|fetch|stash|compose (?:up|down))(?! \w* ?(?:fail|error|not |hang|stuck|slow|example|tutorial))(?: [\w@./:-]+){0,3}$)/i

/**
 * Detects requests to explain, summarize, translate or revise something, or for ideas. Such a task is answered in its
 * own way regardless of the topic, and two words may state it. Detected by the verb, at the start or where the language
 * places it.
 */

/** Purposes of a request, independent of the query type, that need their own instructions. */
export type Task = 'explanation' | 'summary' | 'translation' | 'revision' | 'ideas'

/** Returns the task of a prompt of a few lines; null = none. */
function detectTask(prompt: string, language: string): Task | null {
  const text = prompt.trim()
  const task = verbsTable[language]?.find(({ verbs }) => verbs.test(text))?.task ?? null
  return task === 'explanation' && reasons.test(text) ? null : task
}

/** More specific tasks first: an explanation inside a translation is a translation. */
const tasks: readonly Task[] = ['translation', 'summary', 'revision', 'explanation', 'ideas']

/** Questions about reasons, influences or differences, which need an analysis, not an explanation. */
const reasons =
  /(?<!\p{L})(?:why|reasons?|causes?|effects?|impacts?|influences?|consequences?|implications?|differences?|warum|weshalb|ursachen?|folgen|unterschiede?|pourquoi|causes|conséquences|différences?|por qué|causas|consecuencias|diferencias?|por que|consequências|diferenças?|perché|cause|conseguenze|differenz[ae]|waarom|oorzaken|gevolgen|verschil(?:len)?|dlaczego|przyczyny|skutki|różnic[aęe]|почему|причин\p{L}+|последстви\p{L}+|разниц\p{L}+|чому|наслідки|різниц\p{L}+|neden|nedenleri|fark\p{L}*|لماذا|أسباب|الفرق|क्यों|कारण|अंतर)(?!\p{L})|为什么|原因|影响|区别|なぜ|理由|影響|違い|왜|이유|영향|차이/iu

/** How a task is stated: with a verb at the start, the end or anywhere, by the thing wished for, or by a pattern. */
type Statement = {
  readonly begins?: string
  readonly ends?: string
  readonly within?: string
  readonly wished?: { readonly things: string; readonly prepositions: string; readonly openings?: string }
  readonly pattern?: string
}
const statements: Readonly<Record<string, Readonly<Record<Task, Statement>>>> = taskVerbs

const verbsTable: Readonly<Record<string, readonly { readonly task: Task; readonly verbs: RegExp }[]>> =
  Object.fromEntries(
    Object.entries(statements).map(([language, stated]) => [
      language,
      tasks.map(task => ({ task, verbs: compiled(stated[task]) })),
    ]),
  )

function compiled({ begins: first, ends: last, within: anywhere, wished: wish, pattern }: Statement): RegExp {
  if (pattern !== undefined) return new RegExp(pattern)
  const ways = [
    first === undefined ? [] : begins(first),
    last === undefined ? [] : ends(last),
    anywhere === undefined ? [] : within(anywhere).source,
    wish === undefined ? [] : wished(wish.things, wish.prepositions, wish.openings),
  ]
  return new RegExp(ways.flat().join('|'), 'iu')
}

/** Matches a verb followed by text. */
function begins(alternatives: string): string {
  return `^(?:(?:please|bitte|por favor|per favore|пожалуйста|будь ласка)[, ]+)?(?:${alternatives})(?![\\p{L}\\p{M}\\p{N}])`
}

/** Matches requested things after a few words at most: `party ideas`, `some names for a cat`. */
function wished(things: string, prepositions: string, openings = things): string {
  const before = "(?:(?!(?:write|draft|essay|story|about|of|the|über|sobre|sur|su|over|о|про) )[\\p{L}’'-]+ ){0,4}"
  return `^(?:${before}(?:${things})(?: (?:${prepositions}) .+|[.!?]*$)|(?:${openings}) )`
}

function ends(alternatives: string): string {
  return `(?<![\\p{L}\\p{M}\\p{N}])(?:${alternatives})[.!?]*$`
}
