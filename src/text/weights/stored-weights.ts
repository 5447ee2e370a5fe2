/** A trained table as stored in `text/weights`: one byte per weight, in base64. */
export type StoredWeights = {
  /** Description of the training data. */
  readonly source: string
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
