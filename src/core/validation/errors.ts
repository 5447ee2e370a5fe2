/**
 * All errors of the gateway: each code with its status and type. An error has two texts: `message` tells the client
 * what to do next; `detail` tells the operator what happened and never leaves the process.
 */

type Row = { readonly status: number; readonly type: ErrorType }

type ErrorType =
  | 'invalid_request_error'
  | 'content_policy_violation'
  | 'authentication_error'
  | 'billing_error'
  | 'permission_error'
  | 'not_found_error'
  | 'conflict_error'
  | 'rate_limit_error'
  | 'insufficient_quota'
  | 'upstream_error'

export const errorTable = {
  invalid_request: { status: 400, type: 'invalid_request_error' },
  invalid_json: { status: 400, type: 'invalid_request_error' },
  context_length_exceeded: { status: 400, type: 'invalid_request_error' },
  unsupported_parameter: { status: 400, type: 'invalid_request_error' },
  previous_response_not_found: { status: 400, type: 'invalid_request_error' },
  constraints_unmet: { status: 400, type: 'invalid_request_error' },
  model_deprecated: { status: 400, type: 'invalid_request_error' },
  content_blocked: { status: 400, type: 'content_policy_violation' },
  conversation_stopped: { status: 400, type: 'invalid_request_error' },
  invalid_api_key: { status: 401, type: 'authentication_error' },
  invalid_token: { status: 401, type: 'authentication_error' },
  invalid_credentials: { status: 401, type: 'authentication_error' },
  two_factor_required: { status: 401, type: 'authentication_error' },
  payment_required: { status: 402, type: 'billing_error' },
  account_paused: { status: 402, type: 'billing_error' },
  forbidden: { status: 403, type: 'permission_error' },
  two_factor_setup_required: { status: 403, type: 'permission_error' },
  misdirected: { status: 421, type: 'permission_error' },
  model_not_found: { status: 404, type: 'not_found_error' },
  not_found: { status: 404, type: 'not_found_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  conflict: { status: 409, type: 'conflict_error' },
  already_completed: { status: 409, type: 'conflict_error' },
  body_too_large: { status: 413, type: 'invalid_request_error' },
  upgrade_required: { status: 426, type: 'invalid_request_error' },
  requests_per_minute_exceeded: { status: 429, type: 'rate_limit_error' },
  concurrent_requests_exceeded: { status: 429, type: 'rate_limit_error' },
  request_bytes_exceeded: { status: 429, type: 'rate_limit_error' },
  ip_rate_limited: { status: 429, type: 'rate_limit_error' },
  daily_tokens_exceeded: { status: 429, type: 'insufficient_quota' },
  daily_cost_exceeded: { status: 429, type: 'insufficient_quota' },
  monthly_cost_exceeded: { status: 429, type: 'insufficient_quota' },
  upstream_rate_limited: { status: 429, type: 'rate_limit_error' },
  upstream_failed: { status: 502, type: 'upstream_error' },
  no_model_available: { status: 503, type: 'upstream_error' },
  service_unavailable: { status: 503, type: 'upstream_error' },
  upstream_timeout: { status: 504, type: 'upstream_error' },
} as const satisfies Record<string, Row>

export type ErrorCode = keyof typeof errorTable

/**
 * Words by which client libraries recognize an error, and a sentence with them that is appended if missing. Sources:
 * LiteLLM `litellm_core_utils/exception_mapping_utils.py` (`ExceptionCheckers`, `_map_openai_exception`) and
 * `@langchain/openai` `utils/client` (`_isOpenAIContextOverflowError`). LangChain reports `tool_calls` in a 400 as its
 * own error about tool results.
 */
const recognizedWords: Partial<Record<ErrorCode, { readonly words: string; readonly sentence: string }>> = {
  context_length_exceeded: {
    words: "This model's maximum context length is",
    sentence: "This model's maximum context length is exceeded.",
  },
  content_blocked: {
    words: 'content_policy_violation',
    sentence: 'The request was rejected as a result of the safety system (content_policy_violation).',
  },
}

type LimitCode = {
  [Code in ErrorCode]: (typeof errorTable)[Code]['status'] extends 402 | 429 ? Code : never
}[ErrorCode]

/** Absent in a browser, for which this file only has types. */
type Runtime = { readonly process?: { readonly execPath: string }; readonly Bun?: { readonly version: string } }
const runtime: Runtime = Object(globalThis)

/**
 * Returns an operator command in a form that can be typed on this machine: without a global Bun installation (`npx`)
 * there is no `bun`. `executable` is the path of the running Bun, `place` that of this program: an installed package has no
 * script `gateway`.
 */
export function shellCommand(
  command: string,
  executable = runtime.process?.execPath ?? '',
  place = import.meta.url,
): string {
  const isPackage = /[\\/]node_modules[\\/]/.test(place)
  const bun = /[\\/]_npx[\\/]/.test(executable) ? `npx -y bun@${runtime.Bun?.version}` : 'bun'
  return `${bun} ${isPackage ? 'x gateway-ai-server' : 'run gateway'} ${command}`
}

/** Returns the sentence that names the operator's command for a limit of an account. */
function operatorChanges(option: string): string {
  return `The operator of this gateway can change it: \`${shellCommand(`accounts limits <email> ${option}`)}\`, for the operator's own account also page Settings.`
}

/** Sentence about a limit of the gateway's own that has no setting. */
export const fixedLimit = 'This limit protects the gateway and is fixed.'

/** Who can change the limit or resolve the state behind each 402 and 429, and how. `remedy` replaces the sentence. */
const remedies: Readonly<Partial<Record<ErrorCode, string>>> = {
  payment_required: 'An owner can resolve this in the dashboard or under /api/v1/billing.',
  account_paused: `The operator of this gateway can resume it: \`${shellCommand('accounts resume <email>')}\`.`,
  requests_per_minute_exceeded: operatorChanges('--rpm N'),
  concurrent_requests_exceeded: operatorChanges('--concurrent N'),
  request_bytes_exceeded: fixedLimit,
  ip_rate_limited: fixedLimit,
  daily_tokens_exceeded: operatorChanges('--daily-tokens N'),
  daily_cost_exceeded: operatorChanges('--daily-cost-usd N'),
  monthly_cost_exceeded: 'An owner or admin can change it in the dashboard.',
  upstream_rate_limited:
    "The operator of this gateway can raise the limits at the provider or configure more of the provider's keys.",
} satisfies Readonly<Record<LimitCode, string>>

function withRemedy(code: ErrorCode, message: string, remedy: string | null): string {
  const sentence = remedy ?? remedies[code] ?? ''
  return message.includes(sentence) ? message : `${message} ${sentence}`
}

function recognizable(code: ErrorCode, message: string): string {
  const { words, sentence } =
    errorTable[code].status === 429
      ? { words: 'Rate limit', sentence: 'Rate limit error.' }
      : (recognizedWords[code] ?? { words: '', sentence: '' })
  return message.includes(words) ? message : `${message} ${sentence}`
}

type ErrorOptions = {
  /** Dotted path of the invalid field, as the client wrote it: `messages.0.content`. */
  readonly param?: string | null
  /** Cause for the operator's log only. Never contains a prompt, an output or a secret. */
  readonly detail?: string | null
  /** Milliseconds after which the same request may succeed. */
  readonly retryAfterMs?: number | null
  /** Overrides the status-based retry of client libraries: `false` prevents it. */
  readonly shouldRetry?: boolean | null
  /** Moderation: the layer that blocked, and the category. */
  readonly layer?: string | null
  readonly category?: string | null
  /** The limit that was reached: `account.daily_tokens`, `key.daily_cost_usd`, `tag:team=search.requests_per_minute`. */
  readonly limit?: string | null
  /** Who can change the limit and how, instead of the usual sentence of the code. */
  readonly remedy?: string | null
  /** Candidates attempted or skipped before the request failed, in order; null = routing was not reached. */
  readonly attempts?: readonly ReportedAttempt[] | null
  /** The earlier request with the same `Idempotency-Key`. */
  readonly completed?: CompletedRequest | null
  /**
   * The provider's own error body about the request, for clients of its API form that recognize errors by their text.
   */
  readonly upstream?: UpstreamRefusal | null
  /** The code in an upstream's refusal of the request. */
  readonly upstreamCode?: string | null
  /** Facts that clients of Anthropic act on; null = none. */
  readonly details?: Readonly<Record<string, string>> | null
  /** Further headers of the response. */
  readonly headers?: Readonly<Record<string, string>>
}

type UpstreamRefusal = { readonly status: number; readonly body: string }

/** One candidate as reported to clients: `provider/model`, outcome and duration. */
type ReportedAttempt = { readonly model: string; readonly outcome: string; readonly durationMs: number }

/** A request that has already had its effect. */
type CompletedRequest = {
  /** Its request ID; null = only its result is known. */
  readonly requestId: string | null
  /** ID of the resource that it created. */
  readonly resultId: string | null
  readonly usage: CompletedUsage | null
}

export type CompletedUsage = {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly total_tokens: number
  readonly cost_usd: number
  readonly estimated: boolean
}

/** The only error type that reaches clients. Any other error becomes a 503 `service_unavailable` in the HTTP layer. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly param: string | null
  readonly detail: string | null
  readonly retryAfterMs: number | null
  readonly shouldRetry: boolean | null
  readonly layer: string | null
  readonly category: string | null
  readonly limit: string | null
  readonly remedy: string | null
  readonly attempts: readonly ReportedAttempt[] | null
  readonly completed: CompletedRequest | null
  readonly upstream: UpstreamRefusal | null
  readonly upstreamCode: string | null
  readonly details: Readonly<Record<string, string>> | null
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(withRemedy(code, recognizable(code, message), options.remedy ?? null))
    this.name = 'GatewayError'
    this.code = code
    this.param = options.param ?? null
    this.detail = options.detail ?? null
    this.retryAfterMs = options.retryAfterMs ?? null
    this.shouldRetry = options.shouldRetry ?? null
    this.layer = options.layer ?? null
    this.category = options.category ?? null
    this.limit = options.limit ?? null
    this.remedy = options.remedy ?? null
    this.attempts = options.attempts ?? null
    this.completed = options.completed ?? null
    this.upstream = options.upstream ?? null
    this.upstreamCode = options.upstreamCode ?? null
    this.details = options.details ?? null
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return errorTable[this.code].status
  }

  get type(): ErrorType {
    return errorTable[this.code].type
  }
}

/** Returns the same error with the field name that the client used. */
export function withParam(error: GatewayError, written: string): GatewayError {
  const message = error.message.replaceAll(`\`${error.param}\``, `\`${written}\``)
  return new GatewayError(error.code, message, { ...error, param: written })
}

/** Returns the code used in responses: `misdirected` is sent as `forbidden`, with status 421. */
export function wireCode(code: ErrorCode): string {
  return code === 'misdirected' ? 'forbidden' : code
}

/** Returns the JSON body of an error response, the same for all endpoints. */
export function errorBody(error: GatewayError, requestId: string): { error: Record<string, unknown> } {
  return {
    error: {
      type: error.type,
      code: wireCode(error.code),
      message: error.message,
      param: error.param,
      request_id: requestId,
      ...(error.layer === null ? {} : { layer: error.layer, category: error.category }),
      ...(error.limit === null ? {} : { limit: error.limit }),
      ...(error.details === null ? {} : { details: error.details }),
      ...(error.upstreamCode === null ? {} : { upstream_code: error.upstreamCode }),
      ...(error.attempts === null ? {} : { attempts: error.attempts.map(toAttemptFields) }),
      ...completedFields(error.completed),
    },
  }
}

function toAttemptFields({ model, outcome, durationMs }: ReportedAttempt) {
  return { model, outcome, duration_ms: durationMs }
}

/** `request_id` is that of the completed request, which feedback and the ledger accept. */
function completedFields(completed: CompletedRequest | null): Record<string, unknown> {
  if (completed === null) return {}
  const { requestId, resultId, usage } = completed
  return {
    ...(requestId === null ? {} : { request_id: requestId }),
    ...(resultId === null ? {} : { result_id: resultId }),
    ...(usage === null ? {} : { usage }),
  }
}

/** Returns the error code of a thrown value or its cause, as the system, a driver or Postgres gave it; null = none. */
export function systemErrorCode(cause: unknown): string | null {
  for (let at = cause, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++)
    if ('code' in at && typeof at.code === 'string') return at.code
  return null
}

/** Returns why background work failed, for a log entry. */
export function failureReason(error: unknown): string {
  if (error instanceof GatewayError) return error.detail ?? error.code
  return error instanceof Error ? error.message : 'a thrown value'
}
