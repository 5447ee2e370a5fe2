/**
 * The Postgres tables that queries read through Drizzle, and their row types; `drizzle/tables.ts` has the others. Money is an
 * integer of 1e-8 USD. `updated_at` is written by the database's own clock, since every instance's cache uses it to find
 * changes.
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
  real,
  smallint,
  text,
  timestamp,
  unique,
  uniqueIndex,
} from 'drizzle-orm/pg-core'
import type { AlertEmail } from '../core/alerts/alerts.ts'
import { continuePolicies, fallbackPolicies, strategies } from '../core/chat/chat.ts'
import type { ScopeLimits } from '../core/limits/scopes.ts'
import type { HostChoice } from '../core/models/switches.ts'
import type { ConstraintsRow } from '../core/policy/constraints.ts'
import type { AccountRuleRow } from '../core/policy/rules.ts'
import type { Shadow } from '../core/usage/shadow.ts'
import { type AttemptRecord, type RequestTrace, recordedDialects, unpricedKinds } from '../core/usage/usage-record.ts'

export const momentColumn = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' })
export const wholeColumn = (name: string) => bigint(name, { mode: 'number' })
export const createdAt = () => momentColumn('created_at').notNull()
export const ofAccount = () =>
  text('account_id')
    .notNull()
    .references(() => accounts.id)
export const ofUser = () =>
  text('user_id')
    .notNull()
    .references(() => users.id)
export const updatedAt = () => momentColumn('updated_at').notNull().default(sql`clock_timestamp()`)

export const accounts = pgTable(
  'accounts',
  {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    plan: text('plan', { enum: ['evaluation', 'usage'] }).notNull(),
    /** Null = the plan's limit. */
    requestsPerMinute: integer('requests_per_minute'),
    concurrentRequests: integer('concurrent_requests'),
    dailyTokens: wholeColumn('daily_tokens'),
    dailyCostMicrocents: wholeColumn('daily_cost_microcents'),
    /**
     * Counts plan changes. A change names the version that it was based on, so that the second of two concurrent ones
     * is rejected.
     */
    version: integer('version').notNull().default(0),
    /** The current 30-day cycle; null on a plan without billing. */
    cycleStartedAt: momentColumn('cycle_started_at'),
    cycleEndsAt: momentColumn('cycle_ends_at'),
    /** Set by a downgrade: the plan after the cycle. */
    planAfterCycle: text('plan_after_cycle', { enum: ['evaluation', 'usage'] }),
    /** End of the grace period that the removal of the payment method started. */
    graceEndsAt: momentColumn('grace_ends_at'),
    /** When the first unpaid invoice was declined, which starts its grace period. Null = no invoice is unpaid. */
    unpaidSince: momentColumn('unpaid_since'),
    /** Per billing cycle, or per UTC calendar month without billing (`core/billing/grace.ts`); null = none. */
    softCapMicrocents: wholeColumn('soft_cap_microcents'),
    /** Whether its requests may search the web and fetch pages. */
    web: boolean('web').notNull().default(true),
    /** Fallback policy of its requests; null = `any`. */
    fallback: text('fallback', { enum: [...fallbackPolicies] }),
    /** Who may continue its cut texts; null = the request chooses. */
    continue: text('continue', { enum: [...continuePolicies] }),
    /** Rules for its requests, in their order; null = none. */
    rules: jsonb('rules').$type<AccountRuleRow[]>(),
    /** Constraints on who may receive its requests; null = none. */
    constraints: jsonb('constraints').$type<ConstraintsRow>(),
    /** Whether its requests may call a second model when the first token is late. */
    hedge: boolean('hedge').notNull().default(false),
    /** `provider/model` that savings compare with; null = the operator's. */
    baselineModel: text('baseline_model'),
    /** Share of requests that shadow evaluation compares, and its monthly cap; null = off. */
    shadow: jsonb('shadow').$type<Shadow>(),
    /** Total amount ever billed to the account, as of `balanceAt`. */
    balanceMicrocents: wholeColumn('balance_microcents').notNull().default(0),
    balanceAt: momentColumn('balance_at'),
    /** Whether users who sign in with a password must set up two-factor sign-in. */
    requiresTotp: boolean('requires_totp').notNull().default(false),
    stripeCustomerId: text('stripe_customer_id').unique('accounts_stripe_customer'),
    /** Its owners run the gateway: its provider keys serve all accounts. At most one, which no registration becomes. */
    isOperator: boolean('is_operator').notNull().default(false),
    /**
     * The account was deleted: nothing names people any more, the row stays for usage and invoices
     * (`console/account/store.ts`).
     */
    deletedAt: momentColumn('deleted_at'),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  table => [
    index('accounts_updated_at').on(table.updatedAt),
    index('accounts_cycle_ends_at').on(table.cycleEndsAt),
    uniqueIndex('accounts_operator').on(table.isOperator).where(sql`${table.isOperator}`),
    check('accounts_plan_after_cycle', sql`${table.planAfterCycle} in ('evaluation', 'usage')`),
    check('accounts_cycle', sql`${table.cycleStartedAt} < ${table.cycleEndsAt}`),
    check('accounts_soft_cap', sql`${table.softCapMicrocents} >= 0`),
    check('accounts_balance', sql`${table.balanceMicrocents} >= 0`),
    check('accounts_version', sql`${table.version} >= 0`),
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
    accountId: ofAccount(),
    /** Lower case: one user per mailbox. */
    email: text('email').notNull().unique('users_email'),
    /** Argon2id. */
    passwordHash: text('password_hash').notNull(),
    role: text('role', { enum: ['owner', 'admin', 'member', 'viewer'] }).notNull(),
    createdAt: createdAt(),
    /** Until then the password signs in where only single sign-on does otherwise: set by the operator's reset. */
    passwordSignInUntil: momentColumn('password_sign_in_until'),
    /** The address is not confirmed yet; null = confirmed, or no confirmation was required. */
    unverifiedSince: momentColumn('unverified_since'),
    /** The mailbox, the identity provider or a user whose own address is proven vouches for the address. */
    emailProven: boolean('email_proven').notNull().default(true),
    /**
     * The user left or was removed: email and password are blanked, the row stays for keys and records that reference
     * it.
     */
    removedAt: momentColumn('removed_at'),
  },
  table => [
    index('users_account').on(table.accountId),
    check('users_email_lower', sql`${table.email} = lower(${table.email})`),
    check('users_role', sql`${table.role} in ('owner', 'admin', 'member', 'viewer')`),
  ],
)

