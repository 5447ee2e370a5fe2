CREATE TABLE "email_verifications" (
	"digest" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"email" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "email_verifications_user" UNIQUE("user_id")
);
--> statement-breakpoint
CREATE TABLE "known_addresses" (
	"user_id" text NOT NULL,
	"digest" text NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	"failures" smallint DEFAULT 0 NOT NULL,
	CONSTRAINT "known_addresses_key" PRIMARY KEY("user_id","digest"),
	CONSTRAINT "known_addresses_failures" CHECK ("known_addresses"."failures" >= 0)
);
--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "unverified_since" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "email_verifications" ADD CONSTRAINT "email_verifications_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "known_addresses" ADD CONSTRAINT "known_addresses_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
-- By hand: rows of an account's own users only, as with password_resets.
ALTER TABLE known_addresses ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON known_addresses USING (EXISTS (SELECT FROM users WHERE users.id = user_id));--> statement-breakpoint
ALTER TABLE email_verifications ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON email_verifications USING (EXISTS (SELECT FROM users WHERE users.id = user_id));
