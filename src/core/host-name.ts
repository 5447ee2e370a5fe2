/** Host names in the one form that they are compared in. */
import { isSettled, normalForm, singleForm } from './normal-form.ts'
import { maximumLabel, punycodeOf } from './punycode.ts'

/** Longest name that DNS has, in octets. */
const maximumHost = 253

/** Lower case, ASCII, no leading or trailing dots or marks; null where it is no host name with a dot in it. */
export function normalHost(raw: string): string | null {
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
  if ((found & beyond) !== 0) return nameBeyondAscii(host)
  if (host.length > maximumHost || (found & letter) === 0) return null
  return (found & capital) === 0 ? host : host.toLowerCase()
}

/** Letters and digits; a name begins and ends with one. */
export function isNameUnit(code: number): boolean {
  return code > 127 || (traits[code] ?? 0) > mark
}

const dot = 46
const mark = 1
const digit = 2
const letter = 4
const capital = 8
const beyond = 16
/** ASCII: what a name may hold, 0 for the rest. */
const traits = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return letter
  if (/[A-Z]/.test(character)) return letter | capital
  if (/[0-9]/.test(character)) return digit
  return /[._-]/.test(character) ? mark : 0
})

function nameBeyondAscii(host: string): string | null {
  let folded = ''
  let from = 0
  for (let at = 0; at < host.length; at++) {
    const unit = host.charCodeAt(at)
    let fold = folds[unit] ?? 0
    if (fold === unknown) fold = learned(unit)
    if (fold === noName) return null
    if (fold === depends) return nameOfSeveral(host)
    if (fold === unit) continue
    folded += host.slice(from, at) + String.fromCharCode(fold)
    from = at + 1
  }
  return asciiName(from === 0 ? host : folded + host.slice(from))
}

/** A name some letter of which depends on those beside it. */
function nameOfSeveral(host: string): string | null {
  const lower = lowered(host)
  if (!allOfName.test(lower)) return null
  const letters = lowered(normalForm(lower.replace(ignorable, '').replace(sameInCapitals, oneOfSame)))
  return asciiName(letters.replace(cherokee, small => small.toUpperCase()))
}

/** In lower case; in names, unlike in words, a last sigma is like the others. */
function lowered(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase()
}

/** Letters that are others of their alphabet in capitals: to a name they are those (Unicode's UTS 46). */
const sameInCapitals =
  /[\u03f2\u1c80-\u1c88\u1f80-\u1faf\u1fb2-\u1fb7\u1fbc\u1fc2-\u1fc7\u1fcc\u1ff2-\u1ffc\u{1d6d3}\u{1d70d}\u{1d747}\u{1d781}\u{1d7bb}]|\u0345/gu

function oneOfSame(character: string): string {
  return character.normalize('NFKC').toUpperCase().toLowerCase()
}

/** The one script of which a name has the capitals. */
const cherokee = /[\u13f8-\u13fd\uab70-\uabbf]/g

const allOfName = /^[\p{L}\p{N}\p{M}._-]+$/u
const ofName = /[\p{L}\p{N}._-]/u
/** Letters of which more is told below. */
const special = /[\u03f2\u13a0-\u13fd\u1c80-\u1c88\u1f80-\u1ffc\uab70-\uabbf]/
const ignorable = /\p{Default_Ignorable_Code_Point}/gu

/** Each UTF-16 unit in lower case and without its coat, learned when first met: to ask Unicode for all of them takes long. */
const folds = new Uint16Array(65_536)
const unknown = 0
const noName = 1
const depends = 2

function learned(unit: number): number {
  const fold = foldOf(unit)
  folds[unit] = fold
  return fold
}

function foldOf(unit: number): number {
  if (isSettled(unit)) return unit
  const character = String.fromCharCode(unit)
  const form = singleForm(unit)
  const lower = form === null || special.test(character) ? '' : String.fromCharCode(form).toLowerCase()
  if (lower.length !== 1) return depends
  return ofName.test(character) && ofName.test(lower) ? lower.charCodeAt(0) : noName
}

/** As many labels from the end as a name can hold: one that is too long, and what lies below it, leads nowhere. */
function asciiName(host: string): string | null {
  let name = ''
  for (let end = endOfName(host); end > 0; ) {
    const start = host.lastIndexOf('.', end - 1) + 1
    const label = asciiLabel(host.slice(start, end))
    if (label === null || name.length + 1 + label.length > maximumHost) break
    // What ends in a number is an address or nothing.
    if (name === '' && /^\d+$/.test(label)) break
    name = name === '' ? label : `${label}.${name}`
    end = start - 1
  }
  return name.includes('.') ? name : null
}

/** Before the dots that an invisible letter kept from being the last. */
function endOfName(host: string): number {
  let end = host.length
  while (end > 0 && host.charCodeAt(end - 1) === dot) end--
  return end
}

function asciiLabel(label: string): string | null {
  for (let at = 0; at < label.length; at++) if (label.charCodeAt(at) > 127) return punycodeOf(label)
  return label.length > maximumLabel ? null : label
}
