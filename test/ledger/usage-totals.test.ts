/** Totals equal the plain sum over the requests, for all filters and groups. */
import { beforeAll, describe, expect } from 'bun:test'
import fc from 'fast-check'
import { projectTagName, splitProject } from '../../src/core/request/tags.ts'
import { durationBoundsMs } from '../../src/core/usage/latency-histogram.ts'
import type { UsageRecord } from '../../src/core/usage/usage-record.ts'
import type { Database } from '../../src/database/database.ts'
import type { UsageScope } from '../../src/database/visible-requests.ts'
import type { RequestFilters } from '../../src/ledger/request-filters.ts'
import type { UsageGroup, UsagePeriod, UsageSplit } from '../../src/ledger/usage-lines.ts'
import { readUsage, type UsageSums } from '../../src/ledger/usage-totals.ts'
import { fillLog } from '../bench/log/fill.ts'
import { type LogPlan, logRecords } from '../bench/log/records.ts'
import { getOnDatabase } from '../database/on-database.ts'
import { testedDatabases } from '../database/tested-databases.ts'
import { needed } from '../harness/needs.ts'
import '../harness/property-seed.ts'

const databases = testedDatabases()
const until = Date.UTC(2026, 10, 23, 15)
const dayMs = 86_400_000
const requests = 800

const getKeys = (name: string, count: number) => Array.from({ length: count }, (_, n) => `key_${name}${n}`)
const plan: LogPlan = {
  accounts: [
    { accountId: 'acc_log', keyIds: getKeys('log', 40) },
    { accountId: 'acc_other', keyIds: getKeys('other', 5) },
  ],
  requests,
  from: until - 30 * dayMs,
  to: until,
}
const records = [...logRecords(plan)].filter(({ account_id }) => account_id === 'acc_log')

beforeAll(async () => {
  for (const [, open] of databases)
    await fillLog(needed(open()), { requests, passwordHash: 'argon2id', until, onProgress: () => {} })
}, 240_000)

const rarely = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 2, nil: null })
const filters = fc.record<RequestFilters>({
  from: rarely(fc.integer({ min: plan.from, max: until })),
  to: rarely(fc.integer({ min: plan.from, max: until })),
  keyId: rarely(fc.constantFrom('key_log0', 'key_log1', 'key_log7', 'key_other1')),
  provider: rarely(fc.constantFrom('openai', 'mistral')),
  model: fc.constant(null),
  errorCode: fc.constant(null),
  status: rarely(fc.constantFrom('completed', 'failed', 'client_closed', 'blocked')),
  dialect: rarely(fc.constantFrom('messages', 'embeddings')),
  queryType: rarely(fc.constantFrom('code', 'writing')),
  minimumLatencyMs: rarely(fc.integer({ min: 20, max: 3_000 })),
  maximumLatencyMs: rarely(fc.integer({ min: 300, max: 20_000 })),
  routingMode: rarely(fc.constantFrom('auto', 'manual')),
  streamed: rarely(fc.boolean()),
  unpriced: rarely(fc.boolean()),
  metadata: rarely(fc.constant({ release: '2026.4' })),
  tag: rarely(fc.constantFrom('team=search', 'env=staging', 'team')),
  projectId: rarely(fc.constantFrom('prj_a', 'prj_b')),
  memberId: rarely(fc.constantFrom('usr_log0', 'usr_log3', 'usr_other1')),
})
const scopes = fc.constantFrom<Omit<UsageScope, 'accountId'>>(
  { userId: null },
  { userId: 'usr_log1' },
  { userId: 'usr_log1', projectIds: ['prj_a'] },
  { userId: 'usr_log1', projectIds: ['prj_a', 'prj_b'] },
)
const groups = fc.constantFrom<UsageGroup>(
  'minute',
  'hour',
  'day',
  'month',
  'model',
  'key',
  'member',
  'tag',
  'dialect',
  'project',
  'query_type',
)
const split = fc.constantFrom<UsageSplit | null>('model', 'key', 'member', 'dialect', 'project', null)

