/**
 * Pattern layer: rules as data for templates and requests that hardly have another meaning. The table aims at
 * precision, not recall; later layers check what it allows.
 */
import { filledTable, unitCount } from '../code-units.ts'
import dataOrders from './data-orders.json'
import file from './pattern-rules.json'
import { compilePatterns, type PatternSet, scan, withWords } from './patterns.ts'
import {
  allowedOverrides,
  compileOpenings,
  type OpeningFinder,
  overridePatterns,
  retractionPatterns,
} from './prefix-patterns.ts'

const moderationCategories = [
  'jailbreak',
  'prompt_injection',
  'weapons',
  'drugs',
  'cybercrime',
  'fraud',
  'minors',
  'violence',
  'self_harm',
  'sexual',
  'hate',
  'harassment',
  'privacy',
  'misinformation',
  'illegal',
  'secrets',
  'malicious_url',
] as const
export type ModerationCategory = (typeof moderationCategories)[number]

export type ModerationRule = {
  /** Stable, because logs and operators' exceptions refer to it. */
  readonly id: string
  readonly category: string
  /** Explains to the operator why this is blocked. */
  readonly reason: string
  readonly patterns: readonly string[]
  /** Patterns that count only at the start of a text (`prefix-patterns.ts`), and not in outputs. */
  readonly openings?: readonly string[]
  /** Patterns that excuse such a start. */
  readonly unless?: readonly string[]
  /** Regular expressions (`compileExpressions`). */
  readonly expressions?: readonly string[]
  /** The texts that it counts in; absent = in all. */
  readonly within?: TextKind
}

/** Whether a text is a user's request, or an output, or is read by the model: a document, a tool result, a page. */
export type TextKind = 'prompt' | 'data'

export type ModerationRules = {
  readonly rules: readonly ModerationRule[]
  readonly set: PatternSet
  readonly ruleTable: Uint16Array
  readonly opensAt: OpeningFinder<ModerationRule>
  /** Expressions of all rules with the rule of each; null = there are none. */
  readonly expressions: { readonly set: ExpressionSet; readonly owners: readonly ModerationRule[] } | null
}

/** Compiles a rule table. Throws a TypeError for a pattern without a word or an expression that is rejected. */
export function compileRules(rules: readonly ModerationRule[]): ModerationRules {
  return {
    rules,
    set: compilePatterns(rules.flatMap(rule => rule.patterns)),
    ruleTable: Uint16Array.from(rules.flatMap((rule, index) => rule.patterns.map(() => index))),
    opensAt: compileOpenings(
      rules.flatMap(rule =>
        rule.openings === undefined ? [] : [{ of: rule, patterns: rule.openings, unless: rule.unless ?? [] }],
      ),
    ),
    expressions: findExpressions(rules.flatMap(rule => (rule.expressions ?? []).map(source => ({ rule, source })))),
  }
}

function findExpressions(
  all: readonly { readonly rule: ModerationRule; readonly source: string }[],
): ModerationRules['expressions'] {
  if (all.length === 0) return null
  return { set: compileExpressions(all.map(({ source }) => source)), owners: all.map(({ rule }) => rule) }
}

/** Returns the first rule that a text of a kind violates; null = none. */
export function findBlockingRule(compiled: ModerationRules, text: string, kind: TextKind): ModerationRule | null {
  return findOpening(compiled, text, kind) ?? findWords(compiled, text, kind) ?? findMatchingRule(compiled, text)
}

/** Returns the rule whose words are anywhere in a text. */
export function findWords(compiled: ModerationRules, text: string, kind: TextKind): ModerationRule | null {
  let broken: ModerationRule | null = null
  scan(compiled.set, text, pattern => {
    broken = getRule(compiled, pattern, kind)
    return broken === null
  })
  return broken
}

/** Returns true if an output refuses, warns or quotes before the words of a rule: they are talked about, not meant. */
export function isReported(text: string): boolean {
  return reporting.test(text.slice(-300))
}

