import { type Static, Type } from '@sinclair/typebox'
import { type AttemptSkip, attemptFailures, type HealthState, hedgeLost, type PlaceReason } from '../chat/attempts.ts'
import { chatDialects, type FallbackPolicy, type ReasoningEffort } from '../chat/chat.ts'
import type { ActedRule } from '../policy/rules.ts'
import { oneOf, strictObject } from '../validation/validate.ts'

export const attemptOutcomes = ['served', hedgeLost, ...attemptFailures] as const
export type TriedOutcome = (typeof attemptOutcomes)[number]

/** API forms whose requests are in the ledger. */
export const recordedDialects = [...chatDialects, 'embeddings', 'decisions'] as const

/** Maximum number of attempts in a record. */
export const maximumTried = 3
/** Maximum count of attempted and skipped candidates in a record. */
export const maximumRecordedAttempts = 16

/** Longer IDs of providers are not stored. */
export const maximumUpstreamId = 128

/**
 * An attempt: `provider/model`, outcome, start in milliseconds since the request was received, and duration until the
 * failure or the first content. A tuple, since every record and row stores it.
 */
const triedSchema = Type.Tuple([
  Type.String({ maxLength: 321 }),
  oneOf(attemptOutcomes),
  Type.Integer({ minimum: 0 }),
  Type.Integer({ minimum: 0 }),
])
export type AttemptRecord = Static<typeof triedSchema>

/**
 * `final`: as the request ended. `checkpoint`: last known usage, settled for an instance that seemed dead. A final
 * record that arrives later replaces it (`usage-truth.ts`).
 */
const truths = ['final', 'checkpoint'] as const
export type Truth = (typeof truths)[number]

/**
 * Schema of a trace in the journal. It checks nothing inside: a trace only explains, so one of another version must
 * never make its record invalid.
 */
const requestTraceSchema = Type.Unsafe<RequestTrace>(Type.Object({}, { additionalProperties: true }))

/**
 * Usage without a known price. `model`: no price of the model, so that it counted as free. `tier`: none of the tier that the
 * provider reports, so that the usual one applied. `audio`: none of audio tokens, so that they counted as text.
 */
export const unpricedKinds = ['model', 'tier', 'audio'] as const
export type UnpricedKind = (typeof unpricedKinds)[number]

/**
 * The usage record of one request, whatever its outcome, without content. It is a schema because records are read back
 * from a journal file or a stream, where truncated lines must be detected.
 */
