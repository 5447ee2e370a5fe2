import { type Static, Type } from '@sinclair/typebox'
import { attemptFailures, chatDialects } from '../chat/chat.ts'
import type { CompletedUsage } from '../validation/errors.ts'
import { oneOf } from '../validation/validate.ts'
import { toUsd } from './money.ts'

export const attemptOutcomes = ['served', ...attemptFailures] as const
export type TriedOutcome = (typeof attemptOutcomes)[number]

/** The API forms whose requests are in the ledger. */
export const recordedDialects = [...chatDialects, 'embeddings'] as const

/** As many as one request asks. */
const maximumTried = 3

/**
 * A model that was asked: `provider/model`, what came of it, and in milliseconds when (since the request was received) and for
 * how long, until it had failed or until its first content. Without names, since every record and row has them.
 */
const triedSchema = Type.Tuple([
  Type.String({ maxLength: 321 }),
  oneOf(attemptOutcomes),
  Type.Integer({ minimum: 0 }),
  Type.Integer({ minimum: 0 }),
])
export type AttemptRecord = Static<typeof triedSchema>

/**
 * `final`: as the request ended. `checkpoint`: what it had used when last heard of, as settled for a gateway that seemed dead;
 * the final record takes its place should it arrive (`usage-truth.ts`).
 */
export const truths = ['final', 'checkpoint'] as const
export type Truth = (typeof truths)[number]

/**
 * One request's line in the ledger, however the request ended, and content-free. It is a schema because
 * it is read back from a journal file or a stream, where a torn line must be told from a whole one.
 */
export const usageRecordSchema = Type.Object(
  {
    request_id: Type.String({ maxLength: 64 }),
    account_id: Type.String({ maxLength: 64 }),
    key_id: Type.String({ maxLength: 64 }),
    /** Epoch milliseconds of admission; the UTC day it is billed on. */
    at_ms: Type.Integer({ minimum: 0 }),
    /** Empty where no model was reached. */
    provider: Type.String({ maxLength: 64 }),
    model: Type.String({ maxLength: 256 }),
    routing_mode: Type.Union([Type.Literal('auto'), Type.Literal('manual')]),
    strategy: Type.Union([Type.String({ maxLength: 16 }), Type.Null()]),
    query_type: Type.Union([Type.String({ maxLength: 32 }), Type.Null()]),
    streamed: Type.Boolean(),
    /** The API form in which it was asked; absent in records from before it was told. */
    dialect: Type.Optional(oneOf(recordedDialects)),
    status: Type.Union([
      Type.Literal('completed'),
      Type.Literal('failed'),
      Type.Literal('client_closed'),
      Type.Literal('blocked'),
    ]),
    error_code: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
    finish_reason: Type.Union([Type.String({ maxLength: 32 }), Type.Null()]),
    input_tokens: Type.Integer({ minimum: 0 }),
    cached_input_tokens: Type.Integer({ minimum: 0 }),
    cache_write_tokens: Type.Integer({ minimum: 0 }),
    output_tokens: Type.Integer({ minimum: 0 }),
    reasoning_tokens: Type.Integer({ minimum: 0 }),
    /** The counts are ours, not the provider's. */
    estimated: Type.Boolean(),
    /** Integers of 1e-8 USD. 0 ≤ billed ≤ reserved. */
    billed_microcents: Type.Integer({ minimum: 0 }),
    reserved_microcents: Type.Integer({ minimum: 0 }),
    /** What was used and not billed, since more was used than had been reserved; absent = nothing. */
    shortfall_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Parts of what was billed; absent = none, as in records from before there was a web. */
    search_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    fetch_microcents: Type.Optional(Type.Integer({ minimum: 0 })),
    /** Those asked, and those skipped when their turn came. */
    attempts: Type.Integer({ minimum: 0, maximum: 16 }),
    /** Those asked, in order; absent in records from before it was told. */
    tried: Type.Optional(Type.Array(triedSchema, { maxItems: maximumTried })),
    latency_ms: Type.Integer({ minimum: 0 }),
    first_token_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
    /** Absent = final, as in records from before it was written. */
    truth: Type.Optional(oneOf(truths)),
    metadata: Type.Union([Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 })), Type.Null()]),
    /** What learning takes from a request that was answered; absent or null = nothing. */
    learning: Type.Optional(
      Type.Union([
        Type.Object(
          {
            quality: Type.Number({ minimum: 0, maximum: 1 }),
            /** Erasures of the account's learning when it was routed; null = not known then. */
            epoch: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
            influenced: Type.Boolean(),
            /** That the model which served would be chosen; null = it stood in for another. */
            choice_probability: Type.Union([Type.Number({ minimum: 0, maximum: 1 }), Type.Null()]),
            enhanced: Type.Boolean(),
            /** The request before it that asked the same, shortly before. */
            repeat_of: Type.Union([Type.String({ maxLength: 64 }), Type.Null()]),
          },
          { additionalProperties: false },
        ),
        Type.Null(),
      ]),
    ),
  },
  // A gateway of the next version may write more into a stream that this one reads: not known here is no reason to lose it.
  { additionalProperties: true },
)

export type UsageRecord = Static<typeof usageRecordSchema>

/** Whether a request had an effect that its caller must not have twice: it was completed, charged for, or seen in part. */
export function hasClientEffect(
  record: Pick<UsageRecord, 'status' | 'billed_microcents' | 'streamed' | 'first_token_ms'>,
): boolean {
  return (
    record.status === 'completed' || record.billed_microcents > 0 || (record.streamed && record.first_token_ms !== null)
  )
}

/** What a completed request used, as its callers are told. */
export function toCompletedUsage(
  record: Pick<UsageRecord, 'input_tokens' | 'output_tokens' | 'billed_microcents' | 'estimated'>,
): CompletedUsage {
  const { input_tokens, output_tokens, billed_microcents, estimated } = record
  const total_tokens = input_tokens + output_tokens
  return { input_tokens, output_tokens, total_tokens, cost_usd: toUsd(billed_microcents), estimated }
}
