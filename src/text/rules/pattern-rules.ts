/**
 * Pattern layer: rules as data for templates and requests that hardly have another meaning. The table aims at
 * precision, not recall; later layers check what it allows.
 */

import dataOrders from './data-orders.json'
import { compileExpressions, type ExpressionSet } from './expressions.ts'
import { allowedOverrides, overridePatterns, retractionPatterns } from './override-patterns.ts'
import file from './pattern-rules.json'
import { compilePatterns, type PatternSet, scan, withWords } from './patterns.ts'
import { compileOpenings, type PrefixPatterns } from './prefix-patterns.ts'

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
  /** Regular expressions (`expressions.ts`). */
  readonly expressions?: readonly string[]
}

export type ModerationRules = {
  readonly rules: readonly ModerationRule[]
  readonly set: PatternSet
  readonly ruleTable: Uint16Array
  readonly openings: PrefixPatterns<ModerationRule>
  /** Expressions of all rules with the rule of each; null = there are none. */
  readonly expressions: { readonly set: ExpressionSet; readonly owners: readonly ModerationRule[] } | null
}

/** Compiles a rule table. Throws a TypeError for a pattern without a word or an expression that is rejected. */
export function compileRules(rules: readonly ModerationRule[]): ModerationRules {
  return {
    rules,
    set: compilePatterns(rules.flatMap(rule => rule.patterns)),
    ruleTable: Uint16Array.from(rules.flatMap((rule, index) => rule.patterns.map(() => index))),
    openings: compileOpenings(
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

/** Returns the first rule that a text violates; null = none. */
export function findBlockingRule(compiled: ModerationRules, text: string): ModerationRule | null {
  let broken = compiled.openings.of(text) ?? lineBroken(compiled, text)
  if (broken !== null) return broken
  scan(compiled.set, text, pattern => {
    broken = compiled.rules[compiled.ruleTable[pattern] ?? -1] ?? null
    return broken === null
  })
  return broken ?? findMatchingRule(compiled, text)
}

/**
 * Pasted text can contain instructions at the start of any line. Openings that may retract the user's own words count
 * only at the start of the text.
 */
function lineBroken({ openings }: ModerationRules, text: string): ModerationRule | null {
  let lines = 0
  for (let at = text.indexOf('\n'); at !== -1 && lines < mostLines; at = text.indexOf('\n', at + 1), lines++) {
    if (text.charCodeAt(at + 1) <= space) continue
    const broken = openings.at(text, at + 1, longestOpening)
    if (broken !== null && broken.unless === undefined) return broken
  }
  return null
}

const space = 32
const mostLines = 4_096

/** Returns the first rule with a matching expression. */
export function findMatchingRule({ expressions }: ModerationRules, text: string): ModerationRule | null {
  const [first] = expressions?.set.match(text) ?? []
  return first === undefined ? null : (expressions?.owners[first] ?? null)
}

/**
 * Returns the rules for text that the model reads: the operator's own rules and those against embedded instructions.
 * Anything else in such text is not a request.
 */
export function rulesForData(own: readonly ModerationRule[]): readonly ModerationRule[] {
  const ordering: readonly string[] = ['jailbreak', 'prompt_injection'] satisfies ModerationCategory[]
  return [...own, ...moderationRules.filter(({ category }) => ordering.includes(category)), orderInData]
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
}

/**
 * Marks after which a sentence or line, and so an instruction, can begin. Not a quotation mark, since it may quote an
 * example.
 */
const beginnings = /(?:[\n\r.!?>\])*#|;:]|-->|[。！？।؟：]) *(?=[^\s.!?>\])*#|;:。！？।؟："“„«「『'-])/g

/** Returns the start positions of sentences and lines, including 0. Linear. */
function findBeginnings(text: string): readonly number[] {
  const places = [0]
  for (const { index, 0: mark } of text.matchAll(beginnings)) {
    if (places.length === mostBeginnings) break
    places.push(index + mark.length)
  }
  return places
}

const mostBeginnings = 4_096

/** Returns the first rule that such a text violates. An instruction may open any of its sentences. */
export function firstBrokenByData(compiled: ModerationRules, text: string): ModerationRule | null {
  for (const from of findBeginnings(text)) {
    const broken = compiled.openings.at(text, from, longestOpening)
    if (broken !== null) return broken
  }
  return findBlockingRule(compiled, text)
}

/** In UTF-16 units: bounds the work for a text that consists of many sentence starts. */
const longestOpening = 600

const openings: Readonly<Record<string, Pick<ModerationRule, 'openings' | 'unless'>>> = {
  'override-at-once': { openings: overridePatterns },
  'override-earlier': { openings: allowedOverrides, unless: retractionPatterns },
}

export const moderationRules: readonly ModerationRule[] = file.rules.map(rule => ({
  ...rule,
  patterns: rule.patterns.map(pattern => withWords(pattern, file.words)),
  ...openings[rule.id],
}))