export const usageRecordSchema = Type.Object(
  {
    request_id: Type.String({ maxLength: 64 }),
    account_id: Type.String({ maxLength: 64 }),
    key_id: Type.String({ maxLength: 64 }),
    /** First key of the key's lineage; absent = the key itself. */
    lineage_id: Type.Optional(Type.String({ maxLength: 64 })),
    /** Epoch milliseconds of admission. Its UTC day is the billed day. */
    at_ms: Type.Integer({ minimum: 0 }),
    /** Empty if no model was reached. */
    provider: Type.String({ maxLength: 64 }),
    model: Type.String({ maxLength: 256 }),
    /** `provider/model` that the request named, or `gateway-ai` for automatic routing. */
    requested_model: Type.String({ maxLength: 321 }),
    /** ID that the serving provider gave its response; absent = none. */
    upstream_id: Type.Optional(Type.String({ maxLength: maximumUpstreamId })),
    routing_mode: oneOf(['auto', 'manual']),
    strategy: Type.Union([Type.String({ maxLength: 16 }), Type.Null()]),
    query_type: Type.Union([Type.String({ maxLength: 32 }), Type.Null()]),
    streamed: Type.Boolean(),
    /** The API form of the request. */
    dialect: oneOf(recordedDialects),
    status: oneOf(['completed', 'failed', 'client_closed', 'blocked']),
    error_code: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
    finish_reason: Type.Union([Type.String({ maxLength: 32 }), Type.Null()]),
    input_tokens: Type.Integer({ minimum: 0 }),
    cached_input_tokens: Type.Integer({ minimum: 0 }),
    cache_write_tokens: Type.Integer({ minimum: 0 }),
    output_tokens: Type.Integer({ minimum: 0 }),
    reasoning_tokens: Type.Integer({ minimum: 0 }),
    /** True if the gateway counted the tokens. */
    estimated: Type.Boolean(),
    /** Integers of 1e-8 USD. 0 ≤ billed ≤ reserved. */
    billed_microcents: Type.Integer({ minimum: 0 }),
    reserved_microcents: Type.Integer({ minimum: 0 }),
    /** Usage beyond the reservation, which is not billed; absent = none. */
    shortfall_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Parts of the billed amount; absent = none. */
    search_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    fetch_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    hedge_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Catalog cost of calls with the account's own provider keys, which is not billed; absent = there were none. */
    own_key_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Cost at the baseline model minus what was paid, negative if that was more; absent = not comparable. */
    routing_saved_microcents: Type.Optional(Type.Integer()),
    /** What the prompt cache saved, negative if writing cost more; absent = it was not used. */
    cache_saved_microcents: Type.Optional(Type.Integer()),
    /** Attempted and skipped candidates. */
    /** Absent = all usage has a known price. */
    unpriced: Type.Optional(oneOf(unpricedKinds)),
    attempts: Type.Integer({ minimum: 0, maximum: maximumRecordedAttempts }),
    /** Attempts in order. */
    tried: Type.Array(triedSchema, { maxItems: maximumTried }),
    latency_ms: Type.Integer({ minimum: 0 }),
    first_token_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
    /** How it was routed and why it ended; absent in checkpoints. */
    trace: Type.Optional(requestTraceSchema),
    /** Admitted from an allowance (`limits/allowance.ts`): Redis may not know the request. Absent = by its usual store. */
    from_allowance: Type.Optional(Type.Literal(true)),
    /** Absent = final. */
    truth: Type.Optional(oneOf(truths)),
    metadata: Type.Union([Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 })), Type.Null()]),
    /** Labels that the caller chose (`core/request/tags.ts`); absent = none. */
    tags: Type.Optional(Type.Record(Type.String({ maxLength: 32 }), Type.String({ maxLength: 64 }))),
    /** Learning data of a successful request; absent or null = none. */
    learning: Type.Optional(
      Type.Union([
        strictObject({
          quality: Type.Number({ minimum: 0, maximum: 1 }),
          /** Number of deletions of the account's learning data when the request was routed; null = unknown. */
          epoch: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
          influenced: Type.Boolean(),
          /** Probability that the serving model would be chosen; null = it was a fallback. */
          choice_probability: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]),
          enhanced: Type.Boolean(),
          /** A recent request with the same prompt. */
          repeat_of: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
        }),
        Type.Null(),
      ]),
    ),
  },
  // A newer version may add fields to a stream that this one reads. Unknown fields must not invalidate the record.
  { additionalProperties: true },
)

export type UsageRecord = Static<typeof usageRecordSchema>

/**
 * Returns true if a request had an effect that must not be repeated: it completed, was charged, or part of it was sent.
 */
export function hasClientEffect(
  record: Pick<UsageRecord, 'status' | 'billed_microcents' | 'own_key_microcents' | 'streamed' | 'first_token_ms'>,
): boolean {
  const { status, billed_microcents: billed, own_key_microcents: ownKey = 0, streamed, first_token_ms } = record
  return status === 'completed' || billed + ownKey > 0 || (streamed && first_token_ms !== null)
}

/** Returns the `provider/model` that served a request; empty = none did. */
export function servingModel({ provider, model }: Pick<UsageRecord, 'provider' | 'model'>): string {
  return model === '' ? '' : `${provider}/${model}`
}

type BilledRecord = Pick<
  UsageRecord,
  'billed_microcents' | 'search_microcents' | 'fetch_microcents' | 'hedge_microcents'
>

