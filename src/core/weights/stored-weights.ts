/** A trained table as it is kept in `core/weights`: one byte a weight, in base64. */
export type StoredWeights = {
  /** What they were trained on. */
  readonly source: string
  /** 2^bits slots. */
  readonly bits: number
  /** What one step of a byte is worth. */
  readonly scale: number
  /** Signed bytes, slot by slot, with all classes of a slot side by side. */
  readonly weights: string
}

/** The kept bytes as numbers. */
export function decodeWeights({ weights }: Pick<StoredWeights, 'weights'>): Int8Array {
  return new Int8Array(Uint8Array.fromBase64(weights).buffer)
}

/** Signed bytes as they are kept. */
export function encodeWeights(bytes: Int8Array): string {
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength).toBase64()
}
