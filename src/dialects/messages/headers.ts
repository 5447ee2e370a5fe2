import type { QuotaStatus } from '../../core/limits/plans.ts'

/** Writes the headers from which Anthropic's client libraries read the request ID and the limits of the account. */
export function writeMessagesHeaders(
  headers: Headers,
  requestId: string,
  quota: QuotaStatus | null,
  nowMs: number,
): void {
  headers.set('request-id', requestId)
  if (quota === null) return
  const limits = { requests: quota.requests, tokens: quota.tokens }
  for (const [kind, { limit, remaining, resetMs }] of Object.entries(limits)) {
    headers.set(`anthropic-ratelimit-${kind}-limit`, String(limit))
    headers.set(`anthropic-ratelimit-${kind}-remaining`, String(remaining))
    // RFC 3339 with a precision of seconds, as in Anthropic's API.
    headers.set(`anthropic-ratelimit-${kind}-reset`, new Date(nowMs + resetMs).toISOString().replace(/\.\d+Z$/, 'Z'))
  }
}
