CREATE TABLE "limit_authority" (
	"id" smallint PRIMARY KEY NOT NULL,
	"epoch" bigint NOT NULL,
	"holder" text NOT NULL,
	"is_open" boolean NOT NULL,
	"changed_at" timestamp with time zone NOT NULL,
	CONSTRAINT "limit_authority_row" CHECK ("limit_authority"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "limit_gateways" (
	"id" text PRIMARY KEY NOT NULL,
	"epoch" bigint NOT NULL,
	"sees_redis" boolean NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "limit_reservations" (
	"request_id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"gateway_id" text NOT NULL,
	"day" integer NOT NULL,
	"tokens" bigint NOT NULL,
	"microcents" bigint NOT NULL,
	"output_cap" bigint NOT NULL,
	"is_open" boolean NOT NULL,
	"admitted_ms" bigint NOT NULL,
	"lease_until_ms" bigint NOT NULL,
	CONSTRAINT "limit_reservations_sums" CHECK ("limit_reservations"."tokens" >= 0 and "limit_reservations"."microcents" >= 0)
);
--> statement-breakpoint
CREATE INDEX "limit_reservations_account" ON "limit_reservations" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "limit_reservations_lease" ON "limit_reservations" USING btree ("lease_until_ms");--> statement-breakpoint
-- From here on by hand.
INSERT INTO limit_authority VALUES (1, 1, 'redis', false, clock_timestamp());--> statement-breakpoint
ALTER TABLE limit_reservations ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON limit_reservations USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
CREATE FUNCTION limit_now(given bigint) RETURNS bigint LANGUAGE sql AS $$
	SELECT coalesce(given, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;--> statement-breakpoint
-- What limits count of an account: the ledger's day, and the reservations beside it. One statement, hence one snapshot: the
-- statement that writes a record into the ledger ends its reservation.
CREATE FUNCTION limit_counts(account text, now_ms bigint, OUT tokens bigint, OUT microcents bigint, OUT settled_tokens bigint,
	OUT settled_microcents bigint, OUT open integer, OUT requests integer, OUT newest_ms bigint)
LANGUAGE sql AS $$
	WITH ledger AS (
		SELECT coalesce(sum(input_tokens + output_tokens), 0)::bigint AS tokens, coalesce(sum(billed_microcents), 0)::bigint AS microcents
		FROM usage_daily WHERE account_id = account AND day = date '1970-01-01' + (now_ms / 86400000)::int
	), sums AS (
		SELECT
			coalesce(sum(one.tokens) FILTER (WHERE counts AND day = now_ms / 86400000), 0)::bigint AS tokens,
			coalesce(sum(one.microcents) FILTER (WHERE counts AND day = now_ms / 86400000), 0)::bigint AS microcents,
			coalesce(sum(one.tokens) FILTER (WHERE counts AND day = now_ms / 86400000 AND NOT is_open), 0)::bigint AS settled_tokens,
			coalesce(sum(one.microcents) FILTER (WHERE counts AND day = now_ms / 86400000 AND NOT is_open), 0)::bigint AS settled_microcents,
			count(*) FILTER (WHERE counts AND is_open)::int AS open,
			count(*) FILTER (WHERE admitted_ms > now_ms - 60000)::int AS requests,
			max(admitted_ms) AS newest_ms
		FROM (SELECT *, lease_until_ms > now_ms AS counts FROM limit_reservations WHERE account_id = account) AS one
		WHERE counts OR admitted_ms > now_ms - 60000
	)
	SELECT ledger.tokens + sums.tokens, ledger.microcents + sums.microcents, ledger.tokens + sums.settled_tokens,
		ledger.microcents + sums.settled_microcents, sums.open, sums.requests, coalesce(sums.newest_ms, 0)
	FROM ledger, sums
$$;--> statement-breakpoint
-- Whether Postgres decides under this epoch. A change of the holder waits for every transaction that was answered yes.
CREATE FUNCTION limit_decides(known bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(7245001502);
	RETURN EXISTS (SELECT FROM limit_authority WHERE epoch = known AND holder = 'postgres' AND is_open);
END $$;--> statement-breakpoint
-- Replies as the script of the same purpose does in Redis: [code, wait, cap, tokens, cost, day, requests, reset, tokens and cost
-- of the day, open, now, settled tokens and cost]; [-1] if Postgres does not decide under this epoch.
CREATE FUNCTION limit_admit(known bigint, given_now bigint, request text, account text, gateway text, lease_ms bigint, limits bigint[],
	input bigint, wanted bigint, choices bigint, fair boolean, input_price numeric, output_price numeric, extra bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
	today bigint := now_ms / 86400000;
	counted record;
	held limit_reservations;
	free bigint;
	remaining numeric;
	cap numeric;
	price numeric := choices * output_price;
	tokens bigint;
	cost bigint;
	reset_ms bigint := 0;
	oldest_ms bigint;
BEGIN
	IF NOT limit_decides(known) THEN RETURN ARRAY[-1]; END IF;
	PERFORM pg_advisory_xact_lock(7245001, hashtext(account));
	SELECT * INTO counted FROM limit_counts(account, now_ms);
	IF counted.requests > 0 THEN reset_ms := counted.newest_ms + 60000 - now_ms; END IF;

	SELECT * INTO held FROM limit_reservations WHERE request_id = request;
	IF FOUND THEN
		RETURN ARRAY[1, 0, held.output_cap, held.tokens, held.microcents, held.day, counted.requests, reset_ms, counted.tokens,
			counted.microcents, counted.open, now_ms, counted.settled_tokens, counted.settled_microcents];
	END IF;
	IF counted.requests >= limits[1] THEN
		SELECT admitted_ms INTO oldest_ms FROM limit_reservations
			WHERE account_id = account AND admitted_ms > now_ms - 60000
			ORDER BY admitted_ms OFFSET greatest(0, counted.requests - limits[1]) LIMIT 1;
		RETURN ARRAY[2, CASE WHEN limits[1] <= 0 THEN 60000 ELSE oldest_ms + 60000 - now_ms END, 0, 0, 0, today, counted.requests,
			reset_ms, counted.tokens, counted.microcents, counted.open, now_ms, counted.settled_tokens, counted.settled_microcents];
	END IF;
	free := limits[2] - counted.open;
	IF free <= 0 THEN
		RETURN ARRAY[3, 1000, 0, 0, 0, today, counted.requests, reset_ms, counted.tokens, counted.microcents, counted.open, now_ms,
			counted.settled_tokens, counted.settled_microcents];
	END IF;
	remaining := limits[3] - counted.tokens - input;
	IF fair THEN remaining := greatest(floor(remaining / free), least(remaining, choices)); END IF;
	cap := least(greatest(1, wanted), floor(remaining / choices));
	IF cap < 1 THEN
		RETURN ARRAY[4, (today + 1) * 86400000 - now_ms, 0, 0, 0, today, counted.requests, reset_ms, counted.tokens,
			counted.microcents, counted.open, now_ms, counted.settled_tokens, counted.settled_microcents];
	END IF;
	-- In 1e-14 USD, where prices are whole: nothing is rounded before the one ceiling at the end.
	remaining := (limits[4] - counted.microcents - extra)::numeric * 1000000 - input * input_price;
	IF remaining < price THEN
		RETURN ARRAY[5, (today + 1) * 86400000 - now_ms, 0, 0, 0, today, counted.requests, reset_ms, counted.tokens,
			counted.microcents, counted.open, now_ms, counted.settled_tokens, counted.settled_microcents];
	END IF;
	IF price > 0 THEN
		cap := greatest(1, least(cap, floor(CASE WHEN fair THEN floor(remaining / free) ELSE remaining END / price)));
	END IF;
	tokens := input + cap * choices;
	cost := ceil((input * input_price + cap * price) / 1000000) + extra;
	INSERT INTO limit_reservations VALUES
		(request, account, gateway, today, tokens, cost, cap, true, now_ms, now_ms + lease_ms);
	RETURN ARRAY[1, 0, cap::bigint, tokens, cost, today, counted.requests + 1, 60000, counted.tokens + tokens,
		counted.microcents + cost, counted.open + 1, now_ms, counted.settled_tokens, counted.settled_microcents];
END $$;--> statement-breakpoint
-- [1, tokens, cost, tokens and cost of the day], [0] if the account cannot pay for it, [-1] as above.
CREATE FUNCTION limit_raise(known bigint, given_now bigint, request text, wanted_tokens bigint, wanted_cost bigint, limits bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
	held limit_reservations;
	counted record;
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
	UPDATE limit_reservations SET tokens = tokens + more_tokens, microcents = microcents + more_cost WHERE request_id = request;
	RETURN ARRAY[1, held.tokens + more_tokens, held.microcents + more_cost, counted.tokens + more_tokens, counted.microcents + more_cost];
END $$;--> statement-breakpoint
-- Releases reservations of requests that are settled, [id, tokens, cost] each; what they used counts until the ledger has it.
CREATE FUNCTION limit_settle(known bigint, settled json) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF NOT limit_decides(known) THEN RETURN false; END IF;
	UPDATE limit_reservations SET is_open = false, tokens = (one->>1)::bigint, microcents = (one->>2)::bigint,
		lease_until_ms = greatest((day + 2) * 86400000::bigint, admitted_ms + 60000)
	FROM json_array_elements(settled) AS one
	WHERE request_id = one->>0 AND is_open;
	RETURN true;
END $$;--> statement-breakpoint
-- Ends reservations of requests that the ledger has: a record may have been shipped while its request was being registered.
CREATE FUNCTION limit_end_shipped(gateway text) RETURNS void LANGUAGE sql AS $$
	UPDATE limit_reservations AS one SET is_open = false, tokens = 0, microcents = 0
	WHERE gateway_id = gateway AND (is_open OR tokens + microcents > 0) AND EXISTS (
		SELECT FROM usage_records WHERE usage_records.request_id = one.request_id
			AND at >= to_timestamp(one.day * 86400.0) AND at < to_timestamp((one.day + 1) * 86400.0)
	)
$$;--> statement-breakpoint
-- What one gateway has open, has settled, and has admitted in the last minute, ahead of the decisions of a new epoch:
-- [id, account, day, tokens, cost, cap, 1 = open, age in ms] each. False if there is a newer epoch.
CREATE FUNCTION limit_register(gateway text, given_now bigint, wanted bigint, lease_ms bigint, rows json) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	now_ms bigint := limit_now(given_now);
BEGIN
	IF NOT EXISTS (SELECT FROM limit_authority WHERE epoch = wanted) THEN RETURN false; END IF;
	INSERT INTO limit_reservations
	SELECT one->>0, one->>1, gateway, (one->>2)::int, (one->>3)::bigint, (one->>4)::bigint, (one->>5)::bigint, one->>6 = '1',
		now_ms - (one->>7)::bigint,
		CASE WHEN one->>6 = '1' THEN now_ms + lease_ms
			WHEN (one->>3)::bigint + (one->>4)::bigint > 0 THEN ((one->>2)::int + 2) * 86400000::bigint
			ELSE now_ms - (one->>7)::bigint + 60000 END
	FROM json_array_elements(rows) AS one
	ORDER BY 1
	ON CONFLICT (request_id) DO UPDATE SET gateway_id = excluded.gateway_id, is_open = excluded.is_open, tokens = excluded.tokens,
		microcents = excluded.microcents, lease_until_ms = excluded.lease_until_ms;
	PERFORM limit_end_shipped(gateway);
	UPDATE limit_gateways SET epoch = wanted WHERE id = gateway;
	RETURN true;
END $$;--> statement-breakpoint
-- A new epoch, once every decision under the known one is committed. Nothing happens if another gateway was first.
CREATE FUNCTION limit_switch(known bigint, wanted text, at_least bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(7245001502);
	UPDATE limit_authority SET epoch = greatest(epoch + 1, at_least), holder = wanted, is_open = false, changed_at = clock_timestamp()
		WHERE epoch = known;
END $$;--> statement-breakpoint
-- A gateway's heartbeat. Replies {epoch, holder, isOpen, isComplete, living}: complete = all living gateways, those with a
-- heartbeat within 3 s, have registered. Postgres gives way to Redis once every living gateway reaches it.
CREATE FUNCTION limit_beat(gateway text, registered bigint, sees boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	now timestamptz := clock_timestamp();
	authority limit_authority;
	living json;
	complete boolean;
BEGIN
	INSERT INTO limit_gateways VALUES (gateway, registered, sees, now)
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, sees_redis = excluded.sees_redis, at = excluded.at;
	SELECT * INTO authority FROM limit_authority;
	IF authority.holder = 'postgres' AND authority.is_open AND sees
		AND NOT EXISTS (SELECT FROM limit_gateways WHERE at > now - interval '3 seconds' AND NOT sees_redis) THEN
		PERFORM limit_switch(authority.epoch, 'redis', 0);
		SELECT * INTO authority FROM limit_authority;
	END IF;
	IF authority.changed_at > now - interval '10 seconds' THEN PERFORM limit_end_shipped(gateway); END IF;
	complete := NOT EXISTS (SELECT FROM limit_gateways WHERE at > now - interval '3 seconds' AND epoch < authority.epoch);
	IF complete AND NOT authority.is_open AND authority.holder = 'postgres' THEN
		UPDATE limit_authority SET is_open = true WHERE epoch = authority.epoch;
		authority.is_open := true;
	END IF;
	SELECT coalesce(json_agg(id), '[]') INTO living FROM limit_gateways WHERE at > now - interval '3 seconds';
	RETURN json_build_object('epoch', authority.epoch, 'holder', authority.holder, 'isOpen', authority.is_open,
		'isComplete', complete, 'living', living);
END $$;
