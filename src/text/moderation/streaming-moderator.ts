/**
 * Moderates one text of an output while it is generated. Rules continue from delta to delta, URLs are checked when
 * complete, sentences when they end. Nothing is read twice, and how the text was split does not change the result.
 *
 * In `realtime` mode only text that may become a match is held back: an incomplete URL, the start of a word that a rule
 * waits for. Otherwise sentences are sent once they are judged; in a stream the first text is sent at once. An output
 * that reports or refuses is not blocked: a sentence with "I cannot" before the words, or that quotes them, is allowed.
 */

import { filledTable, unitCount } from '../code-units.ts'
import type { HarmClassifier } from '../harm/harm-classifier.ts'
import { longestSentence } from '../harm/harmless-answer.ts'
import { isWideDot } from '../hosts/hostname.ts'
import { findMatchingRule, findWords, getRule, type ModerationRules } from '../rules/pattern-rules.ts'
import { type RunningScan, startScan } from '../rules/patterns.ts'
import { sentenceKindCount, sentenceKinds, sentenceOpen, sentenceOver, sentenceSteps } from '../sentence-ends.ts'
import { type BlockedHosts, blockVerdict, containsBlockedHost, type Verdict } from './text-moderator.ts'

export type StreamingRules = {
  readonly rules: ModerationRules
  readonly hosts: BlockedHosts
  /** Judges a sentence together with the one before it; blocks only what is certain. */
  readonly answer: HarmClassifier['answer']
  /** Returns true if nothing in a whole answer is blocked so; false = not to be told at once. */
  readonly isHarmless: HarmClassifier['isHarmless']
}

export type StreamingModerator = {
  /**
   * Adds a delta and returns the text that may be sent. `eager` = all text that is certain, otherwise judged sentences.
   */
  push(text: string, eager: boolean): string
  /** Ends the text with `rest` as its last part and returns the text that was held back. */
  end(eager: boolean, rest: string): string
  hit(): Verdict | null
}

/** A URL, or any run without white space, is checked in parts of at most this length. */
const longestToken = 2_048
/** So much that is no longer needed is dropped at a time: after each piece it would be a new text for each. */
const worthForgetting = 512
/** At most this much is held back for a possible match, in UTF-16 units. */
const longestHold = 256

