/**
 * Tables that no query reads through Drizzle: SQL does. They stand here for `bun run migrations`, and for tests of the whole
 * schema; the service does not load them.
 */
import { sql } from 'drizzle-orm'
import {
  boolean,
  check,
  doublePrecision,
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
} from 'drizzle-orm/pg-core'
import { type ManagementScope, projectRoles } from '../src/core/accounts/roles.ts'
import { type AlertMetric, budgetKinds, budgetSpans } from '../src/core/alerts/alerts.ts'
import { shadowVerdicts } from '../src/core/usage/shadow.ts'
import { recordedDialects } from '../src/core/usage/usage-record.ts'
import type { CompletedUsage } from '../src/core/validation/errors.ts'
import { webhookFormats } from '../src/core/webhooks/events.ts'
import {
  createdAt,
  momentColumn,
  ofAccount,
  ofUser,
  projects,
  updatedAt,
  users,
  wholeColumn,
} from '../src/database/tables.ts'

/** Roles of users in projects, beside their role in the account. */
export const projectMembers = pgTable(
  'project_members',
  {
    projectId: text('project_id')
      .notNull()
      .references(() => projects.id),
    userId: ofUser(),
    accountId: ofAccount(),
    role: text('role', { enum: [...projectRoles] }).notNull(),
    createdAt: createdAt(),
  },
  table => [
    primaryKey({ name: 'project_members_key', columns: [table.projectId, table.userId] }),
    index('project_members_user').on(table.userId),
    check('project_members_role', sql`${table.role} in ('viewer', 'member', 'admin')`),
  ],
)

/** A session's refresh tokens, including used ones: a reused token was stolen and ends the session. */
export const sessionTokens = pgTable(
  'session_tokens',
  {
    /** SHA-256, hex. */
    digest: text('digest').primaryKey(),
    sessionId: text('session_id')
      .notNull()
      .references(() => sessions.id, { onDelete: 'cascade' }),
    createdAt: createdAt(),
    usedAt: momentColumn('used_at'),
  },
  table => [index('session_tokens_session').on(table.sessionId)],
)

/** Failed sign-ins and lockouts of an email address (known or not) or a network address. */
export const signInFailures = pgTable(
  'sign_in_failures',
  {
    /** `mail:<SHA-256 of the address>`, `address:<address, IPv6 by /64>` or `change:<user id>`. */
    subject: text('subject').primaryKey(),
    /** Within the last 15 minutes, oldest first. */
    failedAt: timestamp('failed_at', { withTimezone: true, mode: 'date' }).array().notNull(),
    /** Number of lockouts: each is longer than the last. */
    locks: integer('locks').notNull().default(0),
    lockedUntil: momentColumn('locked_until'),
    updatedAt: updatedAt(),
  },
  table => [index('sign_in_failures_updated_at').on(table.updatedAt)],
)

/** Network addresses that a user has signed in from, to which a lockout does not apply. */
export const knownAddresses = pgTable(
  'known_addresses',
  {
    userId: ofUser(),
    /**
     * HMAC of email and network address under the session secret, so that the table does not reveal locations.
     */
    digest: text('digest').notNull(),
    lastUsedAt: momentColumn('last_used_at').notNull(),
    /** Failed sign-ins since the last successful one. */
    failures: smallint('failures').notNull().default(0),
  },
  table => [
    primaryKey({ name: 'known_addresses_key', columns: [table.userId, table.digest] }),
    check('known_addresses_failures', sql`${table.failures} >= 0`),
  ],
)

/** Mailed confirmations of email addresses: single use, one per user. */
export const emailVerifications = pgTable('email_verifications', {
  /** SHA-256 of the token, hex. */
  digest: text('digest').primaryKey(),
  userId: text('user_id')
    .notNull()
    .unique('email_verifications_user')
    .references(() => users.id),
  /** The address it was sent to. It becomes void if the user's address changes. */
  email: text('email').notNull(),
  createdAt: createdAt(),
  expiresAt: momentColumn('expires_at').notNull(),
})

