/**
 * Checks in one pass whether a text may contain any of several short forms, so that expensive matching is skipped for
 * most texts.
 */
import { filledTable, unitCount } from '../../core/text/unit-table.ts'
import { loadUnits, units } from '../code-units.ts'

/** Allowed units at the next position of a form; a form extends from an `isFirst` to the next `isLast`. */
export type PrefilterPosition = { readonly units: string; readonly isFirst?: true; readonly isLast?: true }

/** Each position is a bit. One more bit is for units that are a sign on their own. */
const mostPlaces = 30

type ObfuscationPrefilter = {
  /** Returns the signs found in a text; 0 = none. Linear. */
  in(text: string): number
  /** A complete form may occur. */
  readonly whole: number
  /** A non-ASCII unit that is a sign on its own. */
  readonly lone: number
}

/** Creates a reader for the ASCII forms of `places`. `isLone` is called once for every other unit. */
export function createSignReader(
  places: readonly PrefilterPosition[],
  isLone: (unit: number) => boolean,
): ObfuscationPrefilter {
  if (places.length > mostPlaces) throw new RangeError(`At most ${mostPlaces} places.`)
  const getBits = (isMeant: (place: PrefilterPosition) => boolean) =>
    places.reduce((bits, place, at) => (isMeant(place) ? bits | (1 << at) : bits), 0)
  const lone = 1 << places.length
  const whole = getBits(place => place.isLast === true)
  const firsts = getBits(place => place.isFirst === true) | lone
  const fits = filledTable(new Uint32Array(unitCount), unit => {
    if (unit > 127) return isLone(unit) ? lone : 0
    return getBits(place => place.units.includes(String.fromCharCode(unit)))
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
