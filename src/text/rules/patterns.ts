/**
 * Word patterns: many rules matched in one pass, in time linear in the text for any text.
 *
 * A pattern is a sequence of places: `ignore|disregard ~3 previous|prior instructions` is one of the first two words,
 * at most three others in between, one of the next two, then the last word directly after it. A backtracking regular
 * expression engine can be stalled by a client; here each word costs one hash and one look-up, and a state only stores
 * where it was last reached, which suffices because the latest position leaves the most room. A space begins the next
 * place; a hyphen joins the words of one choice (`stack-trace`). Cost: no matching inside words (endings are listed)
 * and no look-around.
 *
 * Ignores case, accents, white space, punctuation and invisible characters. Chinese, Japanese and Korean are read one
 * character per word, so `代码` is two adjacent words.
 */

import {
  createWordScan,
  endWord,
  everyWord,
  noWord,
  type OnWords,
  scanWords,
  sieveSize,
  wordMatches,
} from '../word-hashes.ts'

export type PatternSet = {
  /** By the low bits of a hash: the first entry of `words` with these bits; 0 = none, the usual case. */
  readonly sieve: Uint16Array
  /** Words, numbered from 1: hash, next word with the same low bits, and the start of their steps. */
  readonly words: { readonly hash: Int32Array; readonly next: Uint16Array; readonly from: Uint32Array }
  /**
   * Steps of each word: from a state (−1 = a pattern may begin anywhere) to a later one, if that state was reached at
   * most `reach` words ago; 1 = adjacent. Steps to later states come first, so that one word does not count twice. Two
   * numbers each, beside each other in memory: `from` and `reach` in one (`stepKey`), and `to`, negated if it completes a
   * pattern.
   */
  readonly steps: Int32Array
  /** State → the pattern it completes; −1 = none. */
  readonly completes: Int32Array
  /** State → maximum words to the next word of a pattern, and to the word that completes one; 0 = more is missing. */
  readonly reachFrom: Uint8Array
  readonly lastReach: Uint8Array
  /** Hashes of all prefixes of the words that complete a pattern. */
  readonly lastPrefixes: ReadonlySet<number>
  /** True if a single word completes a pattern. */
  readonly hasSingle: boolean
  /**
   * Scratch memory for scans of whole texts. Each scan uses positions far beyond the previous one, so that the memory
   * needs no clearing.
   */
  readonly scratch: { readonly reached: Int32Array; base: number }
}

/**
 * Compiles patterns, numbered as given. Throws a TypeError on an ambiguous pattern and on too many words. Patterns of
 * openings begin in state 0; their places that begin with `?` are optional, except the last one.
 */
export function compilePatterns(sources: readonly string[], place: 'anywhere' | 'opening' = 'anywhere'): PatternSet {
  const isOpening = place === 'opening'
  const completes: number[] = isOpening ? [-1] : []
  const known = new Map<string, Place['choices']>()
  const getChoices = (part: string) => {
    const choices = known.get(part) ?? part.split('|').map(wordHashes)
    known.set(part, choices)
    return choices
  }
  const stepsTable = new Map<number, Step[]>()
  /** Patterns with a common prefix share its states, so that one word advances all of them at once. */
  const shared = new Map<string, number>()
  const step = (hash: number, item: Step) => {
    const steps = stepsTable.get(hash)
    if (steps === undefined) stepsTable.set(hash, [item])
    else steps.push(item)
  }
  for (const [pattern, source] of sources.entries()) {
    const problem = findProblem(source, getChoices)
    if (problem !== null) throw new TypeError(`the pattern "${source}" ${problem}`)
    let last = isOpening ? 0 : -1
    /** States from which the next place can be reached: several after optional places. */
    let before = [last]
    const places = getPlaces(source, isOpening, getChoices)
    for (const [index, { choices, reach, isOptional, text }] of places.entries()) {
      const beginning = `${before.join(' ')} ${reach} ${text}`
      const state = index < places.length - 1 ? shared.get(beginning) : undefined
      if (state !== undefined) {
        last = state
        before = isOptional ? [...before, last] : [last]
        continue
      }
      // States within choices of several words precede the state that they all lead to.
      const within = completes.length
      last = within + choices.reduce((sum, { length }) => sum + length - 1, 0)
      let free = within
      for (const hashes of choices) {
        let sources = before
        for (const [at, hash] of hashes.entries()) {
          const to = at === hashes.length - 1 ? last : free
          for (const from of sources) step(hash, { from, reach: at === 0 ? reach : 1, to })
          if (to !== last) sources = [free++]
        }
      }
      while (completes.length <= last) completes.push(-1)
      if (index < places.length - 1) shared.set(beginning, last)
      before = isOptional ? [...before, last] : [last]
    }
    completes[last] = pattern
  }
  if (stepsTable.size > mostWords) throw new TypeError(`the patterns have more than ${mostWords} different words`)
  const steps = [...stepsTable.values()].flatMap(list => list.sort((item, other) => other.to - item.to))
  const reachFrom = new Uint8Array(completes.length)
  const lastReach = new Uint8Array(completes.length)
  for (const { from, reach, to } of steps) {
    if (from === -1) continue
    reachFrom[from] = Math.max(reachFrom[from] ?? 0, reach)
    if ((completes[to] ?? -1) >= 0) lastReach[from] = Math.max(lastReach[from] ?? 0, reach)
  }
  return {
    ...wordTable(stepsTable),
    steps: Int32Array.from(
      steps.flatMap(({ from, reach, to }) => [stepKey(from, reach), (completes[to] ?? -1) < 0 ? to : ~to]),
    ),
    completes: Int32Array.from(completes),
    reachFrom,
    lastReach,
    lastPrefixes: new Set(isOpening ? [] : sources.flatMap(source => prefixHashes(source.split(' ').at(-1) ?? ''))),
    hasSingle: steps.some(({ from, to }) => from === -1 && (completes[to] ?? -1) >= 0),
    scratch: { reached: new Int32Array(completes.length), base: beyondReach },
  }
}