export const passwordResets = pgTable(
  'password_resets',
  {
    /** SHA-256 of the token, hex. */
    digest: text('digest').primaryKey(),
    userId: ofUser(),
    /** The address it was sent to. It becomes void if the user's address changes. */
    email: text('email').notNull(),
    createdAt: createdAt(),
    expiresAt: momentColumn('expires_at').notNull(),
    usedAt: momentColumn('used_at'),
  },
  table => [index('password_resets_user').on(table.userId)],
)

/** Users at an OpenID provider, who are identified by issuer and subject only. */
export const userIdentities = pgTable(
  'user_identities',
  {
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    userId: ofUser(),
    createdAt: createdAt(),
    lastUsedAt: momentColumn('last_used_at').notNull(),
  },
  table => [
    primaryKey({ name: 'user_identities_key', columns: [table.issuer, table.subject] }),
    index('user_identities_user').on(table.userId),
  ],
)

/** Single sign-ons in progress. Each is valid once and for the browser that holds the secret. */
export const oidcSignIns = pgTable(
  'oidc_sign_ins',
  {
    /** SHA-256 of the secret in the browser's cookie, hex. */
    digest: text('digest').primaryKey(),
    /** Set after the provider has identified the user; null = the browser is at the provider. */
    userId: text('user_id').references(() => users.id),
    createdAt: createdAt(),
    expiresAt: momentColumn('expires_at').notNull(),
  },
  table => [index('oidc_sign_ins_expires_at').on(table.expiresAt)],
)

/** Secrets of two-factor sign-in (RFC 6238), one per user. */
export const totpSecrets = pgTable('totp_secrets', {
  userId: text('user_id')
    .primaryKey()
    .references(() => users.id),
  /** Sealed under the gateway's secret. */
  secret: text('secret').notNull(),
  /** Null = not confirmed by a first code, and without effect. */
  confirmedAt: momentColumn('confirmed_at'),
  /** Time step of the last accepted code: codes of this step and earlier ones are rejected. */
  lastStep: wholeColumn('last_step').notNull().default(0),
  createdAt: createdAt(),
})

/** Unused recovery codes. Use deletes them. */
export const totpRecoveryCodes = pgTable(
  'totp_recovery_codes',
  {
    userId: ofUser(),
    /** SHA-256, hex. */
    digest: text('digest').notNull(),
  },
  table => [primaryKey({ name: 'totp_recovery_codes_key', columns: [table.userId, table.digest] })],
)

/** Results of requests with an idempotency key. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    accountId: ofAccount(),
    /** HMAC of the client's idempotency key under its credential: no client text is stored. */
    name: text('name').notNull(),
    /** HMAC of route and body: a different request under the same key is an error. */
    requestDigest: text('request_digest').notNull(),
    status: text('status', { enum: ['running', 'finished'] }).notNull(),
    /** While running: the ID of the request that holds the claim. Then: the ID of the created resource. */
    resultId: text('result_id'),
    /** Usage, if the request is metered. */
    usage: jsonb('usage').$type<CompletedUsage>(),
    /** No request runs longer: after this time its instance has died. */
    leaseEndsAt: momentColumn('lease_ends_at').notNull(),
    createdAt: createdAt(),
  },
  table => [
    primaryKey({ name: 'idempotency_keys_key', columns: [table.accountId, table.name] }),
    index('idempotency_keys_created_at').on(table.createdAt),
    check('idempotency_keys_status', sql`${table.status} in ('running', 'finished')`),
  ],
)

/** URLs of an account that receive its events. */
export const webhookEndpoints = pgTable(
  'webhook_endpoints',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    url: text('url').notNull(),
    /** Event types that it receives. */
    events: text('events').array().notNull(),
    /** Signing secret, sealed under the session secret. */
    secret: text('secret').notNull(),
    /** The secret before the last rotation, sealed. It signs too until `previousUntil`. */
    previousSecret: text('previous_secret'),
    previousUntil: momentColumn('previous_until'),
    /** Null = enabled. */
    disabledAt: momentColumn('disabled_at'),
    disabledBy: text('disabled_by', { enum: ['user', 'failures'] }),
    /** First failed attempt since the last successful one; null = the last one succeeded. */
    failingSince: momentColumn('failing_since'),
    createdAt: createdAt(),
    /** Form of its requests. */
    format: text('format', { enum: [...webhookFormats] })
      .notNull()
      .default('standard'),
    /** Receives only events of this project; null = all events of the account. */
    projectId: text('project_id').references(() => projects.id),
  },
  table => [
    index('webhook_endpoints_account').on(table.accountId),
    check('webhook_endpoints_disabled', sql`(${table.disabledAt} is null) = (${table.disabledBy} is null)`),
  ],
)

