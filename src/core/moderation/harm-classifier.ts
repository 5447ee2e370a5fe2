/** When the classifier's numbers become a refusal, in which category, and the one number that stands for them. */
import { createFeatureReader, type FeatureReader, type Features, opensPolitely } from '../analysis/features.ts'
import { createDeedReader } from './deeds.ts'
import { countOf, createHarmJudge, type Harm } from './harm-features.ts'
import type { HarmHead } from './harm-slots.ts'
import type { HarmKind } from './harm-words.ts'
import { createAnswerCheck } from './harmless-answer.ts'
import { eachPart, partsIn } from './parts.ts'
import type { SafetyCategory } from './pattern-rules.ts'
import { createWorldJudge } from './world.ts'

export type HarmVerdict = {
  /** null = let through. */
  readonly category: SafetyCategory | null
  /** 0–1: how likely the text is one that should be refused. */
  readonly score: number
}

/**
 * Log-odds from which a text is refused, fixed by cross-validation (`training/safety.ts`): requests so that hardly any
 * everyday prompt reaches them, content higher, since speaking of bad things is not doing them.
 */
export const thresholds: Readonly<Record<HarmHead, number>> = { request: -0.85, content: 2.5, jailbreak: -1.4 }

export type HarmClassifier = {
  /** What someone asks, or brings into the conversation. */
  prompt(text: string): HarmVerdict
  /** What it is to read: documents, results of tools, pages. They tell of many things, and ask for nothing. */
  data(text: string): HarmVerdict
  /**
   * What a model answers: it tells of many things, so only what it says is judged, and only what is certain. The score is that
   * of what is refused, 0 for the rest.
   */
  answer(text: string): HarmVerdict
  /** Begins to hear an answer. */
  listen(): SentenceClassifier
  /** Whether who hears an answer will refuse none of its sentences, told from its words read once; false = not to be told so. */
  isHarmless(text: string): boolean
}

/**
 * Hears the next sentence of an answer, '' for a blank one: the verdict of `answer` on it together with the one before it, which
 * `both` tells. Each begins with the white space that parts it from the one before.
 */
export type SentenceClassifier = (sentence: string, both: () => string) => HarmVerdict

/** A classifier with buffers of its own; `readPrompt` may be the reader that others read prompts with. */
export function createHarmClassifier(readPrompt: FeatureReader = createFeatureReader()): HarmClassifier {
  const read = createFeatureReader()
  const judge = createHarmJudge()
  const world = createWorldJudge()
  const readDeeds = createDeedReader()

  const answer = (text: string): HarmVerdict => {
    const features = read(text)
    if (judge.contentAtMost(features, 0, features.count) <= answerThreshold) return harmless
    const harm = judge.read(features)
    return harm.content > answerThreshold ? { category: categoryOf(harm), score: probability(harm.content) } : harmless
  }

  /** A whole text; the notions of a long one are judged sentence by sentence alone. */
  const judged = (features: Features, harm: Harm): HarmVerdict => {
    const verdict = verdictOf(harm)
    if (verdict.category !== null || features.count > longestOfNotions) return verdict
    const abroad = world.read(features, 0, features.count) ?? null
    return abroad === null ? verdict : { category: abroad, score: Math.max(verdict.score, scoreAbroad) }
  }

  return {
    prompt: text => {
      const features = readPrompt(text)
      world.begin(features)
      const whole = judged(features, judge.read(features))
      if (whole.category !== null) return whole
      const deed = readDeeds(features)
      if (deed !== null) return { category: deed, score: Math.max(whole.score, scoreOfDeed) }
      let worst = whole
      const parts = partsIn(features)
      eachPart(features, (from, to) => {
        if (worst.category !== null) return
        const abroad = world.read(features, from, to)
        if (abroad === undefined) {
          if (judge.requestAbout(from, to) <= worthReading) return
          const part = judge.readPart(features, from, to)
          if (blocksPart(part, parts)) worst = verdictOf(part)
        } else if (abroad !== null) worst = { category: abroad, score: scoreAbroad }
      })
      return worst
    },
    data: text => {
      const harm = judge.read(readPrompt(text))
      // Short ones speak of models too: of them the rules are surer.
      return harm.evidence >= evidenceOfTemplate && triesToUnbind(harm)
        ? { category: 'jailbreak', score: probability(harm.jailbreak) }
        : harmless
    },
    answer,
    isHarmless: createAnswerCheck(read, judge, answerThreshold),
    listen() {
      const heard = createHeard()
      return (sentence, both) => {
        const words = heard(sentence, read)
        if (words === null) return sentence === '' ? harmless : answer(both())
        judge.beginAnswer(words)
        return judge.isContentBelow(words, 0, words.count, answerThreshold) ? harmless : answer(both())
      }
    },
  }
}

