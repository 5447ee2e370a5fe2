/** HTTP client for upstreams, plus a TCP reachability check that separates connection failures from slow responses. */
export type Network = {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Whether a TCP connection to the address's host can be made within `timeoutMs`. */
  reaches(url: string, timeoutMs: number): Promise<boolean>
}
