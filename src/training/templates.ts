/**
 * Sentences of the project from templates, for types, phrasings, languages and kinds of harm with too few labeled rows.
 * `(a|b)` is one of several, `{name}` one of a list; a final `…` is followed by material.
 */
import { queryTypes } from '../core/chat/chat.ts'
import { levels } from '../models/capability-levels.ts'
import { getHash } from '../text/analysis/features.ts'
import effort from './data/effort.json'
import frames from './data/frames.json'
import freshness from './data/freshness-templates.json'
import longer from './data/query-templates.json'
import shorter from './data/short-templates.json'

type Lists = Readonly<Record<string, readonly string[]>>
type Templates<Label extends string> = {
  readonly lists: Lists
  readonly templates: Readonly<Record<Label, readonly string[]>>
}
type Sentence<Label extends string> = { readonly label: Label; readonly text: string }

/** Returns sentences by query type, `each` of every template. */
export const typedSentences = (each: number) => sentences(longer, queryTypes, each)

/**
 * Returns short requests by query type: a few words without a verb, as in a search box, which labeled rows hardly have;
 * and equally short texts that are not requests.
 */
export const shortRequests = (each: number) => sentences(shorter, queryTypes, each)

/** Returns questions by whether the answer changes over time, `each` of every template. */
export const datedQuestions = (each: number) => sentences(freshness, ['current', 'settled'], each)

/**
 * Returns prompts by the model capability they need, from signs of hard work (interdependent constraints, design, proof,
 * diagnosis, expertise, costly errors) or easy work (lists, facts, small changes, polite phrases, boilerplate): `each` of
 * every line with several, each once more with an opening, irrelevant context and thanks, which must not change its
 * difficulty. Each field has both in the same words, terse and long, so that subject, length and tone carry no signal.
 */
export function effortExamples(each: number) {
  return [...effort.fields, effort.further, effort.foreign, effort.terse].flatMap(templates => {
    const told = sentences({ lists: {}, templates }, levels, each)
    const once = [...new Map(told.map(sentence => [sentence.text, sentence])).values()]
    return once.flatMap(({ label, text }) =>
      templates === effort.foreign || foreignLetters.test(text)
        ? [{ label, text }]
        : [
            { label, text },
            { label, text: inPassing(text) },
          ],
    )
  })
}

const foreignLetters = /[\u0370-\uffff]/

function inPassing(text: string): string {
  const { openings, contexts, closings } = effort
  const pick = seededPick(text)
  const told = [pick(contexts), pick(['twice', 'once']) === 'twice' ? pick(contexts) : '']
  const opening = pick(openings)
  const isLast = pick(['last', 'last', 'last', 'first', 'first']) === 'last'
  const parts = [opening, ...(isLast ? [...told, text] : [text, ...told]), pick(closings)]
  return parts.filter(part => part !== '').join(' ')
}

/** Sentences with gaps that are all harmful or all harmless. */
type Frame = {
  /** Request, everyday request, content, or attempt to override a model's rules; absent = requests. */
  readonly lesson?: 'request' | 'everyday' | 'content' | 'jailbreak'
  readonly harmful: boolean
  /** Number of sentences. */
  readonly take: number
  readonly forms: readonly string[]
  readonly fill: Lists
}

const groups = frames.groups as readonly { readonly name: string; readonly frames: readonly Frame[] }[]

/**
 * Returns harmful and harmless requests. Those with the same words differ in object, setting or purpose, which a few hundred
 * labeled sentences cover too little.
 */
export function moderationExamples() {
  return groups.flatMap(group =>
    group.frames.flatMap(({ lesson = 'request', ...frame }) =>
      framed(frame).map(text => ({ text, lesson, harmful: frame.harmful })),
    ),
  )
}

/** Returns the texts that machines wrote: log lines, queries, records, source, commands. */
export function machineTexts(): readonly string[] {
  return groups.filter(({ name }) => name === 'machine').flatMap(group => group.frames.flatMap(framed))
}

/** `@name` is a list that several frames share. */
function framed({ forms, fill, take }: Frame): readonly string[] {
  const named: Lists = frames.lists
  const withLists = (items: readonly string[]) =>
    items.flatMap(item => (item.startsWith('@') ? (named[item.slice(1)] ?? []) : [item]))
  const lists = Object.fromEntries(Object.entries(fill).map(([name, items]) => [name, withLists(items)]))
  const shapes = withLists(forms)
  const start = getHash(shapes.join()) >>> 0
  return Array.from({ length: take }, (_, index) => {
    // The digits of numbers a prime apart, so that every choice is covered evenly.
    let rest = start + index * 7_919
    const pick: Pick = items => {
      const item = items[rest % items.length] ?? ''
      rest = Math.floor(rest / items.length)
      return item
    }
    return filled(pick(shapes), lists, pick)
  })
}

type Pick = (items: readonly string[]) => string

/** Returns `each` sentences of every template. Each has its own generator, so that adding one does not change the others. */
function sentences<Label extends string>(
  { lists, templates }: Templates<Label>,
  labels: readonly Label[],
  each: number,
): readonly Sentence<Label>[] {
  return labels.flatMap(label =>
    templates[label].flatMap(form => {
      const pick = seededPick(form)
      return Array.from({ length: each }, () => ({ label, text: filled(form, lists, pick) }))
    }),
  )
}

function filled(form: string, lists: Lists, pick: Pick): string {
  return form
    .replace(/\(([^()]*\|[^()]*)\)/g, (_, choices: string) => pick(choices.split('|')))
    .replace(/\{(\w+)\}/g, (gap, name: string) => (lists[name] === undefined ? gap : pick(lists[name])))
    .trim()
}

/** Returns a choice deterministic per seed, by the finalizer of Murmur3. */
function seededPick(seed: string): Pick {
  let state = getHash(seed) >>> 0
  return items => {
    state = (state + 0x9e3779b9) >>> 0
    let bits = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
    bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
    return items[Math.floor((((bits ^ (bits >>> 16)) >>> 0) / 0x1_0000_0000) * items.length)] ?? ''
  }
}
