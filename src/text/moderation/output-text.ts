/**
 * Moderates one text of an output, fed piece by piece while it is generated, or as a whole. Rules continue from piece to
 * piece, URLs are checked when complete, sentences when they end. Nothing is read twice, and how the text was split does not
 * change the result.
 *
 * In `realtime` mode only text that may become a match is held back: an incomplete URL, the start of a word that a rule
 * waits for. Otherwise sentences are sent once they are judged; in a stream the first text is sent at once. An output
 * that reports or refuses is not blocked: a sentence with "I cannot" before the words, or that quotes them, is allowed.
 */

import { longestSentence } from '../harm/harmless-answer.ts'
import {
  addressMark,
  addressMarks,
  dotAlone,
  mayBecomeHost,
  mayBeDot,
  spelledDot,
  untilHostEnd,
} from '../hosts/extract-hosts.ts'
import { findMatchingRule, findWords, getRule, isReported } from '../rules/pattern-rules.ts'
import { RunningScan } from '../rules/patterns.ts'
import { sentenceKindCount, sentenceKinds, sentenceOpen, sentenceOver, sentenceSteps } from '../sentence-ends.ts'
import { readSigns, textSigns } from '../signs.ts'
import { allowVerdict, blockVerdict, containsBlockedHost, type OutputLayers, type Verdict } from './verdict.ts'

const { ordinary, space, dot, hostMark, bracket, letterW } = addressMark

/** A URL, or any run without white space, is checked in parts of at most this length. */
const longestToken = 2_048
/** So much that is no longer needed is dropped at a time: after each piece it would be a new text for each. */
const worthForgetting = 512
/** At most this much is held back for a possible match, in UTF-16 units. */
const longestHold = 256

/** A class, because closures would be created again for each text. All positions refer to the whole text. */
export class OutputText {
  /** Null = nothing is blocked so far. */
  hit: Verdict | null = null
  private scan: RunningScan | null = null
  /** Added, but not read before the text ends: nothing of it is sent earlier. */
  private waiting = ''
  /** How often the text ended since `waiting` was found clean as a whole; more text must be read in its context. */
  private endings = 0
  /** What the checks still need of the text, and its position. */
  private kept = ''
  private keptAt = 0
  private end = 0
  /** The newest piece, which ends where the text does and usually is all that is needed. */
  private piece = ''
  /** The text that was not sent yet. Apart from `kept`, so that a piece costs nothing of what was before. */
  private unsent = ''
  /** End of the text that the rules have read. */
  private read = 0
  private token = 0
  /** End of the part of an unfinished token that was checked. */
  private looked = 0
  private mayHoldHost = false
  private hasBracket = false
  /** The token has a character of a URL. Only then is it checked whether it may continue as one. */
  private hasMark = false
  /** The previous token was a spelled-out dot, so this one may end a host. */
  private followsDot = false
  private lastUnit = 0
  /** A token of the sentence may be or contain a spelled-out dot. */
  private joinsTokens = false
  private sentence = 0
  private before = 0
  /** End of the sentences that were judged and of the blanks behind them, and whether nothing else has followed. */
  private judgedTo = 0
  private isBlankSince = true
  /** Whether the sentence may be over (`sentenceSteps`). */
  private ended: number = sentenceOpen
  /** Start of the blocked text and of its sentence. */
  private cutAt = Number.POSITIVE_INFINITY
  private refusedSentence = Number.POSITIVE_INFINITY

  constructor(private readonly layers: OutputLayers) {}

  /** Adds a piece of which nothing is sent before the text ends. */
  add(piece: string): void {
    this.catchUp()
    this.waiting += piece
  }

  /** Adds a piece and returns the text that may be sent. `eager` = all text that is certain, otherwise judged sentences. */
  push(piece: string, eager: boolean): string {
    this.catchUp()
    this.takeIn(piece)
    return this.release(this.free(eager))
  }

  /** Ends the text and returns what was held back. A text of which nothing was read is mostly found clean as a whole. */
  finish(eager: boolean): string {
    const { waiting } = this
    if (this.end === 0 && (this.endings > 0 || (waiting !== '' && isSurelyClean(this.layers, waiting))))
      return this.endings++ === 0 ? waiting : ''
    this.waiting = ''
    if (waiting !== '') this.takeIn(waiting)
    this.close()
    return this.release(this.hit === null ? this.unsent.length : this.free(eager))
  }

