/**
 * Time as a port: everything that waits or needs a timestamp receives a clock, so that tests move it instead of
 * sleeping.
 */
export type Clock = {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds that never run backwards; for durations. */
  monotonic(): number
  sleep(milliseconds: number): Promise<void>
  /** Runs `action` once after `milliseconds`; the returned function cancels it. */
  after(milliseconds: number, action: () => void): () => void
}