export const apiKeys = pgTable(
  'api_keys',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    userId: ofUser(),
    name: text('name').notNull(),
    /** The twelve characters that identify a key to users. */
    publicId: text('public_id').notNull().unique('api_keys_public_id'),
    /** SHA-256 of the whole key, hex. The key itself is not stored. */
    digest: text('digest').notNull().unique('api_keys_digest'),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    lastUsedAt: momentColumn('last_used_at'),
    revokedAt: momentColumn('revoked_at'),
    expiresAt: momentColumn('expires_at'),
    /** The first key of the key lineage, whose keys share usage; null = the key itself. */
    lineId: text('line_id'),
    /** Whether its requests may use the web, if the account's may. */
    web: boolean('web').notNull().default(true),
    /** Limits of its lineage beside the account's; null = none. */
    limits: jsonb('limits').$type<ScopeLimits>(),
    /** Patterns of the models that it may use; null = all. */
    models: jsonb('models').$type<string[]>(),
    /** Tags of all its requests. */
    tags: jsonb('tags').$type<Record<string, string>>(),
    /** Strategy of requests without one. */
    strategy: text('strategy', { enum: [...strategies] }),
    /** Fallback policy of its requests; null = the account's. */
    fallback: text('fallback', { enum: [...fallbackPolicies] }),
    /** Who may continue its cut texts; null = the account's policy. */
    continue: text('continue', { enum: [...continuePolicies] }),
    /** Whether its requests hedge a late first token; null = as the account's. */
    hedge: boolean('hedge'),
    /** Constraints on who may receive its requests; null = none. */
    constraints: jsonb('constraints').$type<ConstraintsRow>(),
    /** Project of its requests; null = none. */
    projectId: text('project_id').references(() => projects.id),
    /** UTC day of the newest unbilled usage beyond reservations; null = none. */
    shortfallDay: date('shortfall_day', { mode: 'string' }),
    /** Sum of that day, and the request with the largest part of it. */
    shortfallMicrocents: wholeColumn('shortfall_microcents').notNull().default(0),
    shortfallRequestId: text('shortfall_request_id'),
    shortfallRequestMicrocents: wholeColumn('shortfall_request_microcents').notNull().default(0),
  },
  table => [
    index('api_keys_account').on(table.accountId),
    index('api_keys_project').on(table.projectId).where(sql`${table.projectId} is not null`),
    index('api_keys_user').on(table.userId),
    index('api_keys_updated_at').on(table.updatedAt),
    check('api_keys_shortfall', sql`${table.shortfallMicrocents} >= ${table.shortfallRequestMicrocents}`),
  ],
)

