/** The read side of the ledger. */
import { and, desc, eq } from 'drizzle-orm'
import type { Database } from './database.ts'
import type { Journal } from './journal.ts'
import type { Spent } from './meter-local.ts'
import { type UsageRow, usageRecords } from './tables.ts'

/** What the ledger holds of an account's UTC day (since the epoch). */
export async function spentOn(database: Database, accountId: string, day: number): Promise<Spent> {
  return (await spentBeside(database, accountId, day, [])).spent
}

/** One request of an account; null where the ledger has none of this id (yet), or another account's. */
export async function findRequest(database: Database, accountId: string, requestId: string): Promise<UsageRow | null> {
  const rows = await database.run(({ orm }) =>
    orm
      .select()
      .from(usageRecords)
      .where(and(eq(usageRecords.requestId, requestId), eq(usageRecords.accountId, accountId)))
      .orderBy(desc(usageRecords.at))
      .limit(1),
  )
  return rows[0] ?? null
}

/**
 * The seed of a local meter's day counters: the ledger plus what the journal has not shipped. A record may be on its way
 * from one to the other, so one statement, hence one snapshot, tells the sum and which of the waiting ones are in it.
 */
export function seedFrom(database: Database, journal: Pick<Journal, 'unshipped'>) {
  return async (accountId: string, day: number): Promise<Spent> => {
    const waiting = new Map(journal.unshipped(accountId, day).map(record => [record.request_id, record]))
    const { spent, present } = await spentBeside(database, accountId, day, [...waiting.keys()])
    for (const requestId of present) waiting.delete(requestId)
    let { tokens, microcents } = spent
    for (const record of waiting.values()) {
      tokens += record.input_tokens + record.output_tokens
      microcents += record.billed_microcents
    }
    return { tokens, microcents }
  }
}

async function spentBeside(database: Database, accountId: string, day: number, requestIds: readonly string[]) {
  const rows = await database.run(
    ({ sql }) => sql<{ tokens: string; microcents: string; present: string[] | string | null }[]>`
      select
        coalesce(sum(input_tokens + output_tokens), 0)::text as tokens,
        coalesce(sum(billed_microcents), 0)::text as microcents,
        (select json_agg(request_id) from usage_records
          where account_id = ${accountId} and request_id in
            (select json_array_elements_text(${JSON.stringify(requestIds)}::text::json))) as present
      from usage_daily
      where account_id = ${accountId} and day = date '1970-01-01' + ${day}::int`,
  )
  const row = rows[0]
  const present = row?.present ?? []
  return {
    spent: { tokens: Number(row?.tokens ?? 0), microcents: Number(row?.microcents ?? 0) },
    present: typeof present === 'string' ? (JSON.parse(present) as string[]) : present,
  }
}
