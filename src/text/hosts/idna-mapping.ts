/**
 * Maps letters as browsers do for host names (Unicode UTS 46): lower case, compatibility forms resolved, accents
 * composed, all kinds of dots mapped to `.`, invisible characters removed. A character that no name contains becomes a
 * blank, which ends a name.
 */

import { blockUnits, loadUnits, units } from '../code-units.ts'
import { toNfkc } from '../nfkc.ts'

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
