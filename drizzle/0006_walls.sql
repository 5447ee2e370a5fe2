CREATE TABLE "budget_notices" (
	"account_id" text NOT NULL,
	"month" text NOT NULL,
	"percent" smallint NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "budget_notices_key" PRIMARY KEY("account_id","month","percent")
);
--> statement-breakpoint
CREATE TABLE "usage_near_midnight" (
	"request_id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "usage_daily" DROP CONSTRAINT "usage_daily_sums";--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD COLUMN "usage" jsonb;--> statement-breakpoint
ALTER TABLE "idempotency_keys" ADD COLUMN "lease_ends_at" timestamp with time zone NOT NULL;--> statement-breakpoint
ALTER TABLE "budget_notices" ADD CONSTRAINT "budget_notices_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "invoices_due" ON "invoices" USING btree ("updated_at") WHERE "invoices"."status" in ('open', 'unpaid');--> statement-breakpoint
ALTER TABLE "usage_daily" ADD CONSTRAINT "usage_daily_sums" CHECK (least("completed", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "billed_microcents") >= 0 and "completed" <= "requests") NOT VALID;--> statement-breakpoint
-- By hand: without the parent's name, which a partition does not know, and no old row is looked at.
ALTER TABLE "usage_records" ADD CONSTRAINT "usage_records_routing_mode" CHECK ("routing_mode" in ('auto', 'manual')) NOT VALID;--> statement-breakpoint
-- From here on by hand. What was billed stands: no row of it is changed or deleted, whoever asks. Whole partitions may be dropped.
CREATE FUNCTION gateway_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;--> statement-breakpoint
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON usage_records FOR EACH ROW EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON usage_records FOR EACH STATEMENT EXECUTE FUNCTION gateway_refuse();--> statement-breakpoint
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
-- The second wall: whoever has entered an account (gateway_enter) sees its rows alone. The owner of the tables is not held by
-- it: shipping, billing, the lookup of keys and the operator see every account. In a coalesce, since no plan may be built on
-- the wall: which index serves a query is for its own filter to say.
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON accounts USING (coalesce(id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE users ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON users USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON api_keys USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON sessions USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE session_tokens ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON session_tokens USING (EXISTS (SELECT FROM sessions WHERE sessions.id = session_id));--> statement-breakpoint
ALTER TABLE invitations ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON invitations USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE password_resets ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON password_resets USING (EXISTS (SELECT FROM users WHERE users.id = user_id));--> statement-breakpoint
ALTER TABLE payment_methods ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON payment_methods USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE plan_changes ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON plan_changes USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE billing_cycles ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON billing_cycles USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE invoices ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON invoices USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE invoice_lines ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON invoice_lines USING (EXISTS (SELECT FROM invoices WHERE invoices.id = invoice_id));--> statement-breakpoint
ALTER TABLE webhook_events ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON webhook_events USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON idempotency_keys USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE budget_notices ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON budget_notices USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE usage_records ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON usage_records USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE usage_daily ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON usage_daily USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE limit_claims ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON limit_claims USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE learning_accounts ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON learning_accounts USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE learning_entries ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON learning_entries USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
ALTER TABLE learning_state ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON learning_state USING (coalesce(account_id = current_setting('gateway.account_id', true), false));--> statement-breakpoint
-- Whether the user that asks may become gateway_app. Being a member is not enough from release 16 on.
CREATE FUNCTION gateway_may_enter() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
	app oid := (SELECT oid FROM pg_roles WHERE rolname = 'gateway_app');
BEGIN
	RETURN app IS NOT NULL
		AND pg_has_role(current_user, app, CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END);
END $$;--> statement-breakpoint
-- For the rest of the transaction: this account's rows and no others. Where there is no role to become, the filters of the
-- queries are the only wall; gateway_second_wall has told so at the start.
CREATE FUNCTION gateway_enter(account text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gateway.account_id', account, true);
	IF gateway_may_enter() THEN
		PERFORM set_config('role', 'gateway_app', true);
	END IF;
END $$;--> statement-breakpoint
-- Makes the roles, where the user may, and gives them what they need; called at every start, and changes nothing the second time.
-- gateway_app: what is done for one account. gateway_read: reports over money and usage, no secrets.
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
END $$;
