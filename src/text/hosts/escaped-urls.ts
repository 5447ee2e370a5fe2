/**
 * Decodes escaped URLs: dots in brackets or as words, URL escapes (`%2e`, also doubled), HTML escapes (`&#46;`), JSON
 * and program escapes (`\u002e`), Markdown (`\.`). Escapes of characters that end a URL stay, so that text after a `?`
 * is not moved before it.
 */

import { createSignReader, type PrefilterPosition } from '../disguises/obfuscation-prefilter.ts'
import { isOfName, isWideDot, wideDots } from './idna-mapping.ts'

/** Returns a text with its escapes decoded once; null if it has none. Double escapes stay escaped once. Linear. */
export function unescapeUrls(text: string): string | null {
  const plain = new Uint16Array(text.length)
  let count = 0
  let word = 0
  let hasChanged = false
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at)
    const kind = begins[unit] ?? 0
    if (kind !== 0 && (kind !== blank || opensDot[text.charCodeAt(at + 1)] === 1)) {
      const { code, length } = formAt(text, at, kind)
      if (length > 0) {
        hasChanged = true
        if (code > 0xffff) plain[count++] = 0xd800 + ((code - 0x10000) >> 10)
        plain[count++] = code > 0xffff ? 0xdc00 + (code & 0x3ff) : code
        at += length
        continue
      }
    }
    at++
    plain[count++] = unit
    if (unit > 32) continue
    if (hasChanged) word = count
    else count = word
    hasChanged = false
  }
  if (!hasChanged) count = word
  return count === 0 ? null : Buffer.from(plain.buffer).toString('utf16le', 0, 2 * count)
}

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
const hexDigits = '0123456789abcdefABCDEF'

/** First characters of each escape form; each position is a bit. */
const places: readonly PrefilterPosition[] = [
  { units: '[({', isFirst: true },
  { units: '.' },
  { units: `])} ${letters}0123456789`, isLast: true },
  { units: '[({< \n', isFirst: true },
  { units: 'dD' },
  { units: 'oO' },
  { units: 'tT' },
  { units: '])}> \n', isLast: true },
  { units: '%', isFirst: true },
  { units: '234567cCdDeEfF' },
  { units: hexDigits, isLast: true },
  { units: '\\', isFirst: true },
  { units: './', isLast: true },
  { units: '\\', isFirst: true },
  { units: 'xu' },
  { units: hexDigits, isLast: true },
  { units: '&', isFirst: true },
  { units: '#pcszZ' },
  { units: '0123456789xXeohwW', isLast: true },
]
/** Detects whether a text may contain an escape (`whole`) or a non-ASCII dot (`lone`). */
export const urlEscapes = createSignReader(places, unit => wideDots.includes(String.fromCharCode(unit)))

/** A parsed escape: the character that it stands for and its length in units; 0 = not an escape. */
type Form = { readonly code: number; readonly length: number }
const noForm: Form = { code: 0, length: 0 }

function formAt(text: string, at: number, kind: number): Form {
  switch (kind) {
    case percentSign:
      return percented(text, at)
    case ampersand:
      return entity(text, at)
    case backslash:
      return escaped(text, at)
    case bracket:
    case blank:
      return dot(text, at)
    default:
      return noForm
  }
}

/** Kinds of escapes that a unit may begin. */
const percentSign = 1
const ampersand = 2
const backslash = 3
const bracket = 4
const blank = 5
const begins = new Uint8Array(65_536)
for (const [kind, marks] of [
  [percentSign, '%'],
  [ampersand, '&'],
  [backslash, '\\'],
  [bracket, '[({<'],
  [blank, ' \n'],
] as const)
  for (const mark of marks) begins[mark.charCodeAt(0)] = kind

/** Characters that may follow a blank before a spelled-out dot. */
const opensDot = new Uint8Array(65_536)
for (const mark of '[({<dD') opensDot[mark.charCodeAt(0)] = 1

/** `%2e`, `%252e`, `%C3%BC`. */
function percented(text: string, at: number): Form {
  const from = behindPercents(text, at + 1)
  const byte = hexAt(text, from, 2)
  if (byte < 128) return getForm(byte, from + 2 - at)
  const more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1
  let code = byte & (0x3f >> more)
  let to = from + 2
  for (let count = 0; count < more; count++) {
    if (text.charCodeAt(to) !== 37) return noForm
    const next = behindPercents(text, to + 1)
    const bits = hexAt(text, next, 2)
    if ((bits & 0xc0) !== 0x80) return noForm
    code = (code << 6) | (bits & 0x3f)
    to = next + 2
  }
  return getForm(code, to - at)
}

