/** Attempts of a chat request: which candidates were called or skipped, and with which outcome. */

/** The outcome of one attempted or skipped candidate. */
export type Attempt = {
  /** `provider/model`. */
  readonly model: string
  readonly outcome: AttemptOutcome
  /** Monotonic milliseconds at which the candidate was attempted or skipped. */
  readonly startedAt: number
  /** Milliseconds until the failure or the first content. */
  readonly durationMs: number
  /** HTTP status of the upstream's response; absent or null = there was none. */
  readonly status?: number | null
  /** Host and key as the operator named them, `host#key`, for logs; absent = the provider's only key. */
  readonly via?: string
  /** Who received it, with its guarantees; absent = no constraint was in force. */
  readonly receiver?: string
  /** Name of the account's own key; absent = the operator's key was used. */
  readonly ownKey?: string
}

export const attemptFailures = [
  'rate_limited',
  'quota_exhausted',
  'overloaded',
  'unavailable',
  'credential_refused',
  'model_missing',
  'context_overflow',
  'content_filtered',
  'request_refused',
  'request_too_large',
  'timeout',
  'connection_failed',
  'bad_answer',
  'truncated',
  'empty_answer',
  'no_tool_call',
  'generation_failed',
] as const
export type AttemptFailure = (typeof attemptFailures)[number]

/** Failures that the request causes: they say nothing about the model. */
export const requestFailures = [
  'context_overflow',
  'content_filtered',
  'request_refused',
  'request_too_large',
  'no_tool_call',
] as const satisfies readonly AttemptFailure[]

/** Another attempt had the first content, so that the gateway canceled this one. */
export const hedgeLost = 'hedge_lost'

/**
 * Why a candidate was skipped when its turn came: the account cannot pay for it, its circuit is open, its cooldown has
 * not ended, its provider rejects the credential, the retry budget is exhausted, or its keys have no capacity.
 */
export const attemptSkips = [
  'skipped_over_budget',
  'skipped_circuit_open',
  'skipped_cooldown',
  'skipped_provider_disabled',
  'skipped_retry_budget',
  'skipped_rate_limit',
] as const
export type AttemptSkip = (typeof attemptSkips)[number]

export const candidateOutcomes = ['served', hedgeLost, ...attemptFailures, ...attemptSkips] as const
export type AttemptOutcome = (typeof candidateOutcomes)[number]

/** Result of hedging. `won`: the hedge served; `lost`: it began, and the first attempt served; `unused`: it did not begin. */
export type HedgeResult = 'won' | 'lost' | 'unused'

const keyFailures: ReadonlySet<AttemptFailure> = new Set(['rate_limited', 'quota_exhausted', 'credential_refused'])

/** Returns true if another key of the same provider may succeed with the same request. */
export function isKeyFailure(kind: AttemptFailure): boolean {
  return keyFailures.has(kind)
}

/**
 * Why a candidate has its place in a ranking. The step that moves a candidate writes the reason, so that an explanation
 * cannot contradict the order.
 */
export const placeReasons = [
  /** The request names it. */
  'requested',
  /** By its score, highest first. */
  'score',
  /** By its price, lowest first: the strategy `cost`. */
  'price',
  /** Ahead of a near score of another provider's second model, so that one outage does not affect both. */
  'other_provider',
  /** Ahead of its score, because it has the conversation in its prompt cache. */
  'cached',
  /** First, because a task of a conversation keeps its model. */
  'conversation',
  /** First, because this request explores a near tie. */
  'explored',
  /** Behind all models that allow the requested output length. */
  'output_limit',
  /** Behind all models that may be called now. */
  'unhealthy',
] as const
export type PlaceReason = (typeof placeReasons)[number]

export const healthStates = ['healthy', 'degraded', 'unhealthy'] as const
/** Displayed state of a model: unhealthy = not called; degraded = probed, or failing occasionally. */
export type HealthState = (typeof healthStates)[number]

export const outputCapLimits = ['model_limit', 'default', 'account_remaining'] as const
/**
 * The origin of the gateway's output cap: the limit of the model, `DEFAULT_MAX_OUTPUT_TOKENS`, or the request's share
 * of the daily limit.
 */
type OutputCapLimit = (typeof outputCapLimits)[number]

export type OutputCap = { readonly tokens: number; readonly limitedBy: OutputCapLimit }

/** All values are output tokens per choice. */
type OutputCaps = {
  /** Cap requested by the client; null = none. */
  readonly client: number | null
  /** Default if the client requests no cap. */
  readonly usual: number
  /** Output limit of the model that the reservation was sized for. */
  readonly plannedLimit: number
  /** Reserved output tokens. */
  readonly granted: number
  /** Output limit of the model being called. */
  readonly modelLimit: number
}

/** Returns the output cap that the gateway sets and its origin; null if the client's own cap applies. */
export function gatewayOutputCap({ client, usual, plannedLimit, granted, modelLimit }: OutputCaps): OutputCap | null {
  const tokens = Math.min(granted, modelLimit)
  if (client !== null && tokens >= client) return null
  const wanted = client ?? usual
  if (tokens < granted) return { tokens, limitedBy: 'model_limit' }
  if (granted < Math.min(wanted, plannedLimit)) return { tokens, limitedBy: 'account_remaining' }
  return { tokens, limitedBy: wanted > plannedLimit ? 'model_limit' : 'default' }
}
