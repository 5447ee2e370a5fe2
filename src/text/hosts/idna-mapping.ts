/**
 * Maps letters as browsers do for host names (Unicode UTS 46): lower case, compatibility forms resolved, accents
 * composed, all kinds of dots mapped to `.`, invisible characters removed. A character that no name contains becomes a
 * blank, which ends a name.
 */

import { blockUnits, loadUnits, units } from '../code-units.ts'
import { isSettled, toNfkc } from '../nfkc.ts'

/** Maps a text of any length. Linear: one pass, and a second one if letters depend on their neighbors. */
export function mapIdna(text: string): string {
  const folded = letterByLetter(text, false)
  if (!folded.hasBeyond) return folded.isSettled ? folded.text : toNfkc(folded.text)
  const letters = folded.text.replace(ignorableBeyond, '').replace(sigmasBeyond, 'σ')
  return letterByLetter(lowered(toNfkc(letters)), true).text
}

/** Returns true if a unit can occur in names in any form. */
export function isOfName(unit: number): boolean {
  return mapUnit(unit) !== blank
}

/** Characters that count as dots in names. */
export const wideDots = '。．｡․﹒'

/** Returns true if a unit is such a dot. */
export function isWideDot(unit: number): boolean {
  return unit === 0x3002 || unit === 0xff0e || unit === 0xff61 || unit === 0x2024 || unit === 0xfe52
}

const written = new Uint16Array(2 * blockUnits)
const bytes = Buffer.from(written.buffer)

/** `isNormal` = combining characters are already in normal order. */
function letterByLetter(text: string, isNormal: boolean) {
  let folded = ''
  let isSettled = true
  /** True if the text has characters of two units other than emoji. */
  let hasBeyond = false
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    let count = 0
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      const look = looks[unit] || mapUnit(unit)
      if (look > highestMeaning) written[count++] = look
      else if (look === depends) {
        isSettled = false
        written[count++] = unit
      } else if (look === beyond) {
        if (!isPicture(unit, units[at + 1] ?? 0)) hasBeyond = true
        written[count++] = unit
      } else if (look === several && !isNormal) {
        const letters = spelt.get(unit) ?? noLetters
        if (letters.isOpen) isSettled = false
        for (let index = 0; index < letters.units.length; index++) written[count++] = letters.units[index] ?? blank
      } else if (look === several) written[count++] = unit
      if (count < written.length - mostSeveral) continue
      folded += bytes.toString('utf16le', 0, 2 * count)
      count = 0
    }
    folded += bytes.toString('utf16le', 0, 2 * count)
    from += length
  }
  return { text: folded, isSettled, hasBeyond }
}

/** Mapping of each UTF-16 unit, computed on first use: computing all of them at startup takes too long. */
const looks = new Uint16Array(65_536)

// The unit is removed. 0 = not computed yet.
const nothing = 1
/** The unit depends on its neighbors. */
const depends = 2
/** The unit maps to several letters. */
const several = 3
/** The first half of a surrogate pair; the second half decides. */
const beyond = 4
const highestMeaning = 4
const blank = 32

/** Letters of units that map to several. Longer mappings contain blanks. */
const spelt = new Map<number, Letters>()
const mostSeveral = 8
/** `isOpen` = adjacent characters may combine with them. */
type Letters = { readonly units: Uint16Array; readonly isOpen: boolean }
const noLetters: Letters = { units: new Uint16Array(0), isOpen: false }

function mapUnit(unit: number): number {
  if (looks[unit] === 0) looks[unit] = learned(unit)
  return looks[unit] ?? blank
}

function learned(unit: number): number {
  const character = String.fromCharCode(unit)
  if (unit < 128) return unit < blank ? blank : character.toLowerCase().charCodeAt(0)
  if (isSettled(unit)) return unit
  if (isWideDot(unit)) return 46
  if (ignorable.test(character)) return nothing
  if (unit >= 0xd800 && unit < 0xdc00) return beyond
  if (unit >= 0xdc00 && unit < 0xe000) return unit
  const small = lowered(character)
  const isSame = sameInCapitals.test(small)
  if (!isSame && open.test(character)) return depends
  const letters = isSame ? oneOfSame(small) : lowered(small.normalize('NFKC'))
  const form = letters.replace(cherokee, text => text.toUpperCase())
  if (!allOfName.test(form) || form.length > mostSeveral) return blank
  const isOpen = open.test(form)
  if (form.length === 1 && !isOpen) return form.charCodeAt(0)
  spelt.set(unit, { units: Uint16Array.from({ length: form.length }, (_, at) => form.charCodeAt(at)), isOpen })
  return several
}

/** Returns true if two halves are an emoji or half a flag, which map to themselves. */
function isPicture(high: number, low: number): boolean {
  if (high === 0xd83d || high === 0xd83e) return true
  return high === 0xd83c && (low >= 0xdf00 || (low >= 0xdde6 && low <= 0xddff))
}

/** Lower-cases a text. In names, unlike in words, a final sigma equals the other sigmas. */
function lowered(text: string): string {
  return text.replaceAll('Σ', 'σ').toLowerCase()
}

/** Letters whose upper case belongs to another letter; names use that letter. */
const sameInCapitals = /[\u0345\u03f2\u1c80-\u1c88\u1f80-\u1faf\u1fb2-\u1fb7\u1fbc\u1fc2-\u1fc7\u1fcc\u1ff2-\u1ffc]/

function oneOfSame(character: string): string {
  return character.normalize('NFKC').toUpperCase().toLowerCase()
}

/** The only script that names use in upper case. */
const cherokee = /[\u13f8-\u13fd\uab70-\uabbf]/g

const ignorable = /\p{Default_Ignorable_Code_Point}/u
/** Ignorable characters of two units. */
const ignorableBeyond = /[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu
const sigmasBeyond = /[\u{1d6d3}\u{1d70d}\u{1d747}\u{1d781}\u{1d7bb}]/gu
/** Marks and parts of Hangul syllables combine with adjacent characters. */
const open = /[\p{M}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u
/** Letters, digits, marks, symbols, and the remains of parenthesized numbers and fractions. */
const allOfName = /^[\p{L}\p{N}\p{M}\p{So}\u00b7\u2044._()-]+$/u
