/**
 * The tables of Postgres, embedded or real. Row types come from here. Money is an integer of 1e-8 USD; `updated_at` is
 * written by the database's own clock, since it is what every gateway's cache looks for changes by.
 */
import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
} from 'drizzle-orm/pg-core'

const time = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })
const whole = (name: string) => bigint(name, { mode: 'number' })
const createdAt = () => time('created_at').notNull()
const updatedAt = () => time('updated_at').notNull().default(sql`clock_timestamp()`)

export const accounts = pgTable(
  'accounts',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    plan: text('plan', { enum: ['evaluation', 'usage'] }).notNull(),
    /** Null = the plan's own limit. */
    requestsPerMinute: integer('requests_per_minute'),
    concurrentRequests: integer('concurrent_requests'),
    dailyTokens: whole('daily_tokens'),
    dailyCostMicrocents: whole('daily_cost_microcents'),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  table => [
    index('accounts_updated_at').on(table.updatedAt),
    check('accounts_plan', sql`${table.plan} in ('evaluation', 'usage')`),
    check('accounts_requests_per_minute', sql`${table.requestsPerMinute} >= 0`),
    check('accounts_concurrent_requests', sql`${table.concurrentRequests} >= 0`),
    check('accounts_daily_tokens', sql`${table.dailyTokens} >= 0`),
    check('accounts_daily_cost', sql`${table.dailyCostMicrocents} >= 0`),
  ],
)

export const users = pgTable(
  'users',
  {
    id: text('id').primaryKey(),
    accountId: text('account_id')
      .notNull()
      .references(() => accounts.id),
    /** Lower case: one mailbox, one user. */
    email: text('email').notNull().unique('users_email'),
    /** Argon2id. */
    passwordHash: text('password_hash').notNull(),
    role: text('role', { enum: ['owner', 'admin', 'member'] }).notNull(),
    createdAt: createdAt(),
  },
  table => [
    index('users_account').on(table.accountId),
    check('users_email_lower', sql`${table.email} = lower(${table.email})`),
    check('users_role', sql`${table.role} in ('owner', 'admin', 'member')`),
  ],
)

export const apiKeys = pgTable(
  'api_keys',
  {
    id: text('id').primaryKey(),
    accountId: text('account_id')
      .notNull()
      .references(() => accounts.id),
    userId: text('user_id')
      .notNull()
      .references(() => users.id),
    name: text('name').notNull(),
    /** The twelve characters that a key may be spoken of by. */
    publicId: text('public_id').notNull().unique('api_keys_public_id'),
    /** SHA-256 of the whole key, hex. The key itself is stored nowhere. */
    digest: text('digest').notNull().unique('api_keys_digest'),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    lastUsedAt: time('last_used_at'),
    revokedAt: time('revoked_at'),
    expiresAt: time('expires_at'),
  },
  table => [index('api_keys_account').on(table.accountId), index('api_keys_updated_at').on(table.updatedAt)],
)

/**
 * The ledger: append-only, one row a request. Partitioned by month on `at` (by hand in the migration, which the generator
 * cannot say), so that old months are dropped or moved whole. A key of a partitioned table must hold `at`; a record's
 * admission time never changes, so the pair is as unique as the request id alone.
 */
export const usageRecords = pgTable(
  'usage_records',
  {
    requestId: text('request_id').notNull(),
    at: time('at').notNull(),
    accountId: text('account_id').notNull(),
    keyId: text('key_id').notNull(),
    provider: text('provider').notNull(),
    model: text('model').notNull(),
    routingMode: text('routing_mode', { enum: ['auto', 'manual'] }).notNull(),
    strategy: text('strategy'),
    queryType: text('query_type'),
    streamed: boolean('streamed').notNull(),
    status: text('status', { enum: ['completed', 'failed', 'client_closed', 'blocked'] }).notNull(),
    errorCode: text('error_code'),
    finishReason: text('finish_reason'),
    inputTokens: whole('input_tokens').notNull(),
    cachedInputTokens: whole('cached_input_tokens').notNull(),
    cacheWriteTokens: whole('cache_write_tokens').notNull(),
    outputTokens: whole('output_tokens').notNull(),
    reasoningTokens: whole('reasoning_tokens').notNull(),
    estimated: boolean('estimated').notNull(),
    billedMicrocents: whole('billed_microcents').notNull(),
    reservedMicrocents: whole('reserved_microcents').notNull(),
    attempts: smallint('attempts').notNull(),
    latencyMs: whole('latency_ms').notNull(),
    firstTokenMs: whole('first_token_ms'),
    metadata: jsonb('metadata').$type<Record<string, string>>(),
  },
  table => [
    primaryKey({ name: 'usage_records_key', columns: [table.requestId, table.at] }),
    index('usage_records_account_at').on(table.accountId, table.at),
    check(
      'usage_records_billed',
      sql`0 <= ${table.billedMicrocents} and ${table.billedMicrocents} <= ${table.reservedMicrocents}`,
    ),
    check(
      'usage_records_counts',
      sql`least(${table.inputTokens}, ${table.cachedInputTokens}, ${table.cacheWriteTokens}, ${table.outputTokens}, ${table.reasoningTokens}, ${table.attempts}, ${table.latencyMs}, ${table.firstTokenMs}) >= 0`,
    ),
    check('usage_records_status', sql`${table.status} in ('completed', 'failed', 'client_closed', 'blocked')`),
  ],
)

/** What the ledger adds up to per UTC day: written in the ledger's own transactions, so the two cannot disagree. */
export const usageDaily = pgTable(
  'usage_daily',
  {
    accountId: text('account_id').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    keyId: text('key_id').notNull(),
    /** `provider/model`; empty where no model was reached. */
    model: text('model').notNull(),
    requests: whole('requests').notNull(),
    completed: whole('completed').notNull(),
    inputTokens: whole('input_tokens').notNull(),
    cachedInputTokens: whole('cached_input_tokens').notNull(),
    outputTokens: whole('output_tokens').notNull(),
    reasoningTokens: whole('reasoning_tokens').notNull(),
    billedMicrocents: whole('billed_microcents').notNull(),
  },
  table => [
    primaryKey({ name: 'usage_daily_key', columns: [table.accountId, table.day, table.keyId, table.model] }),
    check(
      'usage_daily_sums',
      sql`least(${table.completed}, ${table.inputTokens}, ${table.outputTokens}, ${table.billedMicrocents}) >= 0 and ${table.completed} <= ${table.requests}`,
    ),
  ],
)

export type Account = typeof accounts.$inferSelect
export type NewAccount = typeof accounts.$inferInsert
export type User = typeof users.$inferSelect
export type NewUser = typeof users.$inferInsert
export type ApiKey = typeof apiKeys.$inferSelect
export type NewApiKey = typeof apiKeys.$inferInsert
export type UsageRow = typeof usageRecords.$inferSelect
