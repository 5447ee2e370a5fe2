/**
 * The usage of an invoice by key, tag, member or dialect, from the same rows as its lines per model: daily totals for
 * whole UTC days, records for the rest. Only records have the dialect.
 */
import { type SQL, sql } from 'drizzle-orm'
import type { Database } from '../../../database/database.ts'
import { type Transaction, withAccountRls } from '../../../database/statement.ts'
import { type BreakdownDimension, type BreakdownLine, toBreakdown } from '../schemas.ts'
import { workDeadlineMs } from './billing.ts'
import { cycleParts, findInvoice, getBilledPart } from './invoices.ts'

type BreakdownRequest = {
  readonly accountId: string
  readonly invoiceId: string
  readonly by: BreakdownDimension
  /** A tag's name; used by tag only. */
  readonly tagName: string | null
}

/** More values than this are one line: a tag may be an agent's session. */
const maximumValues = 1_000

/** Returns the lines of an invoice by one dimension; null if the account has no such invoice. */
export async function breakDownInvoice(
  database: Database,
  { accountId, invoiceId, by, tagName }: BreakdownRequest,
): Promise<readonly BreakdownLine[] | null> {
  const found = await findInvoice(database, accountId, invoiceId)
  if (found === null) return null
  const { lines, cycle } = found
  // The invoice itself is by model.
  if (by === 'model')
    return toBreakdown(
      lines.map(line => ({ ...line, kind: 'usage', id: line.model === '' ? null : line.model, name: null })),
      lines,
    )
  const used = await withAccountRls(database, accountId).orm(
    async step => usageBy(step, accountId, { by, tagName, period: await getBilledPart(step, cycle) }),
    workDeadlineMs,
  )
  return toBreakdown(used, lines)
}

type Wanted = {
  readonly by: Exclude<BreakdownDimension, 'model'>
  readonly tagName: string | null
  readonly period: { readonly startsAt: number; readonly endsAt: number }
}

async function usageBy(step: Transaction, accountId: string, { by, tagName, period }: Wanted) {
  const rows = await step.execute<Row>(sql`
    with used as materialized (${rowsBy(accountId, by, { tagName, period })}),
    units as (
      select unit, ${summed(sql``)}
      from used
      -- As in the invoice: requests that no model served count if one of them cost something.
      where model <> '' or (select sum(billed_microcents) from used where model = '') > 0
      group by unit
    ), ranked as (
      select *, row_number() over (order by unit is null, billed_microcents desc, unit) as place from units
    ), kinds as (
      select *, case when unit is null then 'untagged' when place > ${maximumValues}::int then 'others' else 'usage' end as kind
      from ranked
    ), lines as (
      select kind, case when kind = 'usage' then unit end as unit, ${summed(sql`::float8`)} from kinds group by 1, 2
    )
    select lines.*, ${getName(by)} as name from lines
    where requests <> 0 or billed_microcents <> 0`)
  return rows.map(
    (row): BreakdownLine => ({
      kind: row.kind,
      id: row.unit === '' ? null : row.unit,
      name: row.name,
      requests: row.requests,
      inputTokens: row.input_tokens,
      cachedInputTokens: row.cached_input_tokens,
      outputTokens: row.output_tokens,
      reasoningTokens: row.reasoning_tokens,
      amountMicrocents: row.billed_microcents,
    }),
  )
}

type Row = {
  readonly kind: BreakdownLine['kind']
  readonly unit: string | null
  readonly name: string | null
  readonly requests: number
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly billed_microcents: number
}

const sums = [
  'requests',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'billed_microcents',
] as const

const summed = (type: SQL) =>
  sql.join(
    sums.map(name => sql`sum(${sql.identifier(name)})${type} as ${sql.identifier(name)}`),
    sql`, `,
  )

/** Rows of (unit, model, sums); unit null = requests without the tag. */
function rowsBy(accountId: string, by: Wanted['by'], { tagName, period }: Omit<Wanted, 'by'>): SQL {
  const { wholeDays, partialDays, wholePeriod } = cycleParts(period)
  const recorded = sql`case when model = '' then '' else provider || '/' || model end as model, 1 as requests,
    input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, billed_microcents`
  const daily = sql`model, ${sql.join(sums.map(sql.identifier), sql`, `)}`
  const own = sql`account_id = ${accountId}`
  if (by === 'dialect')
    return sql`select coalesce(dialect, '') as unit, ${recorded} from usage_records where ${own} and ${wholePeriod}`
  if (by !== 'tag') {
    const unit =
      by === 'key'
        ? sql`coalesce((select line_id from api_keys where id = key_id), key_id)`
        : sql`coalesce((select user_id from api_keys where id = key_id), '')`
    return sql`
      select ${unit} as unit, ${daily} from usage_daily where ${own} and ${wholeDays}
      union all
      select ${unit}, ${recorded} from usage_records where ${own} and ${partialDays}`
  }
  const name = tagName ?? ''
  const tagged = sql`
    select tag as unit, ${daily} from usage_tags_daily
    where ${own} and ${wholeDays} and starts_with(tag, ${`${name}=`})
    union all
    select ${`${name}=`}::text || (tags ->> ${name}::text), ${recorded} from usage_records
    where ${own} and ${partialDays} and jsonb_exists(tags, ${name})`
  const negated = sql.join(
    sums.map(field => sql`- ${sql.identifier(field)}`),
    sql`, `,
  )
  // Requests without the tag are all requests less those with it.
  return sql`
    select null::text as unit, ${daily} from usage_daily where ${own} and ${wholeDays}
    union all
    select null, ${recorded} from usage_records where ${own} and ${partialDays}
    union all
    select * from (${tagged}) as tagged
    union all
    select null, model, ${negated} from (${tagged}) as subtracted`
}

function getName(by: Wanted['by']): SQL {
  if (by === 'key') return sql`(select api_keys.name from api_keys where id = unit)`
  if (by === 'member') return sql`(select email from users where id = unit)`
  return sql`null::text`
}