  /** Reads the text that was sent as a whole, since it is the context of what follows. */
  private catchUp(): void {
    if (this.endings === 0) return
    this.takeIn(this.waiting)
    this.waiting = ''
    for (; this.endings > 0; this.endings--) this.close()
    this.release(this.unsent.length)
  }

  /** Ends the last word and sentence. */
  private close(): void {
    if (this.hit === null) this.scan?.end()
    if (this.hit === null) this.endToken(this.end, this.lastUnit)
    if (this.hit === null) this.endSentence(this.end)
  }

  private getText(from: number, to: number): string {
    const { piece, end, kept, keptAt } = this
    return to === end && from === end - piece.length ? piece : kept.slice(from - keptAt, to - keptAt)
  }

  private refuse(found: Verdict, at: number): void {
    if (this.hit !== null) return
    this.hit = found
    this.cutAt = at
    this.refusedSentence = Math.min(at, this.sentence)
  }

  private readonly onRule = (pattern: number): boolean => {
    const rule = getRule(this.layers.rules, pattern, 'prompt')
    const at = this.scan?.mayCompleteAt() ?? this.read
    // Text after the match does not change its meaning.
    if (rule === null || isReported(this.getText(this.before, Math.max(this.before, at)))) return true
    this.refuse(blockVerdict('patterns', rule.category, 0, rule), at)
    return false
  }

  /** Lets the rules read up to the position of another check, so that matches are found in order. */
  private advance(to: number): void {
    if (to <= this.read) return
    this.scan ??= new RunningScan(this.layers.rules.set, this.onRule)
    this.scan.push(this.getText(this.read, to))
    this.read = to
  }

  /** Returns true if the token may contain a blocked host. */
  private mayPoint(at: number): boolean {
    return this.mayHoldHost || (this.hasBracket && spelledDot.test(this.getText(this.token, at)))
  }

  /** Refuses text that links to a blocked host, from `start` on. The rules read up to its end before. */
  private checkHosts(text: string, start: number, end: number): void {
    this.advance(end)
    if (this.hit === null && containsBlockedHost(this.layers.hosts, text))
      this.refuse(blockVerdict('urls', 'malicious_url', 0), start)
  }

  /** `last` is the unit before. */
  private endToken(at: number, last: number): void {
    const { token } = this
    if (this.mayPoint(at)) this.checkHosts(this.getText(token, at), token, at)
    if (this.followsDot) this.checkHosts(this.getText(this.before, at), token, at)
    this.followsDot = mayBeDot(at - token, last, this.hasBracket) && dotAlone.test(this.getText(token, at))
    this.joinsTokens ||= this.followsDot || this.hasBracket
    this.mayHoldHost = false
    this.hasBracket = false
    this.hasMark = false
    this.token = at
    this.looked = at
  }

  /** Checks the hosts of a token that exceeds the hold limit before any of it is sent. */
  private lookInto(at: number): void {
    this.looked = at
    if (this.mayPoint(at)) this.checkHosts(untilHostEnd(this.getText(this.token, at)), this.token, at)
  }

  private endSentence(at: number): void {
    this.advance(at)
    const said = this.getText(this.sentence, at)
    if ((this.joinsTokens || this.hasBracket) && spelledDot.test(said)) this.checkHosts(said, this.sentence, at)
    this.joinsTokens = false
    if (this.hit === null && said.trim() !== '') this.judge(this.getText(this.before, at))
    this.before = this.sentence
    this.sentence = at
    this.judgedTo = at
    this.isBlankSince = true
  }

  /** Judges a sentence with the one before it. */
  private judge(said: string): void {
    const rule = findMatchingRule(this.layers.rules, said)
    if (rule !== null) this.refuse(blockVerdict('patterns', rule.category, 0, rule), this.sentence)
    const { category, score } = rule === null ? this.layers.answer(said) : allowVerdict
    if (category !== null) this.refuse(blockVerdict('classifier', category, score), this.sentence)
  }

