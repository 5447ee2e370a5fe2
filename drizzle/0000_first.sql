CREATE TABLE "accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"plan" text NOT NULL,
	"requests_per_minute" integer,
	"concurrent_requests" integer,
	"daily_tokens" bigint,
	"daily_cost_microcents" bigint,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "accounts_plan" CHECK ("accounts"."plan" in ('evaluation', 'usage')),
	CONSTRAINT "accounts_requests_per_minute" CHECK ("accounts"."requests_per_minute" >= 0),
	CONSTRAINT "accounts_concurrent_requests" CHECK ("accounts"."concurrent_requests" >= 0),
	CONSTRAINT "accounts_daily_tokens" CHECK ("accounts"."daily_tokens" >= 0),
	CONSTRAINT "accounts_daily_cost" CHECK ("accounts"."daily_cost_microcents" >= 0)
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
	CONSTRAINT "api_keys_public_id" UNIQUE("public_id"),
	CONSTRAINT "api_keys_digest" UNIQUE("digest")
);
--> statement-breakpoint
CREATE TABLE "usage_daily" (
	"account_id" text NOT NULL,
	"day" date NOT NULL,
	"key_id" text NOT NULL,
	"model" text NOT NULL,
	"requests" bigint NOT NULL,
	"completed" bigint NOT NULL,
	"input_tokens" bigint NOT NULL,
	"cached_input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"reasoning_tokens" bigint NOT NULL,
	"billed_microcents" bigint NOT NULL,
	CONSTRAINT "usage_daily_key" PRIMARY KEY("account_id","day","key_id","model"),
	CONSTRAINT "usage_daily_sums" CHECK (least("usage_daily"."completed", "usage_daily"."input_tokens", "usage_daily"."output_tokens", "usage_daily"."billed_microcents") >= 0 and "usage_daily"."completed" <= "usage_daily"."requests")
);
--> statement-breakpoint
CREATE TABLE "usage_records" (
	"request_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"account_id" text NOT NULL,
	"key_id" text NOT NULL,
	"provider" text NOT NULL,
	"model" text NOT NULL,
	"routing_mode" text NOT NULL,
	"strategy" text,
	"query_type" text,
	"streamed" boolean NOT NULL,
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
	"attempts" smallint NOT NULL,
	"latency_ms" bigint NOT NULL,
	"first_token_ms" bigint,
	"metadata" jsonb,
	CONSTRAINT "usage_records_key" PRIMARY KEY("request_id","at"),
	CONSTRAINT "usage_records_billed" CHECK (0 <= "usage_records"."billed_microcents" and "usage_records"."billed_microcents" <= "usage_records"."reserved_microcents"),
	CONSTRAINT "usage_records_counts" CHECK (least("usage_records"."input_tokens", "usage_records"."cached_input_tokens", "usage_records"."cache_write_tokens", "usage_records"."output_tokens", "usage_records"."reasoning_tokens", "usage_records"."attempts", "usage_records"."latency_ms", "usage_records"."first_token_ms") >= 0),
	CONSTRAINT "usage_records_status" CHECK ("usage_records"."status" in ('completed', 'failed', 'client_closed', 'blocked'))
) PARTITION BY RANGE ("at");
--> statement-breakpoint
-- By hand: takes every month that has no partition of its own.
CREATE TABLE "usage_records_other" PARTITION OF "usage_records" DEFAULT;
--> statement-breakpoint
CREATE TABLE "users" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"email" text NOT NULL,
	"password_hash" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "users_email" UNIQUE("email"),
	CONSTRAINT "users_email_lower" CHECK ("users"."email" = lower("users"."email")),
	CONSTRAINT "users_role" CHECK ("users"."role" in ('owner', 'admin', 'member'))
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "accounts_updated_at" ON "accounts" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "api_keys_account" ON "api_keys" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "api_keys_updated_at" ON "api_keys" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "usage_records_account_at" ON "usage_records" USING btree ("account_id","at");--> statement-breakpoint
CREATE INDEX "users_account" ON "users" USING btree ("account_id");