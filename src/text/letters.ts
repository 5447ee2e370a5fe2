/** Normalizes letters for word lists: one case, no accents, one form of letters with several spellings. */
import { filledTable, unitCount } from './code-units.ts'

/** Not a letter. */
export const separator = 32
/** Removed: combining accents, vowel points, invisible characters. */
export const skipped = 0

const kept: { plain: Uint16Array | null; accented: Uint16Array | null } = { plain: null, accented: null }

/** Returns `getFold` for every UTF-16 unit as a table, computed on first use. */
export function foldTable(keepsAccents = false): Uint16Array {
  const name = keepsAccents ? 'accented' : 'plain'
  kept[name] ??= filledTable(new Uint16Array(unitCount), unit => getFold(unit, keepsAccents))
  return kept[name] ?? new Uint16Array(unitCount)
}

/** Letters without a decomposition, and letters with two spellings. */
const others: Readonly<Record<string, string>> = {
  ł: 'l',
  đ: 'd',
  ø: 'o',
  ı: 'i',
  ß: 's',
  æ: 'e',
  œ: 'e',
  ک: 'ك',
  ی: 'ي',
  ى: 'ي',
  ة: 'ه',
  ё: 'е',
}

function getFold(unit: number, keepsAccents: boolean): number {
  if (isMark(unit)) return skipped
  // Two thirds of all units, without case or accents: the general way is slow.
  if ((unit >= 0x4e00 && unit <= 0x9fff) || isSyllable(unit)) return unit
  if (unit >= 0xd800 && unit <= 0xf8ff) return separator
  const character = String.fromCharCode(unit)
  if (!/[\p{L}\p{N}\p{M}]/u.test(character)) return separator
  const lower = character.toLowerCase()
  if (keepsAccents) return lower.charCodeAt(0)
  const other = others[lower]
  if (other !== undefined) return other.charCodeAt(0)
  const isDivisible = unit < 0x700 || (unit >= 0x1e00 && unit < 0x2000) || unit >= 0xff00
  return (isDivisible ? lower.normalize('NFKD') : lower).charCodeAt(0)
}

/**
 * Returns true for accents, Hebrew and Arabic points, the Arabic tatweel, the nukta, zero-width characters and soft
 * hyphens.
 */
function isMark(unit: number): boolean {
  return (
    (unit >= 0x300 && unit <= 0x36f) ||
    (unit >= 0x591 && unit <= 0x5c7 && unit !== 0x5be) ||
    (unit >= 0x64b && unit <= 0x65f) ||
    unit === 0x670 ||
    unit === 0x640 ||
    unit === 0x93c ||
    unit === 0x9bc ||
    unit === 0xad ||
    (unit >= 0x200b && unit <= 0x200f) ||
    unit === 0x2060 ||
    unit === 0xfeff ||
    unit === 0
  )
}

/** Returns true for scripts without spaces, where a word may begin at any character. */
export function standsAlone(unit: number): boolean {
  return (unit >= 0x3040 && unit <= 0x9fff) || (unit >= 0xe00 && unit < 0xe80) || isSyllable(unit)
}

/** Returns true for a Hangul syllable. */
export function isSyllable(unit: number): boolean {
  return unit >= 0xac00 && unit <= 0xd7a3
}

/** From this length, the last word of an entry also matches longer words. */
const leastOpen = 5

/** Returns an entry of a word list: its letters, `_` as a blank, and whether longer words match (always with `*`). */
export function foldWord(
  written: string,
  keepsAccents: boolean,
): { readonly units: readonly number[]; readonly mayGoOn: boolean } {
  const folds = foldTable(keepsAccents)
  const isOpen = written.endsWith('*')
  const units: number[] = []
  for (const unit of Array.from({ length: written.length }, (_, index) => written.charCodeAt(index))) {
    const folded = folds[unit] ?? separator
    if (folded !== skipped && !(folded === separator && (units.length === 0 || units.at(-1) === separator)))
      units.push(folded)
  }
  if (units.at(-1) === separator) units.pop()
  const last = units.length - 1 - units.lastIndexOf(separator)
  const first = units[0] ?? separator
  const isScript = standsAlone(first) && !(isSyllable(first) && units.length === 1)
  return { units, mayGoOn: isOpen || isScript || last >= leastOpen }
}