/** Returns true if a request matches, as the filters are documented. */
function matches(record: UsageRecord, filters: RequestFilters): boolean {
  const { from, to, keyId, provider, status, dialect, minimumLatencyMs, maximumLatencyMs } = filters
  const { queryType, routingMode, streamed, unpriced, metadata, tag, memberId, projectId } = filters
  const named = record.model === '' ? record.requested_model?.split('/')[0] : record.provider
  const has = (all: Readonly<Record<string, string>> | null | undefined, wanted: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([name, value]) => all?.[name] === value)
  return (
    (from === null || record.at_ms >= from) &&
    (to === null || record.at_ms < to) &&
    // The second key continues the first.
    (keyId === null || record.key_id === keyId || (keyId === 'key_log0' && record.key_id === 'key_log1')) &&
    (provider === null || named === provider) &&
    (status === null || record.status === status) &&
    (dialect === null || record.dialect === dialect) &&
    (queryType === null || record.query_type === queryType) &&
    (minimumLatencyMs === null || record.latency_ms >= minimumLatencyMs) &&
    (maximumLatencyMs === null || record.latency_ms <= maximumLatencyMs) &&
    (routingMode === null || record.routing_mode === routingMode) &&
    (streamed === null || record.streamed === streamed) &&
    (unpriced === null || (record.unpriced !== undefined) === unpriced) &&
    (metadata === null || has(record.metadata, metadata)) &&
    (tag === null || getUnits(record, 'tag').some(unit => unit === tag || unit.startsWith(`${tag}=`))) &&
    (memberId === null || getUnits(record, 'member').includes(memberId)) &&
    (projectId === null || getUnits(record, 'project').includes(projectId))
  )
}

function isVisible(record: UsageRecord, { userId, projectIds = [] }: Omit<UsageScope, 'accountId'>): boolean {
  if (userId === null || getUnits(record, 'member').includes(userId)) return true
  return getUnits(record, 'project').some(project => projectIds.includes(project))
}

function getUnits(record: UsageRecord, group: UsageGroup): readonly string[] {
  const time = new Date(record.at_ms).toISOString()
  const key = Number(record.key_id.slice('key_log'.length))
  const served = `${record.provider}/${record.model}`
  const units = {
    minute: [time.slice(0, 16)],
    hour: [time.slice(0, 13)],
    day: [time.slice(0, 10)],
    month: [time.slice(0, 7)],
    model: [record.model === '' ? (record.requested_model ?? '') : served],
    key: [key === 1 ? 'key_log0' : record.key_id],
    member: [`usr_log${key % 4}`],
    tag: Object.entries(record.tags ?? {}).flatMap(([name, value]) =>
      name === projectTagName ? [] : [`${name}=${value}`],
    ),
    project: splitProject(record.tags ?? null).projectId ?? [],
    dialect: [record.dialect ?? ''],
    query_type: [record.query_type ?? ''],
  }
  return [units[group]].flat()
}

/** The latency counts of completed requests. */
function getCounts(matching: readonly UsageRecord[], time: (record: UsageRecord) => number | null): number[] {
  const counts = Array.from({ length: durationBoundsMs.length + 1 }, () => 0)
  for (const record of matching) {
    const milliseconds = time(record)
    if (record.status !== 'completed' || milliseconds === null) continue
    const slot = durationBoundsMs.filter(bound => bound <= milliseconds).length
    counts[slot] = (counts[slot] ?? 0) + 1
  }
  return counts
}