  private getDue(): number {
    return Math.min(this.token + longestToken, this.looked + longestHold, this.sentence + longestSentence)
  }

  /** Adds a piece. Tokens and sentences end by the text, never by the end of a piece. */
  private takeIn(text: string): void {
    const start = this.end
    this.kept += text
    this.unsent += text
    this.piece = text
    this.end += text.length
    let { ended } = this
    let last = this.lastUnit
    let dueAt = this.getDue()
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      const mark = addressMarks[unit] ?? ordinary
      const at = start + index
      const kind = sentenceKinds[unit] ?? sentenceOpen
      const step = sentenceSteps[ended * sentenceKindCount + kind] ?? sentenceOpen
      const isOver = step >= sentenceOver
      if (mark === space || isOver || at >= dueAt) {
        const isFull = at - this.token >= longestToken || at - this.sentence >= longestSentence
        if (mark === space || at - this.token >= longestToken) this.endToken(at, last)
        else if (at - this.looked >= longestHold) this.lookInto(at)
        if (isOver || isFull) this.endSentence(at)
        if (this.hit !== null) return
        dueAt = this.getDue()
      }
      ended = step & (sentenceOver - 1)
      if (mark > space && (mark !== letterW || addressMarks[last] === letterW)) this.hasMark = true
      if (mark === bracket) this.hasBracket = true
      // A dot at the end of a word joins nothing, unless brackets contain another. The next piece's first character is
      // unknown.
      else if (
        mark === hostMark ||
        (mark === dot && (this.hasBracket || addressMarks[text.charCodeAt(index + 1)] !== space))
      )
        this.mayHoldHost = true
      last = unit
    }
    this.ended = ended
    this.lastUnit = last
    if (this.isBlankSince) this.passBlanks(text, start)
    this.advance(this.end)
  }

  /** Blanks after a sentence are sent with it. */
  private passBlanks(piece: string, start: number): void {
    while (this.judgedTo < this.end && addressMarks[piece.charCodeAt(this.judgedTo - start)] === space) this.judgedTo++
    this.isBlankSince = this.judgedTo === this.end
  }

  /** Returns how much of the held-back text may be sent. Of a blocked text that is all before the match, or before its sentence. */
  private free(eager: boolean): number {
    const { end, token } = this
    const held = this.unsent.length
    const out = end - held
    if (this.hit !== null) return Math.max(0, Math.min(held, (eager ? this.cutAt : this.refusedSentence) - out))
    const mayGrow = this.followsDot || (this.hasMark && token < end && mayBecomeHost.test(this.getText(token, end)))
    const completesAt = this.scan?.mayCompleteAt() ?? Number.POSITIVE_INFINITY
    const doubtful = Math.min(completesAt, mayGrow ? token : Number.POSITIVE_INFINITY)
    const certain = Math.max(0, Math.min(held, doubtful - out), held - longestHold)
    return eager ? certain : Math.min(certain, Math.max(0, this.judgedTo - out))
  }

  private release(length: number): string {
    const needed = Math.min(this.before, this.token)
    if (needed - this.keptAt >= worthForgetting) {
      this.kept = this.kept.slice(needed - this.keptAt)
      this.keptAt = needed
    }
    if (length === 0) return ''
    const { unsent } = this
    const isAll = length === unsent.length
    this.unsent = isAll ? '' : unsent.slice(length)
    return isAll ? unsent : unsent.slice(0, length)
  }
}

/** Returns the blocking verdict on a whole output, as found in the history of a conversation; null = it is clean. */
export function judgeOutput(layers: OutputLayers, text: string): Verdict | null {
  const output = new OutputText(layers)
  output.add(text)
  output.finish(true)
  return output.hit
}

/** Returns true if nothing in a whole text is blocked, as in nearly all; false = it has to be read sentence by sentence. */
function isSurelyClean({ rules, hosts, isHarmless }: OutputLayers, text: string): boolean {
  return (
    rules.expressions === null &&
    findWords(rules, text, 'prompt') === null &&
    !containsBlockedHost(hosts, text) &&
    // A spelled-out dot joins other words in the whole text than in its parts.
    ((readSigns(text) & textSigns.escape) === 0 || !spelledDot.test(text)) &&
    isHarmless(text)
  )
}
