/**
 * Screens one text of an answer while it is written: rules go on from piece to piece, addresses are looked at once they are
 * whole, sentences once they have ended; nothing is read twice, and where the pieces were cut changes nothing of what is found.
 *
 * In realtime only what may complete something is held back: an address that goes on, the beginning of a word that a rule
 * waits for. Otherwise sentences go once they have been judged, in a stream the first text at once. What an answer merely
 * reports or refuses is no hit: a sentence that says "I cannot" before the words, or quotes them, is let through.
 */

import type { SentenceClassifier } from './harm-classifier.ts'
import { longestSentence } from './harmless-answer.ts'
import { isWideDot } from './idna-mapping.ts'
import { findMatchingRule, type SafetyRules } from './pattern-rules.ts'
import { type RunningScan, scan as scanWhole, startScan } from './patterns.ts'
import { afterKind, endsSentence, sentenceKinds, sentenceOpen } from './sentence-ends.ts'
import { type BlockedHosts, blockVerdict, containsBlockedHost, type Verdict } from './text-moderator.ts'

export type StreamingRules = {
  readonly rules: SafetyRules
  readonly hosts: BlockedHosts
  /** Hears an answer sentence by sentence, and refuses only what is certain: an answer tells of many things. */
  readonly listen: () => SentenceClassifier
  /** Whether nothing in an answer would be refused so; false = not to be told at once. */
  readonly isHarmless: (text: string) => boolean
}

export type StreamingModerator = {
  /** Takes a piece in; returns what may go out. `eager` = as much as is certain, else sentences that have been judged. */
  push(text: string, eager: boolean): string
  /** The text is over, `rest` being the last of it; returns what was held. */
  end(eager: boolean, rest: string): string
  hit(): Verdict | null
}

/** An address, or anything else without white space, is looked at in pieces of at most this length. */
const longestToken = 2_048
/** So much that is no longer needed is dropped at a time: after each piece it would be a new text for each. */
const worthForgetting = 512
const manyLooks = 32
/** No more than this is held back for what may still come of it, in UTF-16 units. */
const longestHold = 256