/**
 * Projects of an account. Their limits are those of the tag that the requests of their keys carry
 * (`core/request/tags.ts`).
 */
export const projects = pgTable(
  'projects',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    name: text('name').notNull(),
    createdAt: createdAt(),
    /** Constraints on who may receive its requests; null = none. */
    constraints: jsonb('constraints').$type<ConstraintsRow>(),
    /** An archived project has no valid key; its usage stays. */
    archivedAt: momentColumn('archived_at'),
  },
  table => [index('projects_account').on(table.accountId)],
)

/** Keys of providers that were added in the gateway, not in its environment: those of the operator, and own keys of accounts. */
export const providerKeys = pgTable(
  'provider_keys',
  {
    id: text('id').primaryKey(),
    accountId: text('account_id')
      .notNull()
      .references(() => accounts.id),
    /** Project whose requests use it; null = those of the account or, with the operator's account, of all accounts. */
    projectId: text('project_id').references(() => projects.id),
    /** The configured provider, or the preset, that it belongs to. */
    provider: text('provider').notNull(),
    name: text('name').notNull(),
    /** Sealed under the session secret. */
    secret: text('secret').notNull(),
    /** The last characters of the key, which tell people which one it is. */
    hint: text('hint').notNull(),
    /** Whether the operator's keys, which are billed, serve when this own key fails. */
    fallback: boolean('fallback').notNull().default(true),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  table => [
    uniqueIndex('provider_keys_name').on(
      table.accountId,
      sql`coalesce(${table.projectId}, '')`,
      table.provider,
      table.name,
    ),
  ],
)

/** What the operator's account has changed about models while the gateway runs. A model without a row is as configured. */
export const modelSwitches = pgTable('model_switches', {
  /** `provider/model`. */
  model: text('model').primaryKey(),
  enabled: boolean('enabled').notNull().default(true),
  /** Its hosts in the order of calls; null = as configured. */
  hosts: jsonb('hosts').$type<readonly HostChoice[]>(),
  updatedAt: updatedAt(),
})

/** Limits of all requests of an account with one tag. A change also touches the account's row, whose change instances poll. */
export const tagLimits = pgTable(
  'tag_limits',
  {
    accountId: ofAccount(),
    name: text('name').notNull(),
    value: text('value').notNull(),
    limits: jsonb('limits').$type<ScopeLimits>().notNull(),
    createdAt: createdAt(),
  },
  table => [primaryKey({ name: 'tag_limits_key', columns: [table.accountId, table.name, table.value] })],
)

export const paymentMethods = pgTable(
  'payment_methods',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    kind: text('kind', { enum: ['manual', 'stripe'] }).notNull(),
    stripePaymentMethodId: text('stripe_payment_method_id').unique('payment_methods_stripe'),
    /** The displayed part: `visa`, `4242`. */
    brand: text('brand'),
    lastFour: text('last_four'),
    createdAt: createdAt(),
    removedAt: momentColumn('removed_at'),
  },
  table => [
    uniqueIndex('payment_methods_active').on(table.accountId).where(sql`${table.removedAt} is null`),
    check('payment_methods_kind', sql`${table.kind} in ('manual', 'stripe')`),
    check('payment_methods_stripe_id', sql`(${table.kind} = 'stripe') = (${table.stripePaymentMethodId} is not null)`),
  ],
)

