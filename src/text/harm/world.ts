/**
 * Judges whether text in a language other than English requests harm, with a linear model over language-independent
 * notions and over the words themselves.
 */
import type { Features } from '../analysis/features.ts'
import { createNotionReader, englishLanguage, getNotion, type Notions, notions } from '../analysis/notions.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import { decodeWeights } from '../weights/stored-weights.ts'
import kept from '../weights/world.json'
import { createNotionSlots } from './notion-slots.ts'

type WorldJudge = {
  /** Starts a text. */
  begin(features: Features): void
  /** Returns the category that blocks some of its words; null = allowed; undefined = the text is English. */
  read(features: Features, from: number, to: number): ModerationCategory | null | undefined
}

/** Log-odds from which words are blocked, set by cross-validation (`training/world.ts`). */
const worldThreshold = 0.3

/** Creates a judge with its own buffers. */
export function createWorldJudge(): WorldJudge {
  const weights = decodeWeights(kept)
  const reader = createNotionReader(false)
  const filler = createNotionSlots()
  return {
    begin: features => reader.begin(features),
    read(features, from, to) {
      const read = reader.read(from, to)
      if (read.language === englishLanguage) return undefined
      if (read.count < fewestNotions) return null
      const filled = filler.fill(read, features, from, to)
      let sum = 0
      for (let at = 0; at < filled; at++) sum += (weights[filler.slots[at] ?? 0] ?? 0) * (filler.values[at] ?? 0)
      return asksForHarm(sum * kept.scale, read) ? (findCategory(read) ?? 'illegal') : null
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
