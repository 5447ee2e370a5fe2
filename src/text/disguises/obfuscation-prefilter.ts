/**
 * Checks in one pass whether a text may contain any of several short forms, so that expensive matching is skipped for
 * most texts.
 */
import { filledTable, unitCount } from '../../core/text/unit-table.ts'
import { loadUnits, units } from '../code-units.ts'

/** Each position of a form is a bit. One more bit is for units that are a sign on their own. */
const mostPlaces = 30

type ObfuscationPrefilter = {
  /** Returns the signs found in a text; 0 = none. Linear. */
  in(text: string): number
  /** A complete form may occur. */
  readonly whole: number
  /** A non-ASCII unit that is a sign on its own. */
  readonly lone: number
}

/** Creates a reader for ASCII forms: the units that each position of a form allows. `isLone` is called once for every other unit. */
export function createSignReader(
  forms: readonly (readonly string[])[],
  isLone: (unit: number) => boolean,
): ObfuscationPrefilter {
  const places = forms.flat()
  if (places.length > mostPlaces) throw new RangeError(`At most ${mostPlaces} places.`)
  const lone = 1 << places.length
  let whole = 0
  let firsts = lone
  let bit = 0
  for (const { length } of forms) {
    firsts |= 1 << bit
    bit += length
    whole |= 1 << (bit - 1)
  }
  const fits = filledTable(new Uint32Array(unitCount), unit => {
    if (unit > 127) return isLone(unit) ? lone : 0
    return places.reduce((bits, place, at) => (place.includes(String.fromCharCode(unit)) ? bits | (1 << at) : bits), 0)
  })
  return {
    whole,
    lone,
    // All forms are matched in parallel; each unit that fits shifts the bits.
    in(text) {
      let open = 0
      let found = 0
      for (let from = 0; from < text.length; ) {
        const length = loadUnits(text, from)
        for (let at = 0; at < length; at++) {
          open = ((open << 1) | firsts) & (fits[units[at] ?? 0] ?? 0)
          found |= open
        }
        from += length
      }
      return found
    },
  }
}
