CREATE TABLE "accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"plan" text NOT NULL,
	"requests_per_minute" integer,
	"concurrent_requests" integer,
	"daily_tokens" bigint,
	"daily_cost_microcents" bigint,
	"version" integer DEFAULT 0 NOT NULL,
	"cycle_started_at" timestamp with time zone,
	"cycle_ends_at" timestamp with time zone,
	"plan_after_cycle" text,
	"grace_ends_at" timestamp with time zone,
	"unpaid_since" timestamp with time zone,
	"soft_cap_microcents" bigint,
	"web" boolean DEFAULT true NOT NULL,
	"fallback" text,
	"continue" text,
	"rules" jsonb,
	"constraints" jsonb,
	"hedge" boolean DEFAULT false NOT NULL,
	"baseline_model" text,
	"shadow" jsonb,
	"balance_microcents" bigint DEFAULT 0 NOT NULL,
	"balance_at" timestamp with time zone,
	"requires_totp" boolean DEFAULT false NOT NULL,
	"stripe_customer_id" text,
	"deleted_at" timestamp with time zone,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"is_operator" boolean DEFAULT false NOT NULL,
	CONSTRAINT "accounts_stripe_customer" UNIQUE("stripe_customer_id"),
	CONSTRAINT "accounts_plan_after_cycle" CHECK ("accounts"."plan_after_cycle" in ('evaluation', 'usage')),
	CONSTRAINT "accounts_cycle" CHECK ("accounts"."cycle_started_at" < "accounts"."cycle_ends_at"),
	CONSTRAINT "accounts_soft_cap" CHECK ("accounts"."soft_cap_microcents" >= 0),
	CONSTRAINT "accounts_balance" CHECK ("accounts"."balance_microcents" >= 0),
	CONSTRAINT "accounts_version" CHECK ("accounts"."version" >= 0),
	CONSTRAINT "accounts_plan" CHECK ("accounts"."plan" in ('evaluation', 'usage')),
	CONSTRAINT "accounts_requests_per_minute" CHECK ("accounts"."requests_per_minute" >= 0),
	CONSTRAINT "accounts_concurrent_requests" CHECK ("accounts"."concurrent_requests" >= 0),
	CONSTRAINT "accounts_daily_tokens" CHECK ("accounts"."daily_tokens" >= 0),
	CONSTRAINT "accounts_daily_cost" CHECK ("accounts"."daily_cost_microcents" >= 0)
);
--> statement-breakpoint
CREATE TABLE "alert_rules" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"metric" text NOT NULL,
	"threshold" double precision NOT NULL,
	"window_minutes" integer NOT NULL,
	"budget" text,
	"span" text,
	"firing" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"value" double precision,
	"changed_at" timestamp with time zone,
	"due_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"since" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	"project_id" text,
	CONSTRAINT "alert_rules_metric" CHECK ("alert_rules"."metric" in ('spend', 'budget', 'error_rate', 'latency', 'model_failures', 'cache_drop', 'unpriced', 'runaway')),
	CONSTRAINT "alert_rules_threshold" CHECK ("alert_rules"."threshold" > 0)
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"user_id" text NOT NULL,
	"name" text NOT NULL,
	"public_id" text NOT NULL,
	"digest" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"expires_at" timestamp with time zone,
	"line_id" text,
	"web" boolean DEFAULT true NOT NULL,
	"limits" jsonb,
	"models" jsonb,
	"tags" jsonb,
	"strategy" text,
	"fallback" text,
	"continue" text,
	"hedge" boolean,
	"constraints" jsonb,
	"project_id" text,
	"shortfall_day" date,
	"shortfall_microcents" bigint DEFAULT 0 NOT NULL,
	"shortfall_request_id" text,
	"shortfall_request_microcents" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "api_keys_public_id" UNIQUE("public_id"),
	CONSTRAINT "api_keys_digest" UNIQUE("digest"),
	CONSTRAINT "api_keys_shortfall" CHECK ("api_keys"."shortfall_microcents" >= "api_keys"."shortfall_request_microcents")
);
--> statement-breakpoint
CREATE TABLE "audit_log" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"actor" text NOT NULL,
	"user_id" text,
	"address" text,
	"action" text NOT NULL,
	"target" text,
	"details" jsonb NOT NULL,
	CONSTRAINT "audit_log_actor" CHECK ("audit_log"."actor" in ('user', 'cli', 'system'))
);
--> statement-breakpoint
CREATE TABLE "billing_cycles" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"ends_at" timestamp with time zone NOT NULL,
	"closed_at" timestamp with time zone,
	CONSTRAINT "billing_cycles_start" UNIQUE("account_id","starts_at"),
	CONSTRAINT "billing_cycles_order" CHECK ("billing_cycles"."starts_at" < "billing_cycles"."ends_at")
);
--> statement-breakpoint
CREATE TABLE "email_notices" (
	"account_id" text NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"body" jsonb,
	CONSTRAINT "email_notices_key" PRIMARY KEY("account_id","kind","subject","user_id"),
	CONSTRAINT "email_notices_kind" CHECK ("email_notices"."kind" in ('invoice_unpaid', 'grace_began', 'grace_ended', 'alert')),
	CONSTRAINT "email_notices_status" CHECK ("email_notices"."status" in ('pending', 'sent', 'dropped'))
);
--> statement-breakpoint
CREATE TABLE "email_verifications" (
	"digest" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"email" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "email_verifications_user" UNIQUE("user_id")
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"request_digest" text NOT NULL,
	"status" text NOT NULL,
	"result_id" text,
	"usage" jsonb,
	"lease_ends_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_key" PRIMARY KEY("account_id","name"),
	CONSTRAINT "idempotency_keys_status" CHECK ("idempotency_keys"."status" in ('running', 'finished'))
);
--> statement-breakpoint
CREATE TABLE "invitations" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"email" text NOT NULL,
	"role" text NOT NULL,
	"project_id" text,
	"project_role" text,
	"invited_by" text NOT NULL,
	"digest" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"accepted_at" timestamp with time zone,
	CONSTRAINT "invitations_digest" UNIQUE("digest"),
	CONSTRAINT "invitations_email_lower" CHECK ("invitations"."email" = lower("invitations"."email")),
	CONSTRAINT "invitations_role" CHECK ("invitations"."role" in ('admin', 'member', 'viewer'))
);
--> statement-breakpoint
CREATE TABLE "invoice_lines" (
	"invoice_id" text NOT NULL,
	"model" text NOT NULL,
	"requests" bigint NOT NULL,
	"input_tokens" bigint NOT NULL,
	"cached_input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"amount_microcents" bigint NOT NULL,
	CONSTRAINT "invoice_lines_key" PRIMARY KEY("invoice_id","model"),
	CONSTRAINT "invoice_lines_amounts" CHECK (least("invoice_lines"."requests", "invoice_lines"."input_tokens", "invoice_lines"."cached_input_tokens", "invoice_lines"."output_tokens", "invoice_lines"."reasoning_tokens", "invoice_lines"."amount_microcents") >= 0)
);
--> statement-breakpoint
CREATE TABLE "invoices" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"cycle_id" text NOT NULL,
	"status" text NOT NULL,
	"total_microcents" bigint NOT NULL,
	"total_cents" bigint NOT NULL,
	"issued_at" timestamp with time zone NOT NULL,
	"paid_at" timestamp with time zone,
	"stripe_invoice_id" text,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "invoices_cycle" UNIQUE("cycle_id"),
	CONSTRAINT "invoices_stripe" UNIQUE("stripe_invoice_id"),
	CONSTRAINT "invoices_status" CHECK ("invoices"."status" in ('open', 'paid', 'unpaid', 'void')),
	CONSTRAINT "invoices_totals" CHECK ("invoices"."total_microcents" >= 0 and "invoices"."total_cents" >= 0),
	CONSTRAINT "invoices_paid" CHECK (("invoices"."status" = 'paid') = ("invoices"."paid_at" is not null))
);
--> statement-breakpoint
CREATE TABLE "known_addresses" (
	"user_id" text NOT NULL,
	"digest" text NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	"failures" smallint DEFAULT 0 NOT NULL,
	CONSTRAINT "known_addresses_key" PRIMARY KEY("user_id","digest"),
	CONSTRAINT "known_addresses_failures" CHECK ("known_addresses"."failures" >= 0)
);
--> statement-breakpoint
CREATE TABLE "learning_accounts" (
	"account_id" text PRIMARY KEY NOT NULL,
	"epoch" integer DEFAULT 0 NOT NULL,
	"erased_at" timestamp with time zone,
	"swept_epoch" integer DEFAULT 0 NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "learning_accounts_epochs" CHECK (0 <= "learning_accounts"."swept_epoch" and "learning_accounts"."swept_epoch" <= "learning_accounts"."epoch")
);
--> statement-breakpoint
CREATE TABLE "learning_state" (
	"account_id" text NOT NULL,
	"query_type" text NOT NULL,
	"model" text NOT NULL,
	"requests" integer NOT NULL,
	"entries" integer NOT NULL,
	"since" bigint NOT NULL,
	"at" bigint NOT NULL,
	"weight" real NOT NULL,
	"quality" real NOT NULL,
	"spread" real NOT NULL,
	"slump" real NOT NULL,
	"slump_weight" real NOT NULL,
	"slump_quality" real NOT NULL,
	"latency_ms" real NOT NULL,
	"first_token_ms" real,
	"cost_microcents" real NOT NULL,
	"ratio" real NOT NULL,
	"ratio_variance" real NOT NULL,
	"ratings" integer NOT NULL,
	"rating" real NOT NULL,
	"automatic" integer NOT NULL,
	"influenced" integer NOT NULL,
	"enhanced" integer NOT NULL,
	"enhanced_quality" real NOT NULL,
	"plain_quality" real NOT NULL,
	CONSTRAINT "learning_state_key" PRIMARY KEY("account_id","query_type","model")
);
--> statement-breakpoint
CREATE TABLE "model_switches" (
	"model" text PRIMARY KEY NOT NULL,
	"enabled" boolean DEFAULT true NOT NULL,
	"hosts" jsonb,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oidc_sign_ins" (
	"digest" text PRIMARY KEY NOT NULL,
	"user_id" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "password_resets" (
	"digest" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"email" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "payment_methods" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"kind" text NOT NULL,
	"stripe_payment_method_id" text,
	"brand" text,
	"last_four" text,
	"created_at" timestamp with time zone NOT NULL,
	"removed_at" timestamp with time zone,
	CONSTRAINT "payment_methods_stripe" UNIQUE("stripe_payment_method_id"),
	CONSTRAINT "payment_methods_kind" CHECK ("payment_methods"."kind" in ('manual', 'stripe')),
	CONSTRAINT "payment_methods_stripe_id" CHECK (("payment_methods"."kind" = 'stripe') = ("payment_methods"."stripe_payment_method_id" is not null))
);
--> statement-breakpoint
CREATE TABLE "plan_changes" (
	"account_id" text NOT NULL,
	"version" integer NOT NULL,
	"from_plan" text NOT NULL,
	"to_plan" text NOT NULL,
	"user_id" text,
	"requested_at" timestamp with time zone NOT NULL,
	"effective_at" timestamp with time zone NOT NULL,
	CONSTRAINT "plan_changes_key" PRIMARY KEY("account_id","version"),
	CONSTRAINT "plan_changes_plans" CHECK ("plan_changes"."from_plan" in ('evaluation', 'usage') and "plan_changes"."to_plan" in ('evaluation', 'usage'))
);
--> statement-breakpoint
CREATE TABLE "project_members" (
	"project_id" text NOT NULL,
	"user_id" text NOT NULL,
	"account_id" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "project_members_key" PRIMARY KEY("project_id","user_id"),
	CONSTRAINT "project_members_role" CHECK ("project_members"."role" in ('viewer', 'member', 'admin'))
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"constraints" jsonb,
	"archived_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "provider_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"project_id" text,
	"provider" text NOT NULL,
	"name" text NOT NULL,
	"secret" text NOT NULL,
	"hint" text NOT NULL,
	"fallback" boolean DEFAULT true NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "rejected_requests" (
	"request_id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"requested_model" text,
	"dialect" text,
	"strategy" text,
	"streamed" boolean NOT NULL,
	"error_code" text NOT NULL,
	"param" text,
	"layer" text,
	"category" text,
	"latency_ms" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "session_tokens" (
	"digest" text PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"user_id" text NOT NULL,
	"user_agent" text,
	"created_at" timestamp with time zone NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"ends_at" timestamp with time zone,
	"name" text,
	"scopes" text[],
	"key_digest" text,
	CONSTRAINT "sessions_key_digest_unique" UNIQUE("key_digest")
);
--> statement-breakpoint
CREATE TABLE "shadow_comparisons" (
	"request_id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"query_type" text,
	"level" text NOT NULL,
	"model" text NOT NULL,
	"effort" text,
	"baseline_model" text NOT NULL,
	"judge_model" text NOT NULL,
	"verdict" text,
	"microcents" bigint NOT NULL,
	"served_microcents" bigint NOT NULL,
	"baseline_microcents" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "shadow_comparisons_verdict" CHECK ("shadow_comparisons"."verdict" in ('win', 'tie', 'loss', 'none'))
);
--> statement-breakpoint
CREATE TABLE "sign_in_failures" (
	"subject" text PRIMARY KEY NOT NULL,
	"failed_at" timestamp with time zone[] NOT NULL,
	"locks" integer DEFAULT 0 NOT NULL,
	"locked_until" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tag_limits" (
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"value" text NOT NULL,
	"limits" jsonb NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "tag_limits_key" PRIMARY KEY("account_id","name","value")
);
--> statement-breakpoint
CREATE TABLE "totp_recovery_codes" (
	"user_id" text NOT NULL,
	"digest" text NOT NULL,
	CONSTRAINT "totp_recovery_codes_key" PRIMARY KEY("user_id","digest")
);
--> statement-breakpoint
CREATE TABLE "totp_secrets" (
	"user_id" text PRIMARY KEY NOT NULL,
	"secret" text NOT NULL,
	"confirmed_at" timestamp with time zone,
	"last_step" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "usage_daily" (
	"account_id" text NOT NULL,
	"day" date NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	"requests" bigint NOT NULL,
	"completed" bigint NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"input_tokens" bigint NOT NULL,
	"cached_input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"billed_microcents" bigint NOT NULL,
	"own_key_microcents" bigint DEFAULT 0 NOT NULL,
	"routing_saved_microcents" bigint DEFAULT 0 NOT NULL,
	"cache_saved_microcents" bigint DEFAULT 0 NOT NULL,
	"latency" integer[] DEFAULT '{}' NOT NULL,
	"first_token" integer[] DEFAULT '{}' NOT NULL,
	CONSTRAINT "usage_daily_key" PRIMARY KEY("account_id","day","key_id","model"),
	CONSTRAINT "usage_daily_sums" CHECK (least("usage_daily"."completed", "usage_daily"."input_tokens", "usage_daily"."cached_input_tokens", "usage_daily"."output_tokens", "usage_daily"."reasoning_tokens", "usage_daily"."billed_microcents") >= 0 and "usage_daily"."completed" <= "usage_daily"."requests")
);
--> statement-breakpoint
CREATE TABLE "usage_near_midnight" (
	"request_id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "usage_records" (
	"request_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"provider" text NOT NULL,
	"model" text NOT NULL,
	"requested_model" text,
	"upstream_id" text,
	"upstream_hash" integer GENERATED ALWAYS AS (hashtext("upstream_id")) STORED,
	"routing_mode" text NOT NULL,
	"strategy" text,
	"query_type" text,
	"streamed" boolean NOT NULL,
	"dialect" text,
	"status" text NOT NULL,
	"error_code" text,
	"finish_reason" text,
	"input_tokens" bigint NOT NULL,
	"cached_input_tokens" bigint NOT NULL,
	"cache_write_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"estimated" boolean NOT NULL,
	"billed_microcents" bigint NOT NULL,
	"reserved_microcents" bigint NOT NULL,
	"shortfall_microcents" bigint DEFAULT 0 NOT NULL,
	"search_microcents" bigint DEFAULT 0 NOT NULL,
	"fetch_microcents" bigint DEFAULT 0 NOT NULL,
	"hedge_microcents" bigint DEFAULT 0 NOT NULL,
	"own_key_microcents" bigint,
	"routing_saved_microcents" bigint,
	"cache_saved_microcents" bigint,
	"unpriced" text,
	"attempts" smallint NOT NULL,
	"tried" jsonb,
	"latency_ms" bigint NOT NULL,
	"first_token_ms" bigint,
	"metadata" jsonb,
	"trace" jsonb,
	"truth" text DEFAULT 'final' NOT NULL,
	"tags" jsonb,
	"learning_epoch" integer,
	"quality" real,
	"influenced" boolean,
	"choice_probability" real,
	"enhanced" boolean,
	"rating" smallint,
	"is_helpful" boolean,
	"rated_quality" real,
	"rated_at" timestamp with time zone,
	CONSTRAINT "usage_records_key" PRIMARY KEY("request_id","at"),
	CONSTRAINT "usage_records_quality" CHECK ("usage_records"."quality" between 0 and 1),
	CONSTRAINT "usage_records_rating" CHECK ("usage_records"."rating" between 1 and 5 and ("usage_records"."rating" is null) = ("usage_records"."rated_at" is null) and ("usage_records"."rating" is null) = ("usage_records"."rated_quality" is null)),
	CONSTRAINT "usage_records_billed" CHECK (0 <= "usage_records"."billed_microcents"),
	CONSTRAINT "usage_records_web" CHECK (least("usage_records"."search_microcents", "usage_records"."fetch_microcents") >= 0 and "usage_records"."search_microcents" + "usage_records"."fetch_microcents" <= "usage_records"."billed_microcents"),
	CONSTRAINT "usage_records_counts" CHECK (least("usage_records"."input_tokens", "usage_records"."cached_input_tokens", "usage_records"."cache_write_tokens", "usage_records"."output_tokens", "usage_records"."reasoning_tokens", "usage_records"."attempts", "usage_records"."latency_ms", "usage_records"."first_token_ms") >= 0),
	CONSTRAINT "usage_records_routing_mode" CHECK ("usage_records"."routing_mode" in ('auto', 'manual')),
	CONSTRAINT "usage_records_status" CHECK ("usage_records"."status" in ('completed', 'failed', 'client_closed', 'blocked')),
	CONSTRAINT "usage_records_truth" CHECK ("usage_records"."truth" = 'final' or ("usage_records"."truth" = 'checkpoint' and "usage_records"."status" <> 'completed'))
) PARTITION BY RANGE ("at");
--> statement-breakpoint
-- By hand: takes every month that has no partition of its own.
CREATE TABLE "usage_records_other" PARTITION OF "usage_records" DEFAULT;
--> statement-breakpoint
CREATE TABLE "usage_replaced" (
	"request_id" text NOT NULL,
	"account_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"replaced_at" timestamp with time zone NOT NULL,
	"row" jsonb NOT NULL,
	CONSTRAINT "usage_replaced_key" PRIMARY KEY("request_id","replaced_at")
);
--> statement-breakpoint
CREATE TABLE "usage_tags_daily" (
	"account_id" text NOT NULL,
	"tag" text NOT NULL,
	"day" date NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	"requests" bigint NOT NULL,
	"completed" bigint NOT NULL,
	"failed" bigint DEFAULT 0 NOT NULL,
	"input_tokens" bigint NOT NULL,
	"cached_input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"billed_microcents" bigint NOT NULL,
	"own_key_microcents" bigint DEFAULT 0 NOT NULL,
	"routing_saved_microcents" bigint DEFAULT 0 NOT NULL,
	"cache_saved_microcents" bigint DEFAULT 0 NOT NULL,
	"latency" integer[] DEFAULT '{}' NOT NULL,
	"first_token" integer[] DEFAULT '{}' NOT NULL,
	CONSTRAINT "usage_tags_daily_key" PRIMARY KEY("account_id","tag","day","key_id","model")
);
--> statement-breakpoint
CREATE TABLE "user_identities" (
	"issuer" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	CONSTRAINT "user_identities_key" PRIMARY KEY("issuer","subject")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"email" text NOT NULL,
	"password_hash" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"password_sign_in_until" timestamp with time zone,
	"unverified_since" timestamp with time zone,
	"email_proven" boolean DEFAULT true NOT NULL,
	"removed_at" timestamp with time zone,
	CONSTRAINT "users_email" UNIQUE("email"),
	CONSTRAINT "users_email_lower" CHECK ("users"."email" = lower("users"."email")),
	CONSTRAINT "users_role" CHECK ("users"."role" in ('owner', 'admin', 'member', 'viewer'))
);
--> statement-breakpoint
CREATE TABLE "webhook_deliveries" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"endpoint_id" text NOT NULL,
	"type" text NOT NULL,
	"event_key" text,
	"body" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"due_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"attempted_at" timestamp with time zone,
	"response_status" smallint,
	"error" text,
	"duration_ms" integer,
	CONSTRAINT "webhook_deliveries_event" UNIQUE("endpoint_id","event_key"),
	CONSTRAINT "webhook_deliveries_status" CHECK ("webhook_deliveries"."status" in ('pending', 'delivered', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoints" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"url" text NOT NULL,
	"events" text[] NOT NULL,
	"secret" text NOT NULL,
	"previous_secret" text,
	"previous_until" timestamp with time zone,
	"disabled_at" timestamp with time zone,
	"disabled_by" text,
	"failing_since" timestamp with time zone,
	"created_at" timestamp with time zone NOT NULL,
	"format" text DEFAULT 'standard' NOT NULL,
	"project_id" text,
	CONSTRAINT "webhook_endpoints_disabled" CHECK (("webhook_endpoints"."disabled_at" is null) = ("webhook_endpoints"."disabled_by" is null))
);
--> statement-breakpoint
CREATE TABLE "webhook_events" (
	"id" text PRIMARY KEY NOT NULL,
	"type" text NOT NULL,
	"object_id" text,
	"account_id" text,
	"occurred_at" timestamp with time zone NOT NULL,
	"received_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "alert_rules" ADD CONSTRAINT "alert_rules_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "alert_rules" ADD CONSTRAINT "alert_rules_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "billing_cycles" ADD CONSTRAINT "billing_cycles_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "email_notices" ADD CONSTRAINT "email_notices_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "email_notices" ADD CONSTRAINT "email_notices_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "email_verifications" ADD CONSTRAINT "email_verifications_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD CONSTRAINT "idempotency_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_invited_by_users_id_fk" FOREIGN KEY ("invited_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invoice_lines" ADD CONSTRAINT "invoice_lines_invoice_id_invoices_id_fk" FOREIGN KEY ("invoice_id") REFERENCES "public"."invoices"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invoices" ADD CONSTRAINT "invoices_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "invoices" ADD CONSTRAINT "invoices_cycle_id_billing_cycles_id_fk" FOREIGN KEY ("cycle_id") REFERENCES "public"."billing_cycles"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "known_addresses" ADD CONSTRAINT "known_addresses_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "oidc_sign_ins" ADD CONSTRAINT "oidc_sign_ins_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "password_resets" ADD CONSTRAINT "password_resets_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "payment_methods" ADD CONSTRAINT "payment_methods_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "plan_changes" ADD CONSTRAINT "plan_changes_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "plan_changes" ADD CONSTRAINT "plan_changes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_members" ADD CONSTRAINT "project_members_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session_tokens" ADD CONSTRAINT "session_tokens_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shadow_comparisons" ADD CONSTRAINT "shadow_comparisons_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tag_limits" ADD CONSTRAINT "tag_limits_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "totp_recovery_codes" ADD CONSTRAINT "totp_recovery_codes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "totp_secrets" ADD CONSTRAINT "totp_secrets_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_identities" ADD CONSTRAINT "user_identities_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_endpoint_id_webhook_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoints"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_events" ADD CONSTRAINT "webhook_events_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "provider_keys" ADD CONSTRAINT "provider_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "provider_keys" ADD CONSTRAINT "provider_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "accounts_operator" ON "accounts" USING btree ("is_operator") WHERE "accounts"."is_operator";--> statement-breakpoint
CREATE INDEX "accounts_updated_at" ON "accounts" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "accounts_cycle_ends_at" ON "accounts" USING btree ("cycle_ends_at");--> statement-breakpoint
CREATE INDEX "alert_rules_account" ON "alert_rules" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "alert_rules_due" ON "alert_rules" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "api_keys_account" ON "api_keys" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "api_keys_project" ON "api_keys" USING btree ("project_id") WHERE "api_keys"."project_id" is not null;--> statement-breakpoint
CREATE INDEX "api_keys_user" ON "api_keys" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "api_keys_updated_at" ON "api_keys" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "audit_log_page" ON "audit_log" USING btree ("account_id","id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "audit_log_at" ON "audit_log" USING btree ("at");--> statement-breakpoint
CREATE INDEX "billing_cycles_open" ON "billing_cycles" USING btree ("ends_at") WHERE "billing_cycles"."closed_at" is null;--> statement-breakpoint
CREATE INDEX "email_notices_due" ON "email_notices" USING btree ("due_at") WHERE "email_notices"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "idempotency_keys_created_at" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "invitations_account" ON "invitations" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "invoices_due" ON "invoices" USING btree ("updated_at") WHERE "invoices"."status" in ('open', 'unpaid');--> statement-breakpoint
CREATE INDEX "invoices_account" ON "invoices" USING btree ("account_id","issued_at" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "learning_accounts_updated_at" ON "learning_accounts" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "learning_accounts_unswept" ON "learning_accounts" USING btree ("account_id") WHERE "learning_accounts"."swept_epoch" < "learning_accounts"."epoch";--> statement-breakpoint
CREATE INDEX "oidc_sign_ins_expires_at" ON "oidc_sign_ins" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "password_resets_user" ON "password_resets" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "payment_methods_active" ON "payment_methods" USING btree ("account_id") WHERE "payment_methods"."removed_at" is null;--> statement-breakpoint
CREATE INDEX "project_members_user" ON "project_members" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "projects_account" ON "projects" USING btree ("account_id");--> statement-breakpoint
CREATE UNIQUE INDEX "provider_keys_name" ON "provider_keys" USING btree ("account_id",coalesce("project_id", ''),"provider","name");--> statement-breakpoint
CREATE INDEX "rejected_requests_page" ON "rejected_requests" USING btree ("account_id","at" DESC NULLS FIRST,"request_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "rejected_requests_at" ON "rejected_requests" USING btree ("at");--> statement-breakpoint
CREATE INDEX "session_tokens_session" ON "session_tokens" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "sessions_user" ON "sessions" USING btree ("user_id","created_at");--> statement-breakpoint
CREATE INDEX "sessions_account" ON "sessions" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "sessions_expires_at" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "shadow_comparisons_account" ON "shadow_comparisons" USING btree ("account_id","at");--> statement-breakpoint
CREATE INDEX "sign_in_failures_updated_at" ON "sign_in_failures" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "usage_records_page" ON "usage_records" USING btree ("account_id","at","request_id");--> statement-breakpoint
CREATE INDEX "usage_records_key_page" ON "usage_records" USING btree ("key_id","at","request_id");--> statement-breakpoint
CREATE INDEX "usage_records_marked_page" ON "usage_records" USING btree ("account_id","at","request_id","key_id","status","model","requested_model") WHERE "usage_records"."status" <> 'completed' or "usage_records"."unpriced" is not null;--> statement-breakpoint
CREATE INDEX "usage_records_upstream" ON "usage_records" USING btree ("upstream_hash") WHERE "usage_records"."upstream_hash" is not null;--> statement-breakpoint
CREATE INDEX "usage_replaced_at" ON "usage_replaced" USING btree ("at");--> statement-breakpoint
CREATE INDEX "usage_tags_daily_day" ON "usage_tags_daily" USING btree ("account_id","day");--> statement-breakpoint
CREATE INDEX "user_identities_user" ON "user_identities" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "users_account" ON "users" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("due_at") WHERE "webhook_deliveries"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "webhook_deliveries_page" ON "webhook_deliveries" USING btree ("endpoint_id","id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "webhook_endpoints_account" ON "webhook_endpoints" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "webhook_events_object" ON "webhook_events" USING btree ("object_id");--> statement-breakpoint
CREATE INDEX "webhook_events_received_at" ON "webhook_events" USING btree ("received_at");--> statement-breakpoint
-- Billed rows stay: no statement changes or deletes them, whoever sends it. Whole partitions may be dropped. Only text that clients
-- chose, metadata and tags, can be erased (decision 0080), and learning data changes: it bills nothing.
CREATE FUNCTION gateway_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;--> statement-breakpoint
CREATE FUNCTION gateway_refuse_unless_erased() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	-- A generated column is absent before an update.
	unbilled text[] := '{upstream_hash,learning_epoch,quality,influenced,choice_probability,enhanced,rating,is_helpful,rated_quality,rated_at}';
	billed jsonb := to_jsonb(OLD) - unbilled;
BEGIN
	IF to_jsonb(NEW) - unbilled IN (billed, billed || '{"metadata": null, "tags": null}'::jsonb) THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON usage_records FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
-- A checkpoint is the exception: a truer record of the same request replaces it (decision 0006). The role of the app may only rate;
-- the owner of the tables may update, and only this.
CREATE TRIGGER append_only BEFORE DELETE ON usage_records FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER truth_only_grows BEFORE UPDATE ON usage_records FOR EACH ROW
	WHEN (OLD.truth <> 'checkpoint'
		OR (OLD.request_id, OLD.at, OLD.account_id, OLD.key_id) IS DISTINCT FROM (NEW.request_id, NEW.at, NEW.account_id, NEW.key_id)
		OR (NEW.truth = 'final', NEW.billed_microcents, NEW.input_tokens + NEW.output_tokens, NEW.latency_ms)
			<= (false, OLD.billed_microcents, OLD.input_tokens + OLD.output_tokens, OLD.latency_ms))
	EXECUTE FUNCTION gateway_refuse_unless_erased();--> statement-breakpoint
CREATE TRIGGER append_only BEFORE DELETE ON usage_replaced FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER only_erased BEFORE UPDATE ON usage_replaced FOR EACH ROW
	WHEN ((OLD.request_id, OLD.account_id, OLD.at, OLD.replaced_at, OLD."row" - '{metadata,tags}'::text[])
		IS DISTINCT FROM (NEW.request_id, NEW.account_id, NEW.at, NEW.replaced_at, NEW."row"))
	EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON usage_replaced FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON invoice_lines FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON invoice_lines FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON plan_changes FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON plan_changes FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER kept BEFORE DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER amounts_stand BEFORE UPDATE ON invoices FOR EACH ROW
	WHEN ((OLD.id, OLD.account_id, OLD.cycle_id, OLD.total_microcents, OLD.total_cents, OLD.issued_at)
		IS DISTINCT FROM (NEW.id, NEW.account_id, NEW.cycle_id, NEW.total_microcents, NEW.total_cents, NEW.issued_at))
	EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER kept BEFORE DELETE ON billing_cycles FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER bounds_stand BEFORE UPDATE ON billing_cycles FOR EACH ROW
	WHEN (OLD.closed_at IS NOT NULL OR (OLD.id, OLD.account_id, OLD.starts_at, OLD.ends_at)
		IS DISTINCT FROM (NEW.id, NEW.account_id, NEW.starts_at, NEW.ends_at))
	EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER kept BEFORE DELETE ON webhook_events FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
-- No row of the audit log changes, except that addresses, names of tags and details can be erased. Only
-- retention deletes, rows older than a year.
CREATE TRIGGER append_only BEFORE UPDATE ON audit_log FOR EACH ROW
	WHEN ((OLD.id, OLD.account_id, OLD.at, OLD.actor, OLD.user_id, OLD.action)
			IS DISTINCT FROM (NEW.id, NEW.account_id, NEW.at, NEW.actor, NEW.user_id, NEW.action)
		OR (NEW.target IS NOT NULL AND NEW.target IS DISTINCT FROM OLD.target)
		OR (OLD.target NOT LIKE 'tag:%' AND NEW.target IS NULL)
		OR (NEW.address IS NOT NULL AND NEW.address IS DISTINCT FROM OLD.address)
		OR NOT NEW.details <@ OLD.details)
	EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_recent BEFORE DELETE ON audit_log FOR EACH ROW
	WHEN (OLD.at > clock_timestamp() - interval '365 days') EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
-- Archives the row that was replaced, and subtracts it from the daily totals, those of its tags, and the shortfall of its key. Runs
-- after the statement that replaced it, which adds the new row as any other. Checkpoints have no latency counts.
CREATE FUNCTION gateway_usage_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	named text := CASE WHEN OLD.model = '' THEN '' ELSE OLD.provider || '/' || OLD.model END;
BEGIN
	INSERT INTO usage_replaced (request_id, account_id, at, replaced_at, "row")
	VALUES (OLD.request_id, OLD.account_id, OLD.at, clock_timestamp(), to_jsonb(OLD));
	UPDATE usage_daily SET
		requests = requests - 1,
		failed = failed - (OLD.status IN ('failed', 'blocked'))::int,
		input_tokens = input_tokens - OLD.input_tokens,
		cached_input_tokens = cached_input_tokens - OLD.cached_input_tokens,
		output_tokens = output_tokens - OLD.output_tokens,
		reasoning_tokens = reasoning_tokens - OLD.reasoning_tokens,
		billed_microcents = billed_microcents - OLD.billed_microcents,
		own_key_microcents = own_key_microcents - coalesce(OLD.own_key_microcents, 0),
		routing_saved_microcents = routing_saved_microcents - coalesce(OLD.routing_saved_microcents, 0),
		cache_saved_microcents = cache_saved_microcents - coalesce(OLD.cache_saved_microcents, 0)
	WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named;
	DELETE FROM usage_daily
	WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named
		AND requests = 0;
	IF OLD.tags IS NOT NULL THEN
		UPDATE usage_tags_daily SET
			requests = requests - 1,
			failed = failed - (OLD.status IN ('failed', 'blocked'))::int,
			input_tokens = input_tokens - OLD.input_tokens,
			cached_input_tokens = cached_input_tokens - OLD.cached_input_tokens,
			output_tokens = output_tokens - OLD.output_tokens,
			reasoning_tokens = reasoning_tokens - OLD.reasoning_tokens,
			billed_microcents = billed_microcents - OLD.billed_microcents,
			own_key_microcents = own_key_microcents - coalesce(OLD.own_key_microcents, 0),
			routing_saved_microcents = routing_saved_microcents - coalesce(OLD.routing_saved_microcents, 0),
			cache_saved_microcents = cache_saved_microcents - coalesce(OLD.cache_saved_microcents, 0)
		WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named
			AND tag IN (SELECT key || '=' || value FROM jsonb_each_text(OLD.tags));
		DELETE FROM usage_tags_daily
		WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named
			AND tag IN (SELECT key || '=' || value FROM jsonb_each_text(OLD.tags)) AND requests = 0;
	END IF;
	UPDATE api_keys SET
		shortfall_microcents = greatest(0, shortfall_microcents - OLD.shortfall_microcents),
		shortfall_request_microcents = least(shortfall_request_microcents, greatest(0, shortfall_microcents - OLD.shortfall_microcents)),
		updated_at = clock_timestamp()
	WHERE id = OLD.key_id AND shortfall_day = (OLD.at AT TIME ZONE 'UTC')::date AND OLD.shortfall_microcents > 0;
	RETURN NULL;
END $$;--> statement-breakpoint
-- Erased text replaces no record.
CREATE TRIGGER replaced AFTER UPDATE ON usage_records FOR EACH ROW
	WHEN ((OLD.truth, OLD.billed_microcents, OLD.input_tokens + OLD.output_tokens, OLD.latency_ms)
		IS DISTINCT FROM (NEW.truth, NEW.billed_microcents, NEW.input_tokens + NEW.output_tokens, NEW.latency_ms))
	EXECUTE FUNCTION gateway_usage_replaced();--> statement-breakpoint
-- Row-level security: a transaction that has entered an account (gateway_enter) sees the rows of that account only. The owner of the
-- tables is exempt: shipping, billing, the lookup of keys and the operator see every account. The coalesce keeps the planner from
-- building a plan on the policy: the filter of a query chooses its index.
DO $$
DECLARE
	guarded text;
BEGIN
	FOREACH guarded IN ARRAY ARRAY[
		'users', 'api_keys', 'sessions', 'invitations', 'payment_methods', 'plan_changes', 'billing_cycles', 'invoices',
		'webhook_events', 'idempotency_keys', 'usage_records', 'usage_daily', 'learning_accounts',
		'learning_state', 'email_notices', 'usage_replaced', 'tag_limits',
		'usage_tags_daily', 'rejected_requests', 'audit_log', 'webhook_endpoints', 'webhook_deliveries', 'alert_rules',
		'projects', 'project_members', 'provider_keys', 'shadow_comparisons'
	] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
		EXECUTE format('CREATE POLICY own_account ON %I USING (coalesce(account_id = current_setting(''gateway.account_id'', true), false))', guarded);
	END LOOP;
END $$;--> statement-breakpoint
-- Rows of users of the account.
DO $$
DECLARE
	guarded text;
BEGIN
	FOREACH guarded IN ARRAY ARRAY[
		'password_resets', 'known_addresses', 'email_verifications', 'oidc_sign_ins', 'totp_recovery_codes', 'totp_secrets',
		'user_identities'
	] LOOP
		EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', guarded);
		EXECUTE format('CREATE POLICY own_account ON %I USING (EXISTS (SELECT FROM users WHERE users.id = user_id))', guarded);
	END LOOP;
END $$;--> statement-breakpoint
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON accounts USING (coalesce(id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE session_tokens ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON session_tokens USING (EXISTS (SELECT FROM sessions WHERE sessions.id = session_id));--> statement-breakpoint
ALTER TABLE invoice_lines ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON invoice_lines USING (EXISTS (SELECT FROM invoices WHERE invoices.id = invoice_id));--> statement-breakpoint
-- Returns whether the current user may become gateway_app. From Postgres 16 on membership is not enough.
CREATE FUNCTION gateway_may_enter() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
	app oid := (SELECT oid FROM pg_roles WHERE rolname = 'gateway_app');
BEGIN
	RETURN app IS NOT NULL
		AND pg_has_role(current_user, app, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END);
END $$;--> statement-breakpoint
-- Limits the rest of the transaction to the rows of one account. Without a role to become, only the filters of the queries do;
-- gateway_second_wall has reported that at the start.
CREATE FUNCTION gateway_enter(account text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gateway.account_id', account, true);
	IF gateway_may_enter() THEN
		PERFORM set_config('role', 'gateway_app', true);
	END IF;
END $$;--> statement-breakpoint
-- Creates the roles, if the user may, and grants them their rights. Runs at each start; the second run changes nothing.
-- gateway_app: work for one account. gateway_read: reports about money and usage, without secrets.
CREATE FUNCTION gateway_second_wall() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	walled record;
BEGIN
	BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gateway_app') THEN
			CREATE ROLE gateway_app NOLOGIN;
		END IF;
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gateway_read') THEN
			CREATE ROLE gateway_read NOLOGIN;
		END IF;
		IF NOT gateway_may_enter() THEN
			EXECUTE format('GRANT gateway_app TO %I', current_user);
		END IF;
	EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
		NULL;
	END;
	IF NOT gateway_may_enter() THEN
		RETURN false;
	END IF;
	IF NOT has_schema_privilege('gateway_app', 'public', 'USAGE') THEN
		GRANT USAGE ON SCHEMA public TO gateway_app;
	END IF;
	FOR walled IN
		SELECT class.oid, class.oid::regclass AS name,
			EXISTS (SELECT FROM pg_trigger WHERE tgrelid = class.oid AND tgname = 'append_only') AS append_only
		FROM pg_policy JOIN pg_class AS class ON class.oid = polrelid WHERE polname = 'own_account'
	LOOP
		IF NOT (has_table_privilege('gateway_app', walled.oid, 'SELECT') AND has_table_privilege('gateway_app', walled.oid, 'INSERT')) THEN
			EXECUTE format('GRANT SELECT, INSERT ON %s TO gateway_app', walled.name);
		END IF;
		IF NOT walled.append_only AND NOT has_table_privilege('gateway_app', walled.oid, 'UPDATE') THEN
			EXECUTE format('GRANT UPDATE, DELETE ON %s TO gateway_app', walled.name);
		END IF;
	END LOOP;
	IF NOT has_column_privilege('gateway_app', 'usage_records', 'rating', 'UPDATE') THEN
		GRANT UPDATE (rating, is_helpful, rated_quality, rated_at) ON usage_records TO gateway_app;
	END IF;
	IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'gateway_read') AND NOT has_table_privilege('gateway_read', 'usage_records', 'SELECT') THEN
		GRANT USAGE ON SCHEMA public TO gateway_read;
		FOR walled IN
			SELECT unnest(ARRAY['usage_records', 'usage_daily', 'invoices', 'invoice_lines', 'billing_cycles', 'plan_changes']) AS name
		LOOP
			EXECUTE format('GRANT SELECT ON %I TO gateway_read', walled.name);
			EXECUTE format('DROP POLICY IF EXISTS read_all ON %I', walled.name);
			EXECUTE format('CREATE POLICY read_all ON %I FOR SELECT TO gateway_read USING (true)', walled.name);
		END LOOP;
	END IF;
	RETURN true;
END $$;--> statement-breakpoint
-- A time as the API writes it.
CREATE FUNCTION iso_time(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;--> statement-breakpoint
-- Usage of a scope (`key:<id>` or `tag:<name>=<value>`) in the ledger on a day and in its month. Stable, so that it reads the snapshot of
-- the statement that calls it.
CREATE FUNCTION limit_scope_used(account text, scope text, today bigint, OUT tokens bigint, OUT microcents bigint, OUT month_microcents bigint)
LANGUAGE sql STABLE AS $$
	WITH lines AS (
		SELECT day, input_tokens + output_tokens AS tokens, billed_microcents FROM usage_daily
		WHERE scope LIKE 'key:%' AND account_id = account
			AND day >= date_trunc('month', date '1970-01-01' + today::int)::date
			AND day < (date_trunc('month', date '1970-01-01' + today::int) + interval '1 month')::date
			AND (key_id = substr(scope, 5) OR key_id IN (SELECT id FROM api_keys WHERE account_id = account AND line_id = substr(scope, 5)))
		UNION ALL
		SELECT day, input_tokens + output_tokens, billed_microcents FROM usage_tags_daily
		WHERE scope LIKE 'tag:%' AND account_id = account AND tag = substr(scope, 5)
			AND day >= date_trunc('month', date '1970-01-01' + today::int)::date
			AND day < (date_trunc('month', date '1970-01-01' + today::int) + interval '1 month')::date
	)
	SELECT
		coalesce(sum(lines.tokens) FILTER (WHERE day = date '1970-01-01' + today::int), 0)::bigint,
		coalesce(sum(billed_microcents) FILTER (WHERE day = date '1970-01-01' + today::int), 0)::bigint,
		coalesce(sum(billed_microcents), 0)::bigint
	FROM lines
$$;--> statement-breakpoint
-- Scopes of an account that have limits, and since when.
CREATE FUNCTION limit_scopes(account text, OUT name text, OUT since bigint) RETURNS SETOF record LANGUAGE sql STABLE AS $$
	SELECT DISTINCT 'key:' || coalesce(line_id, id), coalesce((limits->>'since')::bigint, 0) FROM api_keys
		WHERE account_id = account AND limits IS NOT NULL
	UNION ALL
	SELECT 'tag:' || tag_limits.name || '=' || tag_limits.value, coalesce((limits->>'since')::bigint, 0) FROM tag_limits
		WHERE account_id = account
$$;