function getSum(matching: readonly UsageRecord[]): UsageSums {
  const sum = (
    field: 'input_tokens' | 'cached_input_tokens' | 'output_tokens' | 'reasoning_tokens' | 'billed_microcents',
  ) => matching.reduce((all, record) => all + record[field], 0)
  return {
    requests: matching.length,
    completed: matching.filter(({ status }) => status === 'completed').length,
    failed: matching.filter(({ status }) => status === 'failed' || status === 'blocked').length,
    input_tokens: sum('input_tokens'),
    cached_input_tokens: sum('cached_input_tokens'),
    output_tokens: sum('output_tokens'),
    reasoning_tokens: sum('reasoning_tokens'),
    billed_microcents: sum('billed_microcents'),
    own_key_microcents: matching.reduce((all, { own_key_microcents = 0 }) => all + own_key_microcents, 0),
    routing_saved_microcents: matching.reduce((all, record) => all + (record.routing_saved_microcents ?? 0), 0),
    cache_saved_microcents: matching.reduce((all, record) => all + (record.cache_saved_microcents ?? 0), 0),
    latency: getCounts(matching, ({ latency_ms }) => latency_ms),
    first_token: getCounts(matching, ({ first_token_ms }) => first_token_ms),
  }
}

/** Keeps what a sum says: the daily totals leave out counts at the end that are 0. */
function shownSums({ latency, first_token, ...sums }: UsageSums) {
  const { requests, completed, failed, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens } = sums
  const trimmed = (counts: readonly number[]) => counts.slice(0, counts.findLastIndex(count => count > 0) + 1)
  return {
    ...{ requests, completed, failed, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens },
    billed_microcents: sums.billed_microcents,
    latency: trimmed(latency),
    first_token: trimmed(first_token),
  }
}

describe.each([...databases])('readUsage on %s', (name, open) => {
  const onDatabase = getOnDatabase(name, open, 120_000)

  onDatabase('returns the plain sum over the matching requests, for random filters and groups', async database => {
    await fc.assert(
      fc.asyncProperty(filters, groups, split, scopes, (chosen, groupBy, splitBy, visible) =>
        // A request is in several groups by tag, and in none without a project: these are not split.
        checkSums(
          database,
          chosen,
          { groupBy, splitBy: groupBy === 'tag' || groupBy === 'project' ? null : splitBy },
          visible,
        ),
      ),
      { numRuns: 60 },
    )
  })
})

async function checkSums(
  database: Database,
  chosen: RequestFilters,
  { groupBy, splitBy }: Pick<UsagePeriod, 'groupBy' | 'splitBy'>,
  visible: Omit<UsageScope, 'accountId'>,
) {
  const day = (time: number) => new Date(time).toISOString().slice(0, 10)
  const period = { from: day(plan.from + dayMs), to: day(until - dayMs), groupBy, splitBy, filters: chosen }
  const isWithin = ({ at_ms }: UsageRecord) => day(at_ms) >= period.from && day(at_ms) <= period.to
  const matching = records.filter(record => isWithin(record) && isVisible(record, visible) && matches(record, chosen))
  const { total, groups: found, parts } = await readUsage(database, { accountId: 'acc_log', ...visible }, period)

  expect(shownSums(total)).toEqual(shownSums(getSum(matching)))
  const byUnit = Map.groupBy(
    matching.flatMap(record => getUnits(record, groupBy).map(unit => ({ unit, record }))),
    ({ unit }) => unit,
  )
  expect(found.map(({ unit }) => unit).sort()).toEqual([...byUnit.keys()].sort())
  for (const group of found)
    expect(shownSums(group)).toEqual(shownSums(getSum(byUnit.get(group.unit)?.map(({ record }) => record) ?? [])))
  for (const { part, byUnit: ofPart } of parts ?? [])
    if (part !== null && splitBy !== null)
      for (const [unit, sums] of ofPart)
        expect(shownSums(sums)).toEqual(
          shownSums(
            getSum(
              matching.filter(
                item => (getUnits(item, splitBy)[0] ?? '') === part.unit && getUnits(item, groupBy)[0] === unit,
              ),
            ),
          ),
        )
}
