/**
 * A set of host names as 64-bit fingerprints in two typed arrays: 250,000 names take 4 MB, and a look-up costs one
 * probe per label. One in 10^8 lists of that size has a collision; the allow list corrects it like any wrong entry.
 */
import { fromPunycode, mapIdna, maximumHost, normalizeHostname } from './hostname.ts'

export type HostSet = {
  readonly size: number
  /**
   * Returns the length of the longest domain in the set that equals the host or is above it; 0 = none. `host` must come
   * from `normalizeHostname` or `extractHosts`: labels in ASCII or Unicode.
   */
  covers(host: string): number
}

type HostSetBuilder = {
  /** Reads the next bytes of a list. */
  read(bytes: Uint8Array): void
  /** Ends the current list and begins the next. */
  endList(): void
  finish(): HostSet
}

const fewestSlots = 64
/** An endless line is not a list: only its beginning is kept, so that memory stays bounded. */
const longestLine = 4_096
const dot = 46

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
  let decoder = new TextDecoder()
  let rest = ''

  /** Returns the slot of a fingerprint, or the free one where it would be. */
  const findSlot = (first: number, second: number): number => {
    let slot = first & (slots - 1)
    while (low[slot] !== 0 && (low[slot] !== second || high[slot] !== first)) slot = (slot + 1) & (slots - 1)
    return slot
  }

  const insert = (first: number, second: number) => {
    const slot = findSlot(first, second)
    if (low[slot] !== 0) return
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

  const insertName = (name: string) => {
    let first = startFirst
    let second = startSecond
    for (let at = name.length - 1; at >= 0; at--) {
      first = mixFirst(first, name.charCodeAt(at))
      second = mixSecond(second, name.charCodeAt(at))
    }
    insert(first >>> 0, (second | 1) >>> 0)
  }

  const addName = (written: string) => {
    const host = normalizeHostname(written.replace(aroundHost, ''))
    if (host === null) return
    insertName(host)
    const before = entries
    for (const spelling of getSpellings(host)) insertName(spelling)
    others += entries - before
  }

  const addLine = (line: string) => {
    const name = plainLine.exec(line)?.[1]
    if (name !== undefined) return insertName(name.toLowerCase())
    const [first = '', ...names] = line.slice(0, longestLine).match(notBlank) ?? []
    // A line of a hosts file begins with the address.
    for (const name of names.length > 0 && isAddress.test(first) ? names : [first]) {
      if (isComment.test(name)) return
      addName(name)
    }
  }

  const addText = (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()?.slice(0, longestLine) ?? ''
    for (const line of lines) addLine(line)
  }

  return {
    read: bytes => addText(decoder.decode(bytes, { stream: true })),
    endList() {
      addText(`${decoder.decode()}\n`)
      decoder = new TextDecoder()
    },
    finish: () => ({
      size: entries - others,
      covers(host) {
        let first = startFirst
        let second = startSecond
        let hasDot = false
        let longest = 0
        const has = () => low[findSlot(first >>> 0, (second | 1) >>> 0)] !== 0
        const least = Math.max(0, host.length - maximumHost)
        for (let at = host.length - 1; at >= least; at--) {
          const unit = host.charCodeAt(at)
          if (unit === dot) {
            if (hasDot && has()) longest = host.length - at - 1
            hasDot = true
          }
          first = mixFirst(first, unit)
          second = mixSecond(second, unit)
        }
        return hasDot && least === 0 && has() ? host.length : longest
      },
    }),
  }
}

const notBlank = /[^\0- ]+/g
/** Of version 4 or 6. */
const isAddress = /^(?:[\d.]+|[\da-f]*:[\da-f:.]*(?:%\w+)?)$/i
const isComment = /^(?:[#!;]|$)/
/** One name in ASCII in any form, as most lines: read as a whole, they take a third of the time. Two hyphens may be punycode. */
const plainLine = /^(?:[\d.]+[ \t]+)?[*|.]*(?!.*--)([\w-]+(?:\.[\w-]+)+)\^?\r?$/
/** `*.`, `||`, `^`, the scheme of an address, and its port and path. */
const aroundHost = /^(?:[*|.^]+|[a-z]+:\/\/)|[/?#:^].*$/gi

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
