/**
 * Sentences of the project from templates, for types, phrasings and languages with too few labeled rows. `(a|b)` is one of
 * several, `{name}` one of a list; a final `…` is followed by material.
 */
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { type Level, levels } from '../models/capability-levels.ts'
import { getHash } from '../text/analysis/features.ts'
import effort from './data/effort.json'
import freshness from './data/freshness-templates.json'
import longer from './data/query-templates.json'
import shorter from './data/short-templates.json'
import { seededRandom } from './folds.ts'

type TypedSentence = { readonly type: QueryType; readonly text: string }

/** Returns sentences by query type, `each` of every template. Deterministic. */
export function typedSentences(each: number): readonly TypedSentence[] {
  return ofTypes(longer, each)
}

/**
 * Returns short requests by query type: a few words without a verb, as in a search box, which labeled rows hardly have;
 * and equally short texts that are not requests.
 */
export function shortRequests(each: number): readonly TypedSentence[] {
  return ofTypes(shorter, each)
}

function ofTypes({ lists, templates }: typeof longer | typeof shorter, each: number): readonly TypedSentence[] {
  return queryTypes.flatMap(type => filled(templates[type], lists, each).map(text => ({ type, text })))
}

/** Returns questions, labeled by whether the answer changes over time, `each` of every template. Deterministic. */
export function datedQuestions(each: number): readonly { readonly isCurrent: boolean; readonly text: string }[] {
  const { lists, current, settled } = freshness
  return [
    ...filled(current, lists, each).map(text => ({ isCurrent: true, text })),
    ...filled(settled, lists, each).map(text => ({ isCurrent: false, text })),
  ]
}

/** A prompt with the capability level that it needs. */
type EffortExample = { readonly text: string; readonly level: Level; readonly field: number }

/**
 * Returns prompts by the model capability they need, from signs of hard work (interdependent constraints, design, proof,
 * diagnosis, expertise, costly errors) or easy work (lists, facts, small changes, polite phrases, boilerplate): `each` of
 * every line with several, with and without context. Each field has both in the same words, terse and long, so that
 * subject, length and tone carry no signal. Deterministic.
 */
export function effortExamples(each: number): readonly EffortExample[] {
  const { fields, further, foreign, terse } = effort
  const plain = [...fields, further, foreign, terse].flatMap((field, index) =>
    levels.flatMap(level => [...new Set(filled(field[level], {}, each))].map(text => ({ text, level, field: index }))),
  )
  const english = plain.filter(({ text, field }) => field !== fields.length + 1 && !foreignLetters.test(text))
  return [...plain, ...english.map(example => ({ ...example, text: inPassing(example.text) }))]
}

const foreignLetters = /[\u0370-\uffff]/

/** Returns a request with an opening, irrelevant context, which must not change its difficulty, and thanks. */
function inPassing(text: string): string {
  const { openings, contexts, closings } = effort
  const random = seededRandom(getHash(text))
  const item = (of: readonly string[]) => of[Math.floor(random() * of.length)] ?? ''
  const told = [item(contexts), random() < 0.5 ? item(contexts) : '']
  return [item(openings), ...(random() < 0.6 ? [...told, text] : [text, ...told]), item(closings)]
    .filter(part => part !== '')
    .join(' ')
}

function filled(
  lines: readonly string[],
  named: Readonly<Record<string, readonly string[]>>,
  each: number,
): readonly string[] {
  return lines.flatMap(line => {
    // Each template has its own generator, so that adding one does not change the others.
    const random = seededRandom(getHash(line))
    const pick = (choices: readonly string[]) => choices[Math.floor(random() * choices.length)] ?? ''
    const fill = () =>
      line
        .replace(/\(([^()]*)\)/g, (_, choices: string) => pick(choices.split('|')))
        .replace(/\{(\w+)\}/g, (_, name: string) => pick(named[name] ?? [name]))
        .trim()
    return Array.from({ length: each }, fill)
  })
}