/** Replaces `{name}` in a pattern by the choices of that name, which may name others. */
export function withWords(pattern: string, words: Readonly<Record<string, string>>): string {
  return pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    const choices = words[name]
    if (choices === undefined) throw new TypeError(`the pattern "${pattern}" names unknown choices`)
    return withWords(choices, words)
  })
}

const mostReach = 255
/** `from` above, `reach` in the low byte. Negative for a step from anywhere. */
function stepKey(from: number, reach: number): number {
  return (from << 8) | reach
}

type Step = { readonly from: number; readonly reach: number; readonly to: number }

/** `words` uses 16-bit numbers from 1. */
const mostWords = 65_535

/** Returns the problem of a pattern; null = none. */
function findProblem(source: string, getChoices: (part: string) => Place['choices']): string | null {
  let hasWord = false
  for (const part of source.split(' ')) {
    if (part.startsWith('~')) {
      if (!/^~\d{1,3}$/.test(part) || Number(part.slice(1)) > mostBetween)
        return `has "${part}" in it: at most ~${mostBetween} words stand between two`
      if (!hasWord) return `has "${part}" with no word before it`
      hasWord = false
      continue
    }
    if (getChoices(part).some(hashes => hashes.length === 0))
      return 'has a place or a choice without a word: one blank stands between places, one | between choices'
    hasWord = true
  }
  return hasWord ? null : 'ends without a word'
}

/** `reach` is a byte. */
const mostBetween = 254

function wordTable(stepsTable: ReadonlyMap<number, readonly Step[]>): Pick<PatternSet, 'sieve' | 'words'> {
  const sieve = new Uint16Array(sieveSize)
  const words = {
    hash: new Int32Array(stepsTable.size + 1),
    next: new Uint16Array(stepsTable.size + 1),
    from: new Uint32Array(stepsTable.size + 2),
  }
  for (const [index, [hash, list]] of [...stepsTable].entries()) {
    const word = index + 1
    words.hash[word] = hash
    words.next[word] = sieve[hash & (sieveSize - 1)] ?? 0
    words.from[word + 1] = (words.from[word] ?? 0) + list.length
    sieve[hash & (sieveSize - 1)] = word
  }
  return { sieve, words }
}

/** One place of a pattern: its choices as word hashes, and the maximum distance in words from the previous place. */
type Place = {
  readonly choices: readonly (readonly number[])[]
  readonly reach: number
  readonly isOptional: boolean
  readonly text: string
}

function getPlaces(
  source: string,
  isOpening: boolean,
  getChoices: (part: string) => Place['choices'],
): readonly Place[] {
  const places: Place[] = []
  let reach = 1
  for (const part of source.split(' ')) {
    if (part.startsWith('~')) {
      reach = Number(part.slice(1)) + 1
      continue
    }
    const isOptional = isOpening && part.startsWith('?')
    places.push({ choices: getChoices(part), reach, isOptional, text: part })
    reach = 1
  }
  return places
}

/** Returns the hashes of every prefix of every word of a place's choices. */
function prefixHashes(place: string): number[] {
  return place.split('|').flatMap(choice =>
    Array.from(choice, (_, end) => {
      const textScan = createWordScan()
      scanWords(textScan, choice.slice(0, end + 1), everyWord, () => true)
      return textScan.hash
    }),
  )
}

