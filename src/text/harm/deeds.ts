/**
 * Blocks requests by the combination of an act, its object or victim, and the form of a request, in any order and
 * wording. Covers only the most serious harms, which a trained classifier must not miss because of plain wording. Words
 * about history, prevention, law, news or games excuse the sentence that they occur in.
 */
import { type Features, getHash } from '../analysis/features.ts'
import { enterWordList } from '../hash-table.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import file from './deeds.json'

/** Words of each concept, in English; `one_two` = adjacent words, `word+` = with its regular endings. */
const { concepts } = file

type Concept = keyof typeof concepts
const names = Object.keys(concepts) as readonly Concept[]

/** A deed asks for all of some concepts and for none of others. */
type Deed = {
  readonly category: ModerationCategory
  readonly all: readonly Concept[]
  readonly unless: readonly Concept[]
  /** Maximum distance in words between all required concepts. */
  readonly span?: number
}
const deeds = file.deeds as readonly Deed[]

const usualSpan = 40

const getBit = (concept: Concept) => 1 << names.indexOf(concept)
const getBits = (list: readonly Concept[]) => list.reduce((bits, concept) => bits | getBit(concept), 0)
const rules = deeds.map(({ category, all, unless, span = usualSpan }) => ({
  category,
  all: getBits(all),
  unless: getBits(unless),
  span,
}))
const young = getBit('young')

/** Maximum concept hits evaluated for two sentences. */
const mostHits = 64

/** Creates a function that returns the category of the most serious request in a text; null = none. Linear. */
export function createDeedReader(): (features: Features) => ModerationCategory | null {
  const { known, beginning, object } = phraseTable()
  const places = new Int32Array(mostHits)
  const found = new Int32Array(mostHits)

  /** Evaluates the last two sentences. The last one begins at a hit and is not empty. */
  const asked = (hits: number): ModerationCategory | null => {
    let all = 0
    for (let at = 0; at < hits; at++) all |= found[at] ?? 0
    for (const rule of rules)
      if ((all & rule.all) === rule.all && (all & rule.unless) === 0 && isNear(rule, hits)) return rule.category
    return null
  }

  const isNear = (rule: (typeof rules)[number], hits: number): boolean => {
    for (let from = 0; from < hits; from++) {
      let near = 0
      for (let at = from; at < hits && (places[at] ?? 0) - (places[from] ?? 0) <= rule.span; at++)
        near |= found[at] ?? 0
      if ((near & rule.all) === rule.all) return true
    }
    return false
  }

  /** Checked first, because nearly all sentences contain no word for the object of such an act. */
  const namesObject = ({ lists }: Features, from: number, to: number): boolean => {
    for (let at = from; at < to; at++) if (((lists[at] ?? 0) & object) !== 0) return true
    return false
  }

  let hits = 0
  /** Index of the first hit of the last sentence. Earlier hits belong to the sentence before. */
  let here = 0

  const readSentence = ({ words, lists }: Features, from: number, to: number) => {
    places.copyWithin(0, here, hits)
    found.copyWithin(0, here, hits)
    hits -= here
    here = hits
    for (let at = from; at < to; at++) {
      if (((lists[at] ?? 0) & beginning) === 0) continue
      const { alone, phrases, years } = known.get(words[at] ?? 0) ?? unknownWord
      let bits = alone
      for (const { rest, means } of phrases) if (follow(words, at + 1, to, rest)) bits |= means
      if (years > 0 && saysAge(words, at, to)) bits |= young
      if (bits === 0) continue
      if (hits === mostHits) {
        places.copyWithin(0, mostHits / 2)
        found.copyWithin(0, mostHits / 2)
        hits = mostHits / 2
        here = Math.max(0, here - mostHits / 2)
      }
      places[hits] = at
      found[hits++] = bits
    }
  }

  return features => {
    const { count, breaks, breakCount } = features
    hits = 0
    here = 0
    let from = 0
    let didName = false
    let names = false
    for (let index = 0; index <= breakCount; index++) {
      const to = index < breakCount ? (breaks[index] ?? count) : count
      const afterwards = index + 1 < breakCount ? (breaks[index + 1] ?? count) : count
      if (index === 0) names = namesObject(features, from, to)
      const willName = afterwards > to && namesObject(features, to, afterwards)
      if (didName || names || willName) {
        readSentence(features, from, to)
        // A request may be spread over two sentences.
        const category = hits > 0 && (didName || names) ? asked(hits) : null
        if (category !== null) return category
      } else {
        hits = 0
        here = 0
      }
      didName = names
      names = willName
      from = to
    }
    return null
  }
}

function follow(words: Int32Array, from: number, count: number, rest: readonly number[]): boolean {
  if (from + rest.length > count) return false
  for (let at = 0; at < rest.length; at++) if (words[from + at] !== rest[at]) return false
  return true
}

type Known = {
  /** Bits of the concepts that the word has without its neighbors. */
  alone: number
  readonly phrases: { readonly rest: readonly number[]; readonly means: number }[]
  /** The number as an age below 18; 0 = not one. */
  years: number
}

const unknownWord: Known = { alone: 0, phrases: [], years: 0 }

const numbers =
  'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen'.split(
    ' ',
  )

function phraseTable() {
  const words = new Map<number, Known>()
  const getEntry = (word: string): Known => {
    const known = words.get(getHash(word)) ?? { alone: 0, phrases: [], years: 0 }
    words.set(getHash(word), known)
    return known
  }
  for (const concept of names)
    for (const phrase of concepts[concept].join(' ').split(' ').flatMap(inflected)) {
      const [first = '', ...rest] = phrase.split('_')
      const known = getEntry(first)
      if (rest.length === 0) known.alone |= getBit(concept)
      else known.phrases.push({ rest: rest.map(getHash), means: getBit(concept) })
    }
  for (const [index, name] of numbers.entries())
    for (const written of [name, String(index + 1)]) getEntry(written).years = index + 1
  const lastWords = objects.flatMap(concept => concepts[concept].join(' ').split(' ').flatMap(inflected).map(lastWord))
  return {
    known: words,
    beginning: enterWordList('deed', words.keys()),
    object: enterWordList('deedObject', lastWords.map(getHash)),
  }
}

/** Every blocked combination needs one of these. */
const objects: readonly Concept[] = ['massWeapon', 'sexual', 'groom', 'unseen', 'terrorists']

function lastWord(phrase: string): string {
  return phrase.split('_').at(-1) ?? phrase
}

function inflected(word: string): readonly string[] {
  if (!word.endsWith('+')) return [word]
  const stem = word.slice(0, -1)
  return [stem, `${stem}s`, `${stem}ed`, `${stem}d`]
}

const getHashes = (words: string) => new Set(words.split(' ').map(getHash))
const years = getHashes('year years yr yrs')
const short = getHashes('yo yrs y')
const aged = getHashes('aged age')
const is = getHashes('is was am turned turns s')
const whoIs = getHashes('she he who girl boy daughter son student')
const old = getHash('old')

/** Returns true if the number at `at` is a person's age: "12 years old", "aged 12", "she is 12". */
function saysAge(words: Int32Array, at: number, count: number): boolean {
  const next = at + 1 < count ? (words[at + 1] ?? 0) : 0
  const afterNext = at + 2 < count ? (words[at + 2] ?? 0) : 0
  const before = at > 0 ? (words[at - 1] ?? 0) : 0
  if (short.has(next) || (years.has(next) && afterNext === old)) return true
  if (aged.has(before)) return true
  return at > 1 && is.has(before) && whoIs.has(words[at - 2] ?? 0) && !years.has(next)
}
