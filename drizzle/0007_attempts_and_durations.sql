ALTER TABLE "usage_daily" ADD COLUMN "failed" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_daily" ADD COLUMN "latency" integer[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_daily" ADD COLUMN "first_token" integer[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_records" ADD COLUMN "tried" jsonb;--> statement-breakpoint
-- By hand: of the days before, those who left are told as failures too. To tell them apart the whole ledger would have to be read.
UPDATE "usage_daily" SET "failed" = "requests" - "completed" WHERE "requests" > "completed";
--> statement-breakpoint
-- Counts of `core/durations.ts`. In loops over one array in place: of all ways to write it by far the quickest.
CREATE FUNCTION gateway_counts(slots integer[], counts integer) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
	result integer[] := array_fill(0, ARRAY[counts]);
	slot integer;
BEGIN
	IF slots IS NOT NULL THEN
		FOREACH slot IN ARRAY slots LOOP
			result[slot + 1] := result[slot + 1] + 1;
		END LOOP;
	END IF;
	RETURN result;
END $$;
--> statement-breakpoint
CREATE FUNCTION gateway_counts_added(one integer[], other integer[]) RETURNS integer[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	FOR slot IN 1 .. cardinality(other) LOOP
		one[slot] := coalesce(one[slot], 0) + other[slot];
	END LOOP;
	RETURN one;
END $$;
--> statement-breakpoint
CREATE AGGREGATE gateway_counts_sum(integer[]) (SFUNC = gateway_counts_added, STYPE = integer[], INITCOND = '{}');
