/** Unicode's compatibility form, NFKC: letters without their coats, each with its accents as one. */

/** A text in that form. Linear. */
export function toNfkc(text: string): string {
  return text.replace(manyMarks, '$1').normalize('NFKC')
}

/** Marks on one letter, more than any letter has: putting them in order takes the square of their number. */
const manyMarks = /(\p{M}{8})\p{M}+/gu

/** The one UTF-16 unit that another is in that form wherever it stands; null where its neighbours matter, or it is several. */
export function singleForm(unit: number): number | null {
  if (isSettled(unit)) return unit
  const character = String.fromCharCode(unit)
  const form = character.normalize('NFKC')
  return form.length === 1 && !isOpen.test(character + form) ? form.charCodeAt(0) : null
}

/** Marks, pieces of Hangul syllables and halves of pairs join what stands beside them. */
const isOpen = /[\p{M}\p{Cs}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u

/** Ideographs and Hangul syllables, half of all units: letters without case, and in that form already. Unicode keeps it so. */
export function isSettled(unit: number): boolean {
  return (unit >= 0x3400 && unit <= 0x4dbf) || (unit >= 0x4e00 && unit <= 0x9fff) || (unit >= 0xac00 && unit <= 0xd7a3)
}
