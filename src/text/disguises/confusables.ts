/**
 * Replaces disguised letters by the letters that they look like: removes invisible characters, undoes stylistic
 * variants, and maps look-alikes to Latin.
 */

import { blockUnits, loadUnits, units } from '../code-units.ts'
import { singleForm, toNfkc } from '../nfkc.ts'

/** Returns a text as it looks, in ASCII where a character looks like ASCII. */
export function replaceConfusables(text: string): string {
  return letterByLetter(text, false) ?? letterByLetter(toNfkc(text), true) ?? text
}

/** Returns null if a letter depends on its neighbors and the text is not in normal form. */
function letterByLetter(text: string, isNormal: boolean): string | null {
  let plain = ''
  for (let from = 0; from < text.length; ) {
    const length = loadUnits(text, from)
    units[length] = 0
    let count = 0
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      let look = looks[unit] ?? 0
      if (look === unknown) look = learned(unit)
      if (look === depends) {
        if (!isNormal) return null
        look = unit === tagStart && isTag(units[at + 1] ?? 0) ? tagLetter(units[++at] ?? 0) : unit
      }
      if (look !== nothing) seen[count++] = look
    }
    plain += seenBytes.toString('utf16le', 0, 2 * count)
    from += length
  }
  return plain
}

/** The loaded units with look-alikes replaced. */
const seen = new Uint16Array(blockUnits)
const seenBytes = Buffer.from(seen.buffer)

/** Look-alike of each UTF-16 unit, computed on first use: computing all of them at startup takes too long. */
const looks = new Uint16Array(65_536)
const unknown = 0
/** A unit that no character has. */
const depends = 0xffff
/** Stands for "removed": a soft hyphen is invisible, and no character looks like one. */
const nothing = 0xad

function learned(unit: number): number {
  const look = getLookalike(unit)
  looks[unit] = look
  return look
}

function getLookalike(unit: number): number {
  if (invisible.test(String.fromCharCode(unit))) return nothing
  const form = singleForm(unit)
  // 0 means "not computed", so U+0000 cannot be stored.
  return form === null || form === unknown ? depends : (latinFor.get(form) ?? form)
}

const invisible = /[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\u034f/

/** Pairs of a letter and the Latin letter that it looks like. */
const pairs = 'аaеeоoрpсcхxуyіiјjѕsһhԁdкkмmтtгrΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoαaνvρpιiΑAАAВBЕEКKМMНHОOРPСCТTХX'
const latinFor = new Map(
  Array.from(
    { length: pairs.length / 2 },
    (_, at) => [pairs.charCodeAt(2 * at), pairs.charCodeAt(2 * at + 1)] as const,
  ),
)

/** Tag characters U+E0000 to U+E007F are invisible copies of ASCII; the rest of the range is removed. */
const tagStart = 0xdb40
const firstTag = 0xdc00
const lastTag = 0xdc7f

function isTag(unit: number): boolean {
  return unit >= firstTag && unit <= lastTag
}

function tagLetter(unit: number): number {
  const code = unit - firstTag
  return code >= 0x20 && code < 0x7f ? code : nothing
}
