/** Normalizes host names for comparison. */
import { domainToASCII, domainToUnicode } from 'node:url'
import { blockUnits, loadUnits, toNfkc, units } from '../code-units.ts'

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
 * blank, which ends a name.
 */

/** Maps a text of any length. Linear: one pass, and a second one where letters depend on their neighbors. */
export function mapIdna(text: string): string {
  return unitByUnit(text, false) ?? unitByUnit(lowered(toNfkc(withoutIgnorable(text))), true) ?? text
}

/** Returns true if a unit can occur in names in any form. */
export function isOfName(unit: number): boolean {
  return mapUnit(unit) !== blank
}

/** Returns true for the characters `。．｡․﹒`, which count as dots in names. */
export function isWideDot(unit: number): boolean {
  return unit === 0x3002 || unit === 0xff0e || unit === 0xff61 || unit === 0x2024 || unit === 0xfe52
}

const written = new Uint16Array(blockUnits)
const bytes = Buffer.from(written.buffer)

/** Returns null where a unit does not map to one other, unless letters and their marks are `composed` already. */
function unitByUnit(text: string, composed: boolean): string | null {
  let mapped = ''
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    let count = 0
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      const look = looks[unit] || mapUnit(unit)
      if (look > several) written[count++] = look
      else if (look === nothing) continue
      else if (!composed) return null
      else if (look === depends) written[count++] = unit
      else {
        mapped += bytes.toString('utf16le', 0, 2 * count) + (spelt.get(unit) ?? '')
        count = 0
      }
    }
    mapped += bytes.toString('utf16le', 0, 2 * count)
    from += length
  }
  return mapped
}

/** Mapping of each UTF-16 unit, computed on first use: computing all of them at startup takes too long. */
const looks = new Uint16Array(65_536)

// The unit is removed. 0 = not computed yet.
const nothing = 1
/** The unit depends on its neighbors. */
const depends = 2
/** The unit maps to several letters (`spelt`). */
const several = 3
const blank = 32
const spelt = new Map<number, string>()

function mapUnit(unit: number): number {
  if (looks[unit] === 0) looks[unit] = learned(unit)
  return looks[unit] ?? blank
}

function learned(unit: number): number {
  const character = String.fromCharCode(unit)
  if (unit < 128) return unit < blank ? blank : character.toLowerCase().charCodeAt(0)
  if (isWideDot(unit)) return 46
  if (ignorable.test(character)) return nothing
  const small = lowered(character)
  const isSame = sameInCapitals.test(small)
  if (!isSame && open.test(character)) return depends
  const letters = isSame ? small.normalize('NFKC').toUpperCase().toLowerCase() : lowered(small.normalize('NFKC'))
  const form = letters.replace(cherokee, text => text.toUpperCase())
  if (!allOfName.test(form)) return blank
  if (form.length === 1 && !open.test(form)) return form.charCodeAt(0)
  spelt.set(unit, form)
  return several
}

/** Lower-cases a text. In names, unlike in words, a final sigma equals the other sigmas. */
function lowered(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase()
}

/** Removes ignorable characters, of one or two units, and makes a final sigma of mathematics an ordinary one. */
function withoutIgnorable(text: string): string {
  return text.replace(allIgnorable, '').replace(sigmas, 'σ')
}

/** Letters whose upper case belongs to another letter; names use that letter. */
const sameInCapitals = /[\u0345\u03f2\u1c80-\u1c88\u1f80-\u1faf\u1fb2-\u1fb7\u1fbc\u1fc2-\u1fc7\u1fcc\u1ff2-\u1ffc]/

/** The only script that names use in upper case. */
const cherokee = /[\u13f8-\u13fd\uab70-\uabbf]/g

const ignorable = /\p{Default_Ignorable_Code_Point}/u
const allIgnorable = /\p{Default_Ignorable_Code_Point}/gu
const sigmas = /[\u{1d6d3}\u{1d70d}\u{1d747}\u{1d781}\u{1d7bb}]/gu
/** Marks, parts of Hangul syllables and halves of pairs combine with adjacent units. */
const open = /[\p{M}\p{Cs}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u
/** Letters, digits, marks, symbols, and the remains of parenthesized numbers and fractions. */
const allOfName = /^[\p{L}\p{N}\p{M}\p{So}\u00b7\u2044._()-]+$/u
