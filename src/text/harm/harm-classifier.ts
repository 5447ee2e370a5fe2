/** Turns the classifier's numbers into a decision, a category, and one score. */
import { createFeatureReader, type FeatureReader, type Features } from '../analysis/features.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import { createDeedReader } from './deeds.ts'
import { createHarmJudge, type Harm, type HarmJudge } from './harm-features.ts'
import { categories, findParts, getCount, type HarmHead } from './harm-slots.ts'
import { createAnswerCheck } from './harmless-answer.ts'
import { createWorldJudge } from './world.ts'

type HarmVerdict = {
  /** null = allowed. */
  readonly category: ModerationCategory | null
  /** 0–1: how likely the text should be blocked. */
  readonly score: number
}

/**
 * Log-odds from which a text is blocked, set by cross-validation (`training/harm.ts`). The threshold for requests
 * blocks hardly any everyday prompt. The one for content is higher, since describing harm is not doing it.
 */
const thresholds: Readonly<Record<HarmHead, number>> = { request: -0.75, content: 1.5 }

/** Log-odds required if another signal speaks against the block. */
const surely = { asked: 2.6, meant: 0.7 } as const

export type HarmClassifier = {
  /** Judges text that a user writes or adds to the conversation. */
  prompt(text: string): HarmVerdict
  /**
   * Judges a model's output. Only stated content counts, and only if it is certain. The score is 0 unless the output is
   * blocked.
   */
  answer(text: string): HarmVerdict
  /** Returns true if `answer` blocks no two sentences in a row of an output, told from its words read once; false = not to be told so. */
  isHarmless(text: string): boolean
}

/** Creates a classifier with its own buffers. `readPrompt` may be shared with other readers of prompts. */
export function createHarmClassifier(readPrompt: FeatureReader = createFeatureReader()): HarmClassifier {
  const read = createFeatureReader()
  const harmJudge = createHarmJudge()
  const { judge, measure, atMost } = harmJudge
  const world = createWorldJudge()
  const readDeeds = createDeedReader()

  const answer = (text: string): HarmVerdict => {
    const features = read(text)
    measure(features, 'content', [])
    // As nearly always, told without neighbors.
    if (atMost(0, features.count) <= answerThreshold) return harmless
    const harm = judge(features, 0, features.count)
    return harm.content > answerThreshold ? { category: getCategory(harm), score: probability(harm.content) } : harmless
  }

  /** Judges a whole text. A long text is judged by its notions per sentence only. */
  const judged = (features: Features, harm: Harm): HarmVerdict => {
    const verdict = getVerdict(harm)
    if (verdict.category !== null || features.count > longestOfNotions) return verdict
    const abroad = world.read(features, 0, features.count) ?? null
    return abroad === null ? verdict : { category: abroad, score: Math.max(verdict.score, scoreAbroad) }
  }

  return {
    prompt: text => {
      const features = readPrompt(text)
      world.begin(features)
      const parts = findParts(features)
      const whole = judged(features, measure(features, 'request', parts))
      if (whole.category !== null) return whole
      const deed = readDeeds(features)
      if (deed !== null) return { category: deed, score: Math.max(whole.score, scoreOfDeed) }
      // Judging a part overwrites the bounds of the others.
      const doubtful = parts.map(([from, to]) => mayBlockPart(harmJudge, from, to))
      for (const [index, [from, to]] of parts.entries()) {
        const abroad = world.read(features, from, to)
        if (abroad != null) return { category: abroad, score: scoreAbroad }
        if (abroad === null || doubtful[index] === false) continue
        const part = judge(features, from, to)
        if (blocksPart(part, parts.length)) return getVerdict(part)
      }
      return whole
    },
    answer,
    isHarmless: createAnswerCheck(read, harmJudge, answerThreshold),
  }
}

/** In words. */
const longestOfNotions = 400

/** A blocked text in a language other than English has no graded score: it is more likely harmful than not. */
const scoreAbroad = 0.6

/** Score for a combination of act, object and request form, which is rarely meant otherwise. */
const scoreOfDeed = 0.8

