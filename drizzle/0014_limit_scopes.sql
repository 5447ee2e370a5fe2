CREATE TABLE "tag_limits" (
	"account_id" text NOT NULL,
	"name" text NOT NULL,
	"value" text NOT NULL,
	"limits" jsonb NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "tag_limits_key" PRIMARY KEY("account_id","name","value")
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
	"latency" integer[] DEFAULT '{}' NOT NULL,
	"first_token" integer[] DEFAULT '{}' NOT NULL,
	CONSTRAINT "usage_tags_daily_key" PRIMARY KEY("account_id","tag","day","key_id","model")
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "limits" jsonb;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "models" jsonb;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "tags" jsonb;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "strategy" text;--> statement-breakpoint
ALTER TABLE "limit_reservations" ADD COLUMN "scopes" text[];--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "tags" jsonb;--> statement-breakpoint
ALTER TABLE "tag_limits" ADD CONSTRAINT "tag_limits_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "usage_tags_daily_day" ON "usage_tags_daily" USING btree ("account_id","day");--> statement-breakpoint
-- by hand: everything from here on. An account sees its own rows only; the grants follow at every start (gateway_second_wall).
ALTER TABLE tag_limits ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON tag_limits USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE usage_tags_daily ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON usage_tags_daily USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
-- by hand: a replaced record takes its usage out of the sums of its tags too.
CREATE OR REPLACE FUNCTION gateway_usage_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
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
		billed_microcents = billed_microcents - OLD.billed_microcents
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
			billed_microcents = billed_microcents - OLD.billed_microcents
		WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named
			AND tag IN (SELECT key || '=' || value FROM jsonb_each_text(OLD.tags));
		DELETE FROM usage_tags_daily
		WHERE account_id = OLD.account_id AND day = (OLD.at AT TIME ZONE 'UTC')::date AND key_id = OLD.key_id AND model = named
			AND tag IN (SELECT key || '=' || value FROM jsonb_each_text(OLD.tags)) AND requests = 0;
	END IF;
	UPDATE accounts SET shortfall_microcents = greatest(0, shortfall_microcents - OLD.shortfall_microcents), updated_at = clock_timestamp()
	WHERE id = OLD.account_id AND OLD.shortfall_microcents > 0;
	RETURN NULL;
END $$;--> statement-breakpoint
-- by hand: what the ledger has of a scope (`key:<id>` or `tag:<name>=<value>`) on a day and in its month. Stable, so that it reads
-- the snapshot of the statement that calls it.
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
-- by hand: the scopes of an account that have limits, and since when.
CREATE FUNCTION limit_scopes(account text, OUT name text, OUT since bigint) RETURNS SETOF record LANGUAGE sql STABLE AS $$
	SELECT DISTINCT 'key:' || coalesce(line_id, id), coalesce((limits->>'since')::bigint, 0) FROM api_keys
		WHERE account_id = account AND limits IS NOT NULL
	UNION ALL
	SELECT 'tag:' || tag_limits.name || '=' || tag_limits.value, coalesce((limits->>'since')::bigint, 0) FROM tag_limits
		WHERE account_id = account
$$;--> statement-breakpoint
-- by hand: as limit_counts, of one scope.
CREATE FUNCTION limit_scope_counts(account text, scope text, now_ms bigint, OUT tokens bigint, OUT microcents bigint,
	OUT month_microcents bigint, OUT open bigint, OUT requests bigint)
LANGUAGE sql AS $$
	WITH sums AS (
		SELECT
			coalesce(sum(one.tokens) FILTER (WHERE counts AND day = now_ms / 86400000), 0)::bigint AS tokens,
			coalesce(sum(one.microcents) FILTER (WHERE counts AND day = now_ms / 86400000), 0)::bigint AS microcents,
			coalesce(sum(one.microcents) FILTER (WHERE counts AND date_trunc('month', date '1970-01-01' + day)
				= date_trunc('month', date '1970-01-01' + (now_ms / 86400000)::int)), 0)::bigint AS month_microcents,
			count(*) FILTER (WHERE counts AND is_open) AS open,
			count(*) FILTER (WHERE admitted_ms > now_ms - 60000) AS requests
		FROM (SELECT *, lease_until_ms > now_ms AS counts FROM limit_reservations WHERE account_id = account AND scope = ANY (scopes)) AS one
	)
	SELECT used.tokens + sums.tokens, used.microcents + sums.microcents, used.month_microcents + sums.month_microcents, sums.open,
		sums.requests
	FROM limit_scope_used(account, scope, now_ms / 86400000) AS used, sums
$$;--> statement-breakpoint
-- by hand: the decision on account and scopes in one call. `wanted_scopes` has [name, requests, concurrent requests, tokens, cost,
-- cost of the month] each, null = unlimited. The reply ends with the place of the scope that refused, 0 = the account; code 6 is
-- the cost of the month. With a lease of 0 ms it reserves nothing, and replies code 7 if all limits allow the request.
CREATE FUNCTION limit_admit(known bigint, given_now bigint, request text, account text, gateway text, lease_ms bigint, limits bigint[],
	input bigint, wanted bigint, choices bigint, fair boolean, input_price numeric, output_price numeric, extra bigint, wanted_scopes json)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
	today bigint := now_ms / 86400000;
	counted record;
	held limit_reservations;
	scope json;
	names text[];
	place bigint := 0;
	of_scope record;
	full_requests bigint := 0;
	full_seats bigint := 0;
	least_tokens bigint := 0;
	least_cost bigint := 0;
	cost_code bigint := 5;
	left_tokens numeric;
	left_cost numeric;
	most bigint;
	free bigint;
	remaining numeric;
	cap numeric;
	price numeric := choices * output_price;
	tokens bigint;
	cost bigint;
	reset_ms bigint := 0;
	wait_ms bigint := 0;
	counters bigint[];
BEGIN
	IF NOT limit_decides(known) THEN RETURN ARRAY[-1]; END IF;
	PERFORM pg_advisory_xact_lock(7245001, hashtext(account));
	SELECT * INTO counted FROM limit_counts(account, now_ms);
	IF counted.requests > 0 THEN reset_ms := counted.newest_ms + 60000 - now_ms; END IF;
	counters := ARRAY[counted.requests, reset_ms, counted.tokens, counted.microcents, counted.open, now_ms, counted.settled_tokens,
		counted.settled_microcents];

	SELECT * INTO held FROM limit_reservations WHERE request_id = request;
	IF FOUND THEN
		RETURN ARRAY[1, 0, held.output_cap, held.tokens, held.microcents, held.day] || counters || 0::bigint;
	END IF;
	left_tokens := limits[3] - counted.tokens;
	left_cost := limits[4] - counted.microcents;
	FOR scope IN SELECT json_array_elements(wanted_scopes) LOOP
		place := place + 1;
		names := names || (scope->>0);
		SELECT * INTO of_scope FROM limit_scope_counts(account, scope->>0, now_ms);
		most := (scope->>1)::bigint;
		IF full_requests = 0 AND of_scope.requests >= most THEN
			full_requests := place;
			wait_ms := 60000;
			IF most > 0 THEN
				SELECT admitted_ms + 60000 - now_ms INTO wait_ms FROM limit_reservations
					WHERE account_id = account AND scope->>0 = ANY (scopes) AND admitted_ms > now_ms - 60000
					ORDER BY admitted_ms OFFSET of_scope.requests - most LIMIT 1;
			END IF;
		END IF;
		IF full_seats = 0 AND of_scope.open >= (scope->>2)::bigint THEN full_seats := place; END IF;
		IF (scope->>3)::bigint - of_scope.tokens < left_tokens THEN
			left_tokens := (scope->>3)::bigint - of_scope.tokens;
			least_tokens := place;
		END IF;
		IF (scope->>4)::bigint - of_scope.microcents < left_cost THEN
			left_cost := (scope->>4)::bigint - of_scope.microcents;
			least_cost := place;
			cost_code := 5;
		END IF;
		IF (scope->>5)::bigint - of_scope.month_microcents < left_cost THEN
			left_cost := (scope->>5)::bigint - of_scope.month_microcents;
			least_cost := place;
			cost_code := 6;
		END IF;
	END LOOP;

	IF counted.requests >= limits[1] THEN
		wait_ms := 60000;
		IF limits[1] > 0 THEN
			SELECT admitted_ms + 60000 - now_ms INTO wait_ms FROM limit_reservations
				WHERE account_id = account AND admitted_ms > now_ms - 60000
				ORDER BY admitted_ms OFFSET counted.requests - limits[1] LIMIT 1;
		END IF;
		RETURN ARRAY[2, wait_ms, 0, 0, 0, today] || counters || 0::bigint;
	END IF;
	IF full_requests > 0 THEN RETURN ARRAY[2, wait_ms, 0, 0, 0, today] || counters || full_requests; END IF;
	free := limits[2] - counted.open;
	IF free <= 0 THEN RETURN ARRAY[3, 1000, 0, 0, 0, today] || counters || 0::bigint; END IF;
	IF full_seats > 0 THEN RETURN ARRAY[3, 1000, 0, 0, 0, today] || counters || full_seats; END IF;
	remaining := left_tokens - input;
	IF fair THEN remaining := greatest(floor(remaining / free), least(remaining, choices)); END IF;
	cap := least(greatest(1, wanted), floor(remaining / choices));
	IF cap < 1 THEN RETURN ARRAY[4, (today + 1) * 86400000 - now_ms, 0, 0, 0, today] || counters || least_tokens; END IF;
	-- In 1e-14 USD, where prices are whole: nothing is rounded before the one ceiling at the end.
	remaining := (left_cost - extra)::numeric * 1000000 - input * input_price;
	IF remaining < price THEN
		RETURN ARRAY[cost_code, (today + 1) * 86400000 - now_ms, 0, 0, 0, today] || counters || least_cost;
	END IF;
	IF price > 0 THEN
		cap := greatest(1, least(cap, floor(CASE WHEN fair THEN floor(remaining / free) ELSE remaining END / price)));
	END IF;
	tokens := input + cap * choices;
	IF lease_ms = 0 THEN RETURN ARRAY[7, 0, 0, 0, 0, today] || counters || 0::bigint; END IF;
	cost := ceil((input * input_price + cap * price) / 1000000) + extra;
	INSERT INTO limit_reservations VALUES
		(request, account, gateway, today, tokens, cost, cap, true, now_ms, now_ms + lease_ms, names);
	RETURN ARRAY[1, 0, cap::bigint, tokens, cost, today, counted.requests + 1, 60000, counted.tokens + tokens,
		counted.microcents + cost, counted.open + 1, now_ms, counted.settled_tokens, counted.settled_microcents, 0];
END $$;--> statement-breakpoint
-- by hand: for instances of the release before, which know no scopes.
CREATE OR REPLACE FUNCTION limit_admit(known bigint, given_now bigint, request text, account text, gateway text, lease_ms bigint,
	limits bigint[], input bigint, wanted bigint, choices bigint, fair boolean, input_price numeric, output_price numeric, extra bigint)
RETURNS bigint[] LANGUAGE sql AS $$
	SELECT limit_admit(known, given_now, request, account, gateway, lease_ms, limits, input, wanted, choices, fair, input_price,
		output_price, extra, NULL)
$$;--> statement-breakpoint
-- by hand: as before, also within the limits of the scopes: [name, tokens, cost, cost of the month] each.
CREATE FUNCTION limit_raise(known bigint, given_now bigint, request text, wanted_tokens bigint, wanted_cost bigint, limits bigint[],
	wanted_scopes json)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
	held limit_reservations;
	counted record;
	scope json;
	of_scope record;
	more_tokens bigint;
	more_cost bigint;
BEGIN
	IF NOT limit_decides(known) THEN RETURN ARRAY[-1]; END IF;
	SELECT * INTO held FROM limit_reservations WHERE request_id = request;
	IF NOT FOUND THEN RETURN ARRAY[0]; END IF;
	PERFORM pg_advisory_xact_lock(7245001, hashtext(held.account_id));
	SELECT * INTO held FROM limit_reservations WHERE request_id = request AND is_open AND lease_until_ms > now_ms;
	IF NOT FOUND OR held.day <> now_ms / 86400000 THEN RETURN ARRAY[0]; END IF;
	SELECT * INTO counted FROM limit_counts(held.account_id, now_ms);
	more_tokens := greatest(0, wanted_tokens - held.tokens);
	more_cost := greatest(0, wanted_cost - held.microcents);
	IF counted.tokens + more_tokens > limits[3] OR counted.microcents + more_cost > limits[4] THEN RETURN ARRAY[0]; END IF;
	FOR scope IN SELECT json_array_elements(wanted_scopes) LOOP
		SELECT * INTO of_scope FROM limit_scope_counts(held.account_id, scope->>0, now_ms);
		IF of_scope.tokens + more_tokens > (scope->>1)::bigint OR of_scope.microcents + more_cost > (scope->>2)::bigint
			OR of_scope.month_microcents + more_cost > (scope->>3)::bigint THEN RETURN ARRAY[0]; END IF;
	END LOOP;
	UPDATE limit_reservations SET tokens = tokens + more_tokens, microcents = microcents + more_cost WHERE request_id = request;
	RETURN ARRAY[1, held.tokens + more_tokens, held.microcents + more_cost, counted.tokens + more_tokens, counted.microcents + more_cost];
END $$;--> statement-breakpoint
-- by hand: usage in scopes counts in its month until the ledger has it.
CREATE OR REPLACE FUNCTION limit_settle(known bigint, settled json) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF NOT limit_decides(known) THEN RETURN false; END IF;
	UPDATE limit_reservations SET is_open = false, tokens = (one->>1)::bigint, microcents = (one->>2)::bigint,
		lease_until_ms = greatest((day + CASE WHEN scopes IS NULL THEN 2 ELSE 33 END) * 86400000::bigint, admitted_ms + 60000)
	FROM json_array_elements(settled) AS one
	WHERE request_id = one->>0 AND is_open;
	RETURN true;
END $$;--> statement-breakpoint
-- by hand: rows may end with the names of the request's scopes.
CREATE OR REPLACE FUNCTION limit_register(gateway text, given_now bigint, wanted bigint, lease_ms bigint, rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
BEGIN
	IF NOT EXISTS (SELECT FROM limit_authority WHERE epoch = wanted) THEN RETURN false; END IF;
	INSERT INTO limit_reservations
	SELECT one->>0, one->>1, gateway, (one->>2)::int, (one->>3)::bigint, (one->>4)::bigint, (one->>5)::bigint, one->>6 = '1',
		now_ms - (one->>7)::bigint,
		CASE WHEN one->>6 = '1' THEN now_ms + lease_ms
			WHEN (one->>3)::bigint + (one->>4)::bigint > 0 THEN ((one->>2)::int + 33) * 86400000::bigint
			ELSE now_ms - (one->>7)::bigint + 60000 END,
		CASE WHEN json_typeof(one->8) = 'array' THEN ARRAY(SELECT json_array_elements_text(one->8)) END
	FROM json_array_elements(rows) AS one
	ORDER BY 1
	ON CONFLICT (request_id) DO UPDATE SET gateway_id = excluded.gateway_id, is_open = excluded.is_open, tokens = excluded.tokens,
		microcents = excluded.microcents, lease_until_ms = excluded.lease_until_ms,
		scopes = coalesce(excluded.scopes, limit_reservations.scopes);
	PERFORM limit_end_shipped(gateway);
	UPDATE limit_gateways SET epoch = wanted WHERE id = gateway;
	RETURN true;
END $$;
