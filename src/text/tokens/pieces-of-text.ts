/**
 * Splits a text into the pieces that o200k_base encodes one by one, and counts their tokens. Long texts are sampled:
 * each piece is counted with the same independent probability, so that a text cannot hide expensive parts. A piece is
 * at most 32 characters; for each cut that the tokenizer would not make, it counts one or two tokens more.
 */
import { loadUnits, units } from '../code-units.ts'
import { elsewhereShift, hashBase, ownMask, unitClass, type Vocabulary, vocabulary } from './vocabulary.ts'

/** An unbiased estimate for a text: token counts, and the sampling variance of each. */
export type TokenEstimate = {
  readonly own: number
  readonly ownVariance: number
  readonly elsewhere: number
  readonly elsewhereVariance: number
  /** Tokens hidden by cuts that the tokenizer would not make. */
  readonly cuts: number
  /** UTF-8 bytes. No tokenizer with byte fallback produces more tokens. */
  readonly bytes: number
}

const { lower, upper, caseless, mark, digit, newline, blank, symbol } = unitClass

const longestPiece = 32

/**
 * Returns the generator of a sample: whole numbers below 2 ** 32. Its seed must be random in service, so that clients
 * cannot predict which pieces are counted.
 */
export function createDraws(seed: number): () => number {
  let state = seed | 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state >>> 0
  }
}

/**
 * Measures a text. Counts all of it up to `readInFull` characters, and a random sample of about that size from longer
 * texts, which `draw` chooses. Linear: a text of 2 MB is scanned in full, and about `readInFull` characters are looked up.
 */
export function measureText(text: string, readInFull: number, draw: () => number): TokenEstimate {
  const max = Math.max(1, Math.ceil(text.length / readInFull))
  // A piece is counted if its random number is below this.
  const chance = Math.floor(0x1_0000_0000 / max)
  const words = vocabulary()
  let cuts = 0
  let own = 0
  let ownSquares = 0
  let elsewhere = 0
  let elsewhereSquares = 0
  for (let start = 0; start < text.length; ) {
    const length = loadUnits(text, start)
    // A piece that begins near the end of a block is whole in the next one.
    const isLast = start + length === text.length
    const to = isLast ? length : length - longestPiece
    let end = 0
    for (let from = 0; from < to; from = end) {
      // Wide characters take two or three bytes each.
      const longest = (units[from] ?? 0) < 0x100 || (units[from + 1] ?? 0) < 0x100 ? longestPiece : longestPiece / 2
      end = pieceEnd(Math.min(length, from + longest), from, words.classes)
      // Do not split a surrogate pair.
      if (end < length && end - from > 1 && ((units[end] ?? 0) & 0xfc00) === 0xdc00) end--
      if (end - from >= longest - 1 && end < length) cuts += hiddenBy(end, words.classes)
      if (max > 1 && draw() >= chance) continue
      const counts = countPiece(words, from, end)
      const ofOwn = counts & ownMask
      const ofOthers = counts >>> elsewhereShift
      own += ofOwn
      ownSquares += ofOwn * ofOwn
      elsewhere += ofOthers
      elsewhereSquares += ofOthers * ofOthers
    }
    start += end
  }
  const spread = max * (max - 1)
  return {
    own: own * max,
    ownVariance: ownSquares * spread,
    elsewhere: elsewhere * max,
    elsewhereVariance: elsewhereSquares * spread,
    cuts,
    bytes: Buffer.byteLength(text),
  }
}

/**
 * Returns the tokens that a cut before `end` can hide. A run of different letters or ASCII symbols may continue in another
 * rhythm after each cut: `la` repeated has two tokens more for each. Scripts without case have no spaces, and prose in
 * them is cut often: its pieces are words.
 */
function hiddenBy(end: number, classes: Uint8Array): 1 | 2 {
  const before = units[end - 1] ?? 0
  const isOneUnit = before === units[end] && before === units[end - 2]
  const kind = classes[before] ?? symbol
  return !isOneUnit && (kind <= upper || (kind === symbol && before < 0x80)) ? 2 : 1
}

