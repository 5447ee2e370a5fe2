/**
 * A set of host names as 64-bit fingerprints in two typed arrays: 250,000 names take 4 MB, and a look-up costs one
 * probe per label. One in 10^8 lists of that size has a collision; the allow list corrects it like any wrong entry.
 */
import { isDigit } from '../code-units.ts'
import { fromPunycode, mapIdna, maximumHost, normalizeHostname } from './hostname.ts'

export type HostSet = {
  readonly size: number
  /**
   * Returns the length of the longest domain in the set that equals the host or is above it; 0 = none. `host` must come
   * from `normalizeHostname` or `extractHosts`: labels in ASCII or Unicode.
   */
  covers(host: string): number
  /** Returns true if the set holds a fingerprint. */
  has(first: number, second: number): boolean
}

type HostSetBuilder = {
  /** Reads the next bytes of a list. */
  read(bytes: Uint8Array): void
  /** Ends the current list and begins the next. */
  endList(): void
  finish(): HostSet
}

const fewestSlots = 64
const newline = 10

/**
 * Builds a set from lists in chunks of any size: hosts files (`0.0.0.0 name name # comment`), one name per line,
 * `*.name`, `||name^`, IP addresses. Ignores names without a dot and lines without a name.
 */
export function buildHostSet(expected = 0): HostSetBuilder {
  let slots = fewestSlots
  while (slots < expected * 1.5) slots *= 2
  let high = new Uint32Array(slots)
  /** 0 = the slot is free. Inserted values are odd and so never 0. */
  let low = new Uint32Array(slots)
  let entries = 0
  /** Number of entries that are alternative spellings. */
  let others = 0
  let rest = new Uint8Array(0)

  const insert = (first: number, second: number) => {
    let slot = first & (slots - 1)
    while (low[slot] !== 0) {
      if (low[slot] === second && high[slot] === first) return
      slot = (slot + 1) & (slots - 1)
    }
    high[slot] = first
    low[slot] = second
    entries++
    if (entries * 1.5 > slots) grow()
  }

  const grow = () => {
    const [oldHigh, oldLow] = [high, low]
    slots *= 2
    high = new Uint32Array(slots)
    low = new Uint32Array(slots)
    entries = 0
    for (let slot = 0; slot < oldHigh.length; slot++)
      if (oldLow[slot] !== 0) insert(oldHigh[slot] ?? 0, oldLow[slot] ?? 0)
  }

  const addLine = (bytes: Uint8Array, from: number, to: number) => {
    let at = from
    let isFirst = true
    while (at < to) {
      while (at < to && (bytes[at] ?? 0) <= 32) at++
      const start = at
      while (at < to && (bytes[at] ?? 0) > 32) at++
      if (start === at || isComment(bytes[start] ?? 0)) return
      // A line of a hosts file begins with the address.
      const isAddress = isFirst && isIpAddress(bytes, start, at)
      isFirst = false
      if (isAddress) continue
      addName(bytes, start, at)
      if (!isHostsLine(bytes, from, start)) return
    }
  }

  const addName = (bytes: Uint8Array, from: number, to: number) => {
    let start = from
    while (start < to && isWildcard(bytes[start] ?? 0)) start++
    let end = to
    while (end > start && (bytes[end - 1] === caret || bytes[end - 1] === dotByte)) end--
    let first = startFirst
    let second = startSecond
    let hasDot = false
    for (let at = end - 1; at >= start; at--) {
      const folded = hostByte[bytes[at] ?? 0] ?? 0
      if (folded === 0 || (folded === hyphen && bytes[at + 1] === hyphen)) return addText(bytes, start, end)
      if (folded === dotByte) hasDot = true
      first = mixFirst(first, folded)
      second = mixSecond(second, folded)
    }
    if (hasDot) insert(first >>> 0, (second | 1) >>> 0)
  }

  /** Adds non-ASCII names, punycode and IP addresses. */
  const addText = (bytes: Uint8Array, from: number, to: number) => {
    const text = decoder.decode(bytes.subarray(from, to))
    const host = normalizeHostname(text.replace(/^[a-z]+:\/\//i, '').replace(/[/?#:].*$/, ''))
    if (host === null) return
    insertName(host)
    const before = entries
    for (const spelling of getSpellings(host)) insertName(spelling)
    others += entries - before
  }

  const insertName = (name: string) => {
    let first = startFirst
    let second = startSecond
    for (let at = name.length - 1; at >= 0; at--) {
      first = mixFirst(first, name.charCodeAt(at))
      second = mixSecond(second, name.charCodeAt(at))
    }
    insert(first >>> 0, (second | 1) >>> 0)
  }

  return {
    read(bytes) {
      let from = 0
      if (rest.length > 0) {
        const end = bytes.indexOf(newline)
        const line = joined(rest, end === -1 ? bytes : bytes.subarray(0, end))
        if (end === -1) {
          // An endless line is not a list. Keeps only its beginning, so that memory stays bounded.
          rest = line.subarray(0, longestLine)
          return
        }
        addLine(line, 0, line.length)
        rest = new Uint8Array(0)
        from = end + 1
      }
      for (let end = bytes.indexOf(newline, from); end !== -1; end = bytes.indexOf(newline, from)) {
        addLine(bytes, from, end)
        from = end + 1
      }
      if (from < bytes.length) rest = bytes.slice(from, from + longestLine)
    },
    endList() {
      addLine(rest, 0, rest.length)
      rest = new Uint8Array(0)
    },
    finish() {
      const set: HostSet = {
        size: entries - others,
        covers: host => longestCovered([set], host),
        has(first, second) {
          let slot = first & (slots - 1)
          while (low[slot] !== 0) {
            if (low[slot] === second && high[slot] === first) return true
            slot = (slot + 1) & (slots - 1)
          }
          return false
        },
      }
      return set
    },
  }
}

/** Returns the length of the longest domain that any of the sets holds, like `covers`. */
export function longestCovered(sets: readonly HostSet[], host: string): number {
  let first = startFirst
  let second = startSecond
  let hasDot = false
  let longest = 0
  const least = Math.max(0, host.length - maximumHost)
  for (let at = host.length - 1; at >= least; at--) {
    const unit = host.charCodeAt(at)
    if (unit === dotByte) {
      if (hasDot && isIn(sets, first, second)) longest = host.length - at - 1
      hasDot = true
    }
    first = mixFirst(first, unit)
    second = mixSecond(second, unit)
  }
  return hasDot && least === 0 && isIn(sets, first, second) ? host.length : longest
}

function isIn(sets: readonly HostSet[], first: number, second: number): boolean {
  for (const set of sets) if (set.has(first >>> 0, (second | 1) >>> 0)) return true
  return false
}

/**
 * Returns the spellings of a punycode name that may occur in texts: each label in ASCII or Unicode. So no name in a
 * text has to be converted to punycode, which is slow.
 */
function getSpellings(name: string): readonly string[] {
  const labels = name.split('.')
  let spellings = ['']
  let turned = 0
  for (const label of labels.toReversed()) {
    const plain = fromPunycode(label)
    const letters = plain === null ? '' : mapIdna(plain)
    const isTurned = letters !== '' && !letters.includes(' ') && ++turned <= mostTurned
    spellings = spellings.flatMap(rest =>
      (isTurned ? [label, letters] : [label]).map(text => (rest === '' ? text : `${text}.${rest}`)),
    )
  }
  return turned === 0 ? [] : spellings
}

/** Maximum labels, from the right, with both spellings: each doubles their number. */
const mostTurned = 6

const longestLine = 4_096
const decoder = new TextDecoder()

function joined(item: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(item.length + other.length)
  both.set(item)
  both.set(other, item.length)
  return both
}

// FNV-1a and a second multiplicative hash: together 63 bits, computed from the right so that suffixes need no extra
// work.
const startFirst = 0x811c9dc5 | 0
const startSecond = 0x9747b28c | 0

function mixFirst(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, 0x01000193)
}

function mixSecond(hash: number, unit: number): number {
  const mixed = Math.imul(hash + unit, 0x5bd1e995)
  return mixed ^ (mixed >>> 15)
}

const dotByte = 46
const caret = 94
const hyphen = 45

/** Byte of a host name → its lower case; 0 = not part of a plain name. */
const hostByte = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code)
  return /[a-z0-9._-]/i.test(character) ? character.toLowerCase().charCodeAt(0) : 0
})

/** `*.`, `||` or a leading dot before a name. */
function isWildcard(code: number): boolean {
  return code === 42 || code === 124 || code === dotByte
}

function isComment(code: number): boolean {
  return code === 35 || code === 33 || code === 59
}

function isIpAddress(bytes: Uint8Array, from: number, to: number): boolean {
  let marks = 0
  for (let at = from; at < to; at++) {
    const code = bytes[at] ?? 0
    if (code === dotByte || code === 58) marks++
    else if (!(isDigit(code) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70))) return false
    else if (code > 57 && marks > 0 && bytes[from + 1] === dotByte) return false
  }
  return marks >= 2
}

/** Returns true if the line began with an IP address, so that more names may follow. */
function isHostsLine(bytes: Uint8Array, from: number, nameAt: number): boolean {
  for (let at = from; at < nameAt; at++) if ((bytes[at] ?? 0) > 32) return true
  return false
}