/** Events on their way to an endpoint, and the log of their delivery: written with the change that caused them. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    /** `webhook-id` of the request, the same for every attempt. Ascends with time. */
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    endpointId: text('endpoint_id')
      .notNull()
      .references(() => webhookEndpoints.id, { onDelete: 'cascade' }),
    type: text('type').notNull(),
    /** Prevents a second delivery of an event that several gateways report; null = reported once. */
    eventKey: text('event_key'),
    /** Body of the request, the same bytes for every attempt. */
    body: text('body').notNull(),
    status: text('status', { enum: ['pending', 'delivered', 'failed'] })
      .notNull()
      .default('pending'),
    attempts: smallint('attempts').notNull().default(0),
    /** When it is sent, retried, or claimable again after the death of its sender. */
    dueAt: momentColumn('due_at').notNull().default(sql`clock_timestamp()`),
    createdAt: momentColumn('created_at').notNull().default(sql`clock_timestamp()`),
    attemptedAt: momentColumn('attempted_at'),
    /** HTTP status of the last attempt; null = no response. */
    responseStatus: smallint('response_status'),
    /** Code of the last failed attempt. */
    error: text('error'),
    durationMs: integer('duration_ms'),
  },
  table => [
    index('webhook_deliveries_due').on(table.dueAt).where(sql`${table.status} = 'pending'`),
    index('webhook_deliveries_page').on(table.endpointId, table.id.desc().nullsFirst()),
    unique('webhook_deliveries_event').on(table.endpointId, table.eventKey),
    check('webhook_deliveries_status', sql`${table.status} in ('pending', 'delivered', 'failed')`),
  ],
)

/**
 * Requests that were rejected before admission. They have no usage, so they are not in the ledger: this table only
 * explains them. Written in batches, bounded, and deleted after 30 days.
 */
export const rejectedRequests = pgTable(
  'rejected_requests',
  {
    requestId: text('request_id').primaryKey(),
    at: momentColumn('at').notNull(),
    accountId: text('account_id').notNull(),
    keyId: text('key_id').notNull(),
    /** Known models only: an unknown name may be a secret in the wrong field. */
    requestedModel: text('requested_model'),
    dialect: text('dialect', { enum: [...recordedDialects] }),
    strategy: text('strategy'),
    streamed: boolean('streamed').notNull(),
    errorCode: text('error_code').notNull(),
    /** Field that the error names. */
    param: text('param'),
    layer: text('layer'),
    /** Category of the layer; without one the limit, or the kind of the invalid value (`sent:number`). */
    category: text('category'),
    latencyMs: integer('latency_ms').notNull(),
  },
  table => [
    index('rejected_requests_page').on(
      table.accountId,
      table.at.desc().nullsFirst(),
      table.requestId.desc().nullsFirst(),
    ),
    index('rejected_requests_at').on(table.at),
  ],
)

/** Ledger rows before a truer record replaced them: written by a trigger on that table, append-only. */
export const usageReplaced = pgTable(
  'usage_replaced',
  {
    requestId: text('request_id').notNull(),
    accountId: text('account_id').notNull(),
    /** Time of the request. */
    at: momentColumn('at').notNull(),
    replacedAt: momentColumn('replaced_at').notNull(),
    /** The whole row, by its column names. */
    row: jsonb('row').notNull(),
  },
  table => [
    primaryKey({ name: 'usage_replaced_key', columns: [table.requestId, table.replacedAt] }),
    index('usage_replaced_at').on(table.at),
  ],
)

/**
 * Records close to midnight UTC. Two copies of such a record may name different days and be in two partitions, whose
 * key must include more than the request ID.
 */
export const usageNearMidnight = pgTable('usage_near_midnight', {
  requestId: text('request_id').primaryKey(),
  at: momentColumn('at').notNull(),
})