const harmless: HarmVerdict = { category: null, score: 0 }

/** At this threshold no unflagged text of `moderation-openai` is blocked in cross-validation. */
const answerThreshold = 2.4

function getVerdict(harm: Harm): HarmVerdict {
  return { category: isBlocked(harm) ? getCategory(harm) : null, score: getScore(harm) }
}

type Odds = Pick<Harm, HarmHead | 'evidence'> & { readonly kinds: ArrayLike<number> }

/** Returns true if one of the classifiers is certain enough. */
export function isBlocked(odds: Odds): boolean {
  if (odds.evidence < leastEvidence) return false
  return asksForHarm(odds) || (odds.content > thresholds.content && !isOfSelfHarm(odds.kinds))
}

/**
 * Returns true if one part of a text should be blocked on its own: its request counts, its content is weighed with its
 * context. The threshold grows with the number of parts, or a long harmless text would be blocked because of one of its
 * hundred sentences.
 */
export function blocksPart(odds: Odds, parts: number): boolean {
  const least = thresholds.request + Math.min(mostOfParts, perDoubling * Math.log2(parts))
  return odds.evidence >= leastEvidence && odds.request > least && asksForHarm(odds)
}

/** Returns true unless the bounds of a part's words show that `blocksPart` is false, as they do for nearly all. */
function mayBlockPart({ atMost, namesHarm }: HarmJudge, from: number, to: number): boolean {
  return namesHarm(from, to) || atMost(from, to) > surely.asked
}

/**
 * Set by cross-validation: of real prompts a quarter as many are blocked for a part, while 91% of harmful requests
 * among eight sentences still are.
 */
const perDoubling = 0.2
const mostOfParts = 1

function asksForHarm({ request, kinds }: Odds): boolean {
  return request > thresholds.request && request > leastOfRequest(kinds)
}

/** An instruction without a harmful word is scored by its structure only, so the classifier must be certain. */
function leastOfRequest(kinds: Odds['kinds']): number {
  if (!namesHarm(kinds)) return surely.asked
  return isCry(kinds) ? surely.meant : thresholds.request
}

/**
 * A text in which users say that they want to die is allowed: a model responds with help. A question about methods is
 * not.
 */
function isCry(kinds: Odds['kinds']): boolean {
  return isOfSelfHarm(kinds) && getCount(kinds, 'instruct') === 0
}

function isOfSelfHarm(kinds: Odds['kinds']): boolean {
  return findMostSpoken(kinds) === 'self_harm'
}

function namesHarm(kinds: Odds['kinds']): boolean {
  return categories.some(([kind]) => getCount(kinds, kind) > 0)
}

/**
 * Returns the probability of the content classifier. For blocked texts it is at least that of the blocking classifier;
 * a request score is reduced and halved.
 */
function getScore(odds: Odds): number {
  const content = probability(odds.content)
  return asksForHarm(odds) ? Math.max(content, probability((odds.request - doubtOfRequest) / 2)) : content
}

/** Reduces the score of marginal requests. Without it, flagged texts would rank lower than marginal ones. */
const doubtOfRequest = 0.5

/** One or two repeated words are not a sentence. */
const leastEvidence = 16

function probability(logOdds: number): number {
  return 1 / (1 + Math.exp(-logOdds))
}

/** Returns the category that most of a blocked text is about. */
function getCategory(harm: Harm): ModerationCategory {
  const { content, kinds } = harm
  const isContent = content > thresholds.content && !asksForHarm(harm)
  return findMostSpoken(kinds) ?? (isContent ? 'harassment' : 'illegal')
}

/** Returns the category with the most words; null if the text has none. */
function findMostSpoken(kinds: Odds['kinds']): ModerationCategory | null {
  const isOfOneself = getCount(kinds, 'oneself') > 0
  let best: ModerationCategory | null = null
  let most = 0
  for (const [kind, category, weight] of categories) {
    const said = getCount(kinds, kind) * weight
    if (said <= most) continue
    best = isOfOneself && category === 'violence' ? 'self_harm' : category
    most = said
  }
  return best
}