/** Every change of plan, append-only; `version` is the account's version after it. */
export const planChanges = pgTable(
  'plan_changes',
  {
    accountId: ofAccount(),
    version: integer('version').notNull(),
    fromPlan: text('from_plan', { enum: ['evaluation', 'usage'] }).notNull(),
    toPlan: text('to_plan', { enum: ['evaluation', 'usage'] }).notNull(),
    /** Null = the gateway itself, or its operator. */
    userId: text('user_id').references(() => users.id),
    requestedAt: momentColumn('requested_at').notNull(),
    effectiveAt: momentColumn('effective_at').notNull(),
  },
  table => [
    primaryKey({ name: 'plan_changes_key', columns: [table.accountId, table.version] }),
    check(
      'plan_changes_plans',
      sql`${table.fromPlan} in ('evaluation', 'usage') and ${table.toPlan} in ('evaluation', 'usage')`,
    ),
  ],
)

/** 30 days each, starting with the upgrade; `end` is the start of the next one. */
export const billingCycles = pgTable(
  'billing_cycles',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    startsAt: momentColumn('starts_at').notNull(),
    endsAt: momentColumn('ends_at').notNull(),
    /** When its invoice was created. */
    closedAt: momentColumn('closed_at'),
  },
  table => [
    unique('billing_cycles_start').on(table.accountId, table.startsAt),
    index('billing_cycles_open').on(table.endsAt).where(sql`${table.closedAt} is null`),
    check('billing_cycles_order', sql`${table.startsAt} < ${table.endsAt}`),
  ],
)

export const invoices = pgTable(
  'invoices',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    /** One invoice per cycle, even if several instances close it. */
    cycleId: text('cycle_id')
      .notNull()
      .unique('invoices_cycle')
      .references(() => billingCycles.id),
    status: text('status', { enum: ['open', 'paid', 'unpaid', 'void'] }).notNull(),
    /** The exact sum of its lines. */
    totalMicrocents: wholeColumn('total_microcents').notNull(),
    /** Amount charged, in whole cents. */
    totalCents: wholeColumn('total_cents').notNull(),
    issuedAt: momentColumn('issued_at').notNull(),
    paidAt: momentColumn('paid_at'),
    stripeInvoiceId: text('stripe_invoice_id').unique('invoices_stripe'),
    updatedAt: updatedAt(),
  },
  table => [
    index('invoices_due').on(table.updatedAt).where(sql`${table.status} in ('open', 'unpaid')`),
    index('invoices_account').on(table.accountId, table.issuedAt.desc().nullsFirst()),
    check('invoices_status', sql`${table.status} in ('open', 'paid', 'unpaid', 'void')`),
    check('invoices_totals', sql`${table.totalMicrocents} >= 0 and ${table.totalCents} >= 0`),
    check('invoices_paid', sql`(${table.status} = 'paid') = (${table.paidAt} is not null)`),
  ],
)

export const invoiceLines = pgTable(
  'invoice_lines',
  {
    invoiceId: text('invoice_id')
      .notNull()
      .references(() => invoices.id),
    /** `provider/model`. */
    model: text('model').notNull(),
    requests: wholeColumn('requests').notNull(),
    inputTokens: wholeColumn('input_tokens').notNull(),
    cachedInputTokens: wholeColumn('cached_input_tokens').notNull(),
    outputTokens: wholeColumn('output_tokens').notNull(),
    reasoningTokens: wholeColumn('reasoning_tokens').notNull(),
    amountMicrocents: wholeColumn('amount_microcents').notNull(),
  },
  table => [
    primaryKey({ name: 'invoice_lines_key', columns: [table.invoiceId, table.model] }),
    check(
      'invoice_lines_amounts',
      sql`least(${table.requests}, ${table.inputTokens}, ${table.cachedInputTokens}, ${table.outputTokens}, ${table.reasoningTokens}, ${table.amountMicrocents}) >= 0`,
    ),
  ],
)

