/** Unicode's compatibility normalization (NFKC): stylistic variants resolved, accents composed. */

/** Returns a text in NFKC. Linear. */
export function toNfkc(text: string): string {
  return text.replace(manyMarks, '$1').normalize('NFKC')
}

/** More combining marks per letter than any language uses. Sorting them would take quadratic time. */
const manyMarks = /(\p{M}{8})\p{M}+/gu