/** A lane for one text. */
export function createStreamingModerator({ rules, hosts, listen }: StreamingRules): StreamingModerator {
  const listener = listen()
  let scan: RunningScan | null = null
  /** What the rules have not read, as nothing speaks in it: it may still begin what goes on behind it. */
  let quiet = ''
  /** The text that is still needed, and where it begins in the whole. All places are places in the whole. */
  let kept = ''
  let keptAt = 0
  let end = 0
  /** The newest piece, which ends where the text does: mostly it is all that is asked for. */
  let piece = ''
  /** Up to here the text has gone out, and up to here the rules have read it. */
  let out = 0
  let read = 0
  let token = 0
  /** Up to here the token has been looked at while it goes on. */
  let looked = 0
  let mayHoldHost = false
  /** It was looked at as a whole before, and points at no blocked host. */
  let pointsNowhere = false
  /** The text, where it came as a whole and that has not been asked yet; and how many tokens have. */
  let whole: string | null = null
  let looks = 0
  let hasBracket = false
  /** The token has something of an address: only then is it asked whether it may go on as one. */
  let hasMark = false
  /** The token before was a dot in words: this one may end a host. */
  let followsDot = false
  let lastUnit = 0
  /** Some token of the sentence may be such a dot, or hold one. */
  let joinsTokens = false
  let sentence = 0
  let before = 0
  /** Whether the sentence may be over (`afterKind`). */
  let ended: number = sentenceOpen
  let verdict: Verdict | null = null
  /** Where the refused thing begins, and the sentence that it stands in. */
  let cutAt = Number.POSITIVE_INFINITY
  let refusedSentence = Number.POSITIVE_INFINITY

  const textOf = (from: number, to: number) =>
    to === end && from === end - piece.length ? piece : kept.slice(from - keptAt, to - keptAt)

  const refuse = (found: Verdict, at: number) => {
    if (verdict !== null) return
    verdict = found
    cutAt = at
    refusedSentence = Math.min(at, sentence)
  }

  const onRule = (pattern: number): boolean => {
    const rule = rules.rules[rules.ruleOf[pattern] ?? -1]
    const at = scan?.mayCompleteAt() ?? read
    // What comes after the words says nothing of how they are meant.
    if (rule === undefined || isReported(textOf(before, Math.max(before, at)))) return true
    refuse(blockVerdict('patterns', rule.category, 0, rule), at)
    return false
  }

  /** Lets the rules read on to where something else is looked at: what comes first is found first. */
  const advance = (to: number) => {
    if (to <= read) return
    scan ??= startScan(rules.set)
    scan.push(textOf(read, to), onRule)
    read = to
  }

  /** Whether the token may hold a blocked host. Of a whole text it is asked once, before it is asked of many tokens. */
  const mayPoint = (at: number) => {
    if (pointsNowhere || !(mayHoldHost || (hasBracket && spelledDot.test(textOf(token, at))))) return false
    if (whole === null || ++looks < manyLooks) return true
    pointsNowhere = !containsBlockedHost(hosts, whole)
    whole = null
    return !pointsNowhere
  }

  /** `last` is the unit before. */
  const endToken = (at: number, last: number) => {
    if (mayPoint(at)) {
      advance(at)
      if (verdict === null && containsBlockedHost(hosts, textOf(token, at)))
        refuse(blockVerdict('urls', 'malicious_url', 0), token)
    }
    if (followsDot && verdict === null && !pointsNowhere && containsBlockedHost(hosts, textOf(before, at)))
      refuse(blockVerdict('urls', 'malicious_url', 0), token)
    followsDot = at - token <= longestDot && endsDot(last) && dotAlone.test(textOf(token, at))
    joinsTokens ||= followsDot || hasBracket
    mayHoldHost = false
    hasBracket = false
    hasMark = false
    token = at
    looked = at
  }

  /** The hosts of a token that is longer than what is held back: they are known before they go out. */
  const lookInto = (at: number) => {
    looked = at
    if (!mayPoint(at)) return
    advance(at)
    const sure = textOf(token, sureEnd(kept, token - keptAt, at - keptAt) + keptAt)
    if (verdict === null && containsBlockedHost(hosts, sure)) refuse(blockVerdict('urls', 'malicious_url', 0), token)
  }

  const endSentence = (at: number) => {
    advance(at)
    const said = textOf(sentence, at)
    const mayJoin = !pointsNowhere && (joinsTokens || hasBracket) && spelledDot.test(said)
    joinsTokens = false
    if (verdict === null && mayJoin && containsBlockedHost(hosts, said))
      refuse(blockVerdict('urls', 'malicious_url', 0), sentence)
    if (verdict === null) judge(said, () => textOf(before, at))
    before = sentence
    sentence = at
  }

  const judge = (said: string, withBefore: () => string) => {
    const isBlank = said.trim() === ''
    const rule = isBlank || rules.expressions.length === 0 ? null : findMatchingRule(rules, withBefore())
    if (rule !== null) return refuse(blockVerdict('patterns', rule.category, 0, rule), sentence)
    const { category, score } = listener(isBlank ? '' : said, withBefore)
    if (category !== null) refuse(blockVerdict('classifier', category, score), sentence)
  }

  const due = () => Math.min(token + longestToken, looked + longestHold, sentence + longestSentence)

  /** Takes a piece in: tokens and sentences end where the text says so, never where a piece does. */
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
      const isOver = endsSentence(kind, ended)
      if (mark === space || isOver || at >= dueAt) {
        const isFull = at - token >= longestToken || at - sentence >= longestSentence
        if (mark === space || at - token >= longestToken)
          endToken(at, index > 0 ? text.charCodeAt(index - 1) : lastUnit)
        else if (at - looked >= longestHold) lookInto(at)
        if (isOver || isFull) endSentence(at)
        if (verdict !== null) return
        dueAt = due()
      }
      ended = afterKind(kind, ended)
      if (mark > space) hasMark = true
      if (mark === bracket) hasBracket = true
      // A dot at a word's end joins nothing, unless brackets hold another; what the next piece begins with is not known.
      else if (mark === hostMark || (mark === dot && (hasBracket || marks[text.charCodeAt(index + 1)] !== space)))
        mayHoldHost = true
    }
    lastUnit = text.charCodeAt(text.length - 1)
    advance(end)
  }

  /** Nearly always no rule speaks anywhere in an answer: then none has to be asked where it does. */
  const takeInWhole = (text: string) => {
    if (end === 0) whole = text
    if (end === 0 && !speaks(rules, text)) {
      quiet = text
      read = text.length
    } else if (quiet !== '') {
      scan = startScan(rules.set)
      scan.push(quiet, onRule)
      scan.end(onRule)
      quiet = ''
    }
    takeIn(text)
  }

  /** How much of what is held may go. */
  const free = (eager: boolean): number => {
    const held = end - out
    if (verdict !== null) return Math.max(0, Math.min(held, (eager ? cutAt : refusedSentence) - out))
    const mayGrow = followsDot || (hasMark && token < end && mayGoOn.test(textOf(token, end)))
    const completesAt = scan?.mayCompleteAt() ?? Number.POSITIVE_INFINITY
    const doubtful = Math.min(completesAt, mayGrow ? token : Number.POSITIVE_INFINITY)
    const certain = Math.max(0, Math.min(held, doubtful - out), held - longestHold)
    return eager ? certain : Math.min(certain, Math.max(0, judgedTo() - out))
  }

  /** The blanks behind a sentence go with it. */
  const judgedTo = () => {
    let to = sentence
    while (to < end && marks[kept.charCodeAt(to - keptAt)] === space) to++
    return to
  }

  const release = (length: number): string => {
    const text = textOf(out, out + length)
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
      if (rest !== '') takeInWhole(rest)
      if (verdict === null) scan?.end(onRule)
      if (verdict === null) endToken(end, lastUnit)
      if (verdict === null) endSentence(end)
      return release(verdict === null ? end - out : free(eager))
    },
  }
}

