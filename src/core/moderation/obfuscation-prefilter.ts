/** Tells in one pass whether a text may have any of some short forms, so that what looks closer need not begin. */
import { loadUnits, units } from './code-units.ts'

/** What may stand at a form's next place; a form is the places from a first to the next last. */
export type PrefilterPosition = { readonly units: string; readonly isFirst?: true; readonly isLast?: true }

/** Each place is a bit, and one more is for units that are a sign by themselves. */
const mostPlaces = 30

export type ObfuscationPrefilter = {
  /** The signs that a text has; 0 = none. Linear. */
  in(text: string): number
  /** A form may be whole. */
  readonly whole: number
  /** A unit beyond ASCII that is a sign by itself. */
  readonly lone: number
}

/** A reader of the forms of `places`, all of ASCII; `isLone` is asked of every other unit once. */
export function createSignReader(
  places: readonly PrefilterPosition[],
  isLone: (unit: number) => boolean,
): ObfuscationPrefilter {
  if (places.length > mostPlaces) throw new RangeError(`At most ${mostPlaces} places.`)
  const bitsOf = (isMeant: (place: PrefilterPosition) => boolean) =>
    places.reduce((bits, place, at) => (isMeant(place) ? bits | (1 << at) : bits), 0)
  const lone = 1 << places.length
  const whole = bitsOf(place => place.isLast === true)
  const firsts = bitsOf(place => place.isFirst === true) | lone
  const fits = Uint32Array.from({ length: 65_536 }, (_, unit) => {
    if (unit > 127) return isLone(unit) ? lone : 0
    return bitsOf(place => place.units.includes(String.fromCharCode(unit)))
  })
  return {
    whole,
    lone,
    // All forms are followed at once, a bit moving on with each unit that fits.
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
