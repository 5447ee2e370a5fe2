/**
 * Judges whether text in a language other than English requests harm, with a linear model over language-independent
 * notions and over the words themselves.
 */

import {
  addFeature,
  createSlots,
  decodeWeights,
  deduplicate,
  getSalt,
  type Slots,
  weightedSum,
} from '../analysis/feature-slots.ts'
import type { Features } from '../analysis/features.ts'
import { createNotionReader, englishLanguage, getNotion, type Notions, notions } from '../analysis/notions.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import kept from '../weights/world.json'

type WorldJudge = {
  /** Starts a text. */
  begin(features: Features): void
  /** Returns the category that blocks some of its words; null = allowed; undefined = the text is English. */
  read(features: Features, from: number, to: number): ModerationCategory | null | undefined
}

/** Log-odds from which words are blocked, set by cross-validation (`training/harm.ts`). */
const worldThreshold = 0.95

/** Creates a judge with its own buffers. */
export function createWorldJudge(): WorldJudge {
  const weights = decodeWeights(kept)
  const reader = createNotionReader(false)
  const slots = createSlots(worldBits)
  return {
    begin: features => reader.begin(features),
    read(features, from, to) {
      const read = reader.read(from, to)
      if (read.language === englishLanguage) return undefined
      if (read.count < fewestNotions) return null
      fillWorldSlots(slots, read, features, [from, to])
      return asksForHarm(weightedSum(slots, weights) * kept.scale, read) ? (findCategory(read) ?? 'illegal') : null
    },
  }
}

const fewestNotions = 1

/** Returns true if these odds block. Exempts text without a harmful notion and text by or about people in despair. */
export function asksForHarm(logOdds: number, read: Notions): boolean {
  if (logOdds <= worldThreshold) return false
  const category = findCategory(read)
  if (category === null) return logOdds > worldThreshold + surely
  return category !== 'self_harm' || asksHow(read)
}

/** Additional log-odds required of words without a harmful notion. */
const surely = 0.75

function asksHow({ found, count }: Notions): boolean {
  let asks = false
  for (let at = 0; at < count; at++) {
    const notion = found[at] ?? 0
    if (notion === worry || notion === prevent || notion === treat) return false
    if (asking.has(notion)) asks = true
  }
  return asks
}

const worry = getNotion('worry')
const prevent = getNotion('prevent')
const treat = getNotion('treat')
const asking: ReadonlySet<number> = new Set(['how', 'make', 'write', 'get', 'list'].map(getNotion))

const categories: Readonly<Partial<Record<ModerationCategory, string>>> = {
  weapons: 'bomb gun poison wmd knife',
  drugs: 'drug meds',
  cybercrime: 'hack malware account',
  fraud: 'fraud fake launder card tax bribe cheat',
  violence: 'kill hurt shoot kidnap terror fire slave',
  self_harm: 'suicide starve',
  sexual: 'sex rape',
  hate: 'hate group',
  harassment: 'insult spy',
  privacy: 'private',
  misinformation: 'propaganda',
  illegal: 'illegal steal breakin smuggle evade corpse destroy deceive',
}
const categoryNames = Object.keys(categories) as readonly ModerationCategory[]
const categoryOfNotion = notions.map(
  notion => categoryNames.find(name => categories[name]?.split(' ').includes(notion)) ?? null,
)

/** Returns the category of most notions; null = none. */
function findCategory({ found, count }: Notions): ModerationCategory | null {
  let best: ModerationCategory | null = null
  let most = 0
  const times = new Map<ModerationCategory, number>()
  for (let at = 0; at < count; at++) {
    const category = categoryOfNotion[found[at] ?? 0] ?? null
    if (category === null) continue
    const now = (times.get(category) ?? 0) + 1
    times.set(category, now)
    if (now <= most) continue
    best = category
    most = now
  }
  return best
}

/** The table has 2^worldBits slots. */
export const worldBits = 16

// Kinds of features, kept apart in the table.
const always = getSalt(1)
const single = getSalt(2)
const near = getSalt(3)
const both = getSalt(4)
const different = getSalt(5)

/** Notions beyond this number of distinct ones are not paired. */
const mostPaired = 20
const mostDifferent = 11
const mostWords = 1_024

/**
 * Fills the features of some words: which notions occur, which are adjacent, which occur together, and the words
 * themselves, since frequent words of a language carry signals that no list contains.
 */
export function fillWorldSlots(
  slots: Slots,
  { found, count, language }: Notions,
  features: Features,
  [from, to]: readonly [from: number, to: number],
): void {
  slots.count = 0
  addFeature(slots, 0, always, 1)
  const distinct = [...new Set(found.subarray(0, count))].slice(0, mostPaired)
  const loud = 3 / Math.sqrt(5 + count + (distinct.length * (distinct.length + 1)) / 2)
  for (let at = 0; at < count; at++) {
    const notion = found[at] ?? 0
    addFeature(slots, notion, single, loud)
    if (at > 0) addFeature(slots, getPair(found[at - 1] ?? 0, notion), near, loud)
  }
  for (const [index, notion] of distinct.entries())
    for (const other of distinct.slice(index + 1)) addFeature(slots, getPair(notion, other), both, loud)
  addFeature(slots, Math.min(mostDifferent, distinct.length), different, loud)
  const { words, stems, units, offsets } = features
  const end = Math.min(to, from + mostWords)
  const volume = 3 / Math.sqrt(end - from + 4)
  for (let at = from; at < end; at++) {
    const alone = isAlone(units[offsets[at] ?? 0] ?? 0)
    if (alone && at + 1 === to) continue
    const word = alone ? Math.imul(words[at] ?? 0, 31) ^ (words[at + 1] ?? 0) : (stems[at] ?? 0)
    addFeature(slots, word, Math.imul(language + 1, languageSpread), volume)
  }
  deduplicate(slots)
}

/** The same for both orders. */
function getPair(notion: number, other: number): number {
  return Math.min(notion, other) * 256 + Math.max(notion, other)
}

/** Separates equal words of different languages. */
const languageSpread = 0x85ebca6b

/** Chinese, Japanese and Thai are read one character at a time, so pairs of characters are added. */
function isAlone(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x9fff) || (unit >= 0xe00 && unit < 0xe80)
}
