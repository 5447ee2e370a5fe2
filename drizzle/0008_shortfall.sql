ALTER TABLE "accounts" ADD COLUMN "shortfall_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "shortfall_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_shortfall" CHECK ("accounts"."shortfall_microcents" >= 0);