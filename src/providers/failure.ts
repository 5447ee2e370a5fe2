/** What all adapters share in reading a refusal: whose fault each kind is, how long to wait, what may be said of it. */
import type { AttemptFailure } from '../core/chat/chat.ts'
import type { AnswerPart, Blame, ProviderFailure } from './provider.ts'

type Verdict = { readonly blame: Blame; readonly retryable: boolean }

/**
 * A context overflow is the caller's, yet a candidate with a larger window may take it: the only caller's failure that is
 * retryable. A missing model is the upstream's, so that it is marked and not asked again for a while.
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
  generation_failed: { blame: 'upstream', retryable: true },
}

/** A failure of this kind with its blame. `detail` is for the operator and must hold no free text of the upstream. */
export function failureOf(kind: AttemptFailure, detail: string, retryAfterMs: number | null = null): ProviderFailure {
  return { kind, ...verdicts[kind], retryAfterMs, detail }
}

/** The part of an answer that it fails with. */
export function failed(failure: ProviderFailure): AnswerPart {
  return { type: 'failure', failure }
}

/** A response of status 200 that contradicts itself: part of it was lost, however it ended. `how` is an identifier. */
export function truncated(how: string): AnswerPart {
  return failed(failureOf('truncated', `200 ${how}`))
}

/** What an HTTP status means by itself, before the body is looked at. Below 400 it is an answer nobody asked for. */
export function kindOfStatus(status: number): AttemptFailure {
  switch (status) {
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
    case 409:
    case 425:
      return 'unavailable'
    case 413:
      return 'request_too_large'
    case 429:
      return 'rate_limited'
    case 503:
    case 529:
      return 'overloaded'
  }
  if (status >= 500) return 'unavailable'
  return status >= 400 ? 'request_refused' : 'bad_answer'
}

/**
 * Milliseconds the provider asks to be left alone: `retry-after-ms`, else `retry-after` as seconds (fractions allowed) or
 * as an HTTP date, measured against the answer's own `date`, since an adapter has no clock. Null where it does not say.
 */
export function retryAfterOf(headers: Headers): number | null {
  const milliseconds = numberOf(headers.get('retry-after-ms'))
  // Azure sends `retry-after-ms: 0` beside `retry-after: 1`: a zero there says nothing.
  if (milliseconds !== null && milliseconds > 0) return Math.ceil(milliseconds)
  const value = headers.get('retry-after')
  const seconds = numberOf(value)
  if (seconds !== null) return Math.max(0, Math.ceil(seconds * 1000))
  if (value === null) return milliseconds === null ? null : 0
  const wait = Date.parse(value) - Date.parse(headers.get('date') ?? '')
  return Number.isFinite(wait) ? Math.max(0, wait) : null
}

function numberOf(value: string | null): number | null {
  return value !== null && /^\s*-?\d{1,15}(?:\.\d{0,9})?\s*$/.test(value) ? Number(value) : null
}

/** Lower case, each as at least one server words it; `test/providers/overflow-wordings.test.ts` has them in full. */
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
  // vLLM: the prompt left less than nothing for the output.
  'must be at least 1, got -',
]

/** True where an error text says that the conversation does not fit the model's window; each server words it its own way. */
export function isContextOverflow(text: string): boolean {
  const lower = text.toLowerCase()
  return overflowWordings.some(wording => lower.includes(wording))
}

/**
 * Wordings of a limit that no short wait lifts: money, or a day's or month's allowance. Neither "billing" nor "exceeded
 * your current quota" is one by itself: OpenAI and Google write them about a minute's rate too.
 */
const exhaustedQuota =
  /insufficient[ _](?:quota|balance|credit|fund)|credit balance|billing hard limit|spend(?:ing)?[ _](?:limit|cap)|per[ -]?(?:day|month)|(?:dai|week|month)ly|\b[rt]pd\b/i

/** True where a 429's text speaks of billing or of a daily allowance, not of a rate. */
export function isQuotaExhausted(text: string): boolean {
  return exhaustedQuota.test(text)
}

/** A provider's error type or code where it looks like an identifier, else null: anything longer may quote a prompt or a key. */
export function identifierOf(value: unknown): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : null
  return typeof value === 'string' && /^[a-z0-9_.-]{1,64}$/.test(value) ? value : null
}
