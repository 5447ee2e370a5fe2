CREATE TABLE "learning_accounts" (
	"account_id" text PRIMARY KEY NOT NULL,
	"epoch" integer DEFAULT 0 NOT NULL,
	"erased_at" timestamp with time zone,
	"swept_epoch" integer DEFAULT 0 NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "learning_accounts_epochs" CHECK (0 <= "learning_accounts"."swept_epoch" and "learning_accounts"."swept_epoch" <= "learning_accounts"."epoch")
);
--> statement-breakpoint
CREATE TABLE "learning_entries" (
	"account_id" text NOT NULL,
	"request_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"key_id" text NOT NULL,
	"provider" text NOT NULL,
	"model" text NOT NULL,
	"query_type" text NOT NULL,
	"quality" real NOT NULL,
	"latency_ms" bigint NOT NULL,
	"first_token_ms" bigint,
	"input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"cost_microcents" bigint NOT NULL,
	"routing_mode" text NOT NULL,
	"influenced" boolean NOT NULL,
	"choice_probability" real,
	"enhanced" boolean NOT NULL,
	"rating" smallint,
	"is_helpful" boolean,
	"rated_quality" real,
	"rated_at" timestamp with time zone,
	CONSTRAINT "learning_entries_key" PRIMARY KEY("account_id","request_id"),
	CONSTRAINT "learning_entries_quality" CHECK ("learning_entries"."quality" between 0 and 1),
	CONSTRAINT "learning_entries_rating" CHECK ("learning_entries"."rating" between 1 and 5),
	CONSTRAINT "learning_entries_rated" CHECK (("learning_entries"."rating" is null) = ("learning_entries"."rated_at" is null) and ("learning_entries"."rating" is null) = ("learning_entries"."rated_quality" is null))
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
CREATE INDEX "learning_accounts_updated_at" ON "learning_accounts" USING btree ("updated_at");--> statement-breakpoint
CREATE INDEX "learning_accounts_unswept" ON "learning_accounts" USING btree ("account_id") WHERE "learning_accounts"."swept_epoch" < "learning_accounts"."epoch";