/**
 * Extracts the hosts that a text links to in any notation: with or without scheme, any case, port, user info, `www`,
 * trailing dot, Markdown, `hxxp` and `[.]`, escapes, full-width dots, IDN or punycode, quotation marks, surrounding
 * text in other scripts. Ignores text after `?` or `#` of a URL. Linear: candidates are found by their dots and read
 * once outward.
 */
import { filledTable, isDigit, unitCount } from '../code-units.ts'
import { readSigns, textSigns } from '../signs.ts'
import { isNameUnit, isOfName, isWideDot, mapIdna, normalizeHostname } from './hostname.ts'

/**
 * Calls `onHost` with each host until it returns false. Hosts are lower case, without a trailing dot, in ASCII or in
 * Unicode letters (`mapIdna`). A host may be reported more than once.
 */
export function extractHosts(text: string, onHost: (host: string) => boolean): void {
  const signs = readSigns(text)
  const isFolded = (signs & textSigns.wideDot) !== 0
  const plain = isFolded ? mapIdna(text) : text
  // The original text is read too, since decoding may join separate names.
  if (!readHosts(plain, isFolded, onHost) || (signs & textSigns.escape) === 0) return
  let other = unescapeUrls(plain)
  for (let turn = 0; other !== null && turn < mostEscapes; turn++) {
    if (!readHosts(other, false, onHost)) return
    other = other.includes('%') ? unescapeUrls(other) : null
  }
}

/** A URL may be escaped by its author and again by a program that forwards it. */
const mostEscapes = 2

/** Returns false to stop. `isFolded` = the letters were mapped by `mapIdna`. */
function readHosts(text: string, isFolded: boolean, onHost: (host: string) => boolean): boolean {
  let from = 0
  for (let dot = text.indexOf('.'); dot !== -1; dot = text.indexOf('.', Math.max(dot + 1, from))) {
    // A dot that ends a sentence joins no labels.
    if (dot < from || !mayJoin(text.charCodeAt(dot - 1)) || !mayJoin(text.charCodeAt(dot + 1))) continue
    const start = stretchStart(text, dot, from)
    const end = stretchEnd(text, dot)
    // Maps all remaining text at once; mapping name by name would take longer.
    if (!isFolded && isBeyondAscii(text, start, end)) return readHosts(mapIdna(text.slice(start)), true, onHost)
    from = end
    if (!getHosts(text, start, end, onHost)) return false
  }
  return true
}

const maximumStretch = 2_048

/** Returns the start of the run around a dot: after the last character that cannot be part of a URL. */
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

/** White space, quotes and brackets end a URL. */
const ends = new Uint8Array(65_536).fill(1, 0, 33)
for (const mark of '"\'()<>`|{}[],;\u00a0\u3000\u3001') ends[mark.charCodeAt(0)] = 1

function inStretch(code: number): boolean {
  return ends[code] === 0
}

function isBeyondAscii(text: string, start: number, end: number): boolean {
  let units = 0
  for (let at = start; at < end; at++) units |= text.charCodeAt(at)
  return units > 127
}

/** Reports the hosts of a run without white space: the part before path, query or fragment, split into fields. */
function getHosts(text: string, start: number, end: number, onHost: (host: string) => boolean): boolean {
  let from = start
  while (from < end && opensField(text.charCodeAt(from))) from++
  /** Where a scheme could begin; −1 after the scheme. */
  let first = from
  for (let at = from; at <= end; at++) {
    const kind = at === end ? path : (breaks[text.charCodeAt(at)] ?? 0)
    if (kind === 0) continue
    // Text before a slash is a scheme if it ends with a colon.
    if (kind === slash && (at === from || text.charCodeAt(at - 1) === colon) && from === first) {
      while (at < end && breaks[text.charCodeAt(at)] === slash) at++
      from = at--
      first = -1
      continue
    }
    if (!hostsOfField(text, from, at, onHost)) return false
    if (kind !== field) return true
    from = at + 1
  }
  return true
}

function hostsOfField(text: string, from: number, to: number, onHost: (host: string) => boolean): boolean {
  let last = to
  while (last > from && !isPlain(text.charCodeAt(last - 1)) && text.charCodeAt(last - 1) < 128) last--
  let port = last
  while (port > from && isDigit(text.charCodeAt(port - 1))) port--
  if (port > from && text.charCodeAt(port - 1) === colon) last = port - 1
  let first = last
  while (first > from && isPlain(text.charCodeAt(first - 1))) first--
  if (first === from || text.charCodeAt(first - 1) < 128)
    return tell(normalizeHostname(text.slice(first, last)), onHost)
  while (first > from && joins[text.charCodeAt(first - 1)] !== 1) first--
  while (last > first && !isNameUnit(text.charCodeAt(last - 1))) last--
  return tell(text.slice(first, last), onHost) && hostsWithin(text, first, last, onHost)
}