/** Payment events that were processed: row and effect are one transaction, so that a repeated event is recognized. */
export const webhookEvents = pgTable(
  'webhook_events',
  {
    id: text('id').primaryKey(),
    type: text('type').notNull(),
    /** ID of its object at the payment processor. */
    objectId: text('object_id'),
    accountId: text('account_id').references(() => accounts.id),
    /** When it occurred, by the processor's clock. */
    occurredAt: momentColumn('occurred_at').notNull(),
    receivedAt: momentColumn('received_at').notNull(),
  },
  table => [
    index('webhook_events_object').on(table.objectId),
    index('webhook_events_received_at').on(table.receivedAt),
  ],
)

/**
 * The usage ledger: one row per request, append-only except for a checkpoint that a truer record replaces
 * (`usage_replaced` archives the old row). Partitioned by month on `at` (by hand in the migration, since the generator
 * does not support it), so that old months can be dropped or moved as a whole. A key of a partitioned table must
 * include `at`; a record's admission time never changes, so the pair is as unique as the request ID.
 */
export const usageRecords = pgTable(
  'usage_records',
  {
    requestId: text('request_id').notNull(),
    at: momentColumn('at').notNull(),
    accountId: text('account_id').notNull(),
    keyId: text('key_id').notNull(),
    provider: text('provider').notNull(),
    model: text('model').notNull(),
    /** `provider/model` that the request named, or `gateway-ai`. */
    requestedModel: text('requested_model'),
    /** ID that the serving provider gave its response. */
    upstreamId: text('upstream_id'),
    /** Indexed in its place: IDs are in no order, and numbers of 4 bytes need a third of the space. */
    upstreamHash: integer('upstream_hash').generatedAlwaysAs(sql`hashtext("upstream_id")`),
    routingMode: text('routing_mode', { enum: ['auto', 'manual'] }).notNull(),
    strategy: text('strategy'),
    queryType: text('query_type'),
    streamed: boolean('streamed').notNull(),
    /** The API form of the request. */
    dialect: text('dialect', { enum: [...recordedDialects] }),
    status: text('status', { enum: ['completed', 'failed', 'client_closed', 'blocked'] }).notNull(),
    errorCode: text('error_code'),
    finishReason: text('finish_reason'),
    inputTokens: wholeColumn('input_tokens').notNull(),
    cachedInputTokens: wholeColumn('cached_input_tokens').notNull(),
    cacheWriteTokens: wholeColumn('cache_write_tokens').notNull(),
    outputTokens: wholeColumn('output_tokens').notNull(),
    reasoningTokens: wholeColumn('reasoning_tokens').notNull(),
    estimated: boolean('estimated').notNull(),
    billedMicrocents: wholeColumn('billed_microcents').notNull(),
    reservedMicrocents: wholeColumn('reserved_microcents').notNull(),
    /** Unbilled usage beyond the reservation. */
    shortfallMicrocents: wholeColumn('shortfall_microcents').notNull().default(0),
    /** Parts of the billed amount. */
    searchMicrocents: wholeColumn('search_microcents').notNull().default(0),
    fetchMicrocents: wholeColumn('fetch_microcents').notNull().default(0),
    hedgeMicrocents: wholeColumn('hedge_microcents').notNull().default(0),
    /** Catalog cost of calls with the account's own provider keys, which is not billed; null = there were none. */
    ownKeyMicrocents: wholeColumn('own_key_microcents'),
    /** The part of its usage without a known price; null = none. */
    unpriced: text('unpriced', { enum: [...unpricedKinds] }),
    /** Cost at the baseline model minus what was paid, negative if that was more; null = not comparable. */
    routingSavedMicrocents: wholeColumn('routing_saved_microcents'),
    /** What the prompt cache saved, negative if writing cost more; null = it was not used. */
    cacheSavedMicrocents: wholeColumn('cache_saved_microcents'),
    attempts: smallint('attempts').notNull(),
    /** Attempts in order. */
    tried: jsonb('tried').$type<AttemptRecord[]>(),
    latencyMs: wholeColumn('latency_ms').notNull(),
    firstTokenMs: wholeColumn('first_token_ms'),
    metadata: jsonb('metadata').$type<Record<string, string>>(),
    /** Routing and attempts as numbers (`core/usage/usage-record.ts`); null = a checkpoint. */
    trace: jsonb('trace').$type<RequestTrace>(),
    truth: text('truth', { enum: ['final', 'checkpoint'] })
      .notNull()
      .default('final'),
    /** Labels that the caller chose; null = none. */
    tags: jsonb('tags').$type<Record<string, string>>(),
    /** Learning data (`learning/learning.ts`) and the account's epoch that it is of; null = none, or deleted. */
    learningEpoch: integer('learning_epoch'),
    quality: real('quality'),
    influenced: boolean('influenced'),
    choiceProbability: real('choice_probability'),
    enhanced: boolean('enhanced'),
    /** Stars, and the resulting quality, which replaces the inferred one. */
    rating: smallint('rating'),
    isHelpful: boolean('is_helpful'),
    ratedQuality: real('rated_quality'),
    ratedAt: momentColumn('rated_at'),
  },
  table => [
    primaryKey({ name: 'usage_records_key', columns: [table.requestId, table.at] }),
    // Read backwards, newest first; by ID within one millisecond, as a page begins after the last row of the previous one.
    // New rows then come last: an index in descending order is filled by half, and took a quarter longer.
    index('usage_records_page').on(table.accountId, table.at, table.requestId),
    index('usage_records_key_page').on(table.keyId, table.at, table.requestId),
    // Failed and unpriced requests are filtered most and are rare: the index is nearly free, and they are found without
    // scanning the others. Sums by model read only the index for the models that failed requests named.
    index('usage_records_marked_page')
      .on(table.accountId, table.at, table.requestId, table.keyId, table.status, table.model, table.requestedModel)
      .where(sql`${table.status} <> 'completed' or ${table.unpriced} is not null`),
    index('usage_records_upstream').on(table.upstreamHash).where(sql`${table.upstreamHash} is not null`),
    check('usage_records_quality', sql`${table.quality} between 0 and 1`),
    check(
      'usage_records_rating',
      sql`${table.rating} between 1 and 5 and (${table.rating} is null) = (${table.ratedAt} is null) and (${table.rating} is null) = (${table.ratedQuality} is null)`,
    ),
    check('usage_records_billed', sql`0 <= ${table.billedMicrocents}`),
    check(
      'usage_records_web',
      sql`least(${table.searchMicrocents}, ${table.fetchMicrocents}) >= 0 and ${table.searchMicrocents} + ${table.fetchMicrocents} <= ${table.billedMicrocents}`,
    ),
    check(
      'usage_records_counts',
      sql`least(${table.inputTokens}, ${table.cachedInputTokens}, ${table.cacheWriteTokens}, ${table.outputTokens}, ${table.reasoningTokens}, ${table.attempts}, ${table.latencyMs}, ${table.firstTokenMs}) >= 0`,
    ),
    check('usage_records_routing_mode', sql`${table.routingMode} in ('auto', 'manual')`),
    check('usage_records_status', sql`${table.status} in ('completed', 'failed', 'client_closed', 'blocked')`),
    // A checkpoint belongs to an incomplete request, so latency counts of completed ones are never subtracted.
    check(
      'usage_records_truth',
      sql`${table.truth} = 'final' or (${table.truth} = 'checkpoint' and ${table.status} <> 'completed')`,
    ),
  ],
)

