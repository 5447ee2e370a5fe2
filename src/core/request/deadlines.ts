/** Timeouts of upstream calls in milliseconds, one for each way in which an upstream can keep a client waiting. */
export type Deadlines = {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly silenceMs: number
  readonly firstContentMs: number
  /** First content, where the caller asked for high reasoning effort. */
  readonly firstContentReasoningMs: number
  readonly totalMs: number
}