/** Returns the end of the piece at `from`, by o200k_base's own pattern or earlier. */
function pieceEnd(length: number, from: number, classes: Uint8Array): number {
  const first = classes[units[from] ?? 0] ?? symbol
  if (first <= mark) return wordEnd(length, from, classes)
  let at = from + 1
  if (first === digit) {
    while (at < length && at < from + 3 && classes[units[at] ?? 0] === digit) at++
    return at
  }
  if (at === length) return at
  const second = classes[units[at] ?? 0] ?? symbol
  // One preceding character of another kind belongs to the word, also one of two units.
  if (first !== newline && second <= mark) return wordEnd(length, at, classes)
  const isPair = ((units[from] ?? 0) & 0xfc00) === 0xd800 && ((units[at] ?? 0) & 0xfc00) === 0xdc00
  if (isPair && at + 1 < length && (classes[units[at + 1] ?? 0] ?? symbol) <= mark)
    return wordEnd(length, at + 1, classes)
  if (first === symbol || (second === symbol && units[from] === 0x20)) {
    for (let now = second; now === symbol || now === mark; )
      now = ++at < length ? (classes[units[at] ?? 0] ?? symbol) : digit
    while (at < length && (classes[units[at] ?? 0] === newline || units[at] === 0x2f)) at++
    return at
  }
  return blanksEnd(length, from, classes)
}

/**
 * Returns the end of blanks up to the last line break; without one, all but the last blank, which belongs to the next
 * piece.
 */
function blanksEnd(length: number, from: number, classes: Uint8Array): number {
  let at = from
  let afterNewline = from
  for (; at < length; at++) {
    const now = classes[units[at] ?? 0]
    if (now === newline) afterNewline = at + 1
    else if (now !== blank) break
  }
  if (afterNewline > from) return afterNewline
  return at === length || at === from + 1 ? at : at - 1
}

/** Matches capitals, then lower-case letters, then a contraction. Marks belong to either. */
function wordEnd(length: number, from: number, classes: Uint8Array): number {
  let at = from
  let now = classes[units[at] ?? 0] ?? symbol
  while (now === upper || now === caseless || now === mark)
    now = ++at < length ? (classes[units[at] ?? 0] ?? symbol) : symbol
  while (now === lower || now === caseless || now === mark)
    now = ++at < length ? (classes[units[at] ?? 0] ?? symbol) : symbol
  return at < length && units[at] === 0x27 ? at + contractionLength(length, at) : at
}

function contractionLength(length: number, at: number): number {
  const value = at + 1 < length ? (units[at + 1] ?? 0) | 0x20 : 0
  const two = at + 2 < length ? (units[at + 2] ?? 0) | 0x20 : 0
  // s, d, m, t; ll, ve, re.
  if (value === 0x73 || value === 0x64 || value === 0x6d || value === 0x74) return 2
  return (value === 0x6c && two === 0x6c) || ((value === 0x76 || value === 0x72) && two === 0x65) ? 3 : 0
}

/**
 * The most recent pieces by the hash of their units: length, counts and units, in half a cache line. A vocabulary look-up
 * causes five cache misses.
 */
const recentSlots = 1 << 13
const recentSlotUnits = 16
const recentHead = 2
const recents = new Uint16Array(recentSlots * recentSlotUnits)

/** Returns the counts of a piece. Those of recent pieces are remembered. */
function countPiece(words: Vocabulary, from: number, to: number): number {
  let hash = 0
  for (let at = from; at < to; at++) hash = (Math.imul(hash, hashBase) + (units[at] ?? 0)) | 0
  const slot = ((hash ^ (hash >>> 16)) & (recentSlots - 1)) * recentSlotUnits
  const shift = slot + recentHead - from
  if (recents[slot] === to - from) {
    let at = from
    while (at < to && units[at] === recents[at + shift]) at++
    if (at === to) return recents[slot + 1] ?? 0
  }
  const counts = words.count(encodePiece(words.scratch, from, to))
  if (to - from > recentSlotUnits - recentHead) return counts
  recents[slot] = to - from
  recents[slot + 1] = counts
  for (let at = from; at < to; at++) recents[at + shift] = units[at] ?? 0
  return counts
}

/** Encodes a piece as UTF-8, unpaired surrogates as U+FFFD. Returns its bytes. */
function encodePiece(scratch: Uint8Array, from: number, to: number): number {
  let length = 0
  for (let at = from; at < to; at++) {
    let code = units[at] ?? 0
    if (code < 0x80) {
      scratch[length++] = code
      continue
    }
    if ((code & 0xf800) === 0xd800) {
      const next = code < 0xdc00 && at + 1 < to ? (units[at + 1] ?? 0) : 0
      code = (next & 0xfc00) === 0xdc00 ? 0x10000 + ((code & 0x3ff) << 10) + (next & 0x3ff) : 0xfffd
    }
    if (code >= 0x10000) {
      at++
      scratch[length++] = 0xf0 | (code >> 18)
      scratch[length++] = 0x80 | ((code >> 12) & 0x3f)
    } else if (code >= 0x800) scratch[length++] = 0xe0 | (code >> 12)
    if (code >= 0x800) scratch[length++] = 0x80 | ((code >> 6) & 0x3f)
    else scratch[length++] = 0xc0 | (code >> 6)
    scratch[length++] = 0x80 | (code & 0x3f)
  }
  return length
}
