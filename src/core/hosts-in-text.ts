/**
 * The hosts that a text points at, however they are dressed: scheme or none, any case, port, user-info, `www`, a trailing
 * dot, Markdown, `hxxp` and `[.]`, percent-encoding, full-width dots, IDN or punycode. What stands behind `?` or `#` of an
 * address is not one. Linear: candidates are found by their dots and read once outwards.
 */
import { isNameUnit, normalHost } from './host-name.ts'
import { loadUnits, textOfUnits, units } from './units.ts'

/** Calls `onHost` with each host, lower case, ASCII, without a trailing dot, until it returns false. Doubles may come. */
export function hostsIn(text: string, onHost: (host: string) => boolean): void {
  const plain = undressed(text)
  let from = 0
  for (let dot = plain.indexOf('.'); dot !== -1; dot = plain.indexOf('.', Math.max(dot + 1, from))) {
    // A dot that ends a sentence joins no labels.
    if (dot < from || !mayJoin(plain.charCodeAt(dot - 1)) || !mayJoin(plain.charCodeAt(dot + 1))) continue
    const start = stretchStart(plain, dot, from)
    const end = stretchEnd(plain, dot)
    from = end
    const host = hostOf(plain, start, end)
    if (host !== null && !onHost(host)) return
  }
}

const maximumStretch = 2_048

/** A text without what hides the dots and letters of hosts. */
function undressed(text: string): string {
  const found = dressesIn(text)
  const joined = (found & spelled) === 0 ? text : text.replace(spelledDots, '.')
  return (found & wide) === 0 ? joined : withoutCoats(joined)
}

/** Dots in brackets, in words and escaped. */
const spelledDots = /\[\.\]|\(\.\)|\{\.\}|\s?\[dot\]\s?|\s?\(dot\)\s?|%2e/gi

/** How these begin, each place a bit: what stands there, and whether it is the first or the last. */
const places: readonly Place[] = [
  { units: '[({', isFirst: true },
  { units: '.', isLast: true },
  { units: '[(', isFirst: true },
  { units: 'dD' },
  { units: 'oO' },
  { units: 'tT', isLast: true },
  { units: '%', isFirst: true },
  { units: '2' },
  { units: 'eE', isLast: true },
]
type Place = { readonly units: string; readonly isFirst?: true; readonly isLast?: true }

const spelled = bitsOf(place => place.isLast === true)
/** A unit in another coat. */
const wide = 1 << places.length
const firsts = bitsOf(place => place.isFirst === true) | wide

function bitsOf(isMeant: (place: Place) => boolean): number {
  return places.reduce((bits, place, at) => (isMeant(place) ? bits | (1 << at) : bits), 0)
}

/** Which of `spelled` and `wide` a text has: all forms are followed at once, a bit moving on with each unit that fits. */
function dressesIn(text: string): number {
  const fits = fitTable()
  let open = 0
  let found = 0
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    for (let at = 0; at < length; at++) {
      open = ((open << 1) | firsts) & (fits[units[at] ?? 0] ?? 0)
      found |= open
    }
    from += length
  }
  return found
}

let fitsKept: Uint16Array | null = null

/** For every UTF-16 unit, the places where it may stand; made when first needed. */
function fitTable(): Uint16Array {
  fitsKept ??= Uint16Array.from({ length: 65_536 }, (_, unit) => {
    if (unit > 127) return coatOff(unit) === unit ? 0 : wide
    return bitsOf(place => place.units.includes(String.fromCharCode(unit)))
  })
  return fitsKept
}

/** Wide dots and letters as those of ASCII, invisible characters gone. */
function withoutCoats(text: string): string {
  const fits = fitTable()
  let bare = ''
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    let count = 0
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      const off = ((fits[unit] ?? 0) & wide) === 0 ? unit : coatOff(unit)
      if (off !== nothing) units[count++] = off
    }
    bare += textOfUnits(count)
    from += length
  }
  return bare
}