const reporting =
  /\b(?:can(?:no|['’])t|won['’]t|will not|unable|not able|sorry|refuse|decline|illegal|against|never|avoid|beware|do(?:n['’]t| not)|should(?:n['’]t| not)|example|phrase|called|such as|like)\b|["“”„`«»]|(?:^|\s)['‘]/i

/** Returns the rule of a pattern; null if it does not count in such a text. */
export function getRule({ rules, ruleTable }: ModerationRules, pattern: number, kind: TextKind): ModerationRule | null {
  const rule = rules[ruleTable[pattern] ?? -1]
  return rule === undefined || (rule.within ?? kind) !== kind ? null : rule
}

/**
 * Instructions can begin a text, and any line of pasted text; in text that the model reads, any sentence. Openings that may
 * retract the user's own words count only at the start of what a user writes.
 */
function findOpening({ opensAt }: ModerationRules, text: string, kind: TextKind): ModerationRule | null {
  const first = opensAt(text, 0, kind === 'data' ? longestOpening : text.length)
  if (first !== null) return first
  let at = nextBeginning(text, 0, kind)
  for (let places = 1; at !== -1 && places < mostPlaces; at = nextBeginning(text, at + 1, kind)) {
    let from = at + 1
    if (kind === 'data') while (text.charCodeAt(from) === space) from++
    const isSentence = kind === 'data' && beginsNone[text.charCodeAt(from)] === 0
    if (!isSentence && (text.charAt(at) !== '\n' || !(text.charCodeAt(from) > space))) continue
    places++
    const broken = opensAt(text, from, longestOpening)
    if (broken !== null && (isSentence || broken.unless === undefined)) return broken
  }
  return null
}

/** Returns the next mark behind which a line, or a sentence of data, can begin; −1 = none. */
function nextBeginning(text: string, from: number, kind: TextKind): number {
  if (kind === 'prompt') return text.indexOf('\n', from)
  for (let at = from; at < text.length; at++) if (beginnings[text.charCodeAt(at)] === 1) return at
  return -1
}

const space = 32
const mostPlaces = 4_096
/** In UTF-16 units: bounds the work for a text that consists of many sentence starts. */
const longestOpening = 600

/** Returns the first rule with a matching expression. */
export function findMatchingRule({ expressions }: ModerationRules, text: string): ModerationRule | null {
  const [first] = expressions?.set.match(text) ?? []
  return first === undefined ? null : (expressions?.owners[first] ?? null)
}

/**
 * Patterns for instructions to a model inside text that it reads: documents, tool results, fetched pages. Text there
 * has no authority: addressing the model, asking it to hide something from the user, or giving it a new task is an
 * attack. A report about such instructions ("attackers hide instructions in pages") is not.
 */
const orderPatterns = Object.values(dataOrders.patterns)
  .flat()
  .map(pattern => withWords(pattern, dataOrders.words))

const orderInData: ModerationRule = {
  id: 'order-in-data',
  category: 'prompt_injection',
  reason: 'Gives orders to the model within what it is to read.',
  patterns: orderPatterns,
  within: 'data',
}

/**
 * Marks after which a sentence or line, and so an instruction, can begin. Not a quotation mark, since it may quote an
 * example.
 */
const beginnings = new Uint8Array(unitCount)
for (const mark of '\n\r.!?>])*#|;:。！？।؟：') beginnings[mark.charCodeAt(0)] = 1
/** What no sentence begins with: blanks, the marks, and quotation marks. */
const beginsNone = filledTable(new Uint8Array(unitCount), unit =>
  /[\s.!?>\])*#|;:。！？।؟："“„«「『'-]/.test(String.fromCharCode(unit)) ? 1 : 0,
)

const openings: Readonly<Record<string, Pick<ModerationRule, 'openings' | 'unless'>>> = {
  'override-at-once': { openings: overridePatterns },
  'override-earlier': { openings: allowedOverrides, unless: retractionPatterns },
}

/** Text that the model reads requests nothing: there only rules against instructions count. */
const instructing: ReadonlySet<string> = new Set<ModerationCategory>(['jailbreak', 'prompt_injection'])

/** The rules of this release. An operator's own rules count in every text. */
export const moderationRules: readonly ModerationRule[] = [
  ...file.rules.map(rule => ({
    ...rule,
    patterns: rule.patterns.map(pattern => withWords(pattern, file.words)),
    ...openings[rule.id],
    ...(instructing.has(rule.category) ? {} : { within: 'prompt' as const }),
  })),
  orderInData,
]

/**
 * Operators' regular expressions as one automaton (RE2): a text is read once for all of them, in time linear in its
 * length for any expression and text. Ignores case, and a dot matches line breaks too. Instructions are bounded, per
 * expression and in sum: where the automaton outgrows its memory, each of them may cost a step per character.
 */

type ExpressionSet = {
  /** Returns the numbers of the expressions that match, in order. */
  match(text: string): readonly number[]
}

/** Compiles expressions, numbered as given. Throws an Error with the reason if one is rejected. */
export function compileExpressions(sources: readonly string[]): ExpressionSet {
  // Loaded with the first expression: most gateways have none, and parsing the library takes as long as 10 ms.
  const { RE2JS, RE2Set } = require('re2js') as typeof import('re2js')
  const flags = RE2JS.CASE_INSENSITIVE | RE2JS.DOTALL
  const set = new RE2Set(RE2Set.UNANCHORED, flags)
  let instructions = 0
  for (const source of sources) {
    const size = RE2JS.compile(source, flags).programSize()
    instructions += size
    if (size > mostInstructions)
      throw new TypeError(`the expression is too large (in "${source}"); make repetitions shorter or fewer`)
    if (instructions > mostInstructionsTogether)
      throw new TypeError('all expressions together are too large; make them fewer, or repetitions shorter')
    set.add(source)
  }
  set.compile()
  return set
}

const mostInstructions = 1_000
const mostInstructionsTogether = 5_000