/**
 * The words of a sentence behind those of the one before, each read once; null where there is none, or where both together
 * may be read otherwise: a courtesy counts only within a text, and a word that was cut in two is one.
 */
function createHeard() {
  let words = new Int32Array(usualWords)
  let stems = new Int32Array(usualWords)
  let before = 0
  let from = 0
  let isFirst = true
  return (sentence: string, read: FeatureReader): Pick<Features, 'count' | 'words' | 'stems'> | null => {
    const isCut = !isFirst && sentence.charCodeAt(0) > space
    isFirst = false
    const features = read(sentence)
    // The sentence before the last is no longer needed.
    words.copyWithin(0, from, from + before)
    stems.copyWithin(0, from, from + before)
    const count = before + features.count
    if (count > words.length) {
      words = longer(words, count)
      stems = longer(stems, count)
    }
    for (let at = before; at < count; at++) {
      words[at] = features.words[at - before] ?? 0
      stems[at] = features.stems[at - before] ?? 0
    }
    from = before
    before = features.count
    if (sentence === '' || isCut || features.isPolite || opensPolitely(words, count)) return null
    return { count, words, stems }
  }
}

const space = 32
const usualWords = 256

function longer(numbers: Int32Array, count: number): Int32Array<ArrayBuffer> {
  const more = new Int32Array(2 * count)
  more.set(numbers)
  return more
}

/** In words. */
const longestOfNotions = 400

/** Parts about which less is known are not read: of those that would be refused, one in four hundred is below. */
const worthReading = -3

/** What is refused in another language than English has no graded score: it is more likely than not. */
const scoreAbroad = 0.6

/** What brings an act, an object and a way of asking together is hardly meant otherwise. */
const scoreOfDeed = 0.8

const harmless: HarmVerdict = { category: null, score: 0 }

/** At this no unflagged text of `moderation-openai` is refused in cross-validation. */
const answerThreshold = 3.5

function verdictOf(harm: Harm): HarmVerdict {
  return { category: isBlocked(harm) ? categoryOf(harm) : null, score: scoreOf(harm) }
}

type Odds = Pick<Harm, HarmHead | 'evidence'> & { readonly kinds: ArrayLike<number> }

/** Whether one of the heads is sure enough. */
export function isBlocked(odds: Odds): boolean {
  if (odds.evidence < leastEvidence) return false
  return asksForHarm(odds) || triesToUnbind(odds) || (odds.content > thresholds.content && !isOfSelfHarm(odds.kinds))
}

/**
 * The same of one of a text's parts alone: what a sentence asks counts, what it says is weighed with what stands around it. Of many
 * parts each must be surer, or a long honest text would be refused by one of its hundred sentences.
 */
export function blocksPart(odds: Odds, parts: number): boolean {
  const least = thresholds.request + Math.min(mostOfParts, perDoubling * Math.log2(parts))
  return odds.evidence >= leastEvidence && odds.request > least && asksForHarm(odds)
}

/** Fixed by cross-validation: of real prompts a quarter as many are refused for a part, of requests among eight sentences .91 are still. */
const perDoubling = 0.2
const mostOfParts = 1

