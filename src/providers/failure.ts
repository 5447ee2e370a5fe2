/** Shared parts of reading upstream errors: blame, wait time, and what may be logged. */
import { type AttemptFailure, attemptFailures } from '../core/chat/attempts.ts'
import { getText, record } from './json.ts'
import type { Blame, ProviderFailure, RefusalReason } from './provider.ts'

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

/** Returns the kinds of failure by the names that a provider gives them. */
export function kindsByName(
  names: Readonly<Partial<Record<AttemptFailure, string>>>,
): ReadonlyMap<string | null, AttemptFailure> {
  const kinds = new Map<string, AttemptFailure>()
  for (const kind of attemptFailures) for (const name of names[kind]?.split(/\s+/) ?? []) kinds.set(name, kind)
  return kinds
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

/** Returns the failure of a request. Of one that was refused it names the field and the code at fault. */
export function requestFailure(
  kind: AttemptFailure,
  detail: string,
  { message, retryAfterMs = null, field = null, code = null }: ErrorFacts,
): ProviderFailure {
  const reason = kind === 'request_refused' ? refusalReason(field, code, message) : undefined
  return { ...providerFailure(kind, detail, retryAfterMs), ...(reason !== undefined && { reason }) }
}

type ErrorFacts = {
  readonly message: string
  readonly retryAfterMs?: number | null
  readonly field?: string | null
  readonly code?: unknown
}

/** Distinguishes failures of one name or status by their text. */
export function specificKind(kind: AttemptFailure, text: string): AttemptFailure {
  if (kind === 'rate_limited') return isQuotaExhausted(text) ? 'quota_exhausted' : kind
  const isOfRequest = kind === 'request_refused' || kind === 'request_too_large'
  return isOfRequest && isContextOverflow(text) ? 'context_overflow' : kind
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
function isQuotaExhausted(text: string): boolean {
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

/** Why an upstream refused a request: the field and the code that it names. Its text is never passed on. */

/** Names of request fields in the upstreams' APIs, by the name that they have in a chat request of the gateway. */
const namesTable: Readonly<Record<string, string>> = {
  max_output_tokens: 'max_tokens max_completion_tokens maxOutputTokens maxTokens num_predict',
  messages: 'input contents content system instructions systemInstruction system_instruction',
  response_format:
    'text format json_schema output_config output_format responseSchema response_schema responseJsonSchema response_json_schema responseMimeType response_mime_type',
  reasoning_effort:
    'reasoning effort thinking thinkingConfig thinking_config thinkingBudget thinkingLevel budget_tokens',
  stop: 'stop_sequences stopSequences',
  tools: 'functions functionDeclarations function_declarations toolConfig.functionDeclarations input_schema',
  tool_choice: 'function_call toolConfig tool_config allowedFunctionNames',
  n: 'candidateCount candidate_count',
  seed: 'random_seed',
  user: 'safety_identifier user_id',
  top_p: 'topP',
  top_k: 'topK',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
  logprobs: 'responseLogprobs response_logprobs',
}
const unchanged =
  'model temperature stream stream_options logit_bias top_logprobs parallel_tool_calls metadata store verbosity service_tier prompt_cache_key prompt_cache_retention prompt_cache_options prediction modalities audio web_search_options truncation include'

const known: ReadonlyMap<string, string> = new Map([
  ...unchanged.split(' ').map(name => [name, name] as const),
  ...Object.entries(namesTable).flatMap(([name, others]) =>
    [name, ...others.split(' ')].map(other => [other, name] as const),
  ),
])

/** Names that are also words. A text names a field with them only at its beginning. */
const words: ReadonlySet<string> = new Set('input text content format system stop user store model n'.split(' '))

/**
 * Returns the reason; undefined = the upstream names neither a field nor a code. `extras` may be named too: the client
 * sent fields of these names, and only routing knows them.
 */
function refusalReason(param: unknown, code: unknown, message: string): RefusalReason | undefined {
  const named = findField(getText(param)) ?? fieldInText(message.slice(0, maximumText))
  const other = named === null && /^\w{1,64}$/.test(getText(param)) ? getText(param) : null
  const ownCode = typeof code === 'string' ? findIdentifier(code.toLowerCase()) : null
  if (named === null && other === null && ownCode === null) return undefined
  return { field: named, otherField: other, code: ownCode }
}

/** A field is named near the beginning. */
const maximumText = 2_048

/** Returns the field of a path such as `tools[3].function.parameters`, with the index of a tool; null = unknown. */
function findField(path: string): string | null {
  const parts = path.slice(0, 256).split(/[^\w]+/)
  for (const [at, part] of parts.entries()) {
    const name = known.get(part)
    if (name === undefined) continue
    const next = parts[at + 1] ?? ''
    // `output_config.effort` and `reasoning.effort` are fields of their own here.
    if (next === 'effort') return 'reasoning_effort'
    return name === 'tools' && /^\d{1,4}$/.test(next) ? `tools.${next}` : name
  }
  return null
}

/** Returns the field that a text names: before a colon at its start, or in quotes. */
function fieldInText(text: string): string | null {
  const [, first] = /^\W{0,2}([\w.[\]]{1,128}):\s/.exec(text) ?? []
  const leading = first === undefined ? null : findField(first)
  if (leading !== null) return leading
  for (const [, quoted = ''] of text.matchAll(/[`'"]([A-Za-z][\w.[\]]{0,127})[`'"]/g))
    if (!words.has(quoted)) {
      const field = findField(quoted)
      if (field !== null) return field
    }
  return null
}

/** Returns the path of a field in FastAPI's form: `{"detail":[{"loc":["body","temperature"]}]}`. */
export function getLocation(detail: unknown): string {
  const { loc } = record(Array.isArray(detail) ? detail[0] : null)
  return Array.isArray(loc) ? loc.filter(part => part !== 'body').join('.') : ''
}