/** Whether nothing in a whole answer is refused, as in nearly all; false = it has to be read sentence by sentence. */
export function isSurelyClean({ rules, hosts, isHarmless }: StreamingRules, text: string): boolean {
  return rules.expressions.length === 0 && !speaks(rules, text) && !containsBlockedHost(hosts, text) && isHarmless(text)
}

/** Whether any rule's words are in a text. */
function speaks({ set }: SafetyRules, text: string): boolean {
  let found = false
  scanWhole(set, text, () => {
    found = true
    return false
  })
  return found
}

const ordinary = 0
const space = 1
const dot = 2
const hostMark = 3
const bracket = 4
/** Makes no address by itself. */
const sign = 5
/** What ends a word, and what may make an address of one, by UTF-16 unit. */
const marks = Uint8Array.from({ length: 65_536 }, (_, code) => {
  if (code > 127) return isWideDot(code) ? hostMark : ordinary
  const character = String.fromCharCode(code)
  if (' \n\t\r'.includes(character)) return space
  if (character === '.') return dot
  if ('%&\\'.includes(character)) return hostMark
  if ('[({<'.includes(character)) return bracket
  return '/wW'.includes(character) ? sign : ordinary
})

/** A token that may still grow into an address: it has a scheme, or a dot with something behind it. */
const mayGoOn =
  /:\\?\/|\.[^.\s]|^www\.?$|[[({<]dot[\])}>]|[[({]\.[\])}a-z]|%2|&(?:#|period;|shy;|zw)|\\(?:[./]|u00|x[2-7])|[a-z\d-][。．｡․﹒][a-z\d]/i

/** Behind the last mark that ends a host; what follows it may yet become part of another. */
function sureEnd(text: string, from: number, to: number): number {
  let end = to
  while (end > from && !hostEnds.includes(text.charAt(end - 1))) end--
  return end
}

const hostEnds = '/\\?#&"\'<>`|,;'
/** With blanks around it, it makes one host of several tokens. */
const spelledDot = /[\s[({<]dot[\s\])}>]|[[({] ?\. ?[\])}]/i

/** Such a dot as a token of its own, with the blank before it. */
const dotAlone = /^\s?(?:dot|[[({<]dot[\])}>]|[[({]\.[\])}])$/i
const longestDot = 6

/** `t` or what closes brackets: spares other words the long look. */
function endsDot(unit: number): boolean {
  return unit === 116 || unit === 84 || unit === 93 || unit === 41 || unit === 125 || unit === 62
}

/** Refuses, warns or quotes: the words are talked about, not meant. */
function isReported(text: string): boolean {
  return reporting.test(text.slice(-300))
}

const reporting =
  /\b(?:can(?:no|['’])t|won['’]t|will not|unable|not able|sorry|refuse|decline|illegal|against|never|avoid|beware|do(?:n['’]t| not)|should(?:n['’]t| not)|example|phrase|called|such as|like)\b|["“”„`«»]|(?:^|\s)['‘]/i