/** Reports ASCII names among letters that are never mixed with ASCII in a name: scripts without blanks, emoji. */
function hostsWithin(text: string, first: number, last: number, onHost: (host: string) => boolean): boolean {
  for (let dot = text.indexOf('.', first); dot !== -1 && dot < last; dot = text.indexOf('.', dot + 1)) {
    if (!isPlain(text.charCodeAt(dot - 1)) || !isPlain(text.charCodeAt(dot + 1))) continue
    let start = dot
    while (start > first && isPlain(text.charCodeAt(start - 1))) start--
    let end = dot + 1
    while (end < last && isPlain(text.charCodeAt(end))) end++
    dot = end
    // The ASCII part of a label that continues in other letters is not a name.
    if (start > first && mixes(text.charCodeAt(start - 1))) start = text.indexOf('.', start) + 1
    if (end < last && mixes(text.charCodeAt(end))) end = text.lastIndexOf('.', end)
    if (start < end && !tell(normalizeHostname(text.slice(start, end)), onHost)) return false
  }
  return true
}

/** Returns true for Latin, Greek, Cyrillic and Armenian letters. */
function mixes(code: number): boolean {
  return code < 0x590
}

function tell(host: string | null, onHost: (host: string) => boolean): boolean {
  return host === null || onHost(host)
}

/** Marks that separate a prefix from a host. */
const joins = new Uint8Array(65_536)
for (const mark of '=:&*!~^$%+@') joins[mark.charCodeAt(0)] = 1

const colon = 58
const percent = 37
const ampersand = 38
const numberSign = 35

/** What ends a host's field: the next field, a slash, or another start of a path. */
const field = 1
const slash = 2
const path = 3
const breaks = new Uint8Array(65_536)
breaks[ampersand] = field
for (const mark of '/\\') breaks[mark.charCodeAt(0)] = slash
for (const mark of '?#') breaks[mark.charCodeAt(0)] = path

/** Returns true at `#name` and `&name`. */
function opensField(code: number): boolean {
  return code === numberSign || code === ampersand
}

/** ASCII letters, digits, `.`, `-` and `_`. */
const plainUnits = new Uint8Array(65_536)
for (let code = 0; code < 128; code++) plainUnits[code] = /[\w.-]/.test(String.fromCharCode(code)) ? 1 : 0

function isPlain(code: number): boolean {
  return plainUnits[code] === 1
}

function mayJoin(code: number): boolean {
  if (code > 127) return isOfName(code)
  return isNameUnit(code) || code === percent || code === 45 || code === 95
}

/**
 * Decodes escaped URLs: dots in brackets or as words, URL escapes (`%2e`, also doubled), HTML escapes (`&#46;`), JSON
 * and program escapes (`\u002e`), Markdown (`\.`). Escapes of characters that end a URL stay, so that text after a `?`
 * is not moved before it.
 */

/** Returns a text with its escapes decoded once; null if it has none. Double escapes stay escaped once. Linear. */
function unescapeUrls(text: string): string | null {
  const plain = text.replace(escapes, decoded)
  return plain === text ? null : plain
}

const named: Readonly<Record<string, number>> = {
  'period;': 46,
  'sol;': 47,
  'colon;': 58,
  'commat;': 64,
  'shy;': 0xad,
  'zwj;': 0x200d,
  'zwnj;': 0x200c,
  'ZeroWidthSpace;': 0x200b,
}

/** One continuation byte of UTF-8. `25` repeats where a percent sign was escaped itself. */
const more = '%(?:25)*[89ab][0-9a-f]'
const inBrackets = ['\\[\\]', '\\(\\)', '\\{\\}'].map(
  pair => `${pair.slice(0, 2)}[ \\n]?(?:\\.|dot)[ \\n]?${pair.slice(2)}`,
)
const escapes = new RegExp(
  [
    '%(?:25)*[0-7][0-9a-f]',
    `%(?:25)*(?:[cd][0-9a-f]${more}|e[0-9a-f](?:${more}){2}|f[0-7](?:${more}){3})`,
    `&(?:#\\d{1,8};?|#x[0-9a-f]{1,8};?|${Object.keys(named).join('|')})`,
    '\\\\{1,2}(?:[./]|u[0-9a-f]{4}|x[0-9a-f]{2})',
    // `[.]`, `(dot)`, with optional blanks around and inside; ` dot ` between blanks; `[.` that nothing closes.
    `[ \\n]?(?:${inBrackets.join('|')}|<[ \\n]?dot[ \\n]?>)[ \\n]?`,
    '[ \\n]dot[ \\n]',
    '[[({][ \\n]?\\.',
  ].join('|'),
  'gi',
)

