/**
 * Judges whether text in a language other than English requests harm, with a linear model over language-independent
 * notions and over the words themselves.
 */

import { decodeWeights } from '../analysis/feature-slots.ts'
import { type Features, getSlot } from '../analysis/features.ts'
import { createNotionReader, englishLanguage, getNotion, type Notions, notions } from '../analysis/notions.ts'
import type { ModerationCategory } from '../rules/pattern-rules.ts'
import kept from '../weights/world.json'

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

/** Features of a request made of notions: which occur, which are adjacent, and which sorts occur together. */

/** Sorts of notions. A pair of notions unseen in training is covered by the pair of its sorts. */
const sorts: Readonly<Record<string, string>> = {
  request: 'how explain what list advice',
  make: 'make write get plan text creative code',
  deed: 'kill hurt shoot kidnap rape steal breakin hack launder evade bribe spy smuggle fire destroy cheat deceive insult sell slave',
  means: 'bomb gun knife poison wmd drug meds malware fake chem terror propaganda corpse evidence',
  shade: 'secret illegal hate police suicide self die starve sex',
  whom: 'person child women group public politics animal',
  goods: 'account device card bank money doc private tax fraud gamble alcohol vaccine',
  kind: 'prevent safe treat history law game food worry',
  free: 'ignore previous rules reveal pretend norules',
}
const sortNames = Object.keys(sorts)
const otherSort = sortNames.length
const sortTable = Uint8Array.from(notions, name => {
  const sort = sortNames.findIndex(sortName => (sorts[sortName] ?? '').split(' ').includes(name))
  return sort < 0 ? otherSort : sort
})
for (const list of Object.values(sorts)) for (const name of list.split(' ')) getNotion(name)

const places = 128
const pairFrom = places
const nearFrom = pairFrom + places * places
const sortFrom = nearFrom + places * places
const sortSlots = (otherSort + 1) ** 3
const countFrom = sortFrom + sortSlots
const counts = 12
const bias = countFrom + counts
const wordFrom = bias + 1
const wordBits = 15
/** Number of slots in the table. */
export const notionSlots = wordFrom + (1 << wordBits)

/** Notions beyond this number of distinct ones are not paired. */
const mostPaired = 20
const mostWords = 1_024

/** Creates a function that fills `slots` (each once) and their weights and returns their number. */
export function createNotionSlots() {
  const slots = new Int32Array(8_192)
  const values = new Float32Array(slots.length)
  const met = new Uint16Array(notionSlots)
  const distinct = new Uint8Array(mostPaired)
  let stamp = 0
  let filled = 0
  const note = (slot: number) => {
    if (met[slot] === stamp || filled === slots.length) return
    met[slot] = stamp
    slots[filled++] = slot
  }
  return {
    slots,
    values,
    /**
     * Adds the notions of some words and the words themselves: frequent words of a language carry signals that no list
     * contains.
     */
    fill({ found, count, language }: Notions, features: Features, from: number, to: number): number {
      filled = 0
      stamp = stamp === 65_535 ? 1 : stamp + 1
      if (stamp === 1) met.fill(0)
      let different = 0
      let before = -1
      for (let at = 0; at < count; at++) {
        const notion = found[at] ?? 0
        if (met[notion] !== stamp && different < mostPaired) distinct[different++] = notion
        note(notion)
        if (before >= 0 && before !== notion)
          note(nearFrom + Math.min(before, notion) * places + Math.max(before, notion))
        before = notion
      }
      for (let value = 0; value < different; value++)
        for (let two = value + 1; two < different; two++) {
          const a = distinct[value] ?? 0
          const b = distinct[two] ?? 0
          note(pairFrom + Math.min(a, b) * places + Math.max(a, b))
        }
      let sortsMet = 0
      for (let value = 0; value < different; value++) sortsMet |= 1 << (sortTable[distinct[value] ?? 0] ?? 0)
      for (let a = 0; a < otherSort; a++)
        if ((sortsMet & (1 << a)) !== 0)
          for (let b = a; b < otherSort; b++)
            if ((sortsMet & (1 << b)) !== 0)
              for (let c = b; c < otherSort; c++)
                if ((sortsMet & (1 << c)) !== 0) note(sortFrom + (a * (otherSort + 1) + b) * (otherSort + 1) + c)
      note(countFrom + Math.min(counts - 1, different))
      values.fill(3 / Math.sqrt(filled + 5), 0, filled)
      note(bias)
      values[filled - 1] = 1
      const notionsFilled = filled
      const { words, stems, units, offsets } = features
      for (let at = from; at < Math.min(to, from + mostWords); at++) {
        const alone = isAlone(units[offsets[at] ?? 0] ?? 0)
        if (alone && at + 1 === to) continue
        const word = alone ? Math.imul(words[at] ?? 0, 31) ^ (words[at + 1] ?? 0) : (stems[at] ?? 0)
        note(wordFrom + getSlot(word, Math.imul(language + 1, languageSpread), wordBits))
      }
      values.fill(3 / Math.sqrt(filled - notionsFilled + 4), notionsFilled, filled)
      return filled
    },
  }
}

/** Separates equal words of different languages. */
const languageSpread = 0x9e3779b1

/** Chinese, Japanese and Thai are read one character at a time, so pairs of characters are added. */
function isAlone(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x9fff) || (unit >= 0xe00 && unit < 0xe80)
}
