/** How a short turn of a conversation relates to the turns before it, by the words of `turns.txt`. */
import { longest, ofTurns, readWithin, readWords, turnKinds } from './words.ts'

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

/** Reads a turn by the words of `turns.txt`, in all languages at once: short turns do not identify theirs. */
export function readTurn(text: string): TurnTraits {
  const isLong = text.length > longestTurn
  const { count, whole, begun, starts, ends, opens } = readWords(isLong ? '' : text, false)
  let found = 0
  let subjects = isLong ? 9 : 0
  let hasName = isLong
  let reference = false
  const note = (kinds: number) => {
    const kind = kinds & -kinds
    // In `this week` the pronoun refers to no subject.
    if (kind === turnKinds.time && reference) found &= ~turnKinds.refers
    reference = kind === turnKinds.refers
    found |= kind
  }
  for (let at = 0; at < count; at++) {
    const kinds = (whole[at] ?? 0) & ofTurns || (begun[at] ?? 0) & ofTurns
    if (kinds !== 0) {
      if ((kinds & -kinds) !== turnKinds.connects || subjects === 0) note(kinds)
      continue
    }
    const word = text.slice(starts[at], ends[at])
    if (isChoice.test(word)) reference = false
    else if (isUnspaced.test(word)) {
      if (noteWithin(word, note)) subjects++
    } else {
      reference = false
      subjects++
      // One letter is an option: `B`.
      hasName ||= word.length > 1 && ((opens[at] === 0 && startsWithCapital.test(word)) || isCoined.test(word))
    }
  }
  const has = (kind: number) => (found & kind) !== 0
  return {
    hasName,
    subjects,
    asksFigure: has(turnKinds.changing),
    // `Summarize.` without an object refers to the text before it.
    refers: has(turnKinds.refers) || (has(turnKinds.reads) && subjects === 0),
    namesPage: has(turnKinds.page),
    edits: has(turnKinds.edits),
    continues: text.length <= longestContinuation && (continuation.test(text) || /呢[?？]?\s*$/.test(text)),
    thanks: has(turnKinds.thanks),
    connects: has(turnKinds.connects),
  }
}

/** Notes the kinds within a word of a script without blanks; returns true if two other letters in a row remain. */
function noteWithin(word: string, note: (kinds: number) => void): boolean {
  let rest = 0
  let hasSubject = false
  for (let at = 0; at < word.length; ) {
    readWithin(word, at)
    rest = longest.kind === 0 ? rest + 1 : 0
    hasSubject ||= rest > 1
    if (longest.kind !== 0) note(longest.kind)
    at = longest.kind === 0 ? at + 1 : longest.end
  }
  return hasSubject
}

const longestContinuation = 48
const startsWithCapital = /^\p{Lu}/u
/** `iPhone`, `A7`, `GPT5`. */
const isCoined = /\p{L}\p{N}|\p{N}\p{L}|\p{Ll}\p{Lu}|^\p{Lu}{2,}$/u
/** The number or letter of an option. */
const isChoice = /^(?:\p{N}{1,2}|[B-Zb-z])$/u
const isUnspaced = /[\u3040-\u30ff\u3400-\u9fff]/
const continuation =
  /^\s*(?:(?:and|(?:what|how) about|und|was ist mit|en|et|y|qué tal|e|i|ve|peki|и|а|і|та|و|और)(?![\p{L}\p{M}])|那|では|じゃあ|그럼|그러면)/iu
