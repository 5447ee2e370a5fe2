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

/** Fields of a log line: only plain values, so that no prompt, output or key can be part of one. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>

export type Log = {
  debug(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  error(event: string, fields?: LogFields): void
}

/** HTTP client for upstreams, plus a TCP reachability check that separates connection failures from slow responses. */
export type Network = {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Whether a TCP connection to the address's host can be made within `timeoutMs`. */
  reaches(url: string, timeoutMs: number): Promise<boolean>
}

/** Returns the text of a response, up to the read in which it exceeds `maximumCharacters`. Rejects if the body breaks. */
export async function readBodyText({ body }: Pick<Response, 'body'>, maximumCharacters: number): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (text.length > maximumCharacters) break
  }
  return text
}
