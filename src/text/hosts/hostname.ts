/** Normalizes host names for comparison. */
import { domainToASCII, domainToUnicode } from 'node:url'
import { toNfkc } from '../code-units.ts'

/** Maximum length of a DNS name in octets. */
export const maximumHost = 253

/**
 * Returns a host name in lower-case ASCII without leading or trailing dots and marks; null if it is not a host name
 * with a dot.
 */
export function normalizeHostname(raw: string): string | null {
  let start = 0
  let end = raw.length
  while (start < end && !isNameUnit(raw.charCodeAt(start))) start++
  while (end > start && !isNameUnit(raw.charCodeAt(end - 1))) end--
  if (end - start < 3 || end - start > 4 * maximumHost) return null
  const host = raw.slice(start, end)
  let found = 0
  let dots = 0
  let before = 0
  for (let at = 0; at < host.length; at++) {
    const unit = host.charCodeAt(at)
    const trait = unit < 128 ? (traits[unit] ?? 0) : beyond
    if (trait === 0 || (unit === dot && before === dot)) return null
    if (unit === dot) dots++
    found |= trait
    before = unit
  }
  if (dots === 0) return null
  if ((found & beyond) !== 0) return asciiName(mapIdna(host))
  if (host.length > maximumHost || (found & letter) === 0) return null
  return (found & capital) === 0 ? host : host.toLowerCase()
}

/** Returns true for letters and digits; a name begins and ends with one. */
export function isNameUnit(code: number): boolean {
  return code > 127 || (traits[code] ?? 0) > mark
}

/** Longest label that DNS has, in octets. */
const maximumLabel = 63

const dot = 46
const mark = 1
const digit = 2
const letter = 4
const capital = 8
const beyond = 16
/** ASCII characters that a name may contain; 0 for others. */
const traits = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return letter
  if (/[A-Z]/.test(character)) return letter | capital
  if (/[0-9]/.test(character)) return digit
  return /[._-]/.test(character) ? mark : 0
})

/**
 * Converts as many labels from the end as fit into a name. A label that is too long, and all labels before it, cannot
 * resolve.
 */
function asciiName(host: string): string | null {
  if (host.includes(' ')) return null
  let name = ''
  for (let end = endOfName(host); end > 0; ) {
    const start = host.lastIndexOf('.', end - 1) + 1
    const label = asciiLabel(host.slice(start, end))
    if (label === null || name.length + 1 + label.length > maximumHost) break
    // A name that ends in a number is an IP address or invalid.
    if (name === '' && /^\d+$/.test(label)) break
    name = name === '' ? label : `${label}.${name}`
    end = start - 1
  }
  return name.includes('.') ? name : null
}

/** Returns the end of a name without trailing dots that invisible characters hid. */
function endOfName(host: string): number {
  let end = host.length
  while (end > 0 && host.charCodeAt(end - 1) === dot) end--
  return end
}

function asciiLabel(label: string): string | null {
  for (let at = 0; at < label.length; at++) if (label.charCodeAt(at) > 127) return toPunycode(label)
  return label.length > maximumLabel ? null : label
}

/** Returns a lowercase label in ASCII; null if it is invalid, or longer in ASCII than a label can be. */
export function toPunycode(label: string): string | null {
  // A character takes at least one of the 59 octets behind `xn--`. Longer labels would be expensive to encode.
  if (label.length > 2 * maximumLabel) return null
  const ascii = domainToASCII(label)
  return ascii === '' || ascii.length > maximumLabel ? null : ascii
}

/** Returns the characters of a lowercase `xn--` label; null for any other label and for an invalid one. */
export function fromPunycode(label: string): string | null {
  if (label.length > maximumLabel || !label.startsWith('xn--')) return null
  const text = domainToUnicode(label)
  return text === '' || text === label ? null : text
}

/**
 * Maps letters as browsers do for host names (Unicode UTS 46): lower case, compatibility forms resolved, accents
 * composed, all kinds of dots mapped to `.`, invisible characters removed. A character that no name contains becomes a
 * blank, which ends a name. Linear in a text of any length.
 */
export function mapIdna(text: string): string {
  const plain = lowered(text.replace(ignorable, '').replace(sigmas, 'σ'))
  return lowered(toNfkc(plain.replace(sameInCapitals, letter => lowered(letter.normalize('NFKC').toUpperCase()))))
    .replace(cherokee, letter => letter.toUpperCase())
    .replace(wideDots, '.')
    .replace(ofNoName, ' ')
}

/** Per UTF-16 unit, once known: 1 = of no name, 2 = of names. */
const known = new Uint8Array(65_536)

/** Returns true if a unit can occur in names in any form. */
export function isOfName(unit: number): boolean {
  if (known[unit] === 0) known[unit] = mapIdna(String.fromCharCode(unit)).includes(' ') ? 1 : 2
  return known[unit] === 2
}

/** Returns true for the characters `。．｡․﹒`, which count as dots in names. */
export function isWideDot(unit: number): boolean {
  return unit === 0x3002 || unit === 0xff0e || unit === 0xff61 || unit === 0x2024 || unit === 0xfe52
}

/** Lower-cases a text. In names, unlike in words, a final sigma equals the other sigmas. */
function lowered(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase()
}

/** Letters whose upper case belongs to another letter; names use that letter. */
const sameInCapitals = /[\u0345\u03f2\u1c80-\u1c88\u1f80-\u1faf\u1fb2-\u1fb7\u1fbc\u1fc2-\u1fc7\u1fcc\u1ff2-\u1ffc]/g

/** The only script that names use in upper case. */
const cherokee = /[\u13f8-\u13fd\uab70-\uabbf]/g

const ignorable = /\p{Default_Ignorable_Code_Point}/gu
const sigmas = /[\u{1d6d3}\u{1d70d}\u{1d747}\u{1d781}\u{1d7bb}]/gu
/** Of the dots that the compatibility forms leave. */
const wideDots = /\u3002/g
/** All but letters, digits, marks, symbols, and the remains of parenthesized numbers and fractions. */
const ofNoName = /[^\x20-\x7f\p{L}\p{N}\p{M}\p{So}\p{Cs}\u{10000}-\u{10ffff}\u00b7\u2044]/gu
