/**
 * Sentences of the project from templates, for types, phrasings and languages with too few labeled rows. `(a|b)` is one of
 * several, `{name}` one of a list; a final `…` is followed by material.
 */
import { type QueryType, queryTypes } from '../core/chat/chat.ts'
import { type Level, levels } from '../models/capability-levels.ts'
import { getHash } from '../text/analysis/features.ts'
import effort from './data/effort.json'
import file from './data/frames.json'
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

/**
 * Training sentences of the project. Harmful and harmless requests with the same words differ in object, setting or
 * purpose, which a few hundred labeled sentences cover too little. Frames and fillers (`data/frames.json`, where `@name` is
 * a list that several frames share); every `stride`th combination is used, so that no frame dominates.
 */

/** Label of an example: request, everyday request, content, or attempt to override a model's rules. */
type TrainingLabel = 'request' | 'everyday' | 'content' | 'jailbreak'

/** Sentences that are all harmful or all harmless. */
type Frame = {
  /** Absent = requests. */
  readonly lesson?: TrainingLabel
  readonly harmful: boolean
  /** Number of combinations used. */
  readonly take: number
  /** Sentences with gaps, and the fillers of each gap. */
  readonly forms: readonly string[]
  readonly fill: Readonly<Record<string, readonly string[]>>
}

export type ModerationExample = { readonly text: string; readonly lesson: TrainingLabel; readonly harmful: boolean }

const groups = file.groups as readonly { readonly name: string; readonly frames: readonly Frame[] }[]
const lists: Readonly<Record<string, readonly string[]>> = file.lists

/** Yields all examples in a fixed order. */
export function* moderationExamples(): Generator<ModerationExample> {
  for (const { frames } of groups)
    for (const frame of frames)
      for (const text of sentences(frame)) yield { text, lesson: frame.lesson ?? 'request', harmful: frame.harmful }
}

/** Returns the texts that machines wrote: log lines, queries, records, source, commands. */
export function machineTexts(): readonly string[] {
  return groups
    .filter(({ name }) => name === 'machine')
    .flatMap(({ frames }) => frames.flatMap(frame => [...sentences(frame)]))
}

function* sentences({ forms, fill, take }: Frame): Generator<string> {
  const gaps = Object.entries(fill).map(([name, fillers]) => ({ name, fillers: withLists(fillers) }))
  const shapes = withLists(forms)
  const total = gaps.reduce((product, { fillers }) => product * fillers.length, shapes.length)
  const count = Math.min(take, total)
  for (let index = 0; index < count; index++) {
    // A stride without a common divisor covers every list evenly.
    let rest = (index * stride) % total
    let text = shapes[rest % shapes.length] ?? ''
    rest = Math.floor(rest / shapes.length)
    for (const { name, fillers } of gaps) {
      text = text.replace(`{${name}}`, fillers[rest % fillers.length] ?? '')
      rest = Math.floor(rest / fillers.length)
    }
    yield text
  }
}

const stride = 7_919

function withLists(items: readonly string[]): readonly string[] {
  return items.flatMap(item => {
    const list = item.startsWith('@') ? lists[item.slice(1)] : [item]
    if (list === undefined) throw new TypeError(`frames.json has no list "${item}"`)
    return list
  })
}
