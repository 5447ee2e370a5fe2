/** Unicode's compatibility normalization (NFKC): stylistic variants resolved, accents composed. */

/** Returns a text in NFKC. Linear. */
export function toNfkc(text: string): string {
  return text.replace(manyMarks, '$1').normalize('NFKC')
}

/** More combining marks per letter than any language uses. Sorting them would take quadratic time. */
const manyMarks = /(\p{M}{8})\p{M}+/gu

/**
 * Returns the single UTF-16 unit that a unit normalizes to regardless of context; null if its neighbors matter or it
 * becomes several.
 */
export function singleForm(unit: number): number | null {
  if (isSettled(unit)) return unit
  const character = String.fromCharCode(unit)
  const form = character.normalize('NFKC')
  return form.length === 1 && !isOpen.test(character + form) ? form.charCodeAt(0) : null
}

/** Marks, parts of Hangul syllables and surrogate halves combine with adjacent units. */
const isOpen = /[\p{M}\p{Cs}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u

/**
 * Returns true for ideographs and Hangul syllables, half of all units: caseless letters already in NFKC, guaranteed by
 * Unicode's stability policy.
 */
export function isSettled(unit: number): boolean {
  return (unit >= 0x3400 && unit <= 0x4dbf) || (unit >= 0x4e00 && unit <= 0x9fff) || (unit >= 0xac00 && unit <= 0xd7a3)
}
