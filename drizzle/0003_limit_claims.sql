CREATE TABLE "gateways" (
	"id" text PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"turn" bigint NOT NULL,
	"in_redis" integer NOT NULL,
	"without_redis" integer NOT NULL,
	"sees_redis" boolean NOT NULL
);
--> statement-breakpoint
CREATE TABLE "limit_claims" (
	"account_id" text NOT NULL,
	"gateway_id" text NOT NULL,
	"turn" bigint NOT NULL,
	"partition" smallint NOT NULL,
	"day" integer NOT NULL,
	"tokens" bigint NOT NULL,
	"microcents" bigint NOT NULL,
	"seats" integer NOT NULL,
	"requests" integer NOT NULL,
	CONSTRAINT "limit_claims_key" PRIMARY KEY("account_id","gateway_id")
);
--> statement-breakpoint
CREATE INDEX "limit_claims_gateway" ON "limit_claims" USING btree ("gateway_id");