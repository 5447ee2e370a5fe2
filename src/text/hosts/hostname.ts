/** Normalizes host names for comparison. */
import { domainToASCII, domainToUnicode } from 'node:url'
import { mapIdna } from './idna-mapping.ts'

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