/** Accounts with learning data: their writes are serialized by this row, which also shows that caches are outdated. */
export const learningAccounts = pgTable(
  'learning_accounts',
  {
    accountId: text('account_id').primaryKey(),
    /** Number of deletions: entries routed under an earlier epoch are rejected whenever they arrive. */
    epoch: integer('epoch').notNull().default(0),
    erasedAt: momentColumn('erased_at'),
    /** Entries of epochs before this one are removed. */
    sweptEpoch: integer('swept_epoch').notNull().default(0),
    updatedAt: updatedAt(),
  },
  table => [
    index('learning_accounts_updated_at').on(table.updatedAt),
    index('learning_accounts_unswept').on(table.accountId).where(sql`${table.sweptEpoch} < ${table.epoch}`),
    check('learning_accounts_epochs', sql`0 <= ${table.sweptEpoch} and ${table.sweptEpoch} <= ${table.epoch}`),
  ],
)

/**
 * Learning cells per account, query type and model: `Cell` of `learning/learning-cell.ts`, under its own names.
 */
export const learningState = pgTable(
  'learning_state',
  {
    accountId: text('account_id').notNull(),
    queryType: text('query_type').notNull(),
    /** `provider/model`. */
    model: text('model').notNull(),
    requests: integer('requests').notNull(),
    entries: integer('entries').notNull(),
    /** Epoch milliseconds. */
    since: wholeColumn('since').notNull(),
    at: wholeColumn('at').notNull(),
    weight: real('weight').notNull(),
    quality: real('quality').notNull(),
    spread: real('spread').notNull(),
    slump: real('slump').notNull(),
    slumpWeight: real('slump_weight').notNull(),
    slumpQuality: real('slump_quality').notNull(),
    latencyMs: real('latency_ms').notNull(),
    firstTokenMs: real('first_token_ms'),
    costMicrocents: real('cost_microcents').notNull(),
    ratio: real('ratio').notNull(),
    ratioVariance: real('ratio_variance').notNull(),
    ratings: integer('ratings').notNull(),
    rating: real('rating').notNull(),
    automatic: integer('automatic').notNull(),
    influenced: integer('influenced').notNull(),
    enhanced: integer('enhanced').notNull(),
    enhancedQuality: real('enhanced_quality').notNull(),
    plainQuality: real('plain_quality').notNull(),
  },
  table => [primaryKey({ name: 'learning_state_key', columns: [table.accountId, table.queryType, table.model] })],
)

/**
 * Comparisons of shadow evaluation, without texts (`src/learning/shadow-comparisons.ts`). A row exists before its money is
 * spent. Money is an integer of 1e-8 USD.
 */
export const shadowComparisons = pgTable(
  'shadow_comparisons',
  {
    /** The request whose output is compared. */
    requestId: text('request_id').primaryKey(),
    accountId: ofAccount(),
    at: momentColumn('at').notNull(),
    /** Null = not classified. */
    queryType: text('query_type'),
    level: text('level').notNull(),
    /** `provider/model`, as the others; null effort = the model's default. */
    model: text('model').notNull(),
    effort: text('effort'),
    baselineModel: text('baseline_model').notNull(),
    judgeModel: text('judge_model').notNull(),
    /** Null = the comparison runs, or its process died: `microcents` is then the most that it can have cost. */
    verdict: text('verdict', { enum: [...shadowVerdicts] }),
    microcents: wholeColumn('microcents').notNull(),
    servedMicrocents: wholeColumn('served_microcents').notNull(),
    baselineMicrocents: wholeColumn('baseline_microcents').notNull().default(0),
  },
  table => [
    index('shadow_comparisons_account').on(table.accountId, table.at),
    check('shadow_comparisons_verdict', sql`${table.verdict} in ('win', 'tie', 'loss', 'none')`),
  ],
)

export const invitations = pgTable(
  'invitations',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    email: text('email').notNull(),
    role: text('role', { enum: ['admin', 'member', 'viewer'] }).notNull(),
    /** Project that the invited user joins as well, with its role there; null = none. */
    projectId: text('project_id').references(() => projects.id),
    projectRole: text('project_role', { enum: [...projectRoles] }),
    invitedBy: text('invited_by')
      .notNull()
      .references(() => users.id),
    /** SHA-256 of the token, hex. */
    digest: text('digest').notNull().unique('invitations_digest'),
    createdAt: createdAt(),
    expiresAt: momentColumn('expires_at').notNull(),
    acceptedAt: momentColumn('accepted_at'),
  },
  table => [
    index('invitations_account').on(table.accountId),
    check('invitations_email_lower', sql`${table.email} = lower(${table.email})`),
    check('invitations_role', sql`${table.role} in ('admin', 'member', 'viewer')`),
  ],
)

