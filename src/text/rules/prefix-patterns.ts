/**
 * Patterns that count only at the start of a text, after greetings and polite phrases. Reads words only as long as a
 * pattern may continue: one or two for nearly every text, whatever its length.
 */
import { noWord, sieveSize, wordFrom, wordMatches } from '../word-hashes.ts'
import file from './override-patterns.json'
import { compilePatterns, matcher, type PatternSet, scan, takeBase, withWords, wordHashes } from './patterns.ts'

/** Returns the owner of the pattern that starts at `from`; null = none. Reads at most `most` units. */
export type OpeningFinder<Owner> = (text: string, from: number, most: number) => Owner | null

/** Compiles openings. `unless` holds patterns in the following text that excuse an opening. */
export function compileOpenings<Owner>(
  openings: readonly { readonly of: Owner; readonly patterns: readonly string[]; readonly unless: readonly string[] }[],
): OpeningFinder<Owner> {
  const owners = openings.flatMap(({ of, patterns, unless }) => {
    const excuses = compilePatterns(unless)
    return patterns.map(() => ({ of, excuses }))
  })
  const set = compilePatterns(
    openings.flatMap(({ patterns }) => patterns),
    'opening',
  )
  const firstWords = getFirstWords(set)
  const passedOver = new Set(politenessPhrases.flatMap(wordHashes))
  /** Skips the expensive matching for nearly all texts. */
  const mayBegin = new Uint8Array(sieveSize)
  for (const hash of [...firstWords, ...passedOver]) mayBegin[hash & (sieveSize - 1)] = 1
  const [end = noWord] = wordHashes(stop)
  /** The first word within reach decides: behind a text's many starts a word may be far away, or missing. */
  const mayOpen = (text: string, from: number, to: number) =>
    mayBegin[wordFrom(text, from, to).hash & (sieveSize - 1)] !== 0
  const findOwner = (text: string): Owner | null => {
    let from = 0
    let word = wordFrom(text, from)
    while (passedOver.has(word.hash)) {
      from = word.end
      word = wordFrom(text, from)
    }
    if (!firstWords.has(word.hash)) return null
    let owner: Owner | null = null
    const walk = startWalk(set, text.length, pattern => {
      const item = owners[pattern]
      if (item !== undefined && !scan(item.excuses, text.slice(from, from + mostExcuse), () => false)) owner ??= item.of
    })
    walk.step(word.hash)
    while (owner === null && word.hash !== noWord && walk.isOpen()) {
      const next = wordFrom(text, word.end)
      if (next.hash === noWord || clauseEnd.test(text.slice(word.end, next.end))) walk.stop(end)
      walk.step(next.hash)
      word = next
    }
    return owner === null || quoted.test(text.slice(from, from + mostExcuse)) ? null : owner
  }
  // Slicing a text at each line would take longer than reading the first words.
  return (text, from, most) => (mayOpen(text, from, from + most) ? findOwner(text.slice(from, from + most)) : null)
}

function getFirstWords({ words, steps }: PatternSet): ReadonlySet<number> {
  const first = new Set<number>()
  for (const [word, hash] of words.hash.entries())
    for (let step = words.from[word] ?? 0; step < (words.from[word + 1] ?? 0); step++)
      if ((steps[2 * step] ?? -1) >> 8 === 0) first.add(hash)
  return first
}

/** Number of characters in which a retraction or the end of a quotation is searched. */
const mostExcuse = 600

const clauseEnd = /[.,;:!?…—。，、；：！？।؟،؛]/

/** A quotation followed by words: the text is about the instruction. */
const quoted = /^[^\p{L}\p{N}]*["“„«「『][^"”“»」』]*["”“»」』][^\p{L}\p{N}]*[\p{L}\p{N}]/u

/** Creates a matcher for openings that advances word by word from the start of a text, for at most `most` words. */
function startWalk(set: PatternSet, most: number, onMatch: (pattern: number) => void) {
  // The initial state has the word before the first, whose index is 1.
  const base = takeBase(set, most)
  const { reached } = set.scratch
  reached[0] = base
  let position = 0
  /** The last word at which a pattern may continue. */
  let open = 1
  const report = (pattern: number) => {
    onMatch(pattern)
    return true
  }
  const onWords = matcher(set, reached, base, report, (state, place) => {
    open = Math.max(open, place + (set.reachFrom[state] ?? 0))
  })
  const advance = (hash: number, place: number) => {
    wordMatches.hash[0] = hash
    wordMatches.position[0] = place
    onWords(1)
  }
  return {
    step: (hash: number) => advance(hash, ++position),
    /** A clause ends before the next word. */
    stop: (hash: number) => advance(hash, position + 1),
    isOpen: () => position < open,
  }
}

/**
 * Patterns in many languages for instructions at the start of a text to ignore a model's instructions. Naming all of
 * them or the model's own ("all previous instructions", "your system prompt") is always an attack. Naming what may be
 * the user's own ("the previous instructions", "everything above") is one unless the user retracts something of theirs.
 * Naming the user's own ("my last message"), errors, emails or steps is not.
 */

/** End of a clause, as a word that no text contains. */
const stop = file.words.stop

/** Words before an instruction that do not change its meaning. */
const politenessPhrases: readonly string[] = file.politeness

/** Patterns, or the places of which every combination is one; a place may be a named list. */
type Entry = string | readonly Place[]
type Place = '{addressed}' | readonly Entry[]

export const overridePatterns = getPatterns(Object.values(file.overrides).flat() as readonly Entry[])

/** Instructions that may retract the user's own words. They are allowed if a retraction follows. */
export const allowedOverrides = getPatterns(file.allowed as readonly Entry[])

/** Phrases of users who retract something of their own. */
export const retractionPatterns: readonly string[] = file.retractions

function getPatterns(entries: readonly Entry[]): readonly string[] {
  return entries.flatMap(entry =>
    typeof entry === 'string'
      ? [withWords(entry, file.words)]
      : ways(...entry.map(place => getPatterns(place === '{addressed}' ? file.addressed : place))),
  )
}

/** Returns every combination of the places; '' = the place is omitted. */
function ways(...places: readonly (readonly string[])[]): readonly string[] {
  return places
    .reduce<readonly string[]>(
      (heads, place) => heads.flatMap(head => optional(place).map(text => `${head} ${text}`)),
      [''],
    )
    .map(way => way.replace(/ +/g, ' ').trim())
}

/** An optional single word is one combination, not two. */
function optional(place: readonly string[]): readonly string[] {
  const [first, ...others] = place
  const word = others.find(other => !other.includes(' ') && !other.startsWith('?'))
  return first === '' && word !== undefined ? [`?${word}`, ...others.filter(other => other !== word)] : place
}
