/** Letters in disguise as the letters that a reader sees: invisible characters gone, other coats off, look-alikes Latin. */
import { loadUnits, textOfUnits, units } from './units.ts'

/** A text as it looks, in ASCII where that is what it looks like. */
export function plainLetters(text: string): string {
  const normal = text.replace(manyMarks, '$1').normalize('NFKC')
  const looks = lookTable()
  let plain = ''
  for (let from = 0; from < normal.length; ) {
    const length = loadUnits(normal, from)
    let count = 0
    for (let at = 0; at < length; at++) {
      const unit = units[at] ?? 0
      const next = units[at + 1] ?? 0
      const isTag = unit === tagStart && at + 1 < length && next >= firstTag && next <= lastTag
      const look = isTag ? tagLetter(next) : (looks[unit] ?? unit)
      if (isTag) at++
      if (look !== nothing) units[count++] = look
    }
    plain += textOfUnits(count)
    from += length
  }
  return plain
}

/** Marks on one letter, more than any letter has: putting them in order takes the square of their number. */
const manyMarks = /(\p{M}{8})\p{M}+/gu

/** A soft hyphen looks like nothing, and nothing looks like one. */
const nothing = 0xad

/** Tag characters, U+E0000 to U+E007F, spell ASCII that nobody sees; the rest of them says nothing. */
const tagStart = 0xdb40
const firstTag = 0xdc00
const lastTag = 0xdc7f

function tagLetter(unit: number): number {
  const code = unit - firstTag
  return code >= 0x20 && code < 0x7f ? code : nothing
}

let looksKept: Uint16Array | null = null

/** Every UTF-16 unit as what it looks like, made when first needed. */
function lookTable(): Uint16Array {
  looksKept ??= Uint16Array.from({ length: 65_536 }, (_, unit) => lookOf(String.fromCharCode(unit)))
  return looksKept
}

function lookOf(character: string): number {
  return invisible.test(character) ? nothing : (latinFor.get(character) ?? character).charCodeAt(0)
}

const invisible = /[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|\u034f/

/** Letter and the Latin one that it looks like, pair by pair. */
const pairs = 'аaеeоoрpсcхxуyіiјjѕsһhԁdкkмmтtгrΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοoαaνvρpιiΑAАAВBЕEКKМMНHОOРPСCТTХX'
const latinFor = new Map(
  Array.from({ length: pairs.length / 2 }, (_, at) => [pairs[2 * at] ?? '', pairs[2 * at + 1] ?? ''] as const),
)