/**
 * Who changed what in an account: written with the change, append-only (`database/repositories/audit.ts`). Network addresses,
 * names of tags and details can be erased.
 */
export const auditLog = pgTable(
  'audit_log',
  {
    /** Ascends with time: the position of a page. */
    id: text('id').primaryKey(),
    accountId: text('account_id').notNull(),
    at: momentColumn('at').notNull().default(sql`clock_timestamp()`),
    actor: text('actor', { enum: ['user', 'cli', 'system'] }).notNull(),
    /** The user; null = the operator or the gateway itself. */
    userId: text('user_id'),
    /** Network address of the client, an IPv6 address as its network; null = none. */
    address: text('address'),
    action: text('action').notNull(),
    /** ID of the changed object, or `tag:<name>=<value>`; null = the account, or an erased tag. */
    target: text('target'),
    details: jsonb('details').$type<Readonly<Record<string, string | number | boolean | null>>>().notNull(),
  },
  table => [
    index('audit_log_page').on(table.accountId, table.id.desc().nullsFirst()),
    index('audit_log_at').on(table.at),
    check('audit_log_actor', sql`${table.actor} in ('user', 'cli', 'system')`),
  ],
)

/** Signed-in browsers and programs: one row per sign-in, deleted when it ends. */
export const sessions = pgTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    userId: ofUser(),
    /** User agent of the client, truncated. */
    userAgent: text('user_agent'),
    createdAt: createdAt(),
    lastUsedAt: momentColumn('last_used_at').notNull(),
    expiresAt: momentColumn('expires_at').notNull(),
    /** A session of single sign-on cannot be refreshed beyond this time; null = started with a password. */
    endsAt: momentColumn('ends_at'),
    /** Name and scopes of a management key, a session that its user created for a program; null = a person's session. */
    name: text('name'),
    scopes: text('scopes').array().$type<ManagementScope[]>(),
    /** SHA-256 of a management key, hex. */
    keyDigest: text('key_digest').unique(),
  },
  table => [
    index('sessions_user').on(table.userId, table.createdAt),
    index('sessions_account').on(table.accountId),
    index('sessions_expires_at').on(table.expiresAt),
  ],
)

/** Thresholds of an account, with the state of their evaluation. */
export const alertRules = pgTable(
  'alert_rules',
  {
    id: text('id').primaryKey(),
    accountId: ofAccount(),
    metric: text('metric').$type<AlertMetric>().notNull(),
    /** US dollars per UTC day, a share from 0 to 1, or p95 milliseconds. */
    threshold: doublePrecision('threshold').notNull(),
    windowMinutes: integer('window_minutes').notNull(),
    /** Budgets that `budget` covers; null = all. */
    budget: text('budget', { enum: [...budgetKinds] }),
    span: text('span', { enum: [...budgetSpans] }),
    /** Digests of the subjects that fire: names of keys and sessions are not stored here. */
    firing: jsonb('firing').$type<string[]>().notNull().default([]),
    /** The last computed value; null = too few requests. */
    value: doublePrecision('value'),
    changedAt: momentColumn('changed_at'),
    /** When it is evaluated next. */
    dueAt: momentColumn('due_at').notNull().default(sql`clock_timestamp()`),
    /** Sums at the start of the window; null = no window has started. */
    since: jsonb('since').$type<{ day: string; requests: number; failed: number; latency: number[] }>(),
    createdAt: createdAt(),
    /** Evaluates only requests of this project; null = all requests of the account. */
    projectId: text('project_id').references(() => projects.id),
  },
  table => [
    index('alert_rules_account').on(table.accountId),
    index('alert_rules_due').on(table.dueAt),
    check(
      'alert_rules_metric',
      sql`${table.metric} in ('spend', 'budget', 'error_rate', 'latency', 'model_failures', 'cache_drop', 'unpriced', 'runaway')`,
    ),
    check('alert_rules_threshold', sql`${table.threshold} > 0`),
  ],
)
