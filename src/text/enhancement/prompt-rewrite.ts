import type { PromptAnalyzer } from '../analysis/prompt-analysis.ts'
import { isTerse, isWithinGrowthLimits, maximumGrowth } from './enhance.ts'

/** Instructions for the model that rewrites prompts. */
export const rewriteInstructions = `The user's message is a prompt for another assistant. Do not answer it. Repeat it word for word, then, in the same language, add two to four short lines that say how to answer it: audience, format, scope, constraints, steps or checks, whichever fit. Add no fact, number, name, address or quotation that is not in it, and at most ${maximumGrowth} characters in all. Reply with the prompt alone.`

/**
 * Returns true if a rewrite satisfies the rules of enhancement: longer within the same bounds, containing the user's
 * text with literals and names in order, without invented facts, in the same language, and stable (a second rewrite
 * would add nothing).
 */
export function isValidRewrite(original: string, rewritten: string, read: PromptAnalyzer): boolean {
  const { language } = analyze(read, original)
  const analysis = analyze(read, rewritten)
  return (
    rewritten !== original &&
    isWithinGrowthLimits(original, rewritten) &&
    !isTerse(rewritten, analysis) &&
    keepsText(original, rewritten) &&
    literals.every(kind => keepsInOrder(original.match(kind) ?? [], rewritten)) &&
    namesIn(original).every(name => rewritten.includes(name)) &&
    inventsNothing(original, rewritten, language) &&
    analysis.language === language
  )
}

/** The user's text may differ in this share of words, for corrected spelling. */
const leastRecall = 0.98

/** Code, URLs, numbers, quotations, placeholders. */
const literals = [
  /```[\s\S]*?```|`[^`\n]+`/g,
  /\b(?:https?:\/\/|www\.)[^\s<>"]+/gi,
  /\p{Nd}+(?:[.,:/]\p{Nd}+)*/gu,
  /"[^"\n]+"|“[^”\n]+”|«[^»\n]+»|„[^“”\n]+[“”]|「[^」\n]+」/g,
  /\{\{?[^{}\n]+\}\}?|\[[^[\]\n]+\]|<[^<>\s][^<>\n]*>|\$\w+|%\w\b/g,
]

/** Spelled-out numbers from two upward, since `one` is a pronoun. */
const spelledNumber =
  /\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty|hundred|thousand|million|billion|dos|tres|cuatro|cinco|diez|deux|trois|quatre|cinq|dix|zwei|drei|vier|fünf|zehn)\b/gi

function analyze(read: PromptAnalyzer, text: string): ReturnType<PromptAnalyzer> {
  return read([{ role: 'user', content: [{ type: 'text', text }], name: null }])
}

function keepsText(original: string, rewritten: string): boolean {
  if (rewritten.includes(original.trim())) return true
  const words = getWords(original)
  return words.length > 0 && commonInOrder(words, getWords(rewritten)) / words.length >= leastRecall
}

function getWords(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
}

/**
 * Returns the length of the longest common subsequence of words. Both texts are short: a terse prompt and at most four
 * times its length.
 */
function commonInOrder(left: readonly string[], right: readonly string[]): number {
  let row = new Uint16Array(right.length + 1)
  for (const word of left) {
    const next = new Uint16Array(right.length + 1)
    for (const [at, other] of right.entries())
      next[at + 1] = word === other ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0)
    row = next
  }
  return row[right.length] ?? 0
}

function keepsInOrder(parts: readonly string[], text: string): boolean {
  let from = 0
  for (const part of parts) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return true
}

function inventsNothing(original: string, rewritten: string, language: string): boolean {
  if (!languagesWithNames.has(language)) return false
  const words = new Set(getWords(original))
  return (
    [...literals, spelledNumber].every(kind => {
      const known = new Set(original.match(kind) ?? [])
      return (rewritten.match(kind) ?? []).every(part => known.has(part))
    }) && namesIn(rewritten).every(name => words.has(name.toLowerCase()))
  )
}

/**
 * Languages in which a capital inside a sentence marks a name. In others an invented name could not be detected, so
 * only rules enhance.
 */
const languagesWithNames = new Set('en es fr pt it nl sv da no fi pl cs ro hu tr ru uk'.split(' '))

/** Returns capitalized words, except those that begin a sentence, a line, a list item, or the text after a colon. */
function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/(?<!(?:[.!?:]|^\s*[-*•])\s)(?<=[^\S\n]["'“«(]?)\p{Lu}[\p{L}\p{M}\p{N}'’-]*/gmu)]
    .map(([name]) => name)
    .filter(name => name !== 'I' && !/^I['’]/.test(name))
}
