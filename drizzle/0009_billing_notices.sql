CREATE TABLE "billing_notices" (
	"account_id" text NOT NULL,
	"kind" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" text NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"attempts" smallint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "billing_notices_key" PRIMARY KEY("account_id","kind","subject","user_id"),
	CONSTRAINT "billing_notices_kind" CHECK ("billing_notices"."kind" in ('invoice_unpaid', 'grace_began', 'grace_ended')),
	CONSTRAINT "billing_notices_status" CHECK ("billing_notices"."status" in ('pending', 'sent', 'dropped'))
);
--> statement-breakpoint
ALTER TABLE "billing_notices" ADD CONSTRAINT "billing_notices_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "billing_notices" ADD CONSTRAINT "billing_notices_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "billing_notices_due" ON "billing_notices" USING btree ("due_at") WHERE "billing_notices"."status" = 'pending';--> statement-breakpoint
-- By hand: an account sees its own rows only. The grants follow at every start (gateway_second_wall).
ALTER TABLE billing_notices ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON billing_notices USING (coalesce(account_id = current_setting('gateway.account_id', true), false));