/** Creates a moderator for one text. */
export function createStreamingModerator({ rules, hosts, answer }: StreamingRules): StreamingModerator {
  let scan: RunningScan | null = null
  /** The text that is still needed and its position in the whole. All positions refer to the whole text. */
  let kept = ''
  let keptAt = 0
  let end = 0
  /** The newest delta, which ends where the text does and usually is all that is needed. */
  let piece = ''
  /** End of the text sent so far, and end of the text that the rules have read. */
  let out = 0
  let read = 0
  let token = 0
  /** End of the part of an unfinished token that was checked. */
  let looked = 0
  let mayHoldHost = false
  let hasBracket = false
  /** The token has a character of a URL. Only then is it checked whether it may continue as one. */
  let hasMark = false
  /** The previous token was a spelled-out dot, so this one may end a host. */
  let followsDot = false
  let lastUnit = 0
  /** A token of the sentence may be or contain a spelled-out dot. */
  let joinsTokens = false
  let sentence = 0
  let before = 0
  /** Whether the sentence may be over (`sentenceSteps`). */
  let ended: number = sentenceOpen
  let verdict: Verdict | null = null
  /** Start of the blocked text and of its sentence. */
  let cutAt = Number.POSITIVE_INFINITY
  let refusedSentence = Number.POSITIVE_INFINITY

  const getText = (from: number, to: number) =>
    to === end && from === end - piece.length ? piece : kept.slice(from - keptAt, to - keptAt)

  const refuse = (found: Verdict, at: number) => {
    if (verdict !== null) return
    verdict = found
    cutAt = at
    refusedSentence = Math.min(at, sentence)
  }

  const onRule = (pattern: number): boolean => {
    const rule = getRule(rules, pattern, 'prompt')
    const at = scan?.mayCompleteAt() ?? read
    // Text after the match does not change its meaning.
    if (rule === null || isReported(getText(before, Math.max(before, at)))) return true
    refuse(blockVerdict('patterns', rule.category, 0, rule), at)
    return false
  }

  /** Lets the rules read up to the position of another check, so that matches are found in order. */
  const advance = (to: number) => {
    if (to <= read) return
    scan ??= startScan(rules.set)
    scan.push(getText(read, to), onRule)
    read = to
  }

  /** Returns true if the token may contain a blocked host. */
  const mayPoint = (at: number) => mayHoldHost || (hasBracket && spelledDot.test(getText(token, at)))

  /** `last` is the unit before. */
  const endToken = (at: number, last: number) => {
    if (mayPoint(at)) {
      advance(at)
      if (verdict === null && containsBlockedHost(hosts, getText(token, at)))
        refuse(blockVerdict('urls', 'malicious_url', 0), token)
    }
    if (followsDot && verdict === null && containsBlockedHost(hosts, getText(before, at)))
      refuse(blockVerdict('urls', 'malicious_url', 0), token)
    followsDot = at - token <= longestDot && endsDot(last) && dotAlone.test(getText(token, at))
    joinsTokens ||= followsDot || hasBracket
    mayHoldHost = false
    hasBracket = false
    hasMark = false
    token = at
    looked = at
  }

  /** Checks the hosts of a token that exceeds the hold limit before any of it is sent. */
  const lookInto = (at: number) => {
    looked = at
    if (!mayPoint(at)) return
    advance(at)
    const sure = getText(token, sureEnd(kept, token - keptAt, at - keptAt) + keptAt)
    if (verdict === null && containsBlockedHost(hosts, sure)) refuse(blockVerdict('urls', 'malicious_url', 0), token)
  }

  const endSentence = (at: number) => {
    advance(at)
    const said = getText(sentence, at)
    const mayJoin = (joinsTokens || hasBracket) && spelledDot.test(said)
    joinsTokens = false
    if (verdict === null && mayJoin && containsBlockedHost(hosts, said))
      refuse(blockVerdict('urls', 'malicious_url', 0), sentence)
    if (verdict === null && said.trim() !== '') judge(getText(before, at))
    before = sentence
    sentence = at
  }

  /** Judges a sentence with the one before it. */
  const judge = (said: string) => {
    const rule = findMatchingRule(rules, said)
    if (rule !== null) return refuse(blockVerdict('patterns', rule.category, 0, rule), sentence)
    const { category, score } = answer(said)
    if (category !== null) refuse(blockVerdict('classifier', category, score), sentence)
  }

  const due = () => Math.min(token + longestToken, looked + longestHold, sentence + longestSentence)

  /** Adds a delta. Tokens and sentences end by the text, never by the end of a delta. */
  const takeIn = (text: string) => {
    const start = end
    kept += text
    piece = text
    end += text.length
    let dueAt = due()
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      const mark = marks[unit] ?? ordinary
      const at = start + index
      const kind = sentenceKinds[unit] ?? sentenceOpen
      const step = sentenceSteps[ended * sentenceKindCount + kind] ?? sentenceOpen
      const isOver = step >= sentenceOver
      if (mark === space || isOver || at >= dueAt) {
        const isFull = at - token >= longestToken || at - sentence >= longestSentence
        if (mark === space || at - token >= longestToken)
          endToken(at, index > 0 ? text.charCodeAt(index - 1) : lastUnit)
        else if (at - looked >= longestHold) lookInto(at)
        if (isOver || isFull) endSentence(at)
        if (verdict !== null) return
        dueAt = due()
      }
      ended = step & (sentenceOver - 1)
      if (mark > space && (mark !== letterW || marks[index > 0 ? text.charCodeAt(index - 1) : lastUnit] === letterW))
        hasMark = true
      if (mark === bracket) hasBracket = true
      // A dot at the end of a word joins nothing, unless brackets contain another. The next delta's first character is
      // unknown.
      else if (mark === hostMark || (mark === dot && (hasBracket || marks[text.charCodeAt(index + 1)] !== space)))
        mayHoldHost = true
    }
    lastUnit = text.charCodeAt(text.length - 1)
    advance(end)
  }

  /** Returns how much of the held-back text may be sent. */
  const free = (eager: boolean): number => {
    const held = end - out
    if (verdict !== null) return Math.max(0, Math.min(held, (eager ? cutAt : refusedSentence) - out))
    const mayGrow = followsDot || (hasMark && token < end && mayGoOn.test(getText(token, end)))
    const completesAt = scan?.mayCompleteAt() ?? Number.POSITIVE_INFINITY
    const doubtful = Math.min(completesAt, mayGrow ? token : Number.POSITIVE_INFINITY)
    const certain = Math.max(0, Math.min(held, doubtful - out), held - longestHold)
    return eager ? certain : Math.min(certain, Math.max(0, judgedTo() - out))
  }

  /** Blanks after a sentence are sent with it. */
  const judgedTo = () => {
    let to = sentence
    while (to < end && marks[kept.charCodeAt(to - keptAt)] === space) to++
    return to
  }

  const release = (length: number): string => {
    const text = getText(out, out + length)
    out += length
    const needed = Math.min(out, before, token)
    if (needed - keptAt < worthForgetting) return text
    kept = kept.slice(needed - keptAt)
    keptAt = needed
    return text
  }

  return {
    hit: () => verdict,
    push(text, eager) {
      takeIn(text)
      return release(free(eager))
    },
    end(eager, rest) {
      if (rest !== '') takeIn(rest)
      if (verdict === null) scan?.end(onRule)
      if (verdict === null) endToken(end, lastUnit)
      if (verdict === null) endSentence(end)
      return release(verdict === null ? end - out : free(eager))
    },
  }
}

