CREATE TABLE "usage_replaced" (
	"request_id" text NOT NULL,
	"account_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"replaced_at" timestamp with time zone NOT NULL,
	"row" jsonb NOT NULL,
	CONSTRAINT "usage_replaced_key" PRIMARY KEY("request_id","replaced_at")
);
--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "truth" text DEFAULT 'final' NOT NULL;--> statement-breakpoint
CREATE INDEX "usage_replaced_at" ON "usage_replaced" USING btree ("at");--> statement-breakpoint
-- From here on by hand. Without the parent's name, which a partition does not know, and no old row is looked at.
ALTER TABLE "usage_records" ADD CONSTRAINT "usage_records_truth" CHECK ("truth" = 'final' or ("truth" = 'checkpoint' and "status" <> 'completed')) NOT VALID;--> statement-breakpoint
-- What was billed stands, but for a checkpoint: a truer record of the same request takes its place (ADR 0006). The app's role
-- still may not update; the owner of the tables may do this and nothing else.
DROP TRIGGER append_only ON usage_records;--> statement-breakpoint
CREATE TRIGGER append_only BEFORE DELETE ON usage_records FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER truth_only_grows BEFORE UPDATE ON usage_records FOR EACH ROW
	WHEN (OLD.truth <> 'checkpoint'
		OR (OLD.request_id, OLD.at, OLD.account_id, OLD.key_id) IS DISTINCT FROM (NEW.request_id, NEW.at, NEW.account_id, NEW.key_id)
		OR (NEW.truth = 'final', NEW.billed_microcents, NEW.input_tokens + NEW.output_tokens, NEW.latency_ms)
			<= (false, OLD.billed_microcents, OLD.input_tokens + OLD.output_tokens, OLD.latency_ms))
	EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
-- Keeps the row that was replaced, and takes it out of the daily sums. After the statement that replaced it, which adds the new
-- row to them as any other. Of a checkpoint no durations are counted.
CREATE FUNCTION gateway_usage_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
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
		billed_microcents = billed_microcents - OLD.billed_microcents
	WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id
		AND model = CASE WHEN OLD.model = '' THEN '' ELSE OLD.provider || '/' || OLD.model END;
	DELETE FROM usage_daily
	WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id
		AND model = CASE WHEN OLD.model = '' THEN '' ELSE OLD.provider || '/' || OLD.model END AND requests = 0;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER replaced AFTER UPDATE ON usage_records FOR EACH ROW EXECUTE FUNCTION gateway_usage_replaced();--> statement-breakpoint
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON usage_replaced FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON usage_replaced FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
ALTER TABLE usage_replaced ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON usage_replaced USING (coalesce(account_id = current_setting('gateway.account_id', true), false));
