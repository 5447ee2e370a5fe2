CREATE TABLE "alert_rules" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"metric" text NOT NULL,
	"threshold" double precision NOT NULL,
	"window_minutes" integer NOT NULL,
	"is_firing" boolean DEFAULT false NOT NULL,
	"value" double precision,
	"changed_at" timestamp with time zone,
	"due_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"since" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "alert_rules_metric" CHECK ("alert_rules"."metric" in ('spend', 'error_rate', 'latency')),
	CONSTRAINT "alert_rules_threshold" CHECK ("alert_rules"."threshold" > 0)
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
	CONSTRAINT "webhook_endpoints_disabled" CHECK (("webhook_endpoints"."disabled_at" is null) = ("webhook_endpoints"."disabled_by" is null))
);
--> statement-breakpoint
ALTER TABLE "alert_rules" ADD CONSTRAINT "alert_rules_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_endpoint_id_webhook_endpoints_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoints"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" ADD CONSTRAINT "webhook_endpoints_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "alert_rules_account" ON "alert_rules" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "alert_rules_due" ON "alert_rules" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "audit_log_page" ON "audit_log" USING btree ("account_id","id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "audit_log_at" ON "audit_log" USING btree ("at");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due" ON "webhook_deliveries" USING btree ("due_at") WHERE "webhook_deliveries"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "webhook_deliveries_page" ON "webhook_deliveries" USING btree ("endpoint_id","id" DESC NULLS FIRST);--> statement-breakpoint
CREATE INDEX "webhook_endpoints_account" ON "webhook_endpoints" USING btree ("account_id");--> statement-breakpoint
-- by hand, from here on. The audit log is append-only: no row is changed, and only retention deletes, rows older than a year.
CREATE TRIGGER append_only BEFORE UPDATE ON audit_log FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_recent BEFORE DELETE ON audit_log FOR EACH ROW
	WHEN (OLD.at > clock_timestamp() - interval '365 days') EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
-- by hand: an account sees its own rows only. The grants follow at every start (gateway_second_wall).
ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON audit_log USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE webhook_endpoints ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON webhook_endpoints USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON webhook_deliveries USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE alert_rules ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON alert_rules USING (coalesce(account_id = current_setting('gateway.account_id', true), false));