/** Returns true if nothing in a whole answer is blocked, as in nearly all; false = it has to be read sentence by sentence. */
export function isSurelyClean({ rules, hosts, isHarmless }: StreamingRules, text: string): boolean {
  return (
    rules.expressions === null &&
    findWords(rules, text, 'prompt') === null &&
    !containsBlockedHost(hosts, text) &&
    isHarmless(text)
  )
}

const ordinary = 0
const space = 1
const dot = 2
const hostMark = 3
const bracket = 4
/** Does not indicate a URL on its own. */
const sign = 5
/** Indicates one beside another: `www`. */
const letterW = 6
/** What ends a word, and what may make an address of one, by UTF-16 unit. */
const marks = filledTable(new Uint8Array(unitCount), code => {
  if (code > 127) return isWideDot(code) ? hostMark : ordinary
  const character = String.fromCharCode(code)
  if (' \n\t\r'.includes(character)) return space
  if (character === '.') return dot
  if ('%&\\'.includes(character)) return hostMark
  if ('[({<'.includes(character)) return bracket
  if ('wW'.includes(character)) return letterW
  return character === '/' ? sign : ordinary
})

/** A token that may still become a URL: it has a scheme, or a dot followed by text. */
const mayGoOn =
  /:\\?\/|\.[^.\s]|^www\.?$|[[({<]dot[\])}>]|[[({]\.[\])}a-z]|%2|&(?:#|period;|shy;|zw)|\\(?:[./]|u00|x[2-7])|[a-z\d-][。．｡․﹒][a-z\d]/i

/** Returns the position after the last mark that ends a host. Later text may still become part of another. */
function sureEnd(text: string, from: number, to: number): number {
  let end = to
  while (end > from && !hostEnds.includes(text.charAt(end - 1))) end--
  return end
}

const hostEnds = '/\\?#&"\'<>`|,;'
/** A spelled-out dot with blanks around it joins several tokens into one host. */
const spelledDot = /[\s[({<]dot[\s\])}>]|[[({] ?\. ?[\])}]/i

/** Such a dot as a separate token, with the blank before it. */
const dotAlone = /^\s?(?:dot|[[({<]dot[\])}>]|[[({]\.[\])}])$/i
const longestDot = 6

/** Returns true for `t` or a closing bracket, which skips the expensive check for other words. */
function endsDot(unit: number): boolean {
  return unit === 116 || unit === 84 || unit === 93 || unit === 41 || unit === 125 || unit === 62
}

/** Refuses, warns or quotes: the words are talked about, not meant. */
function isReported(text: string): boolean {
  return reporting.test(text.slice(-300))
}

const reporting =
  /\b(?:can(?:no|['’])t|won['’]t|will not|unable|not able|sorry|refuse|decline|illegal|against|never|avoid|beware|do(?:n['’]t| not)|should(?:n['’]t| not)|example|phrase|called|such as|like)\b|["“”„`«»]|(?:^|\s)['‘]/i