function asksForHarm({ request, kinds }: Odds): boolean {
  return request > thresholds.request && request > leastOfRequest(kinds)
}

/** An order that names nothing harmful is read as one by its build alone: of that the classifier must be sure. */
function leastOfRequest(kinds: Odds['kinds']): number {
  if (!namesHarm(kinds)) return surely.asked
  return isCry(kinds) ? surely.meant : thresholds.request
}

/** Who says that they want to die is not turned away: a model answers with help. Who asks how is. */
function isCry(kinds: Odds['kinds']): boolean {
  return isOfSelfHarm(kinds) && countOf(kinds, 'instruct') === 0
}

function isOfSelfHarm(kinds: Odds['kinds']): boolean {
  return mostSpokenOf(kinds) === 'self_harm'
}

function namesHarm(kinds: Odds['kinds']): boolean {
  return categories.some(([kind]) => countOf(kinds, kind) > 0)
}

/** The content head's probability; for what is refused, at least the refusing head's, a request's with some doubt, and half as loud. */
export function scoreOf(odds: Odds): number {
  const content = probability(odds.content)
  if (triesToUnbind(odds)) return Math.max(content, probability(odds.jailbreak))
  return asksForHarm(odds) ? Math.max(content, probability((odds.request - doubtOfRequest) / 2)) : content
}

/** What is asked only just too plainly says less of a text than what stands in it: without this, flagged texts rank lower. */
const doubtOfRequest = 0.5

/** A template says many things; of a few, the classifier must be sure, and the rules know the short ones. */
function triesToUnbind({ jailbreak, evidence }: Odds): boolean {
  return jailbreak > (evidence < evidenceOfTemplate ? surely.unbound : thresholds.jailbreak)
}

/** One or two words, however often they are said, are no sentence. */
const leastEvidence = 16
/** Some two dozen words. */
const evidenceOfTemplate = 130

/** Log-odds that are asked of what speaks against itself. */
const surely = { asked: 1.75, meant: 0.5, unbound: 0.5 } as const

function probability(logOdds: number): number {
  return 1 / (1 + Math.exp(-logOdds))
}

/** What a refused text speaks of most. */
function categoryOf(harm: Harm): SafetyCategory {
  const { request, content, jailbreak, kinds } = harm
  if (triesToUnbind(harm) && jailbreak - thresholds.jailbreak > request - thresholds.request) return 'jailbreak'
  const isContent = content > thresholds.content && !asksForHarm(harm)
  return mostSpokenOf(kinds) ?? (isContent ? 'harassment' : 'illegal')
}

/** The category of which most was said; null where no word of one was read. */
function mostSpokenOf(kinds: Odds['kinds']): SafetyCategory | null {
  const isOfOneself = countOf(kinds, 'oneself') > 0
  let best: SafetyCategory | null = null
  let most = 0
  for (const [kind, category, weight] of categories) {
    const said = countOf(kinds, kind) * weight
    if (said <= most) continue
    best = isOfOneself && category === 'violence' ? 'self_harm' : category
    most = said
  }
  return best
}

/** Rare words weigh more than those that crime shares with everyday life. */
const categories: readonly (readonly [HarmKind, SafetyCategory, number])[] = [
  ['selfharm', 'self_harm', 1.2],
  ['weapon', 'weapons', 1.5],
  ['poison', 'weapons', 1.4],
  ['terror', 'violence', 1.3],
  ['violence', 'violence', 1.1],
  ['gore', 'violence', 1],
  ['drug', 'drugs', 1.4],
  ['cyber', 'cybercrime', 1.3],
  ['fraud', 'fraud', 1.1],
  ['slur', 'hate', 3],
  ['hate', 'hate', 1.4],
  ['group', 'hate', 0.6],
  ['sexual', 'sexual', 1.2],
  ['insult', 'harassment', 1.1],
  ['privacy', 'privacy', 0.7],
  ['lies', 'misinformation', 0.9],
  ['illicit', 'illegal', 0.8],
]