const dailySums = () => ({
  requests: wholeColumn('requests').notNull(),
  completed: wholeColumn('completed').notNull(),
  /** Failed or blocked requests; client disconnects are in neither count. */
  failed: wholeColumn('failed').notNull().default(0),
  inputTokens: wholeColumn('input_tokens').notNull(),
  cachedInputTokens: wholeColumn('cached_input_tokens').notNull(),
  outputTokens: wholeColumn('output_tokens').notNull(),
  reasoningTokens: wholeColumn('reasoning_tokens').notNull(),
  billedMicrocents: wholeColumn('billed_microcents').notNull(),
  /** Catalog cost of calls with the account's own provider keys. */
  ownKeyMicrocents: wholeColumn('own_key_microcents').notNull().default(0),
  /** Negative if more was paid. */
  routingSavedMicrocents: wholeColumn('routing_saved_microcents').notNull().default(0),
  cacheSavedMicrocents: wholeColumn('cache_saved_microcents').notNull().default(0),
  /**
   * Latency counts of completed requests, total and to the first content, in the buckets of
   * `core/usage/latency-histogram.ts`.
   */
  latency: integer('latency').array().notNull().default(sql`'{}'`),
  firstToken: integer('first_token').array().notNull().default(sql`'{}'`),
})

/** Sums of the ledger per UTC day, written in the ledger's own transactions, so that the two always agree. */
export const usageDaily = pgTable(
  'usage_daily',
  {
    accountId: text('account_id').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    keyId: text('key_id').notNull(),
    /** `provider/model`; empty if no model was reached. */
    model: text('model').notNull(),
    ...dailySums(),
  },
  table => [
    primaryKey({ name: 'usage_daily_key', columns: [table.accountId, table.day, table.keyId, table.model] }),
    check(
      'usage_daily_sums',
      sql`least(${table.completed}, ${table.inputTokens}, ${table.cachedInputTokens}, ${table.outputTokens}, ${table.reasoningTokens}, ${table.billedMicrocents}) >= 0 and ${table.completed} <= ${table.requests}`,
    ),
  ],
)

