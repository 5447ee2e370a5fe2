import type { QuotaStatus } from '../../core/limits/plans.ts'

/** Writes the headers by which Anthropic's client libraries know a request and the limits of its account. */
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
    // RFC 3339, by the second as Anthropic's own.
    headers.set(`anthropic-ratelimit-${kind}-reset`, new Date(nowMs + resetMs).toISOString().replace(/\.\d+Z$/, 'Z'))
  }
}