/** Returns the word hashes of a text. */
export function wordHashes(text: string): number[] {
  const hashes: number[] = []
  const textScan = createWordScan()
  const onWords: OnWords = count => {
    hashes.push(...wordMatches.hash.subarray(0, count))
    return true
  }
  scanWords(textScan, text, everyWord, onWords)
  endWord(textScan, everyWord, onWords)
  return hashes
}

/**
 * Matches all patterns in one pass. Calls `onMatch` with the pattern's number and the index of the word that completed
 * it, from 0; it returns false to stop. Returns whether it did.
 */
export function scan(set: PatternSet, text: string, onMatch: OnMatch): boolean {
  const textScan = createWordScan()
  const onWords = matcher(set, set.scratch.reached, takeBase(set, text.length), onMatch)
  return !scanWords(textScan, text, set.sieve, onWords) || !endWord(textScan, set.sieve, onWords)
}

/** Returns the position from which the scratch memory is free for a scan of at most so many words. */
export function takeBase({ scratch }: PatternSet, words: number): number {
  if (scratch.base > lastBase) {
    scratch.reached.fill(0)
    scratch.base = beyondReach
  }
  const { base } = scratch
  scratch.base += words + beyondReach
  return base
}

/** More words than any step reaches back, since `reach` is a byte. */
const beyondReach = 256
/** Beyond this base a position could exceed 31 bits. */
const lastBase = 2 ** 30

/** A scan that continues from delta to delta and finds the same matches wherever the text was split. `onMatch` as in `scan`. */
export class RunningScan {
  private readonly textScan = createWordScan()
  private readonly step: OnWords
  /** Index of the last word at which some pattern can be completed. */
  private waitsUntil: number
  /** Start of the word being reported; −1 = none. */
  private reported = -1

  constructor(
    private readonly set: PatternSet,
    onMatch: OnMatch,
  ) {
    this.waitsUntil = set.hasSingle ? Number.POSITIVE_INFINITY : -1
    const report: OnMatch = (pattern, position, start) => {
      this.reported = start
      const goesOn = onMatch(pattern, position, start)
      this.reported = -1
      return goesOn
    }
    this.step = matcher(set, new Int32Array(set.completes.length), beyondReach, report, (state, position) => {
      this.waitsUntil = Math.max(this.waitsUntil, position + (set.lastReach[state] ?? 0))
    })
  }

  push(text: string): void {
    scanWords(this.textScan, text, this.set.sieve, this.step)
  }

  /** Ends the text and its last word. */
  end(): void {
    endWord(this.textScan, this.set.sieve, this.step)
  }

  /**
   * Returns the start of the current word if it may still complete a pattern; else Infinity. During `onMatch`: the
   * start of the word that completed it. In UTF-16 units from the start of the text.
   */
  mayCompleteAt(): number {
    if (this.reported !== -1) return this.reported
    const { hash, words, start } = this.textScan
    return hash !== noWord && words <= this.waitsUntil && this.set.lastPrefixes.has(hash)
      ? start
      : Number.POSITIVE_INFINITY
  }
}

/**
 * Advances the patterns by one word. `reached` holds per state the position at which it was last reached, counted from
 * `base`. A state that was not reached in this text is out of every step's reach.
 */
export function matcher(
  { sieve, words, steps, completes }: PatternSet,
  reached: Int32Array,
  base: number,
  onMatch: OnMatch,
  onState?: (state: number, position: number) => void,
): OnWords {
  return count => {
    for (let at = 0; at < count; at++) {
      const hash = wordMatches.hash[at] ?? 0
      let word = sieve[hash & (sieveSize - 1)] ?? 0
      while (word !== 0 && words.hash[word] !== hash) word = words.next[word] ?? 0
      if (word === 0) continue
      const position = wordMatches.position[at] ?? 0
      const place = base + position
      const end = 2 * (words.from[word + 1] ?? 0)
      for (let index = 2 * (words.from[word] ?? 0); index < end; index += 2) {
        const key = steps[index] ?? -1
        if (key >= 0 && place - (reached[key >> 8] ?? 0) > (key & mostReach)) continue
        const state = steps[index + 1] ?? 0
        if (state < 0) {
          if (!onMatch(completes[~state] ?? 0, position, wordMatches.start[at] ?? 0)) return false
        } else {
          reached[state] = place
          onState?.(state, position)
        }
      }
    }
    return true
  }
}

/** `start` is the position of the word that completed the pattern, in UTF-16 units. */
type OnMatch = (pattern: number, position: number, start: number) => boolean