/** The same sums per tag, for requests that have tags: one row per tag, key and model. */
export const usageTagsDaily = pgTable(
  'usage_tags_daily',
  {
    accountId: text('account_id').notNull(),
    /** `name=value`. */
    tag: text('tag').notNull(),
    day: date('day', { mode: 'string' }).notNull(),
    keyId: text('key_id').notNull(),
    model: text('model').notNull(),
    ...dailySums(),
  },
  table => [
    primaryKey({
      name: 'usage_tags_daily_key',
      columns: [table.accountId, table.tag, table.day, table.keyId, table.model],
    }),
    index('usage_tags_daily_day').on(table.accountId, table.day),
  ],
)

/**
 * Emails about money and alerts, one row per notice and receiver. Stored with the change that caused them, so that a
 * killed process loses none; marked once sent, so that none is sent again.
 */
export const emailNotices = pgTable(
  'email_notices',
  {
    accountId: ofAccount(),
    kind: text('kind', { enum: ['invoice_unpaid', 'grace_began', 'grace_ended', 'alert'] }).notNull(),
    /** The invoice's ID, the start of the grace period in ISO 8601, or the alert's ID with the time of its evaluation. */
    subject: text('subject').notNull(),
    userId: ofUser(),
    /** `dropped`: no longer true when it was due, or rejected by the mail server. */
    status: text('status', { enum: ['pending', 'sent', 'dropped'] })
      .notNull()
      .default('pending'),
    /** When it is sent or retried. */
    dueAt: momentColumn('due_at').notNull(),
    attempts: smallint('attempts').notNull().default(0),
    createdAt: createdAt(),
    /** What an alert says; its row is deleted when it is sent. Null = of billing, which is read when it is sent. */
    body: jsonb('body').$type<AlertEmail>(),
  },
  table => [
    primaryKey({ name: 'email_notices_key', columns: [table.accountId, table.kind, table.subject, table.userId] }),
    index('email_notices_due').on(table.dueAt).where(sql`${table.status} = 'pending'`),
    check('email_notices_kind', sql`${table.kind} in ('invoice_unpaid', 'grace_began', 'grace_ended', 'alert')`),
    check('email_notices_status', sql`${table.status} in ('pending', 'sent', 'dropped')`),
  ],
)

export type Account = typeof accounts.$inferSelect
export type NewAccount = typeof accounts.$inferInsert
export type User = typeof users.$inferSelect
export type NewUser = typeof users.$inferInsert
export type ApiKey = typeof apiKeys.$inferSelect
export type ProviderKey = typeof providerKeys.$inferSelect
export type NewApiKey = typeof apiKeys.$inferInsert
export type ProjectRow = typeof projects.$inferSelect
export type PaymentMethodRow = typeof paymentMethods.$inferSelect
export type BillingCycle = typeof billingCycles.$inferSelect
export type Invoice = typeof invoices.$inferSelect
export type InvoiceLine = typeof invoiceLines.$inferSelect
export type UsageRow = typeof usageRecords.$inferSelect
