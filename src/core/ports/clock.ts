/** Time as a value: everything that waits or stamps receives a clock, so that tests move it instead of sleeping. */
export type Clock = {
  /** Epoch milliseconds. */
  now(): number
  /** Milliseconds that never run backwards; for durations. */
  monotonic(): number
  sleep(milliseconds: number): Promise<void>
  /** Runs `action` once, later; the returned function cancels it. */
  after(milliseconds: number, action: () => void): () => void
}
