/**
 * Detects requests to explain, summarize, translate or revise something, or for ideas. Such a task is answered in its
 * own way regardless of the topic, and two words may state it. Detected by the verb, at the start or where the language
 * places it.
 */
import { within } from '../analysis/trivial-prompt.ts'
import taskVerbs from './task-verbs.json'

/** Purposes of a request, independent of the query type, that need their own instructions. */
export type Task = 'explanation' | 'summary' | 'translation' | 'revision' | 'ideas'

/** Returns the task of a prompt of a few lines; null = none. */
export function detectTask(prompt: string, language: string): Task | null {
  const verbs = verbsTable[language]
  if (verbs === undefined) return null
  const text = prompt.trim()
  const task = tasks.find(item => verbs[item].test(text)) ?? null
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

const verbsTable: Readonly<Record<string, Readonly<Record<Task, RegExp>>>> = Object.fromEntries(
  Object.entries(statements).map(([language, { translation, summary, revision, explanation, ideas }]) => [
    language,
    {
      translation: compiled(translation),
      summary: compiled(summary),
      revision: compiled(revision),
      explanation: compiled(explanation),
      ideas: compiled(ideas),
    },
  ]),
)

function compiled({ begins: first, ends: last, within: anywhere, wished: wish, pattern }: Statement): RegExp {
  if (pattern !== undefined) return new RegExp(pattern)
  const ways = [
    ...(first === undefined ? [] : [begins(first)]),
    ...(last === undefined ? [] : [ends(last)]),
    ...(anywhere === undefined ? [] : [within(anywhere)]),
    ...(wish === undefined ? [] : [wished(wish.things, wish.prepositions, wish.openings)]),
  ]
  return new RegExp(ways.map(({ source }) => source).join('|'), 'iu')
}

/** Matches a verb followed by text. */
function begins(alternatives: string): RegExp {
  return new RegExp(
    `^(?:(?:please|bitte|por favor|per favore|пожалуйста|будь ласка)[, ]+)?(?:${alternatives})(?![\\p{L}\\p{M}\\p{N}])`,
    'iu',
  )
}

/** Matches requested things after a few words at most: `party ideas`, `some names for a cat`. */
function wished(things: string, prepositions: string, openings = things): RegExp {
  const before = "(?:(?!(?:write|draft|essay|story|about|of|the|über|sobre|sur|su|over|о|про) )[\\p{L}’'-]+ ){0,4}"
  return new RegExp(`^(?:${before}(?:${things})(?: (?:${prepositions}) .+|[.!?]*$)|(?:${openings}) )`, 'iu')
}

function ends(alternatives: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])(?:${alternatives})[.!?]*$`, 'iu')
}
