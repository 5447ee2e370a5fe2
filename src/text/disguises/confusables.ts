/**
 * Replaces disguised letters by the letters that they look like: removes invisible characters, undoes stylistic
 * variants, and maps look-alikes to Latin. Used for texts with such letters only.
 */

import { filledTable, toNfkc, unitCount } from '../code-units.ts'

/** Returns a text as it looks, in ASCII where a character looks like ASCII. */
export function replaceConfusables(text: string): string {
  const plain = toNfkc(text).replace(unseen, shown)
  const units = new Uint16Array(plain.length)
  const bytes = Buffer.from(units.buffer)
  bytes.write(plain, 'utf16le')
  for (let at = 0; at < units.length; at++) units[at] = looks[units[at] ?? 0] ?? 0
  return bytes.toString('utf16le')
}

/** Returns true for soft hyphens, zero-width characters and marks of direction. */
function isInvisible(unit: number): boolean {
  return (
    unit === 0xad ||
    unit === 0x34f ||
    unit === 0x180e ||
    (unit >= 0x200b && unit <= 0x200f) ||
    (unit >= 0x202a && unit <= 0x202e) ||
    (unit >= 0x2060 && unit <= 0x2064) ||
    unit === 0xfeff
  )
}

/** Returns true for invisible and tag characters, and for circled, full-width and mathematical letters. */
export function isDisguise(unit: number): boolean {
  return (
    isInvisible(unit) ||
    (unit >= 0x24b6 && unit <= 0x24e9) ||
    unit === 0xd835 ||
    unit === 0xdb40 ||
    (unit >= 0xff10 && unit <= 0xff5a)
  )
}

/** Returns true for Cyrillic and Greek letters, including those encoded elsewhere whose capital is in these blocks. */
export function resemblesLatin(unit: number): boolean {
  return (
    (unit >= 0x370 && unit <= 0x4ff) ||
    unit === 0xb5 ||
    unit === 0x345 ||
    (unit >= 0x1c80 && unit <= 0x1c87) ||
    unit === 0x1fbe
  )
}

/** Returns a unit beyond ASCII as it counts in a key: 0 = invisible, the ASCII character of a variant, or the unit itself. */
export function coatOff(unit: number): number {
  if (unit === 0xa0 || unit === 0x2007 || unit === 0x202f) return 32
  if (unit >= 0xff01 && unit <= 0xff5e) return unit - 0xfee0
  return isInvisible(unit) ? 0 : unit
}

/** Invisible characters, and the tag characters U+E0000 to U+E007F, which are invisible copies of ASCII. */
const unseen = /[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\u034f|[\u{e0000}-\u{e007f}]/gu

function shown(character: string): string {
  const code = (character.codePointAt(0) ?? 0) - 0xe0000
  return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : ''
}

/** Pairs of a letter and the Latin letter that it looks like. */
const pairs = 'аaеeоoрpсcхxуyіiјjѕsһhԁdкkмmтtгrΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoαaνvρpιiΑAАAВBЕEКKМMНHОOРPСCТTХX'
const looks = filledTable(new Uint16Array(unitCount), unit => unit)
for (let at = 0; at < pairs.length; at += 2) looks[pairs.charCodeAt(at)] = pairs.charCodeAt(at + 1)
