ALTER TABLE "accounts" ADD COLUMN "web" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "web" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "search_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "fetch_microcents" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
-- By hand: a partition does not know its parent's name, and no old row could break it, so none is looked at.
ALTER TABLE "usage_records" ADD CONSTRAINT "usage_records_web" CHECK (least("search_microcents", "fetch_microcents") >= 0 and "search_microcents" + "fetch_microcents" <= "billed_microcents") NOT VALID;
