import { hashOf } from '../core/analysis/features.ts'

/**
 * The fold, 0 to `count` − 1, that a text belongs to. By its hash, so that equal texts, and a question in several languages
 * given the same text, never fall on both sides; `repeat` deals anew.
 */
export function foldOf(text: string, count: number, repeat = 0): number {
  const normal = text.toLowerCase().split(/\s+/).join(' ').trim()
  return mixed(hashOf(normal) + Math.imul(repeat, 0x9e3779b1)) % count
}

/** Numbers in [0, 1), the same ones each time for a seed: training must come out the same. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x9e3779b9) >>> 0
    return mixed(state) / 0x1_0000_0000
  }
}

/** The numbers below `count` in a random order. */
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

/** Murmur3's finalizer: every bit of the result depends on every bit given. */
function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
