ALTER TABLE "accounts" ADD COLUMN "hedge" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "hedge_microcents" bigint DEFAULT 0 NOT NULL;