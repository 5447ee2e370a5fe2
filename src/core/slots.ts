import { slotOf } from './features.ts'

/** What a head reads of a text: places in its table of weights, each once, and how strongly each speaks. */
export type Slots = {
  /** Valid up to `count`. */
  readonly places: Uint32Array
  readonly values: Float32Array
  count: number
  /** Forgets everything. */
  clear(): void
  /** Adds one feature unless it is there already; `salt` keeps the kinds of features apart. */
  add(hash: number, salt: number, value: number): void
}

/** A list for a table of 2^`bits`; features beyond `most` are left out. */
export function createSlots(bits: number, most: number): Slots {
  const places = new Uint32Array(most)
  const values = new Float32Array(most)
  // The round in which each place was last added: clearing it is one step, however large the table is.
  const rounds = new Uint32Array(2 ** bits)
  let round = 0
  return {
    places,
    values,
    count: 0,
    clear() {
      this.count = 0
      round = (round + 1) >>> 0
      if (round !== 0) return
      rounds.fill(0)
      round = 1
    },
    add(hash, salt, value) {
      const place = slotOf(hash, salt, bits)
      if (rounds[place] === round || this.count === most) return
      rounds[place] = round
      places[this.count] = place
      values[this.count] = value
      this.count++
    },
  }
}

/** Adds up what the weights say of the slots, by class, into `sums`. */
export function sumInto(sums: Float64Array, { places, values, count }: Slots, weights: Int8Array, scale: number): void {
  const classes = sums.length
  sums.fill(0)
  for (let index = 0; index < count; index++) {
    const from = (places[index] ?? 0) * classes
    const value = (values[index] ?? 0) * scale
    for (let one = 0; one < classes; one++) sums[one] = (sums[one] ?? 0) + value * (weights[from + one] ?? 0)
  }
}
