import { slotOf } from './features.ts'

/**
 * What a head reads of a text: places in its table of weights, and how strongly each speaks. They are noted as they come; then
 * the first note of each place is kept and the others are dropped, in one loop without a branch that nobody could guess.
 */
export type Slots = {
  /** The table has 2^bits places. */
  readonly bits: number
  /** Valid up to `count`. */
  readonly places: Uint32Array
  readonly values: Float32Array
  count: number
  /** One bit a place: kept already. */
  readonly kept: Int32Array
}

/** A list for a table of 2^`bits` places; `most`: no text makes more notes. */
export function createSlots(bits: number, most: number): Slots {
  return {
    bits,
    places: new Uint32Array(most),
    values: new Float32Array(most),
    count: 0,
    kept: new Int32Array(2 ** bits / 32),
  }
}

/** Notes one feature; `salt` keeps the kinds of features apart. */
export function addFeature(slots: Slots, hash: number, salt: number, value: number): void {
  slots.places[slots.count] = slotOf(hash, salt, slots.bits)
  slots.values[slots.count] = value
  slots.count++
}

/** Notes a feature that is there about as often as not: without a branch, which would be guessed wrong every other time. */
export function addFeatureIf(isThere: boolean, slots: Slots, hash: number, salt: number, value: number): void {
  slots.places[slots.count] = slotOf(hash, salt, slots.bits)
  slots.values[slots.count] = value
  slots.count += Number(isThere)
}

/** Keeps each place once, as it was noted first. */
export function deduplicate(slots: Slots): void {
  const { places, values, kept, count } = slots
  kept.fill(0)
  let found = 0
  for (let index = 0; index < count; index++) {
    const place = places[index] ?? 0
    const known = kept[place >>> 5] ?? 0
    places[found] = place
    values[found] = values[index] ?? 0
    // A shift goes by the last five bits of the place.
    found += 1 - ((known >>> place) & 1)
    kept[place >>> 5] = known | (1 << place)
  }
  slots.count = found
}

/** What the weights, one a place, say of the slots together. */
export function weightedSum({ places, values, count }: Slots, weights: Int8Array): number {
  let sum = 0
  for (let index = 0; index < count; index++) sum += (values[index] ?? 0) * (weights[places[index] ?? 0] ?? 0)
  return sum
}