function decoded(form: string): string {
  const code = getCode(form)
  return staysInUrl(code) ? String.fromCodePoint(isWideDot(code) ? dot : code) : form
}

const dot = 46

/** Returns the character that an escape stands for; −1 = none. */
function getCode(form: string): number {
  const last = form.charCodeAt(form.length - 1)
  if (form.startsWith('%')) {
    if (form.lastIndexOf('%') === 0) return Number.parseInt(form.slice(-2), 16)
    try {
      return decodeURIComponent(form.replace(/%(?:25)*/g, '%')).codePointAt(0) ?? -1
    } catch {
      return -1
    }
  }
  if (form.startsWith('\\')) return last === dot || last === 47 ? last : Number.parseInt(form.replace(/\\+./, ''), 16)
  if (!form.startsWith('&')) return dot
  if (form.charAt(1) !== '#') return named[form.slice(1)] ?? -1
  const isHex = /[xX]/.test(form.charAt(2))
  return Number.parseInt(form.slice(isHex ? 3 : 2), isHex ? 16 : 10)
}

const stays = Uint8Array.from({ length: 128 }, (_, code) => (/[\w./\\?#:@-]/.test(String.fromCharCode(code)) ? 1 : 0))

/** Returns true for a character that may occur in a URL without ending it. */
function staysInUrl(code: number): boolean {
  return code < 128 ? stays[code] === 1 : code <= 0x10ffff && isOfName(code > 0xffff ? 0xd800 : code)
}

/** Texts that still grow: what may be, or may become, a host in any notation. */

/** What a unit is to an address: `sign` does not indicate one on its own, and `letterW` only beside another, as in `www`. */
export const addressMark = { ordinary: 0, space: 1, dot: 2, hostMark: 3, bracket: 4, sign: 5, letterW: 6 } as const

const markedUnits = [
  [addressMark.space, ' \n\t\r'],
  [addressMark.dot, '.'],
  [addressMark.hostMark, '%&\\'],
  [addressMark.bracket, '[({<'],
  [addressMark.letterW, 'wW'],
  [addressMark.sign, '/'],
] as const

/** What ends a word, and what may make an address of one, by UTF-16 unit. */
export const addressMarks = filledTable(new Uint8Array(unitCount), code => {
  if (code > 127) return isWideDot(code) ? addressMark.hostMark : addressMark.ordinary
  const character = String.fromCharCode(code)
  return markedUnits.find(([, units]) => units.includes(character))?.[0] ?? addressMark.ordinary
})

/** A token that may still become a URL: it has a scheme, or a dot followed by text. */
export const mayBecomeHost =
  /:\\?\/|\.[^.\s]|^www\.?$|[[({<]dot[\])}>]|[[({]\.[\])}a-z]|%2|&(?:#|period;|shy;|zw)|\\(?:[./]|u00|x[2-7])|[a-z\d-][。．｡․﹒][a-z\d]/i

/** Returns a text up to the last mark that ends a host. Later text may still become part of another. */
export function untilHostEnd(text: string): string {
  let end = text.length
  while (end > 0 && !hostEnds.includes(text.charAt(end - 1))) end--
  return text.slice(0, end)
}

const hostEnds = '/\\?#&"\'<>`|,;'
/** A spelled-out dot with blanks around it joins several tokens into one host. */
export const spelledDot = /[\s[({<]dot[\s\])}>]|[[({] ?\. ?[\])}]/i

/** Such a dot as a separate token, with the blank before it. */
export const dotAlone = /^\s?(?:dot|[[({<]dot[\])}>]|[[({]\.[\])}])$/i

/** Returns false for most words, by their length and last unit. */
export function mayBeDot(length: number, last: number, hasBracket: boolean): boolean {
  return length <= (hasBracket ? 6 : 4) && dotEnds.includes(String.fromCharCode(last))
}

const dotEnds = 'tT])}>'
