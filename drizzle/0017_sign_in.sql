CREATE TABLE "oidc_sign_ins" (
	"digest" text PRIMARY KEY NOT NULL,
	"user_id" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "totp_recovery_codes" (
	"user_id" text NOT NULL,
	"digest" text NOT NULL,
	CONSTRAINT "totp_recovery_codes_key" PRIMARY KEY("user_id","digest")
);
--> statement-breakpoint
CREATE TABLE "totp_secrets" (
	"user_id" text PRIMARY KEY NOT NULL,
	"secret" text NOT NULL,
	"confirmed_at" timestamp with time zone,
	"last_step" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_identities" (
	"issuer" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"last_used_at" timestamp with time zone NOT NULL,
	CONSTRAINT "user_identities_key" PRIMARY KEY("issuer","subject")
);
--> statement-breakpoint
ALTER TABLE "invitations" DROP CONSTRAINT "invitations_role";--> statement-breakpoint
ALTER TABLE "users" DROP CONSTRAINT "users_role";--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "requires_totp" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "ends_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "password_sign_in_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "oidc_sign_ins" ADD CONSTRAINT "oidc_sign_ins_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "totp_recovery_codes" ADD CONSTRAINT "totp_recovery_codes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "totp_secrets" ADD CONSTRAINT "totp_secrets_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_identities" ADD CONSTRAINT "user_identities_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "oidc_sign_ins_expires_at" ON "oidc_sign_ins" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "user_identities_user" ON "user_identities" USING btree ("user_id");--> statement-breakpoint
ALTER TABLE "invitations" ADD CONSTRAINT "invitations_role" CHECK ("invitations"."role" in ('admin', 'member', 'viewer'));--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_role" CHECK ("users"."role" in ('owner', 'admin', 'member', 'viewer'));--> statement-breakpoint
-- by hand: rows of an account's own users only, as with password_resets.
ALTER TABLE oidc_sign_ins ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON oidc_sign_ins USING (EXISTS (SELECT FROM users WHERE users.id = user_id));--> statement-breakpoint
ALTER TABLE totp_recovery_codes ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON totp_recovery_codes USING (EXISTS (SELECT FROM users WHERE users.id = user_id));--> statement-breakpoint
ALTER TABLE totp_secrets ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON totp_secrets USING (EXISTS (SELECT FROM users WHERE users.id = user_id));--> statement-breakpoint
ALTER TABLE user_identities ENABLE ROW LEVEL SECURITY;--> statement-breakpoint
CREATE POLICY own_account ON user_identities USING (EXISTS (SELECT FROM users WHERE users.id = user_id));