/** Skips percent signs that were escaped themselves, repeatedly. */
function behindPercents(text: string, from: number): number {
  let at = from
  while (text.charCodeAt(at) === 50 && text.charCodeAt(at + 1) === 53) at += 2
  return at
}

/** `&#46;`, `&#x2e`, `&period;`. */
function entity(text: string, at: number): Form {
  if (text.charCodeAt(at + 1) !== 35) {
    const [name, code] = named.find(([item]) => text.startsWith(item, at + 1)) ?? ['', 0]
    return name === '' ? noForm : { code, length: 1 + name.length }
  }
  const isHex = (text.charCodeAt(at + 2) | 32) === 120
  const from = at + (isHex ? 3 : 2)
  let to = from
  let code = 0
  for (; to - from < mostDigits; to++) {
    const digit = hexDigit(text.charCodeAt(to))
    if (digit === -1 || (digit > 9 && !isHex)) break
    code = code * (isHex ? 16 : 10) + digit
  }
  if (to === from) return noForm
  return getForm(code, to - at + (text.charCodeAt(to) === 59 ? 1 : 0))
}

const mostDigits = 8
const named: readonly (readonly [name: string, code: number])[] = [
  ['period;', 46],
  ['sol;', 47],
  ['colon;', 58],
  ['commat;', 64],
  ['shy;', 0xad],
  ['zwj;', 0x200d],
  ['zwnj;', 0x200c],
  ['ZeroWidthSpace;', 0x200b],
]

/** `\.`, `\/`, `\u002e`, `\x2e`, and the same escaped twice. */
function escaped(text: string, at: number): Form {
  const from = at + (text.charCodeAt(at + 1) === 92 ? 2 : 1)
  const mark = text.charCodeAt(from)
  if (mark === 46 || mark === 47) return { code: mark, length: from + 1 - at }
  const digits = mark === 117 ? 4 : mark === 120 ? 2 : 0
  return digits === 0 ? noForm : getForm(hexAt(text, from + 1, digits), from + 1 + digits - at)
}

const closers: Readonly<Record<number, number>> = { 91: 93, 40: 41, 123: 125, 60: 62 }
const angle = 60

/** `[.]`, `(dot)`, with optional blanks around and inside; ` dot ` between blanks; `[.` without a closing bracket. */
function dot(text: string, at: number): Form {
  const isApart = isBlank(text.charCodeAt(at))
  const from = isApart ? at + 1 : at
  const closer = closers[text.charCodeAt(from)]
  if (closer === undefined) {
    const isWord = isApart && isDotWord(text, from) && isBlank(text.charCodeAt(from + 3))
    return isWord ? { code: 46, length: 5 } : noForm
  }
  const inner = isBlank(text.charCodeAt(from + 1)) ? from + 2 : from + 1
  const isMark = text.charCodeAt(inner) === 46 && text.charCodeAt(from) !== angle
  if (!isMark && !isDotWord(text, inner)) return noForm
  let end = inner + (isMark ? 1 : 3)
  if (isBlank(text.charCodeAt(end)) && text.charCodeAt(end + 1) === closer) end++
  if (text.charCodeAt(end) !== closer) return isMark && !isApart ? { code: 46, length: end - at } : noForm
  end++
  return { code: 46, length: end + (isBlank(text.charCodeAt(end)) ? 1 : 0) - at }
}

function isDotWord(text: string, at: number): boolean {
  return (
    (text.charCodeAt(at) | 32) === 100 &&
    (text.charCodeAt(at + 1) | 32) === 111 &&
    (text.charCodeAt(at + 2) | 32) === 116
  )
}

function isBlank(unit: number): boolean {
  return unit === 32 || unit === 10
}

/** Returns the form for a character that may occur in a URL without ending it. */
function getForm(code: number, length: number): Form {
  const isTaken = code < 128 ? addressMarks[code] === 1 : code <= 0x10ffff && isOfName(code > 0xffff ? 0xd800 : code)
  return isTaken ? { code: isWideDot(code) ? 46 : code, length } : noForm
}

const addressMarks = Uint8Array.from({ length: 128 }, (_, code) =>
  /[\w./\\?#:@-]/.test(String.fromCharCode(code)) ? 1 : 0,
)

/** Returns −1 if these are not digits. */
function hexAt(text: string, from: number, digits: number): number {
  let value = 0
  for (let at = from; at < from + digits; at++) {
    const digit = hexDigit(text.charCodeAt(at))
    if (digit === -1) return -1
    value = 16 * value + digit
  }
  return value
}

function hexDigit(unit: number): number {
  if (unit >= 48 && unit <= 57) return unit - 48
  const lower = unit | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