const nothing = 0

function coatOff(unit: number): number {
  if (unit === 0x3002 || unit === 0xff0e || unit === 0xff61) return dot
  if (unit >= 0xff10 && unit <= 0xff5a) return unit - 0xfee0
  const isInvisible = unit === 0xad || (unit >= 0x200b && unit <= 0x200d) || unit === 0x2060 || unit === 0xfeff
  return isInvisible ? nothing : unit
}

const dot = 46

/** Where the stretch around a dot begins: behind the last character that no address holds. */
function stretchStart(text: string, dot: number, from: number): number {
  const least = Math.max(from, dot - maximumStretch)
  let start = dot
  while (start > least && inStretch(text.charCodeAt(start - 1))) start--
  return start
}

function stretchEnd(text: string, dot: number): number {
  const most = Math.min(text.length, dot + maximumStretch)
  let end = dot + 1
  while (end < most && inStretch(text.charCodeAt(end))) end++
  return end
}

/** White space, quotes and brackets end an address. */
const ends = new Uint8Array(65_536).fill(1, 0, 33)
for (const mark of '"\'()<>`|{}[],;\u00a0\u3000\u3001') ends[mark.charCodeAt(0)] = 1

function inStretch(code: number): boolean {
  return ends[code] === 0
}

/** The host that a stretch without white space names: what stands before its path, query or fragment. */
function hostOf(text: string, start: number, end: number): string | null {
  let from = start
  let to = pathStart(text, start, end)
  // What ends before a slash is a scheme where a colon stands there.
  if (to < end && isSlash(text.charCodeAt(to)) && (to === start || text.charCodeAt(to - 1) === colon)) {
    from = to
    while (from < end && from - to < 3 && isSlash(text.charCodeAt(from))) from++
    to = pathStart(text, from, end)
  }
  let last = to
  while (last > from && !isPlain(text.charCodeAt(last - 1)) && text.charCodeAt(last - 1) < 128) last--
  let port = last
  while (port > from && isDigit(text.charCodeAt(port - 1))) port--
  if (port > from && text.charCodeAt(port - 1) === colon) last = port - 1
  let first = last
  while (first > from && isPlain(text.charCodeAt(first - 1))) first--
  const isOdd = first > from && (text.charCodeAt(first - 1) === percent || text.charCodeAt(first - 1) > 127)
  return normalHost(isOdd ? decodedHost(text.slice(from, last)) : text.slice(first, last))
}

/** The host among escapes and letters beyond ASCII: what stands behind the last mark that puts something before it. */
function decodedHost(text: string): string {
  const host = text.includes('%') ? decoded(text) : text
  let first = host.length
  while (first > 0 && joins[host.charCodeAt(first - 1)] !== 1) first--
  return host.slice(first)
}

/** Without the path and the port that escapes may have hidden. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
      .replace(/[/\\?#].*$/s, '')
      .replace(/:\d*$/, '')
  } catch {
    return text
  }
}

/** Marks that put something before a host and are none of it. */
const joins = new Uint8Array(65_536)
for (const mark of '=:&*!~^$%+@') joins[mark.charCodeAt(0)] = 1

const colon = 58
const percent = 37

function pathStart(text: string, start: number, end: number): number {
  let at = start
  while (at < end) {
    const code = text.charCodeAt(at)
    if (isSlash(code) || code === 63 || code === 35 || code === 38) return at
    at++
  }
  return end
}

function isSlash(code: number): boolean {
  return code === 47 || code === 92
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/** Letters, digits, `.`, `-`, `_` of ASCII. */
const plainUnits = new Uint8Array(65_536)
for (let code = 0; code < 128; code++) plainUnits[code] = /[\w.-]/.test(String.fromCharCode(code)) ? 1 : 0

function isPlain(code: number): boolean {
  return plainUnits[code] === 1
}

function mayJoin(code: number): boolean {
  return isNameUnit(code) || code === percent || code === 45 || code === 95
}
