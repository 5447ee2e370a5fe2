/** Shared parts of reading upstream errors: blame, wait time, and what may be logged. */
import type { AttemptFailure } from '../core/chat/attempts.ts'
import type { Blame, ProviderFailure } from './provider.ts'

type Verdict = { readonly blame: Blame; readonly retryable: boolean }

/**
 * A context overflow is caused by the client, but a candidate with a larger window may succeed: the only retryable
 * client error. A missing model is the upstream's fault, so that its circuit opens.
 */
const verdicts: Readonly<Record<AttemptFailure, Verdict>> = {
  rate_limited: { blame: 'upstream', retryable: true },
  quota_exhausted: { blame: 'us', retryable: true },
  overloaded: { blame: 'upstream', retryable: true },
  unavailable: { blame: 'upstream', retryable: true },
  credential_refused: { blame: 'us', retryable: true },
  model_missing: { blame: 'upstream', retryable: true },
  context_overflow: { blame: 'caller', retryable: true },
  content_filtered: { blame: 'caller', retryable: false },
  request_refused: { blame: 'caller', retryable: false },
  request_too_large: { blame: 'caller', retryable: false },
  timeout: { blame: 'upstream', retryable: true },
  connection_failed: { blame: 'upstream', retryable: true },
  bad_answer: { blame: 'upstream', retryable: true },
  truncated: { blame: 'upstream', retryable: true },
  empty_answer: { blame: 'upstream', retryable: true },
  no_tool_call: { blame: 'upstream', retryable: true },
  generation_failed: { blame: 'upstream', retryable: true },
}

/**
 * Returns a failure of this kind with its blame. `detail` is for the operator and must not contain free text of the
 * upstream.
 */
export function providerFailure(
  kind: AttemptFailure,
  detail: string,
  retryAfterMs: number | null = null,
): ProviderFailure {
  return { kind, ...verdicts[kind], retryAfterMs, detail }
}

/** Returns the failure of a response with status 200 that breaks its format. `how` is an identifier. */
export function badAnswer(how: string): ProviderFailure {
  return providerFailure('bad_answer', `200 ${how}`)
}

/** Returns the failure of an inconsistent response with status 200, part of which was lost. `how` is an identifier. */
export function truncated(how: string): ProviderFailure {
  return providerFailure('truncated', `200 ${how}`)
}

/**
 * Returns the kind of failure of an HTTP status before the body is read. Only 400 and 422 blame the request: any other
 * code can come from a proxy, an address or a rule that the client cannot change. Below 400 it is an unexpected response.
 */
export function kindOfStatus(status: number): AttemptFailure {
  switch (status) {
    case 400:
    case 422:
      return 'request_refused'
    case 401:
    case 403:
      return 'credential_refused'
    case 402:
      return 'quota_exhausted'
    case 404:
    case 410:
      return 'model_missing'
    case 408:
    case 504:
      return 'timeout'
    case 413:
      return 'request_too_large'
    case 429:
      return 'rate_limited'
    case 503:
    case 529:
      return 'overloaded'
  }
  return status >= 400 ? 'unavailable' : 'bad_answer'
}

/**
 * Returns the milliseconds that the provider requests to wait: `retry-after-ms`, else `retry-after` in seconds (also
 * fractional) or as an HTTP date relative to the response's `date`, since an adapter has no clock. Null = not stated.
 */
export function findRetryAfter(headers: Headers): number | null {
  const milliseconds = findNumber(headers.get('retry-after-ms'))
  // Azure sends `retry-after-ms: 0` beside `retry-after: 1`: 0 there means nothing.
  if (milliseconds !== null && milliseconds > 0) return Math.ceil(milliseconds)
  const value = headers.get('retry-after')
  const seconds = findNumber(value)
  if (seconds !== null) return Math.max(0, Math.ceil(seconds * 1000))
  if (value === null) return milliseconds === null ? null : 0
  const wait = Date.parse(value) - Date.parse(headers.get('date') ?? '')
  return Number.isFinite(wait) ? Math.max(0, wait) : null
}

function findNumber(value: string | null): number | null {
  return value !== null && /^\s*-?\d{1,15}(?:\.\d{0,9})?\s*$/.test(value) ? Number(value) : null
}

/**
 * In lower case, each used by at least one server; `test/providers/overflow-wordings.test.ts` has the complete texts.
 */
const overflowWordings = [
  'context_length_exceeded',
  'context length',
  'context window',
  'context limit',
  'context size',
  'exceed_context_size',
  'model_context_window_exceeded',
  'model_max_prompt_tokens_exceeded',
  'too_many_prompt_tokens',
  'token_quantity_exceeded',
  'tokens_limit_reached',
  'prompt is too long',
  'prompt too long',
  'input is too long',
  'all messages is too long',
  'prompt exceeds max length',
  'prompt token count',
  'maximum prompt length',
  'maximum model length',
  'input token count',
  'input tokens exceed',
  'input length should be',
  'number of input tokens',
  'total tokens limit',
  'max message tokens',
  'prompt cannot exceed',
  'too many input tokens',
  'too many tokens:',
  'has too many tokens',
  'reduce the length of the messages',
  'exceeded model token limit',
  '`inputs` must have less than',
  '`max_new_tokens` must be',
  // vLLM: the prompt left no room for output.
  'must be at least 1, got -',
]

/**
 * Returns true if an error text says that the conversation exceeds the context window. Every server words this
 * differently.
 */
export function isContextOverflow(text: string): boolean {
  const lower = text.toLowerCase()
  return overflowWordings.some(wording => lower.includes(wording))
}

/**
 * Wordings of a limit that a short wait does not lift: money, or a daily or monthly allowance. "billing" and "exceeded
 * your current quota" are not sufficient: OpenAI and Google also use them for rate limits.
 */
const exhaustedQuota =
  /insufficient[ _](?:quota|balance|credit|fund)|credit balance|billing hard limit|spend(?:ing)?[ _](?:limit|cap)|per[ -]?(?:day|month)|(?:dai|week|month)ly|\b[rt]pd\b/i

/** Returns true if the text of a 429 is about billing or a daily allowance, not a rate. */
export function isQuotaExhausted(text: string): boolean {
  return exhaustedQuota.test(text)
}

/**
 * Returns a provider's error type or code if it looks like an identifier, else null: longer text may quote a prompt or
 * a key.
 */
export function findIdentifier(value: unknown): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : null
  return typeof value === 'string' && /^[a-z0-9_.-]{1,64}$/.test(value) ? value : null
}
