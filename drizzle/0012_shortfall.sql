ALTER TABLE "accounts" ADD COLUMN "shortfall_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "shortfall_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_shortfall" CHECK ("accounts"."shortfall_microcents" >= 0);--> statement-breakpoint
-- By hand: a replaced record takes its shortfall with it; the record that replaced it brings its own.
CREATE OR REPLACE FUNCTION gateway_usage_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
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
	UPDATE accounts SET shortfall_microcents = greatest(0, shortfall_microcents - OLD.shortfall_microcents), updated_at = clock_timestamp()
	WHERE id = OLD.account_id AND OLD.shortfall_microcents > 0;
	RETURN NULL;
END $$;
