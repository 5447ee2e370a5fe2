/** Timeouts of upstream calls in milliseconds, one for each phase in which an upstream can delay a response. */
export type Deadlines = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly silenceMs: number
  readonly firstContentMs: number
  /** First content of requests with high reasoning effort. */
  readonly firstContentReasoningMs: number
  readonly totalMs: number
}