/** Returns what a request was billed for the model itself, without searches, pages and a hedge. */
export function modelMicrocents(record: BilledRecord): number {
  const { search_microcents: search = 0, fetch_microcents: fetch = 0, hedge_microcents: hedge = 0 } = record
  return record.billed_microcents - search - fetch - hedge
}

/**
 * The content-free trace of one request: how it was routed at that time, and the facts behind its attempts and cost. It
 * is one compact JSON value of a usage record, because every record is stored: short names, scores as integers of a
 * thousandth, at most `maximumTraced` candidates.
 */

export const maximumTraced = 8

/** Quality, cost, speed, reliability and adjustment in thousandths; their sum is the score. */
type TracedParts = readonly [number, number, number, number, number]

/** `provider/model`, score in thousandths, reason of its place, health, and the score components; null = no scores. */
export type TracedCandidate = readonly [
  model: string,
  score: number,
  place: PlaceReason,
  health: HealthState,
  parts: TracedParts | null,
]

/** Steps of runaway protection (`models/runaway.ts`). */
export const runawaySteps = ['warn', 'lower', 'stop'] as const
export type RunawayStep = (typeof runawaySteps)[number]

export type RequestTrace = {
  /** Candidates in the order of the ranking. */
  readonly c: readonly TracedCandidate[]
  /** HTTP statuses of the record's `tried`, in its order; 0 = no response. */
  readonly s?: readonly number[]
  /** Names of the account's own keys in the order of `tried`, empty for a key of the operator; absent = none was called. */
  readonly o?: readonly string[]
  /** Cost of uncached input, cached input, cache writes and output in 1e-8 USD, before rounding up; absent = nothing. */
  readonly b?: readonly [number, number, number, number]
  /** Prices of uncached input, cached input, cache writes and output in USD per million tokens, and their source; absent = none. */
  readonly r?: readonly [number, number, number, number, string]
  /**
   * The baseline model, its cost in 1e-8 USD, and the tokens that it would have read from its cache and written to it; absent =
   * not comparable.
   */
  readonly v?: readonly [model: string, microcents: number, cached: number, written: number]
  /** Moderation layer and category that decided; absent = none did. */
  readonly m?: readonly [layer: string, category: string]
  /** Field that the error names; absent = none. */
  readonly p?: string
  /** Candidates that were not called in their turn; absent = none. */
  readonly k?: readonly (readonly [model: string, reason: AttemptSkip])[]
  /** Fallback policy in force; absent = `any`. */
  readonly f?: FallbackPolicy
  /** Constraints in force, and the receivers of the prompt with their guarantees, in the order of calls; absent = none. */
  readonly g?: readonly [constraints: readonly string[], receivers: readonly string[]]
  /** Rules that changed the requested model, in order; absent = none. */
  readonly u?: readonly ActedRule[]
  /** Effort of the serving attempt; absent = its provider's default. */
  readonly e?: ReasoningEffort
  /** Step of runaway protection that the conversation had reached; absent = none. */
  readonly w?: Exclude<RunawayStep, 'stop'>
}

/** Converts a share or score to thousandths, without a negative zero. */
export function toThousandths(value: number): number {
  return Math.round(value * 1000) + 0
}

/** Usage of an account on one day. Money is an integer of 1e-8 USD. */
export type DailyUsage = { readonly tokens: number; readonly microcents: number }

export const nothing: DailyUsage = { tokens: 0, microcents: 0 }

/** Returns the sum of several daily usages. */
export function getSum(all: readonly DailyUsage[]): DailyUsage {
  return all.reduce(
    (sum, dailyUsage) => ({
      tokens: sum.tokens + dailyUsage.tokens,
      microcents: sum.microcents + dailyUsage.microcents,
    }),
    nothing,
  )
}

/** Returns the usage that a record counts against its day. */
export function getSpent(record: UsageRecord): DailyUsage {
  return { tokens: record.input_tokens + record.output_tokens, microcents: record.billed_microcents }
}
