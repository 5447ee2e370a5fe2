/** How a short turn of a conversation relates to the turns before it, by the words of `turns.txt`. */
import turnWords from './turns.txt' with { type: 'text' }

/** How a short turn relates to the turns before it. */
export type TurnTraits = {
  /** It has a name, or is too long to depend on other turns. */
  readonly hasName: boolean
  /** Words with a subject of their own, without names of changing figures: `weather`, `price`. */
  readonly subjects: number
  readonly asksFigure: boolean
  /** It refers to an earlier subject: `it`, `her`, `there`. */
  readonly refers: boolean
  /** It names a page, link or document. */
  readonly namesPage: boolean
  /** It changes the last output: `make it shorter`. */
  readonly edits: boolean
  /** It repeats an earlier question for another subject: `and in Germany?`. */
  readonly continues: boolean
  /** It thanks or greets. */
  readonly thanks: boolean
  /** It goes on from the turn before: `now`, `then`, `ok`, `yes`. */
  readonly connects: boolean
}

const longestTurn = 300
const longTurn: TurnTraits = {
  hasName: true,
  subjects: 9,
  asksFigure: false,
  refers: false,
  namesPage: false,
  edits: false,
  continues: false,
  thanks: false,
  connects: false,
}

/** Reads a turn by the words of `turns.txt`, in all languages at once: short turns do not identify theirs. */
export function readTurn(text: string): TurnTraits {
  if (text.length > longestTurn) return longTurn
  const kinds = kindsOfWords()
  const found = {
    refers: false,
    page: false,
    edits: false,
    changing: false,
    reads: false,
    thanks: false,
    connects: false,
  }
  let subjects = 0
  let hasName = false
  let opens = true
  let reference = false
  const note = (kind: TurnWords) => {
    // In `this week` the pronoun refers to no subject.
    if (kind === 'time' && reference) found.refers = false
    reference = kind === 'refers'
    if (kind !== 'time' && kind !== 'filler') found[kind] = true
  }
  for (const [token, word = '', end] of text.matchAll(wordsAndEnds)) {
    if (end !== undefined) {
      opens = true
      continue
    }
    const kind = kinds.find(word.toLowerCase())
    if (kind !== null) {
      if (kind !== 'connects' || subjects === 0) note(kind)
    } else if (isChoice.test(word)) {
      reference = false
    } else if (unspaced.test(token)) {
      const rest = token.replace(kinds.unspaced, name => {
        const of = kinds.find(name)
        if (of !== null) note(of)
        return ' '
      })
      if (/\S{2}/.test(rest)) subjects++
    } else {
      reference = false
      subjects++
      // One letter is an option: `B`.
      hasName ||= word.length > 1 && ((!opens && startsWithCapital.test(word)) || isCoined.test(word))
    }
    opens = false
  }
  const { page, edits, changing, reads, thanks, connects } = found
  // `Summarize.` without an object refers to the text before it.
  const refers = found.refers || (reads && subjects === 0)
  const continues = text.length <= longestContinuation && (continuation.test(text) || /呢[?？]?\s*$/.test(text))
  return { hasName, subjects, asksFigure: changing, refers, namesPage: page, edits, continues, thanks, connects }
}

const longestContinuation = 48
const wordsAndEnds = /([\p{L}\p{M}\p{N}]+)|([.!?…:"“«¿¡(\n])/gu
const startsWithCapital = /^\p{Lu}/u
/** `iPhone`, `A7`, `GPT5`. */
const isCoined = /\p{L}\p{N}|\p{N}\p{L}|\p{Ll}\p{Lu}|^\p{Lu}{2,}$/u
/** The number or letter of an option. */
const isChoice = /^(?:\p{N}{1,2}|[B-Zb-z])$/u
const unspaced = /[\u3040-\u30ff\u3400-\u9fff]/
const continuation =
  /^\s*(?:(?:and|(?:what|how) about|und|was ist mit|en|et|y|qué tal|e|i|ve|peki|и|а|і|та|و|और)(?![\p{L}\p{M}])|那|では|じゃあ|그럼|그러면)/iu

type TurnWords = 'thanks' | 'connects' | 'refers' | 'page' | 'reads' | 'edits' | 'changing' | 'time' | 'filler'
/** A word of two kinds has the first of them. */
const turnKinds: readonly TurnWords[] = [
  'thanks',
  'connects',
  'refers',
  'page',
  'time',
  'changing',
  'reads',
  'edits',
  'filler',
]

type WordKinds = {
  readonly find: (word: string) => TurnWords | null
  /** Words of scripts without spaces, longer ones first. */
  readonly unspaced: RegExp
}

let kindsKept: WordKinds | null = null

function kindsOfWords(): WordKinds {
  kindsKept ??= readWordKinds()
  return kindsKept
}

/** `word*` = all words with this beginning. */
function readWordKinds(): WordKinds {
  const kinds = new Map<string, TurnWords>()
  const stems = new Map<string, TurnWords>()
  const lines = turnWords.split('\n').map(line => line.split(' '))
  for (const kind of turnKinds)
    for (const [, name, ...words] of lines)
      if (name === kind)
        for (const word of words) {
          const table = word.endsWith('*') ? stems : kinds
          const written = word.endsWith('*') ? word.slice(0, -1) : word
          if (!table.has(written)) table.set(written, kind)
        }
  const longestStem = Math.max(...Array.from(stems.keys(), ({ length }) => length))
  const unspacedWords = [...kinds.keys()].filter(word => unspaced.test(word))
  return {
    find(word) {
      let kind = kinds.get(word)
      const last = Math.min(word.length, longestStem)
      for (let end = 2; kind === undefined && end <= last; end++) kind = stems.get(word.slice(0, end))
      return kind ?? null
    },
    unspaced: new RegExp(
      unspacedWords.toSorted((unspacedWord, other) => other.length - unspacedWord.length).join('|'),
      'g',
    ),
  }
}
