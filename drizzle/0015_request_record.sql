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
ALTER TABLE "accounts" ADD COLUMN "fallback" text;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "fallback" text;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "requested_model" text;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "upstream_id" text;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "trace" jsonb;--> statement-breakpoint
CREATE INDEX "rejected_requests_page" ON "rejected_requests" USING btree ("account_id","at" DESC NULLS FIRST,"request_id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "rejected_requests_at" ON "rejected_requests" USING btree ("at");--> statement-breakpoint
CREATE INDEX "usage_records_upstream" ON "usage_records" USING btree ("upstream_id") WHERE "usage_records"."upstream_id" is not null;--> statement-breakpoint
-- by hand: an account sees its own rows only. The grants follow at every start (gateway_second_wall).
ALTER TABLE rejected_requests ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON rejected_requests USING (coalesce(account_id = current_setting('gateway.account_id', true), false));
