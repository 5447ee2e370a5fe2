import { maximumWords, mixHashes } from './features.ts'

/**
 * Features of a text for a classifier: slots in its weight table and a weight for each. All features are added as they
 * occur, as hashes; then they become slots and the first entry of each is kept, in loops without unpredictable branches.
 */
export type Slots = {
  /** The table has 2^bits slots. */
  readonly bits: number
  /** Hashes with their salts until `deduplicate`; then slots. Valid up to `count`. */
  readonly places: Int32Array
  readonly values: Float32Array
  count: number
  /** One bit per slot: already kept. */
  readonly kept: Int32Array
}

/** Creates a list for a table of 2^`bits` slots. None is longer than the stems and pairs of stems of all words. */
export function createSlots(bits: number): Slots {
  return {
    bits,
    places: new Int32Array(2 * maximumWords),
    values: new Float32Array(2 * maximumWords),
    count: 0,
    kept: new Int32Array(2 ** bits / 32),
  }
}

/** Returns the salt of a kind of features, far from small numbers: `3 ^ 7` of one kind would be `5 ^ 1` of another. */
export const getSalt = (kind: number): number => Math.imul(kind, 0x9e3779b1)

/** Adds one feature; `salt` separates the kinds of features. */
export function addFeature(slots: Slots, hash: number, salt: number, value: number): void {
  slots.places[slots.count] = hash ^ salt
  slots.values[slots.count] = value
  slots.count++
}

/** A sort of features: what keeps it apart from others in the table, and the value of each. */
type FeatureSort = { readonly salt: number; readonly value: number }

/** Adds a feature for each number from `first` to `last`: the linear model of a step function. */
export function addSteps(slots: Slots, { salt, value }: FeatureSort, first: number, last: number): void {
  const { places, values } = slots
  let { count } = slots
  for (let step = first; step <= last; step++) {
    places[count] = step ^ salt
    values[count++] = value
  }
  slots.count = count
}

/** Converts the added hashes to slots, and keeps the first entry of each, with its mark if there are any. */
export function deduplicate(slots: Slots, marks?: Uint8Array): void {
  const { places, values, kept, count, bits } = slots
  mixHashes(places, 0, count, bits)
  kept.fill(0)
  let found = 0
  for (let index = 0; index < count; index++) {
    const place = places[index] ?? 0
    const known = kept[place >>> 5] ?? 0
    places[found] = place
    values[found] = values[index] ?? 0
    if (marks !== undefined) marks[found] = marks[index] ?? 0
    // A shift uses only the last five bits of the slot.
    found += 1 - ((known >>> place) & 1)
    kept[place >>> 5] = known | (1 << place)
  }
  slots.count = found
}

/** Returns the weighted sum of the slots. */
export function weightedSum({ places, values, count }: Slots, weights: Int8Array): number {
  let sum = 0
  for (let index = 0; index < count; index++) sum += (values[index] ?? 0) * (weights[places[index] ?? 0] ?? 0)
  return sum
}

/** A trained table as stored in `text/weights`: one byte per weight, in base64. */
export type StoredWeights = {
  /** 2^bits slots. */
  readonly bits: number
  /** Value of one step of a byte. */
  readonly scale: number
  /** Signed bytes by slot, with all classes of a slot adjacent. */
  readonly weights: string
}

/** Returns the stored bytes as numbers. */
export function decodeWeights({ weights }: Pick<StoredWeights, 'weights'>): Int8Array {
  return new Int8Array(Uint8Array.fromBase64(weights).buffer)
}

/** Returns signed bytes in stored form. */
export function encodeWeights(bytes: Int8Array): string {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).toBase64()
}
