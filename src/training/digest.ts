import type { Example } from './linear.ts'

/** Part of an example: numbers as they are in memory, everything else as JSON. */
type Part = Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer> | object | string | number

/**
 * Returns a digest of settings and examples in order, as 16 hexadecimal digits, which identifies what a classifier was
 * trained on. Pass numbers from logarithms or powers in single precision: their last digits depend on the machine.
 */
export function trainingDigest(settings: object, examples: Iterable<readonly Part[]>): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(JSON.stringify(settings))
  for (const parts of examples)
    for (const part of parts) {
      hasher.update(part instanceof Uint32Array || part instanceof Float32Array ? part : JSON.stringify(part))
      hasher.update('\n')
    }
  return hasher.digest('hex').slice(0, 16)
}

/** Returns an example as parts of a digest. */
export function partsOf({ slots, values, classes, weight }: Example): readonly Part[] {
  return [slots, values ?? '', classes, Math.fround(weight)]
}
