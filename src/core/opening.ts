/**
 * What a text opens with: patterns that count only from its first word on, behind greetings and courtesies. A look at one or two
 * words decides for nearly every text; of the others, some dozens of words are read, whatever their length.
 */
import { courtesies, stop } from './opening-orders.ts'
import { compilePatterns, type PatternSet, scan, wordHashes } from './patterns.ts'
import { wordFrom } from './words.ts'

export type Openings<Owner> = {
  /** Whose pattern a text opens with; null = nobody's. */
  of(text: string): Owner | null
}

/** Compiles openings; `unless` holds patterns that excuse one among whose first words they stand. */
export function compileOpenings<Owner>(
  openings: readonly { readonly of: Owner; readonly patterns: readonly string[]; readonly unless: readonly string[] }[],
): Openings<Owner> {
  const owners = openings.flatMap(({ of, patterns, unless }) => {
    const excuses = compilePatterns(unless)
    return patterns.map(() => ({ of, excuses }))
  })
  const sources = openings.flatMap(({ patterns }) => patterns)
  const set = compilePatterns(sources, 'opening')
  const firstWords = firstWordsOf(set)
  const passedOver = new Set(courtesies.flatMap(wordHashes))
  return {
    of(text) {
      let from = 0
      let word = wordFrom(text, from)
      while (passedOver.has(word.hash)) {
        from = word.end
        word = wordFrom(text, from)
      }
      if (!firstWords.has(word.hash)) return null
      const opening = openingAt(text, from)
      let owner: Owner | null = null
      for (const reading of [opening, opening.replace(clauseEnds, ` ${stop} `)])
        scan(set, reading, pattern => {
          const one = owners[pattern]
          if (owner === null && one !== undefined && !isIn(one.excuses, opening)) owner = one.of
          return owner === null
        })
      return owner === null || quoted.test(opening) ? null : owner
    },
  }
}

function firstWordsOf({ words, steps }: PatternSet): ReadonlySet<number> {
  const first = new Set<number>()
  for (const [word, hash] of words.hash.entries())
    if (steps.from.subarray(words.from[word], words.from[word + 1]).includes(0)) first.add(hash)
  return first
}

/** Words that are read of an opening; a Chinese, Japanese or Korean character is one. */
const mostWords = 40

/** The first words from a place on. */
function openingAt(text: string, from: number): string {
  let end = from
  for (let words = 0; words < mostWords && end < text.length; words++) end = wordFrom(text, end).end
  // With the mark that ends its clause, as the end of a text does.
  return end === text.length ? `${text.slice(from)}.` : text.slice(from, end + 1)
}

const clauseEnds = /[.,;:!?…—。，、；：！？।؟،؛]/g

/** In quotation marks, with words behind them: spoken of, not meant. */
const quoted = /^[^\p{L}\p{N}]*["“„«「『][^"”“»」』]*["”“»」』][^\p{L}\p{N}]*[\p{L}\p{N}]/u

function isIn(set: PatternSet, text: string): boolean {
  let found = false
  scan(set, text, () => {
    found = true
    return false
  })
  return found
}
