import type { Example } from './linear.ts'

/** What an example is made of: numbers as they lie in memory, all else as JSON. */
type Part = Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer> | object | string | number

/**
 * Tells what a head is taught from all else that it could be taught: settings and examples, in order, as 16 hexadecimal digits.
 * Give numbers that come from logarithms or powers in single precision: their last digits are the machine's own.
 */
export function digestOf(settings: object, examples: Iterable<readonly Part[]>): string {
  const hasher = new Bun.CryptoHasher('sha256')
  hasher.update(JSON.stringify(settings))
  for (const parts of examples)
    for (const part of parts) {
      hasher.update(part instanceof Uint32Array || part instanceof Float32Array ? part : JSON.stringify(part))
      hasher.update('\n')
    }
  return hasher.digest('hex').slice(0, 16)
}

/** An example as parts of a digest. */
export function partsOf({ slots, values, classes, weight }: Example): readonly Part[] {
  return [slots, values ?? '', classes, Math.fround(weight)]
}
