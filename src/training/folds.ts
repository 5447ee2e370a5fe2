import { getHash } from '../text/analysis/features.ts'

/** Returns the fold of a text, 0 to `count` − 1. Based on its hash, so that equal texts are in the same fold. */
export function getFold(text: string, count: number): number {
  return mixed(getHash(text.toLowerCase().split(/\s+/).join(' ').trim())) % count
}

/** Returns a generator of numbers in [0, 1), deterministic per seed, so that training is reproducible. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    return mixed(state) / 0x1_0000_0000
  }
}

/** Returns the numbers below `count` in random order. */
export function shuffled(count: number, random: () => number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, index) => index)
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const swap = order[last] ?? 0
    order[last] = order[other] ?? 0
    order[other] = swap
  }
  return order
}

/** Murmur3's finalizer: every bit of the result depends on every input bit. */
function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
